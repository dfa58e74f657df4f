import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.environments import EnvironmentStep, Fixed, Path, Piecewise

PROBABILITY = st.floats(0.0, 1.0)
MEANS = arrays.arrays(float, st.tuples(st.integers(1, 20), st.integers(2, 5)), elements=PROBABILITY)


def test_small_changes_is_the_path_of_section_4() -> None:
    path = db.environment("small-changes").path(horizon=10_000, seed=1)
    steps = np.arange(1, 10_001)
    assert path.shape == (10_000, 3)
    assert (path[:, 0] == 0.5).all()
    assert (path[:, 1] == 0.3).all()
    assert (path[:, 2] == np.where((steps >= 3000) & (steps < 5000), 0.8, 0.4)).all()


@given(st.lists(PROBABILITY, min_size=2, max_size=10), st.integers(1, 20))
def test_fixed_means_never_change(means: list[float], horizon: int) -> None:
    path = Fixed(means=means).path(horizon=horizon, seed=1)
    assert (path == np.array(means)).all()
    assert path.shape == (horizon, len(means))


@given(MEANS)
def test_a_path_is_played_as_it_is(means: np.ndarray) -> None:
    environment = Path(means=means)
    assert environment.longest == len(means)
    assert (environment.path(horizon=len(means), seed=1) == means).all()


