import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from dynabandit.core.compilation import compiled
from dynabandit.stats.settling_age import AGE, COUNT, FEWEST, FIRST, ORIGIN, RATIO, SIZE, observe, start, update

WINDOW = 600.0
DAY = 86_400.0


def settled(delays: list[float], now: float = 10.0 * WINDOW, window: float = WINDOW, every: float = 0.0) -> list[float]:
    """Return the state at a time after decisions at regular times, with the rewards that came so far."""
    state = [math.nan] * SIZE
    start(state, window)
    arrived = [(number * every + delay, number * every, delay) for number, delay in enumerate(delays)]
    for at, decided, delay in sorted(arrived):
        if at <= now and delay <= window:
            observe(state, decided, delay, window)
    update(state, now, window)
    return state


def test_until_enough_positive_rewards_arrived_the_whole_window_is_waited_for() -> None:
    assert settled([1.0] * 9)[AGE] == WINDOW
    assert settled([1.0] * 10)[AGE] < 1.0 / RATIO


def test_until_decisions_were_observed_for_four_times_as_long_the_whole_window_is_waited_for() -> None:
    assert settled([10.0] * 100, now=40.0)[AGE] == WINDOW
    assert 10.0 <= settled([10.0] * 100, now=60.0)[AGE] < 10.0 / RATIO
    assert settled([400.0] * 100, now=600.0)[AGE] == WINDOW
    assert 400.0 <= settled([400.0] * 100, now=601.0)[AGE] < 400.0 / RATIO, "nothing comes after the window"


def test_the_largest_age_of_a_bin_is_in_it() -> None:
    assert settled([WINDOW * RATIO] * FEWEST)[AGE] == WINDOW * RATIO
    assert settled([math.nextafter(WINDOW * RATIO, WINDOW)] * FEWEST)[AGE] == WINDOW


@pytest.mark.parametrize("mean", [0.5, 7.0, 60.0, 1000.0])
def test_99_percent_arrived_by_the_settling_age_which_is_little_too_large(mean: float) -> None:
    source = random.Random(7)
    delays = [min(source.expovariate(1 / mean), WINDOW) for _ in range(5000)]
    ordered = sorted(delays)
    exact, limit = (ordered[math.ceil(share * len(delays)) - 1] for share in (0.99, 0.9935))  # + 1.645 sqrt(.01/5000)
    assert exact <= settled(delays)[AGE] <= min(limit / RATIO, WINDOW)


def exponential(mean: float) -> tuple[Callable[[random.Random], float], Callable[[float], float]]:
    return lambda source: source.expovariate(1.0 / mean), lambda age: 1.0 - math.exp(-age / mean)


def lognormal(median: float, sigma: float) -> tuple[Callable[[random.Random], float], Callable[[float], float]]:
    def share(age: float) -> float:
        return 0.5 + 0.5 * math.erf(math.log(age / median) / (sigma * math.sqrt(2.0)))

    return lambda source: source.lognormvariate(math.log(median), sigma), share


@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("law", "too_early", "naive_share", "later"),
    [
        (exponential(600.0), 1_000, 0.8, 24_000),
        (lognormal(79.0, 2.0), 20_000, 0.985, 80_000),
    ],
    ids=["exponential", "log-normal"],
)
def test_delays_that_could_not_be_seen_yet_are_not_taken_for_short_ones(
    law: tuple[Callable[[random.Random], float], Callable[[float], float]],
    too_early: int,
    naive_share: float,
    later: int,
) -> None:
    (draw, share), arrived = law, []
    for seed in range(3):
        source, every = random.Random(seed), later / 4_000
        delays = [draw(source) for _ in range(4_000)]
        seen = sorted(delay for number, delay in enumerate(delays) if number * every + delay <= too_early)
        assert share(seen[math.ceil(0.99 * len(seen)) - 1]) < naive_share, "99 % of the delays that were seen"
        assert settled(delays, too_early, DAY, every)[AGE] == DAY, "it cannot be known yet"
        arrived.append(share(settled(delays, later, DAY, every)[AGE]))
    lowest, median, highest = sorted(arrived)
    assert lowest >= 0.986, "the upper limit of 95 % is exceeded in some cases"
    assert 0.989 <= median <= highest < 0.998


def test_decisions_of_a_rate_that_grows_do_not_make_delays_shorter() -> None:
    """Most rewards are of young decisions, which have shown short delays only."""
    source, state, now = random.Random(2), [0.0] * SIZE, 16_000.0
    start(state, DAY)
    decisions = sorted(now - source.expovariate(1.0 / 3_000.0) for _ in range(12_000))
    known = []
    for decided in decisions:
        delay = source.expovariate(1.0 / 300.0)
        if decided >= 0.0 and decided + delay <= now:
            known.append((decided + delay, decided, delay))
    for _, decided, delay in sorted(known):
        observe(state, decided, delay, DAY)
    update(state, now, DAY)
    assert 0.989 <= 1.0 - math.exp(-state[AGE] / 300.0) < 0.9995


def test_the_order_of_the_rewards_does_not_matter() -> None:
    delays = [2.0, 500.0, 31.0, 0.0, 600.0, 77.0] * 40
    assert settled(delays) == settled(sorted(delays))
    assert settled(delays)[COUNT] == 240


def test_memory_is_bounded_and_the_reward_of_an_earlier_decision_than_the_first_counts() -> None:
    state = [0.0] * SIZE
    start(state, WINDOW)
    for number in range(3_000):
        observe(state, 10.0 * number, 1.0, WINDOW)
    observe(state, -50.0, 70.0, WINDOW)
    assert len(state) == SIZE
    assert state[ORIGIN] == 0.0
    assert state[COUNT] == sum(state[FIRST::64]) == 3_001
    observe(state, 1e9, 1.0, WINDOW)
    assert state[COUNT] == sum(state[FIRST::64]) == 3_002


@pytest.mark.parametrize(("late", "waits"), [(4, False), (8, True)])
def test_a_share_of_late_rewards_is_waited_for_unless_it_is_surely_less_than_1_percent(late: int, waits: bool) -> None:
    assert (settled([1.0] * (1000 - late) + [WINDOW] * late)[AGE] == WINDOW) is waits


def test_immediate_rewards_are_in_the_last_bin() -> None:
    state = settled([0.0] * FEWEST)
    assert state[FIRST + 63] == FEWEST
    assert state[AGE] == pytest.approx(WINDOW * 0.84**63)


def test_a_window_of_no_length_has_no_settling_age_but_0() -> None:
    assert settled([0.0] * 20, window=0.0, every=1.0)[AGE] == 0.0


def test_compiled_code_settles_at_the_same_age() -> None:
    ages = [float(age) for age in range(300)]
    state, learn, finish = np.zeros(SIZE), compiled(observe), compiled(update)
    start(state, WINDOW)
    for number, age in enumerate(ages):
        learn(state, 3.0 * number, age, WINDOW)
    finish(state, 3_000.0, WINDOW)
    same = [0.0] * SIZE
    start(same, WINDOW)
    for number, age in enumerate(ages):
        observe(same, 3.0 * number, age, WINDOW)
    update(same, 3_000.0, WINDOW)
    assert state.tolist() == same
    assert 0.0 < state[AGE] < WINDOW
