"""The laws of delays, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.environments.delays import LOST, draw_delay
from dynabandit.validation import MissingParameterError
from laws import assert_share

DRAWS = 4000


def draws(delay: db.Delay, arm: int = 0, count: int = DRAWS) -> np.ndarray:
    params = delay.params(arms=2)
    return np.array([draw_delay(params, arm, number, stream(3)) for number in range(1, count + 1)])


def test_a_fixed_delay_is_the_same_for_every_reward_of_an_arm() -> None:
    assert set(draws(db.delay("fixed", steps=7), count=50)) == {7}
    assert set(draws(db.delay("fixed", steps=[7, 3]), arm=1, count=50)) == {3}


def test_a_batch_arrives_at_the_next_multiple() -> None:
    found = draws(db.delay("batch", every=4), count=9)
    assert (np.arange(1, 10) + found).tolist() == [4, 4, 4, 4, 8, 8, 8, 8, 12]
    assert set(draws(db.delay("batch", every=1), count=9)) == {0}


def test_geometric_delays_have_their_mean_and_no_memory() -> None:
    found = draws(db.delay("geometric", mean=[3, 9]), arm=1)
    assert found.min() == 0
    assert abs(found.mean() - 9) < 4.5 * math.sqrt(90 / DRAWS)  # variance m (1 + m); error rate 7e-6
    assert_share((found == 0).sum(), DRAWS, 0.1)
    assert_share((found >= 20).sum(), DRAWS, 0.9**20)


def test_geometric_delays_end_at_their_largest_quantile() -> None:
    delay = db.delay("geometric", mean=9)
    longest = math.floor(math.log(1e-6) / math.log(0.9))
    assert delay.capacity(horizon=10**6) == longest + 1 == 132
    assert delay.capacity(horizon=50) == 51
    assert delay.params(2).high[0] == longest
    assert set(draws(db.delay("geometric", mean=0), count=50)) == {0}


def test_uniform_delays_are_equally_likely() -> None:
    found = draws(db.delay("uniform", low=2, high=5))
    assert sorted(set(found)) == [2, 3, 4, 5]
    for value in range(2, 6):
        assert_share((found == value).sum(), DRAWS, 0.25)


@pytest.mark.parametrize(
    ("delays", "arm", "law"), [([1, 1, 1, 8], 0, {1: 0.75, 8: 0.25}), ([[3], [0, 5]], 1, {0: 0.5, 5: 0.5})]
)
def test_recorded_delays_are_drawn_from_the_sample_of_the_arm(delays: Any, arm: int, law: dict[int, float]) -> None:
    delay = db.delay("recorded", delays=delays)
    found = draws(delay, arm)
    assert set(found) == set(law)
    for value, share in law.items():
        assert_share((found == value).sum(), DRAWS, share)
    assert delay.capacity(100) == np.max(np.concatenate([np.ravel(one) for one in delays])) + 1


def test_rewards_are_lost_with_their_probability_and_independently_of_the_delay() -> None:
    found = draws(db.delay("uniform", low=0, high=1, lost=[0.0, 0.3]), arm=1)
    assert_share((found == LOST).sum(), DRAWS, 0.3)
    assert_share((found == 0).sum(), DRAWS, 0.35)
    assert LOST not in draws(db.delay("fixed", steps=1, lost=[0.0, 0.3]), count=500)
    assert set(draws(db.delay("fixed", steps=1, lost=1), count=50)) == {LOST}


def test_a_window_bounds_the_rewards_in_flight() -> None:
    assert db.delay("geometric", mean=1000, window=20).capacity(10**6) == 21


def test_the_parameters_of_a_delay_make_an_equal_one() -> None:
    for delay in (
        db.delay("geometric", mean=[1, 2.5], lost=0.1, window=9, rule="held"),
        db.delay("recorded", delays=[[1], [2, 3]]),
        db.delay("batch", every=np.array([2, 3])),
    ):
        parameters = delay.parameters
        assert db.delay(parameters.pop("kind"), **parameters) == delay
    assert db.delay(delay) is delay


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kind": "fix", "steps": 1}, ValueError, "unknown delay 'fix'. Did you mean 'fixed'"),
        ({"kind": "fixed"}, MissingParameterError, "delay 'fixed' needs steps"),
        ({"kind": "fixed", "mean": 3}, TypeError, "delay 'fixed' has no parameter 'mean'"),
        (
            {"kind": "fixed", "steps": -1},
            ValueError,
            "steps must be a whole number of at least 0 and at most .*, got -1",
        ),
        ({"kind": "fixed", "steps": 1.5}, TypeError, "steps must be a whole number of at least 0 .*, got 1.5"),
        ({"kind": "fixed", "steps": [3]}, ValueError, r"steps must be a number, or one number .* got \[3\]"),
        ({"kind": "geometric", "mean": math.nan}, ValueError, r"mean must be a number in \[0, .*\], got nan"),
        ({"kind": "geometric", "mean": -2}, ValueError, r"mean must be a number in \[0, .*\], got -2"),
        ({"kind": "uniform", "low": 5, "high": 4}, ValueError, "low must be at most high = 4, got 5"),
        ({"kind": "uniform", "low": [1, 2], "high": [1, 2, 3]}, ValueError, "low and high must have as many numbers"),
        ({"kind": "recorded", "delays": []}, TypeError, r"delays must be a list of steps, .* got \[\]"),
        ({"kind": "recorded", "delays": 3}, TypeError, "delays must be a list of steps, .* got 3"),
        ({"kind": "recorded", "delays": [1, [2]]}, TypeError, r"delays must be a list of steps, .* got \[1, \[2\]\]"),
        ({"kind": "recorded", "delays": [[1], []]}, ValueError, "delays must have at least one delay for each"),
        ({"kind": "recorded", "delays": [[1]]}, ValueError, "delays must have at least one delay for each"),
        ({"kind": "recorded", "delays": [1, -1]}, ValueError, "each delay in delays must be a whole number .*, got -1"),
        ({"kind": "batch", "every": 0}, ValueError, "every must be a whole number of at least 1 .*, got 0"),
        ({"kind": "fixed", "steps": 1, "lost": 1.5}, ValueError, r"lost must be a number in \[0, 1\], got 1.5"),
        ({"kind": "fixed", "steps": 1, "lost": [0, -1]}, ValueError, r"lost must be a number in \[0, 1\], got -1"),
        ({"kind": "fixed", "steps": 1, "window": -1}, ValueError, "window must be a whole number .*, got -1"),
        ({"kind": "fixed", "steps": 1, "rule": "hold"}, ValueError, "unknown rule 'hold'. Did you mean 'held'"),
    ],
)
def test_a_delay_that_cannot_be_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    kind = arguments.pop("kind")
    with pytest.raises(error, match=message):
        db.delay(kind, **arguments)


def test_parameters_beside_a_delay_and_delays_of_other_arms_are_refused() -> None:
    with pytest.raises(TypeError, match=r"parameters .* go with a kind of delay"):
        db.delay(db.delay("fixed", steps=1), steps=2)
    late = db.delay("fixed", steps=[1, 2, 3])
    with pytest.raises(ValueError, match=r"one number per arm, 2, or one for all, got 3: fixed\(steps=\[1, 2, 3\]\)"):
        db.simulate("ucb", "case-1", horizon=10, delay=late)