def test_a_path_keeps_its_own_copy_and_cannot_be_changed() -> None:
    means = np.array([[0.1, 0.9], [0.9, 0.1]])
    environment = Path(means=means)
    means[0, 0] = 0.5
    assert environment.path(horizon=1, seed=1)[0, 0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        environment.table()[0, 0] = 0.5


def test_a_path_has_no_step_after_its_last() -> None:
    environment = Path(means=[[0.1, 0.9], [0.9, 0.1]])
    with pytest.raises(ValueError, match="horizon must be at most 2, where environment 'path' ends, got 3"):
        environment.path(horizon=3, seed=1)
    with pytest.raises(ValueError, match="horizon must be at most 2, where environment 'path' ends, got 3"):
        db.simulate("ucb", environment, horizon=3)


@given(MEANS, st.data())
def test_pieces_stand_from_their_start_to_the_next(means: np.ndarray, data: st.DataObject) -> None:
    later = st.lists(st.integers(2, 60), min_size=len(means) - 1, max_size=len(means) - 1, unique=True)
    starts = [1, *sorted(data.draw(later))]
    path = Piecewise(starts=starts, means=means.tolist()).path(horizon=70, seed=1)
    for step in range(1, 71):
        current = max(piece for piece, start in enumerate(starts) if start <= step)
        assert (path[step - 1] == means[current]).all()


def test_an_environment_starts_in_its_first_segment() -> None:
    environment = Piecewise(starts=[1, 3], means=[[0.1, 0.2], [0.3, 0.4]])
    state, step = np.full((1, 2), np.nan), EnvironmentStep(0, 2, environment.table(), stream(1), np.zeros((1, 1)))
    environment.functions.start(state, 1, step, environment.params())
    assert state[0, 1] == 0.0


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"means": 0.5}, ValueError, "means must hold the mean rewards of at least 2 arms, got 0.5"),
        (
            {"means": np.array(0.5)},
            ValueError,
            r"means must hold .* at least 2 arms, got array\(0.5\)",
        ),
        ({"means": []}, ValueError, r"means must hold the mean rewards of at least 2 arms, got \[\]"),
        ({"means": [0.5]}, ValueError, r"means must hold the mean rewards of at least 2 arms, got \[0.5\]"),
        ({"means": "01"}, ValueError, "means must hold the mean rewards of at least 2 arms, got '01'"),
        ({"means": [0.5, 1.5]}, ValueError, r"means\[1\] must be a number in \[0, 1\], got 1.5"),
        ({"means": [0.5, float("nan")]}, ValueError, r"means\[1\] must be a number in \[0, 1\], got nan"),
        ({"means": [0.5, "1"]}, TypeError, r"means\[1\] must be a number in \[0, 1\], got '1'"),
        ({"means": [[0.5], [0.5, 0.5]]}, ValueError, r"means must hold .* at least 2 arms"),
        ({"means": [[0.5, 0.5]]}, ValueError, r"means must hold .* at least 2 arms"),
        ({"arms": 2, "means": [0.1, 0.2]}, TypeError, "environment 'fixed' has no parameter 'arms'"),
        ({}, TypeError, "environment 'fixed' needs means: see dynabandit.environments.Fixed"),
    ],
)
def test_means_that_are_none_are_refused_by_fixed(
    parameters: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        db.environment("fixed", **parameters)


@pytest.mark.parametrize("name", ["path", "piecewise"])
@pytest.mark.parametrize(
    ("means", "error", "message"),
    [
        ([[0.1, 1.2]], ValueError, r"means\[0\]\[1\] must be a number in \[0, 1\], got .*1.2"),
        ([[0.1, 1.2], [0.2, 1.3]], ValueError, r"means\[0\]\[1\] must be a number in \[0, 1\], got .*1.2"),
        ([[0.1, 0.2], [-0.5, 0.2]], ValueError, r"means\[1\]\[0\] must be a number in \[0, 1\], got .*-0.5"),
        ([[0.1, float("nan")]], ValueError, r"means\[0\]\[1\] must be a number in \[0, 1\], got .*nan"),
        ([[0.1]], ValueError, r"means must have steps in rows and at least 2 arms in columns, got shape \(1, 1\)"),
        (np.zeros((0, 3)), ValueError, r"means must have steps in rows .*, got shape \(0, 3\)"),
        ([0.1, 0.2], ValueError, r"means must have steps in rows .*, got shape \(2,\)"),
        ([], ValueError, r"means must have steps in rows .*, got shape \(0,\)"),
        ([[0.1, 0.2], [0.1]], TypeError, "means must be an array of numbers, each row of the same length"),
        ([["a", "b"]], TypeError, "means must be an array of numbers"),
        (None, ValueError, r"means must have steps in rows .*, got shape \(\)"),
    ],
)
def test_a_path_outside_its_range_is_refused(name: str, means: object, error: type[Exception], message: str) -> None:
    starts = {"starts": [1, 5]} if name == "piecewise" else {}
    with pytest.raises(error, match=message):
        db.environment(name, means=means, **starts)


@pytest.mark.parametrize(
    ("starts", "error", "message"),
    [
        ([1], ValueError, r"starts must be 1 and then rise, one for each of the 2 rows of means, got \(1,\)"),
        ([], ValueError, r"starts must be 1 and then rise, one for each of the 2 rows of means, got \(\)"),
        ([2, 3], ValueError, r"starts must be 1 and then rise, .* got \(2, 3\)"),
        ([1, 1], ValueError, r"starts must be 1 and then rise, .* got \(1, 1\)"),
        ([1, 0], ValueError, r"starts\[1\] must be a whole number of at least 1 .*, got 0"),
        ([1, 2.5], TypeError, r"starts\[1\] must be a whole number of at least 1 .*, got 2.5"),
        (5, TypeError, "starts must be a list with the first step of each segment, got 5"),
    ],
)
def test_pieces_out_of_order_are_refused(starts: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        db.environment("piecewise", starts=starts, means=[[0.1, 0.2], [0.3, 0.4]])


@pytest.mark.parametrize("arms", [2, 4])
def test_small_changes_has_three_arms(arms: int) -> None:
    with pytest.raises(ValueError, match=f"arms must be 3, got {arms}"):
        db.environment("small-changes", arms=arms)


@pytest.mark.parametrize(
    ("name", "parameters", "first_end"),
    [
        ("burst", {"arms": 3, "first": 20, "length": 10, "rate": 1.0}, 19),
        ("needle", {"arms": 5, "period": 7}, 7),
        ("recorded", {"rates": [[0.1, 0.9], [0.9, 0.1], [0.2, 0.3]], "period": 4}, 4),
    ],
)
def test_means_stand_still_as_long_as_a_world_says(name: str, parameters: dict[str, object], first_end: int) -> None:
    world, horizon = db.environment(name, **parameters), 12 if name == "recorded" else 60
    path = world.path(horizon=horizon, seed=4)
    assert world.constant_until(1) == first_end
    assert (path[first_end] != path[0]).any(), "and not a step longer"
    for step in range(1, horizon + 1):
        assert (path[step - 1 : world.constant_until(step)] == path[step - 1]).all(), step


@pytest.mark.parametrize(("name", "parameters"), [("needle", {}), ("recorded", {"rates": [[0.1, 0.9]] * 3})])
def test_means_with_a_period_stand_still_until_its_last_step(name: str, parameters: dict[str, object]) -> None:
    for period, ends in ((4, [4, 4, 4, 4, 8, 8, 8, 8, 12]), (1, [1, 2, 3, 4, 5, 6, 7, 8, 9])):
        environment = db.environment(name, **parameters, period=period)
        assert [environment.constant_until(step) for step in range(1, 10)] == ends
