"""Advice finds the better policy, and is not sure where policies do not differ."""

import math
import re

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit import offline
from dynabandit.policies.horizons.practical_forms import practical_forms


def log_of(means: np.ndarray, rows: int, seed: int) -> offline.Log:
    """Return a log of uniformly chosen arms; `means` has a row for each step, or one for all."""
    generator = np.random.default_rng(seed)
    arms = generator.integers(means.shape[1], size=rows)
    truth = np.broadcast_to(means, (rows, means.shape[1]))[np.arange(rows), arms]
    return offline.from_columns({"arm": arms, "reward": generator.random(rows) < truth})


def test_a_better_policy_is_found() -> None:
    advice = offline.advise(log_of(np.array([[0.1, 0.2, 0.9]]), 2000, seed=1), ["uniform", "ts"])
    assert advice.leader.name == "ts"
    assert not advice.candidates[-1].may_be_best
    assert advice.candidates[-1].policy.name == "uniform"
    assert advice.gain.low > 0.3
    assert "It earns more than the logged decisions" in str(advice)


def test_with_equal_arms_no_policy_is_called_the_best() -> None:
    """Of 40 logs, at an error rate of 5 %, more than 6 have probability 0.003."""
    sure = sum(
        offline.advise(log_of(np.full((1, 3), 0.5), 400, seed), ["uniform", "ts", "aff-ots"], seed=seed).sure
        for seed in range(40)
    )
    assert sure <= 6


def test_policies_with_the_same_choices_are_not_distinguished() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 1000, seed=2)
    advice = offline.advise(log, [db.policy("aff-ots"), db.policy("aff-ots", floor=0.1)])
    assert not advice.sure
    assert advice.candidates[1].behind == (0.0, 0.0, 0.0)
    assert math.isinf(advice.rows_needed)
    assert "This log cannot distinguish it from 1 of 1 others: aff-ots" in str(advice)


def test_intervals_of_differences_grow_with_the_number_of_pairs() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 1000, seed=2)
    two, three = (offline.advise(log, names) for names in (["ts", "uniform"], ["ts", "uniform", "aff-ots"]))
    widths = []
    for advice in (two, three):
        (behind,) = (one.behind for one in advice.candidates if one.policy.name == "uniform")
        widths.append(behind.high - behind.low)
    assert two.leader == three.leader
    assert widths[1] / widths[0] == pytest.approx(stats.t.ppf(1.0 - 0.025 / 3, 19) / stats.t.ppf(0.975, 19))


def test_a_short_log_says_how_many_rows_are_needed() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 600, seed=7)
    advice = offline.advise(log, ["ts", "aff-ots"])
    assert not advice.sure
    assert advice.rows_needed > 600
    assert re.search(r"takes about \d{1,3}(,\d{3})+ rows", str(advice))


def test_forgetting_is_advised_where_the_best_arm_changes_often() -> None:
    turns = np.repeat(np.tile([[0.1, 0.9], [0.9, 0.1]], (10, 1)), 400, axis=0)
    advice = offline.advise(log_of(turns, 8000, seed=3), ["ts", "aff-ots", "uniform"])
    assert advice.leader.name == "aff-ots"
    assert advice.sure
    assert "It is significantly better than every other candidate" in str(advice)


def test_the_estimates_are_those_of_a_replay() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 500, seed=4)
    advice = offline.advise(log, ["ts", "uniform"], replications=2, draws=10, seed=7)
    for one in advice.candidates:
        expected = offline.replay(log, one.policy, replications=2, draws=10, seed=7)
        assert one.value == pytest.approx(expected.dr, rel=1e-9)


def test_every_default_candidate_can_be_replayed_and_is_there_once() -> None:
    labels = [one.label for one in offline.candidates()]
    assert len(set(labels)) == len(labels)
    for one in offline.candidates():
        db.Bandit(one, arms=["a", "b"])


def test_too_few_policies_or_rows_are_named() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 30, seed=4)
    for policies in (["ts"], ["ts", "ts"]):
        with pytest.raises(ValueError, match="policies must hold at least 2 different ones"):
            offline.advise(log, policies)
    with pytest.raises(ValueError, match="must have at least 20 rows for advice, got 10"):
        offline.advise(log_of(np.array([[0.3, 0.7]]), 10, seed=4), ["ts", "ucb"])


def adaptive_log() -> offline.Log:
    """A log whose policy nearly always chose the first of three arms."""
    arms = ["b", "c"] + ["a"] * 3000 + ["b", "c"] * 3
    rewards = [0.0, 0.0] + [1.0, 0.0] * 1500 + [0.0] * 6
    propensities = [1.0, 1.0, 1.0] + [0.998] * 2999 + [0.001] * 6  # a burn-in first
    return offline.from_columns({"arm": arms, "reward": rewards, "propensity": propensities})


def test_candidates_that_rarely_choose_what_the_log_chose_are_left_out() -> None:
    greedy = [db.policy("eps-greedy", epsilon=epsilon) for epsilon in (0.01, 0.02)]
    advice = offline.advise(adaptive_log(), ["uniform", *greedy])
    assert [one.label for one in advice.left_out] == ["uniform"]
    assert {one.policy for one in advice.candidates} == set(greedy)
    assert "Left out, because they rarely choose what the log chose: uniform." in str(advice)
    assert "It learned from every row of the log" in str(advice)
    with pytest.raises(ValueError, match=r"the log overlaps too little with the choices of uniform: .* fewer than 30 "):
        offline.advise(adaptive_log(), ["uniform", greedy[0]])


def test_every_policy_of_the_leaderboard_is_a_candidate_and_can_run_on_a_log() -> None:
    found = offline.candidates()
    labels = [one.label for one in found]
    assert {form.label for form in practical_forms()} <= set(labels)
    assert len(set(labels)) == len(labels)
    assert not any(one.left_open for one in found)
    assert {"aff-ots(step_size=0.01)", "dts(memory=1000)"} <= set(labels)
    assert "normal-ts" not in labels
