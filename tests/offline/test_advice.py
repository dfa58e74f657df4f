"""Advice is worth as much as its doubts: it must not be sure where there is nothing to be sure of."""

import math
import re

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit import offline


def log_of(means: np.ndarray, rows: int, seed: int) -> offline.Log:
    """Arms chosen with equal chances; `means` has a row for each step, or one for all."""
    generator = np.random.default_rng(seed)
    arms = generator.integers(means.shape[1], size=rows)
    truth = np.broadcast_to(means, (rows, means.shape[1]))[np.arange(rows), arms]
    return offline.from_columns({"arm": arms, "reward": generator.random(rows) < truth})


def test_a_clear_case_is_clear() -> None:
    advice = offline.advise(log_of(np.array([[0.1, 0.2, 0.9]]), 2000, seed=1), ["uniform", "ts", "ucb"])
    assert advice.leader.name == "ts"
    assert not advice.candidates[-1].may_be_best
    assert advice.candidates[-1].policy.name == "uniform"
    assert advice.gain.low > 0.3
    assert "It earns more than what was done in the log" in str(advice)


def test_where_all_arms_are_alike_no_policy_is_called_the_best() -> None:
    """40 logs; one false verdict is expected at most twice among them, and more than 6 once in 1,000 times."""
    sure = sum(
        offline.advise(log_of(np.full((1, 3), 0.5), 400, seed), ["uniform", "ts", "eps-greedy"], seed=seed).sure
        for seed in range(40)
    )
    assert sure <= 6


def test_policies_that_decide_alike_are_never_told_apart() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 1000, seed=2)
    advice = offline.advise(log, [db.policy("dts", memory=10**6), db.policy("dts", memory=10**7)])
    assert not advice.sure
    assert advice.candidates[1].behind == (0.0, 0.0, 0.0)
    assert math.isinf(advice.rows_needed)
    assert "The log cannot tell it from 1 of 1 others: dts(memory=1" in str(advice)


def test_intervals_of_differences_grow_with_the_number_of_pairs() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 1000, seed=2)
    two, three = (offline.advise(log, names) for names in (["ts", "uniform"], ["ts", "uniform", "eps-greedy"]))
    widths = []
    for advice in (two, three):
        (behind,) = (one.behind for one in advice.candidates if one.policy.name == "uniform")
        widths.append(behind.high - behind.low)
    assert two.leader == three.leader
    assert widths[1] / widths[0] == pytest.approx(stats.t.ppf(1.0 - 0.025 / 3, 19) / stats.t.ppf(0.975, 19))


def test_where_the_log_cannot_tell_it_says_how_many_rows_it_would_take() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 600, seed=5)
    advice = offline.advise(log, ["ts", "ots"])
    assert not advice.sure
    assert advice.rows_needed > 600
    assert re.search(r"would take some \d{1,3}(,\d{3})+ rows", str(advice))


def test_forgetting_is_advised_where_the_best_arm_changes_often() -> None:
    turns = np.repeat(np.tile([[0.1, 0.9], [0.9, 0.1]], (10, 1)), 400, axis=0)
    advice = offline.advise(log_of(turns, 8000, seed=3), ["ts", "aff-ots", "uniform"])
    assert advice.leader.name == "aff-ots"
    assert advice.sure
    assert "It is better than every other candidate" in str(advice)


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


def test_too_little_to_compare_is_named() -> None:
    log = log_of(np.array([[0.3, 0.7]]), 30, seed=4)
    for policies in (["ts"], ["ts", "ts"]):
        with pytest.raises(ValueError, match="policies must hold at least 2 different ones"):
            offline.advise(log, policies)
    with pytest.raises(ValueError, match="must have at least 20 rows for advice, got 10"):
        offline.advise(log_of(np.array([[0.3, 0.7]]), 10, seed=4), ["ts", "ucb"])
