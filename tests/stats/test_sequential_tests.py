"""Sequential tests raise few false alarms over all time, and find violations that begin late."""

import itertools
import math

import numpy as np
import pytest

from dynabandit.stats.sequential_tests import (
    FALSE_ALARM,
    FIRST_TESTED,
    LARGEST,
    SIZE,
    add_excess,
    needed_evidence,
    sample_ratio_evidence,
)


def first_alarm(excesses: np.ndarray, room: float, needed: float) -> int | None:
    state = [0.0] * SIZE
    for count, excess in enumerate(excesses.tolist(), 1):
        if add_excess(state, excess, room) >= needed:
            return count
    return None


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (-0.1, 0.9), (-0.9, 0.1)])
def test_the_evidence_is_1_on_average_at_the_bound(low: float, high: float) -> None:
    odds = {low: high / (high - low), high: -low / (high - low)}
    expected = 0.0
    for path in itertools.product((low, high), repeat=7):
        state = [0.0] * SIZE
        evidence = [add_excess(state, excess, -low) for excess in path]
        expected += math.prod(odds[excess] for excess in path) * evidence[-1]
    assert expected == pytest.approx(1.0)


@pytest.mark.promise(168)
@pytest.mark.parametrize("room", [0.2, math.inf])
def test_few_false_alarms_at_the_bound(room: float) -> None:
    # 100 arms with 1,000 values each: with an error rate of 5 %, more than 13 alarms have a probability of 0.0005
    rng = np.random.default_rng(1)
    excesses = (rng.random((100, 1_000)) < 0.2) - 0.2
    assert sum(first_alarm(one, room, 1.0 / FALSE_ALARM) is not None for one in excesses) <= 13


@pytest.mark.parametrize(("room", "soonest"), [(0.2, 1), (math.inf, FIRST_TESTED)])
def test_a_violation_is_found_at_the_start_and_after_a_long_time(room: float, soonest: int) -> None:
    rng = np.random.default_rng(2)
    good, bad = (rng.random(20_000) < 0.1) - 0.2, (rng.random(2_000) < 0.4) - 0.2
    at_start = first_alarm(bad, room, 400.0)
    assert at_start is not None
    assert soonest < at_start < soonest + 150
    late = first_alarm(np.concatenate([good, bad]), room, 400.0)
    assert late is not None
    assert 20_000 < late < 20_000 + 250  # 20,000 values far below the bound cost little


def test_the_evidence_stays_finite_and_equal_values_are_no_evidence() -> None:
    state = [0.0] * SIZE
    for _ in range(2_000):
        evidence = add_excess(state, 0.5, 0.5)
    assert evidence <= 2.0 * LARGEST
    state = [0.0] * SIZE
    assert all(add_excess(state, -0.1, math.inf) <= 1.0 for _ in range(FIRST_TESTED + 50))


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
