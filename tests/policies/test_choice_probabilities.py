"""The probability of each choice: what is computed is what a policy does, for every policy of the registry.

Computed probabilities are compared with the counts of independent choices from the same state by a chi-squared test.
Seeds are fixed; with random seeds one such test would fail by chance with probability 1e-6, any of them with 1e-4.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dynabandit import Bandit
from dynabandit.choosing.choice_probabilities import (
    INTEGRATED,
    choice_of,
    on_upper_envelope,
    probabilities_of_ties,
    with_exploration,
    write_laws,
)
from dynabandit.choosing.choose_arm import Workspace
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, PolicyFunctions, PolicyState, Step
from dynabandit.policies.base import ScoreLaw
from dynabandit.policies.rules.score_laws import WEIGHTS
from dynabandit.validation import COUNTS, REVENUE
from tools.laws import size

ERROR_RATE = 1e-6
LIVE = [name for name, kind in POLICIES.items() if not kind.informed]
ESTIMATED = ["f-dsw-ts", "changepoint-ts", "kalman-ts", "predictive-sampling", "mix-revenue-ts", "aff-revenue-ts"]


def some_bandit(name: str, arms: int, **parameters: Any) -> Bandit:
    """Return a bandit after some rewards, of which a few are in flight."""
    rng = np.random.default_rng(arms)
    features = {"x": "number", "y": "number"} if name in CONTEXTUAL_POLICIES else None
    bandit = Bandit(name, [f"arm {arm}" for arm in range(arms)], seed=5, features=features, **parameters)
    domain = bandit.policy.rewards
    for step in range((6 + bandit.policy.burn_in) * arms):
        context = None if features is None else {"x": rng.normal(), "y": rng.normal()}
        arm = bandit.choose(context)
        mean = 0.35 + 0.3 * (int(arm.split()[1]) + 1) / arms
        if step % 9 == 8:
            continue  # in flight
        bandit.reward(arm, rng.poisson(3.0 * mean) if domain in (COUNTS, REVENUE) else rng.random() < mean)
    return bandit


def context_of(bandit: Bandit) -> dict[str, float] | None:
    return None if bandit.features is None else {"x": 0.3, "y": -0.5}


def assert_choices(bandit: Bandit, draws: int) -> None:
    """Compare the computed probabilities with those of independent choices from the same state."""
    context = context_of(bandit)
    exact = bandit.exact_propensities(context)
    assert exact is not None
    assert exact == bandit.propensities(context)
    assert sum(exact.values()) == pytest.approx(1.0, abs=1e-12)
    vector = bandit._encoded(context)
    shares = bandit._shares_of_draws(bandit._columns, vector, count_pending=True, draws=draws, between=lambda: None)
    expected, counts = draws * np.array(list(exact.values())), draws * shares
    assert not counts[expected == 0.0].any()
    rare = expected < 5.0
    pooled = [*np.column_stack([counts, expected])[~rare], (counts[rare].sum(), expected[rare].sum())]
    observed, wanted = np.array([pair for pair in pooled if pair[1] > 1e-6]).T
    if len(observed) > 1:
        assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > ERROR_RATE
    assert bandit.choose(context) in [arm for arm, p in exact.items() if p > 0.0]


@pytest.mark.parametrize("name", [name for name in [*LIVE, *CONTEXTUAL_POLICIES] if name not in ESTIMATED])
def test_every_policy(name: str) -> None:
    """With few arms, and with so many that draws are pruned."""
    for arms in (3, 10):
        assert_choices(some_bandit(name, arms), size(20_000, 400))


@pytest.mark.parametrize("name", ESTIMATED)
def test_policies_that_are_estimated(name: str) -> None:
    bandit = some_bandit(name, 3)
    assert bandit.exact_propensities() is None
    assert sum(bandit.propensities(draws=20).values()) == pytest.approx(1.0)


def test_the_table_of_the_documentation_names_every_policy() -> None:
    """What is exact, and why, follows from the functions of each policy."""
    lines = (Path(__file__).parents[2] / "docs" / "offline.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| policies | propensities |")
    rows = [line.split("|")[1:3] for line in lines[start + 2 :][:7]]
    named = [set(re.findall("`([^`]+)`", names)) for names, _ in rows]
    kinds = {name: kind_of(kind.functions) for name, kind in (POLICIES | CONTEXTUAL_POLICIES).items()}
    by_kind = {kind: {name for name in kinds if kinds[name] == kind} for kind in sorted(set(kinds.values()))}
    expected = ("integrated", "integrated by context", "weights", "common normal", "explores", "estimated")
    assert named == [*(by_kind[kind] for kind in expected), set()]
    assert set(by_kind) == {*expected, "not random"}
    assert by_kind["estimated"] == set(ESTIMATED)


def kind_of(functions: PolicyFunctions) -> str:
    choice = choice_of(functions)
    if choice is None:
        return "estimated"
    if choice.exploration is not None:
        return "explores"
    if choice.law is None:
        return "not random"
    if choice.law.family in INTEGRATED:
        return "integrated by context" if functions.contextual else "integrated"
    return choice.law.family


def test_models_that_arms_share_are_estimated() -> None:
    """Their scores depend on the same drawn coefficients; for upper bounds this makes no difference."""
    for name in ("lin-ts", "logistic-ts"):
        assert some_bandit(name, 3, model="hybrid").exact_propensities({"x": 1.0, "y": 0.0}) is None
    assert_choices(some_bandit("lin-ucb", 3, model="hybrid"), 20)


def test_upper_envelope() -> None:
    """Crossing lines, parallel ones, ties in the mean and arms that are never above the others."""
    rng = np.random.default_rng(7)
    z = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    for trial in range(20):
        means, deviations = rng.normal(size=6), rng.exponential(size=6)
        if trial % 2:
            means[1], deviations[2], means[3], deviations[3] = means[0], deviations[0], means[4], deviations[4]
        scores = means + np.maximum(z, 0.0)[:, None] * deviations
        largest = scores == scores.max(axis=1, keepdims=True)
        shares = (largest / largest.sum(axis=1, keepdims=True)).mean(axis=0)
        assert on_upper_envelope(means, deviations) == pytest.approx(shares, abs=2e-5)


def test_above_a_hundred_arms() -> None:
    """Only what needs no quadrature is known: scores without randomness, and probabilities that the policy computes."""
    arms = [str(arm) for arm in range(101)]
    for name, known in (("ts", False), ("ucb", True), ("exp3-s", True)):
        parameters: dict[str, Any] = {"changes": 1, "horizon": 1000} if name == "exp3-s" else {}
        bandit = Bandit(name, arms, seed=1, **parameters)
        assert (bandit.exact_propensities() is not None) == known
    assert choice_of(POLICIES["ts"].functions) is not None
    assert Bandit("ts", arms[:100], seed=1).exact_propensities() == pytest.approx(dict.fromkeys(arms[:100], 0.01))


def test_limits_pauses_and_subsets() -> None:
    """Minimum shares are mixed in, arms at their maximum, paused arms and others than the asked ones get nothing."""
    bandit = some_bandit("ts", 3)
    free = bandit.exact_propensities()
    assert free is not None
    bandit.limit_arm("arm 0", min_share=0.2)
    limited = bandit.exact_propensities()
    assert limited == pytest.approx({arm: 0.2 * (arm == "arm 0") + 0.8 * p for arm, p in free.items()})
    assert bandit.exact_propensities(among=["arm 1"]) == {"arm 1": 1.0}
    bandit.pause_arm("arm 2")
    left = bandit.exact_propensities()
    assert left is not None
    assert list(left) == ["arm 0", "arm 1"]
    assert sum(left.values()) == pytest.approx(1.0)
    before = bandit.state_hash()
    bandit.exact_propensities(), bandit.propensities()
    assert bandit.state_hash() == before


def test_the_weights_of_paused_arms_are_divided_between_the_others() -> None:
    bandit = some_bandit("exp3-s", 3, exploration=0.1, sharing=0.01)
    before = bandit.exact_propensities()
    assert before is not None
    assert before["arm 1"] != pytest.approx(before["arm 0"])
    bandit.pause_arm("arm 2")
    assert_choices(bandit, size(2000, 400))


def test_nothing_changes() -> None:
    """Also for a policy that prepares its decisions in the state."""
    for name in ("square-cb", "lin-ts", "sw-lin-ucb"):
        bandit = some_bandit(name, 3)
        before = bandit.state_hash()
        bandit.exact_propensities({"x": 3.0, "y": 2.0})
        assert bandit.state_hash() == before


def test_probabilities_need_no_random_numbers_and_are_computed_for_the_step() -> None:
    """Of an arm that leads with probability 3/4, and explores with 2/10 of it."""
    given: list[Step] = []

    def numbers(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        given.append(step)
        return 3.0 - 2.0 * arm, 0.0

    def exploration(state: PolicyState, leader: int, step: Step, params: Any) -> float:
        given.append(step)
        return 0.2

    functions = PolicyFunctions(
        start=lambda *_: None,
        learn=lambda *_: None,
        score=lambda *_: 0.0,
        common=lambda state, number, params: 10.0 * number,
        law=ScoreLaw(WEIGHTS, numbers),
        exploration=exploration,
    )
    nothing, row = np.zeros(0), np.zeros(1)
    state, space = PolicyState(np.zeros((1, 2)), nothing, np.zeros(2)), Workspace(nothing, nothing, nothing, nothing)
    laws = np.full((2, 3), np.nan)
    write = write_laws(functions)
    getattr(write, "py_func", write)(state, 7, row, space, laws)  # not compiled: the functions above write into a list
    assert laws[:, :2].tolist() == [[3.0, 0.0], [1.0, 0.0]]
    found = with_exploration(functions, exploration, (state, 7, row, space), np.array([0.75, 0.25, 0.0]))
    assert found == pytest.approx([0.8 * 0.75 + 0.2 / 3, 0.8 * 0.25 + 0.2 / 3, 0.2 / 3])
    assert [(one.number, one.arms, one.common, one.random) for one in given] == [
        (7, arms, 70.0, (0, 0, 0)) for arms in (2, 2, 3, 3)
    ]


@pytest.mark.parametrize("arms", [3, 100, 101])
def test_the_largest_scores_share_the_choice(arms: int) -> None:
    scores = np.zeros(arms)
    scores[[0, arms - 1]] = 2.0
    assert probabilities_of_ties(scores).tolist() == [0.5, *[0.0] * (arms - 2), 0.5]
    scores[0] = 1.0
    assert probabilities_of_ties(scores).tolist() == [*[0.0] * (arms - 1), 1.0]
