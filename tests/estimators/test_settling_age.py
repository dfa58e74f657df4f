import math
import random

import numpy as np
import pytest

from dynabandit.core.compilation import compiled
from dynabandit.estimators.settling_age import AGE, COUNT, FEWEST, RATIO, SIZE, observe, start

WINDOW = 600.0


def settled(ages: list[float], window: float = WINDOW) -> list[float]:
    state = [math.nan] * SIZE
    start(state, window)
    for age in ages:
        observe(state, age, window)
    return state


def test_until_enough_positive_rewards_arrived_the_whole_window_is_waited_for() -> None:
    assert settled([1.0] * 9)[AGE] == WINDOW
    assert settled([1.0] * 10)[AGE] < 1.0 / RATIO


def test_the_largest_age_of_a_bin_is_in_it() -> None:
    assert settled([WINDOW * RATIO] * FEWEST)[AGE] == WINDOW * RATIO
    assert settled([math.nextafter(WINDOW * RATIO, WINDOW)] * FEWEST)[AGE] == WINDOW


@pytest.mark.parametrize("mean", [0.5, 7.0, 60.0, 1000.0])
def test_99_percent_arrived_by_the_settling_age_which_is_at_most_one_bin_too_large(mean: float) -> None:
    source = random.Random(7)
    ages = sorted(min(source.expovariate(1 / mean), WINDOW) for _ in range(5000))
    exact = ages[math.ceil(0.99 * len(ages)) - 1]
    assert exact <= settled(ages)[AGE] <= min(exact / RATIO, WINDOW)


def test_the_order_of_the_rewards_does_not_matter() -> None:
    ages = [2.0, 500.0, 31.0, 0.0, 600.0, 77.0] * 40
    assert settled(ages) == settled(sorted(ages))
    assert settled(ages)[COUNT] == 240


@pytest.mark.parametrize(("late", "waits"), [(1, False), (2, True)])
def test_one_late_reward_in_a_hundred_is_not_waited_for_but_two_are(late: int, waits: bool) -> None:
    assert (settled([1.0] * (100 - late) + [WINDOW] * late)[AGE] == WINDOW) is waits


def test_immediate_rewards_are_in_the_last_bin() -> None:
    state = settled([0.0] * FEWEST)
    assert state[-1] == FEWEST
    assert state[AGE] == pytest.approx(WINDOW * 0.84**63)


def test_compiled_code_settles_at_the_same_age() -> None:
    ages = [float(age) for age in range(300)]
    state, learn = np.zeros(SIZE), compiled(observe)
    start(state, WINDOW)
    for age in ages:
        learn(state, age, WINDOW)
    assert state.tolist() == settled(ages)
