"""Sequential tests raise few false alarms over all time, and find violations that begin late."""

import itertools
import math

import numpy as np
import pytest

from dynabandit.stats.sequential_tests import (
    BATCH_SIZE,
    FALSE_ALARM,
    FIRST_TESTED,
    LARGEST,
    add_excess,
    needed_evidence,
    new_test,
    sample_ratio_evidence,
    unmet_condition,
)

ONE_BATCH = int(BATCH_SIZE)


def first_alarm(excesses: np.ndarray, room: float, needed: float) -> int | None:
    state = new_test(room)
    for count, excess in enumerate(excesses.tolist(), 1):
        if add_excess(state, excess, room) >= needed:
            return count
    return None


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (-0.1, 0.9), (-0.9, 0.1)])
def test_the_evidence_is_1_on_average_at_the_bound(low: float, high: float) -> None:
    odds = {low: high / (high - low), high: -low / (high - low)}
    expected = 0.0
    for path in itertools.product((low, high), repeat=7):
        state = new_test(-low)
        evidence = [add_excess(state, excess, -low) for excess in path]
        expected += math.prod(odds[excess] for excess in path) * evidence[-1]
    assert expected == pytest.approx(1.0)


@pytest.mark.promise(168)
def test_without_a_range_the_evidence_is_1_on_average_however_the_variance_changes() -> None:
    # All values of a batch are equal: they may depend on each other as much as they want
    before = new_test(math.inf)
    for n in range(20 * ONE_BATCH):
        add_excess(before, 1.0 if n // ONE_BATCH % 2 else -1.0, math.inf)
    expected = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=7):
        state = before.copy()
        for sign, size in zip(signs, (1.0, 10.0, 0.1, 3.0, 300.0, 30.0, 300.0), strict=True):
            evidence = [add_excess(state, sign * size, math.inf) for _ in range(ONE_BATCH)]
        expected += evidence[-1] / 2.0**7
    start = add_excess(before, 0.0, math.inf)
    assert expected == pytest.approx(start)
    assert start < 2.0


@pytest.mark.promise(168)
@pytest.mark.parametrize("law", ["heavy tail", "dependent"])
def test_few_false_alarms_without_a_range(law: str) -> None:
    # 50 arms with an error rate of 5 % have more than 8 alarms with a probability of 0.001
    rng = np.random.default_rng(7)
    excesses = rng.standard_normal((50, 8_000))
    if law == "heavy tail":  # log-normal, and its mean must be at least 1
        excesses = 1.0 - np.exp(2.5 * excesses - 2.5**2 / 2.0)
    else:
        for step in range(1, 8_000):
            excesses[:, step] = 0.9 * excesses[:, step - 1] + math.sqrt(0.19) * excesses[:, step]
    assert sum(first_alarm(one, math.inf, 1.0 / FALSE_ALARM) is not None for one in excesses) <= 8


@pytest.mark.parametrize(
    ("room", "soonest", "needed_at_start", "needed_late"), [(0.2, 1, 150, 250), (math.inf, FIRST_TESTED, 1_000, 1_700)]
)
def test_a_violation_is_found_at_the_start_and_after_a_long_time(
    room: float, soonest: int, needed_at_start: int, needed_late: int
) -> None:
    rng = np.random.default_rng(2)
    good, bad = (rng.random(20_000) < 0.1) - 0.2, (rng.random(2_000) < 0.4) - 0.2
    at_start = first_alarm(bad, room, 400.0)
    assert at_start is not None
    assert soonest < at_start < soonest + needed_at_start
    late = first_alarm(np.concatenate([good, bad]), room, 400.0)
    assert late is not None
    assert 20_000 < late < 20_000 + needed_late  # 20,000 values far below the bound cost little


def test_the_evidence_stays_finite_and_equal_values_are_no_evidence() -> None:
    for room in (0.5, math.inf):
        state = new_test(room)
        for _ in range(50_000 if room == math.inf else 2_000):
            evidence = add_excess(state, 0.5, room)
        assert LARGEST / 10.0 < evidence <= 2.0 * LARGEST
    for excess in (-0.1, 0.0):
        state = new_test(math.inf)
        assert all(add_excess(state, excess, math.inf) <= 1.0 for _ in range(1_000))


def test_nothing_is_tested_while_one_value_makes_up_most_of_the_sum() -> None:
    state = new_test(math.inf)
    evidence = [add_excess(state, 1e6 if n == 0 else 1.0, math.inf) for n in range(5_000)]
    assert max(evidence) == 1.0


def problem_of(excesses: np.ndarray) -> str | None:
    state = new_test(math.inf)
    for excess in excesses.tolist():
        add_excess(state, excess, math.inf)
    return unmet_condition(state)


def test_a_test_says_that_its_conditions_do_not_hold() -> None:
    rng = np.random.default_rng(8)
    noise = rng.standard_normal(10_000)
    walk = np.cumsum(noise)
    assert problem_of(noise) is None
    assert problem_of(noise - 100.0) is None, "far below the bound"
    assert problem_of(noise[: 50 * ONE_BATCH] ** 9) is None, "it is too early to say"
    few = "a few values make up most of the distance from the bound"
    assert problem_of(1.0 - np.exp(2.5 * noise)) == few
    noise[5_000] = 1e4
    assert problem_of(noise) == few
    assert problem_of(walk) == "the means of consecutive batches of 32 values depend on each other"
    assert unmet_condition(new_test(1.0)) is None, "a test with a range needs no conditions that its values could show"


@pytest.mark.promise(168)
def test_the_error_rates_of_all_arms_and_metrics_sum_to_at_most_5_percent() -> None:
    for first_arms, metrics in ((2, 1), (10, 3)):
        rates = [1.0 / needed_evidence(column, first_arms, metrics) for column in range(100_000)]
        assert FALSE_ALARM * 0.99 < metrics * sum(rates) <= FALSE_ALARM


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_sample_ratio_evidence_is_1_on_average(share: float) -> None:
    probabilities = [math.comb(60, k) * share**k * (1.0 - share) ** (60 - k) for k in range(61)]
    evidence = [sample_ratio_evidence(k, 60 - k, share) for k in range(61)]
    assert float(np.dot(probabilities, evidence)) == pytest.approx(1.0)
    assert sample_ratio_evidence(10**9, 0, share) <= LARGEST * 1.001
