"""Our policies in MABWiser's interface: the same script runs with either library."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
from mabwiser import mab as theirs  # type: ignore[import-untyped]

import dynabandit as db
from dynabandit.integrations.mabwiser import MAB

ARMS = ["red", "green", "blue"]
MAKERS = {
    "ours": lambda: MAB(ARMS, "aff-ots", seed=1),
    "theirs": lambda: theirs.MAB(ARMS, theirs.LearningPolicy.ThompsonSampling(), seed=1),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@pytest.mark.parametrize("kind", [list, np.array, pandas.Series])
def test_a_script_for_mabwiser_runs_with_either(make: Callable[[], Any], kind: Callable[[list[Any]], Any]) -> None:
    mab = make()
    mab.fit(decisions=kind(["red", "green", "blue"] * 30), rewards=kind([0, 0, 1] * 30))
    assert [mab.predict() for _ in range(20)].count("blue") > 10
    for _ in range(100):
        arm = mab.predict()
        mab.partial_fit(kind([arm]), kind([int(arm == "blue")]))
    assert mab.predict() == "blue"
    assert max(mab.predict_expectations(), key=mab.predict_expectations().get) == "blue"
    mab.add_arm("new")
    mab.partial_fit(["new"] * 50, [1] * 50)
    mab.remove_arm("blue")
    assert set(mab.arms) == {"red", "green", "new"}
    assert [mab.predict() for _ in range(20)].count("new") > 10
    predictions = mab.predict([[0], [1], [2]])
    assert len(predictions) == 3


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "predict_expectations", "remove_arm"])
def test_the_arguments_have_the_names_of_mabwisers(method: str) -> None:
    own, other = (list(inspect.signature(getattr(kind, method)).parameters) for kind in (MAB, theirs.MAB))
    assert own == other


def test_idle_times_in_a_fitted_history_are_numbers_of_decisions() -> None:
    mab = MAB(["a", "b"], "ucb")
    mab.fit(["a"] + ["b"] * 9, [1] * 10)
    known = mab._adapter.bandit.arms
    assert (known["0"].idle, known["1"].idle) == (9, 0)
    assert (known["0"].plays, known["1"].plays) == (1, 9)


def test_a_prediction_and_its_reward_are_one_step() -> None:
    mab, bare = MAB(["0", "1"], "aff-ots", seed=3), db.Bandit("aff-ots", arms=["0", "1"], seed=3)
    for step in range(100):
        arm = mab.predict()
        assert arm == bare.choose()
        mab.partial_fit([arm], [step % 2])
        bare.reward(arm, step % 2)
    assert mab._adapter.bandit.step == 100


def test_fit_starts_again() -> None:
    mab = MAB(["a", "b"], "ts")
    mab.fit(["a", "b"], [1, 0])
    mab.fit(["b"], [1])
    assert mab.predict_expectations()["a"] == 0.5  # the mean of the prior


def test_wrong_use_is_named_and_nothing_is_learned_from_it() -> None:
    mab = MAB(["a", "b"])
    for decisions, rewards, message in [
        (["a"], [1, 0], "got 1 decisions and 2 rewards"),
        (["a", "b"], [1, 20], r"reward must be a number in \[0, 1\], got 20"),
        (["a", "c"], [1, 1], "unknown arm 'c'. Arms: 'a', 'b'"),
    ]:
        with pytest.raises(ValueError, match=message):
            mab.partial_fit(decisions, rewards)
    with pytest.raises(ValueError, match="contexts must be None"):
        mab.fit(["a"], [1], contexts=[[1]])
    assert mab._adapter.bandit.step == 0
    with pytest.raises(ValueError, match="at least 2 different arms"):
        MAB(["a", "a"])


def table(rows: int, seed: int = 1) -> np.ndarray:
    return np.hstack([np.ones((rows, 1)), np.random.default_rng(seed).normal(size=(rows, 3))])


@pytest.mark.parametrize("kind", [np.array, pandas.DataFrame, np.ndarray.tolist])
def test_with_contexts_it_chooses_as_mabwisers_own_lin_ucb(kind: Callable[[np.ndarray], Any]) -> None:
    own = MAB(ARMS, db.policy("lin-ucb", width=1.5, prior=2.0), seed=1)
    other = theirs.MAB(ARMS, theirs.LearningPolicy.LinUCB(alpha=1.5, l2_lambda=2.0), seed=1)
    generator = np.random.default_rng(2)
    decisions, contexts = [*ARMS, *generator.choice(ARMS, size=57)], table(60)
    rewards = [float(row[1 + ARMS.index(arm)]) for arm, row in zip(decisions, contexts, strict=True)]
    for mab in (own, other):
        mab.fit(decisions[:30], rewards[:30], kind(contexts[:30]))
        mab.partial_fit(decisions[30:], rewards[30:], kind(contexts[30:]))
    new = table(40, seed=3)
    assert own.predict(kind(new)) == other.predict(kind(new))
    assert own.predict(kind(new[:1])) == other.predict(kind(new[:1]))
    for ours, expected in zip(own.predict_expectations(kind(new)), other.predict_expectations(kind(new)), strict=True):
        assert ours == pytest.approx(expected)
    assert own.predict_expectations(kind(new[:1])) == pytest.approx(other.predict_expectations(kind(new[:1])))
    for mab in (own, other):
        mab.add_arm("new")
        mab.partial_fit(["new"] * 5, [1.0] * 5, kind(new[:5]))
    own.remove_arm("red")
    other.remove_arm("red")
    assert own.predict(kind(new)) == other.predict(kind(new))


def test_bad_contexts_are_named_and_nothing_is_learned_from_them() -> None:
    mab = MAB(["a", "b"], "lin-ucb")
    mab.partial_fit(["a", "b"], [1, 0], [[1, 2], [1, 3]])
    before = mab._adapter.bandit.state_hash()
    cases: list[tuple[Any, str]] = [
        (None, "contexts must be given: policy 'lin-ucb' decides by them"),
        ([[1, 2]], "got 2 decisions and 1 contexts"),
        ([1, 2], "contexts must be a table of numbers with a row for each decision"),
        ([["x", "y"], ["x", "y"]], "contexts must be a table of numbers"),
        ([[1, 2], [1, np.nan]], "feature 'context' must be a list of 2 finite numbers"),
        ([[1, 2, 3], [1, 2, 3]], "feature 'context' must be a list of 2 finite numbers, got 3 numbers"),
    ]
    for contexts, message in cases:
        with pytest.raises(ValueError, match=message):
            mab.partial_fit(["a", "b"], [1, 0], contexts)
        if contexts != [[1, 2]]:
            with pytest.raises(ValueError, match=message):
                mab.predict_expectations(contexts)
    with pytest.raises(ValueError, match="finite numbers"):
        mab.fit(["a"], [1], [[np.inf, 1]])
    assert mab._adapter.bandit.state_hash() == before
