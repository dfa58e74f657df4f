"""The draws, numbers and parameters of each kind of delay; `tests/simulation/test_delayed_rewards.py` has the rest."""

import math
import re
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import DELAY, LARGEST_STEP, stream, uniform_pair, words
from dynabandit.environments.delays import AT_ONCE, HELD, LOST, NO_DELAY, NO_WINDOW, SETTLED, draw_delay

SOURCE = stream(5, replication=1)
STEPS = range(1, 41)


def drawn(delay: Any, arm: int = 1) -> list[int]:
    return [draw_delay(delay.params(2), arm, number, SOURCE) for number in STEPS]


def units(arm: int = 1) -> list[tuple[float, float]]:
    return [uniform_pair(words(SOURCE, DELAY, number, arm, 0)) for number in STEPS]


def test_delays_follow_their_first_uniform_number() -> None:
    positions = [position for position, _ in units()]
    assert drawn(db.delay("fixed", steps=3)) == [3] * 40
    assert drawn(db.delay("fixed", steps=[3, 8])) == [8] * 40
    assert drawn(db.delay("uniform", low=2, high=6)) == [2 + int(5 * u) for u in positions]
    assert drawn(db.delay("geometric", mean=4)) == [int(math.log(u) / math.log(0.8)) for u in positions]
    assert drawn(db.delay("geometric", mean=0)) == [0] * 40
    assert drawn(db.delay("recorded", delays=[7, 1, 5])) == [[7, 1, 5][int(3 * u)] for u in positions]
    assert drawn(db.delay("recorded", delays=[[9, 9], [7, 1, 5]])) == [[7, 1, 5][int(3 * u)] for u in positions]
    assert drawn(db.delay("recorded", delays=[[9, 8], [7]]), arm=0) == [[9, 8][int(2 * u)] for u, _ in units(arm=0)]
    three = db.delay("recorded", delays=[[9, 8], [6], [7, 1, 5]]).params(3)
    last = [draw_delay(three, 2, number, SOURCE) for number in STEPS]
    assert last == [[7, 1, 5][int(3 * u)] for u, _ in units(arm=2)]
    assert drawn(db.delay("batch", every=4))[:6] == [3, 2, 1, 0, 3, 2]


def test_a_reward_is_lost_where_its_second_uniform_number_is_below_the_probability() -> None:
    assert LOST == -1
    assert drawn(db.delay("fixed", steps=3, lost=0.4)) == [-1 if second < 0.4 else 3 for _, second in units()]
    assert drawn(db.delay("fixed", steps=3, lost=units()[0][1]))[0] == 3
    assert drawn(db.delay("fixed", steps=3, lost=[0.0, 1.0])) == [-1] * 40


def test_the_longest_delay_bounds_the_rewards_in_flight() -> None:
    longest = math.floor(math.log(1e-6) / math.log(0.8))
    delays = {
        "fixed": (db.delay("fixed", steps=[3, 8]), 8),
        "uniform": (db.delay("uniform", low=[0, 1], high=[6, 2]), 6),
        "geometric": (db.delay("geometric", mean=4), longest),
        "recorded": (db.delay("recorded", delays=[[9, 4], [7]]), 9),
        "batch": (db.delay("batch", every=4), 3),
    }
    for delay, steps in delays.values():
        assert [delay.capacity(horizon) for horizon in (2, 1000)] == [3, steps + 1]
    assert db.delay("fixed", steps=8, window=5).capacity(1000) == 6
    assert delays["geometric"][0].params(2).high.tolist() == [longest] * 2


def test_the_window_and_its_rule_are_numbers_for_the_kernels() -> None:
    rules = {"at-once": AT_ONCE, "held": HELD, "settled": SETTLED}
    assert (list(rules.values()), NO_WINDOW) == ([0, 1, 2], -1)
    for rule, number in rules.items():
        assert db.delay("fixed", steps=1, window=0, rule=rule).params(2)[1:3] == (0, number)
    default = db.delay("fixed", steps=1)
    assert default.params(2)[1:3] == (-1, SETTLED)
    assert (default.lost, default.window, default.rule) == (0.0, None, "settled")
    assert default.parameters == {"kind": "fixed", "steps": 1}
    assert db.delay("geometric", mean=[2.5, 3], lost=0.25).parameters == {
        "kind": "geometric", "mean": [2.5, 3.0], "lost": 0.25,
    }  # fmt: skip
    assert db.delay("geometric", mean=2.5, lost=0.25).label == "geometric(lost=0.25, mean=2.5)"


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("fixed", {"steps": -1}, "steps must be a whole number of at least 0"),
        ("fixed", {"steps": LARGEST_STEP + 1}, "at most 4294967295, got 4294967296"),
        ("fixed", {"steps": [1]}, "steps must be a number, or one number for each of at least 2 arms, got [1]"),
        ("fixed", {"steps": 1, "lost": 1.1}, "lost must be a number in [0, 1], got 1.1"),
        ("fixed", {"steps": 1, "lost": -0.1}, "lost must be a number in [0, 1], got -0.1"),
        ("fixed", {"steps": 1, "window": -1}, "window must be a whole number of at least 0"),
        ("fixed", {"steps": 1, "rule": "later"}, "unknown rule 'later'"),
        ("geometric", {"mean": -0.5}, "mean must be a number in [0, 1e+09], got -0.5"),
        ("geometric", {"mean": 1e9 + 1}, "mean must be a number in [0, 1e+09], got 1000000001.0"),
        ("uniform", {"low": 3, "high": 2}, "low must be at most high = 2, got 3"),
        ("uniform", {"low": [1, 2], "high": [2, 3, 4]}, "low and high must have as many numbers"),
        ("recorded", {"delays": []}, "delays must be a list of steps, or one such list per arm, got []"),
        ("recorded", {"delays": 3}, "delays must be a list of steps, or one such list per arm, got 3"),
        ("recorded", {"delays": [[1], 2]}, "delays must be a list of steps, or one such list per arm, got [[1], 2]"),
        ("recorded", {"delays": [[1]]}, "at least one delay for each of at least 2 arms, got [[1]]"),
        ("recorded", {"delays": [[1], []]}, "at least one delay for each of at least 2 arms, got [[1], []]"),
        ("recorded", {"delays": [1, -1]}, "each delay in delays must be a whole number of at least 0"),
        ("batch", {"every": 0}, "every must be a whole number of at least 1"),
        ("batch", {}, "delay 'batch' needs every"),
        ("fix", {}, "unknown delay 'fix'"),
    ],
)
def test_impossible_delays_are_named(kind: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        db.delay(kind, **parameters)


def test_a_delay_is_returned_as_it_is_but_not_with_parameters() -> None:
    late = db.delay("fixed", steps=3)
    assert db.delay(late) is late
    with pytest.raises(TypeError, match=r"parameters \['lost'\] go with a kind of delay, not with FixedDelay"):
        db.delay(late, lost=0.5)


def test_equal_bounds_are_allowed_and_numbers_must_fit_the_arms() -> None:
    assert db.delay("geometric", mean=1e9).params(2).sample.size == 0
    assert [part.tolist() for part in NO_DELAY[3:]] == [[0.0]] * 4
    assert db.delay("uniform", low=2, high=2).params(3).low.tolist() == [2.0] * 3
    assert db.delay("recorded", delays=np.array([4])).params(2).sample.tolist() == [4.0]
    with pytest.raises(ValueError, match="delay must have one number per arm, 3, or one for all, got 2"):
        db.delay("fixed", steps=[1, 2]).params(3)
