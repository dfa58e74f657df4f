"""Environments with a context, without compiled code: their means follow from their features in plain NumPy."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.context import Context
from dynabandit.core.lanes import SINGLE_LANE
from dynabandit.core.streams import FEATURES, PATH, START, normal_pair, pick, stream, uniform, uniform_pair, words
from dynabandit.environments.base import EnvironmentStep, PathArrays, make_write_path
from dynabandit.environments.drifting_models import CHANGES, FOR_ALL
from dynabandit.environments.recorded_contexts import RecordedContexts, row_of

SEED, HORIZON = 5, 60
CONTEXTS = [[1.0, 0.5], [1.0, -2.0], [1.0, 3.0], [1.0, 7.0]]
MEANS = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [0.15, 0.25, 0.35]]
EXAMPLES: dict[str, dict[str, Any]] = {
    "lin-abrupt": {"arms": 3, "dimension": 3, "segment": 20},
    "lin-slow": {"arms": 3, "dimension": 3, "turning": 40},
    "lin-drift": {"arms": 3, "dimension": 5, "period": 20},
    "logistic-drift": {"arms": 3, "dimension": 2, "models": "shared", "change": "walk", "period": 20},
    "moving-contexts": {"arms": 3, "dimension": 3, "period": 30},
    "recorded-contexts": {"contexts": CONTEXTS, "means": MEANS, "rotation": 7},
    "digits": {"rotation": 30},
    "image-segments": {"rotation": 30},
    "phishing": {"rotation": 30},
    "bananas": {"rotation": None},
    "prompts": {"price": 0.2},
    "flights": {"stride": 4.5},
}
NEEDED = {"recorded-contexts": ("contexts", "means")}
DEFAULTS: dict[str, dict[str, object]] = {
    "lin-abrupt": {"arms": 50, "dimension": 2, "segment": 1000},
    "lin-slow": {"arms": 50, "dimension": 2, "turning": 3000},
    "lin-drift": {
        "arms": 4, "dimension": 5, "models": "separate", "change": "flip", "period": 1000, "scale": 1.0, "travel": 0.0,
    },
    "logistic-drift": {
        "arms": 4, "dimension": 5, "models": "separate", "change": "flip", "period": 1000, "scale": 2.0, "travel": 0.0,
    },
    "moving-contexts": {
        "arms": 4, "dimension": 5, "models": "separate", "change": "none", "period": 2000, "scale": 1.0, "travel": 2.0,
    },
    "recorded-contexts": {"rotation": None, "window": None, "stride": 0.0},
    "digits": {"rotation": 2000},
    "image-segments": {"rotation": 2000},
    "phishing": {"rotation": 1000},
    "bananas": {"rotation": 2000},
    "prompts": {"rotation": 2500, "price": 0.1},
    "flights": {"window": 48, "stride": 1.0},
}  # fmt: skip
each_environment = pytest.mark.parametrize("name", EXAMPLES)


def written(environment: db.Environment, horizon: int = HORIZON, replication: int = 0) -> PathArrays:
    """Return features and means that the functions write without compilation."""
    state = np.full((environment.state_size() + 1, environment.arms), math.nan)
    path = PathArrays(*(part[0] for part in environment.empty_paths(1, horizon)))
    write = make_write_path(environment.functions, SINGLE_LANE)
    random = stream(SEED, replication)
    write(state, np.array(environment.params()), environment.table(), path, 1, horizon, random)
    assert np.isnan(state[-1]).all()  # only the rows of `state_size` are used
    return path


def normals(role: int, step: int, arm: int, count: int) -> np.ndarray:
    pairs = [normal_pair(words(stream(SEED), role, step, arm, pair)) for pair in range((count + 1) // 2)]
    return np.array(pairs).ravel()[:count]


@each_environment
def test_features_means_and_the_best_mean_have_the_declared_shape(name: str) -> None:
    environment = db.environment(name, **EXAMPLES[name])
    means, best, features = written(environment)
    context = environment.context
    assert context is not None
    assert features.shape == (HORIZON, context.rows(environment.arms), context.dimension)
    assert ((means >= 0.0) & (means <= 1.0)).all()
    assert (best == means.max(axis=1)).all()
    again = written(db.environment(name, **environment.parameters))
    other = written(environment, replication=1)
    assert (again.features == features).all()
    assert (again.means == means).all()
    assert (other.features != features).any()


@each_environment
def test_the_parameters_and_their_defaults_are_those_that_are_documented(name: str) -> None:
    needed = {parameter: EXAMPLES[name][parameter] for parameter in NEEDED.get(name, ())}
    parameters = db.environment(name, **needed).parameters
    assert {key: value for key, value in parameters.items() if key not in needed} == DEFAULTS[name]
    assert db.environments.CONTEXTUAL_ENVIRONMENTS[name].name == name


def test_every_contextual_environment_has_an_example_here() -> None:
    assert EXAMPLES.keys() == DEFAULTS.keys() == db.environments.CONTEXTUAL_ENVIRONMENTS.keys()


@pytest.mark.parametrize("name", ["lin-abrupt", "lin-slow"])
def test_features_of_the_published_environments_are_in_the_unit_ball(name: str) -> None:
    features = written(db.environment(name, arms=20, dimension=2)).features.reshape(-1, 2)
    length = np.hypot(*features.T)
    assert length.max() == pytest.approx(1.0)
    # A point of the square is outside of the circle with probability 1 - pi / 4; the standard error is 0.012
    assert (length > 1.0 - 1e-8).mean() == pytest.approx(1.0 - math.pi / 4.0, abs=0.05)
    assert features.mean(axis=0) == pytest.approx([0.0, 0.0], abs=0.06)


@pytest.mark.parametrize("dimension", [1, 2, 5, 6])
def test_features_of_a_linear_environment_are_points_of_the_cube_moved_into_the_ball(dimension: int) -> None:
    features = written(db.environment("lin-abrupt", arms=3, dimension=dimension), horizon=5).features
    for step in range(1, 6):
        for arm in range(3):
            pairs = [uniform_pair(words(stream(SEED), FEATURES, step, arm, pair)) for pair in range(3)]
            point = 2.0 * np.array(pairs).ravel()[:dimension] - 1.0
            expected = point / max(float(np.sqrt(point @ point)), 1.0)
            np.testing.assert_allclose(features[step - 1, arm], expected, rtol=0.0, atol=2.0**-31)
            assert (features[step - 1, arm] * 2.0**30 % 1.0 == 0.0).all()


def test_abrupt_coefficients_are_unit_vectors_and_their_opposites() -> None:
    means, _, features = written(db.environment("lin-abrupt", **EXAMPLES["lin-abrupt"]))
    for step, (place, sign) in {1: (0, 1), 20: (0, 1), 21: (0, -1), 41: (1, 1), 60: (1, 1)}.items():
        assert means[step - 1] == pytest.approx(0.5 + 0.5 * sign * features[step - 1, :, place])


def test_slow_coefficients_turn_by_a_quarter_and_stay() -> None:
    means, _, features = written(db.environment("lin-slow", **EXAMPLES["lin-slow"]))
    for step in range(1, HORIZON + 1):
        angle = min((step - 1) / 40, 1.0) * math.pi / 2.0
        expected = features[step - 1, :, :2] @ [math.cos(angle), math.sin(angle)]
        assert means[step - 1] == pytest.approx(0.5 + 0.5 * expected, abs=1e-12)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.sqrt(vector @ vector)


def model_at(step: int, arm: int, arms: int, world: dict[str, Any]) -> np.ndarray:
    """Return the direction of an arm's coefficients: the definition, from the start to the step."""
    d, period, change = world["dimension"], world["period"], world["change"]
    whom = 0 if world["models"] == "shared" else arm
    first = normals(START, 0, whom, d)
    if change == "walk":
        model = first / math.sqrt(d)
        for number in range(2, step + 1):
            kept = 1.0 - 1.0 / period
            model = kept * model + math.sqrt(1.0 - kept**2) * normals(PATH, number, whom, d) / math.sqrt(d)
        return model
    model = unit(first)
    for number in range(2, step + 1):
        due = (number - 1) % period == 0
        redrawn = {
            "redraw": due,
            "jump": due and pick(stream(SEED), PATH, number, FOR_ALL, arms) == arm,
            "breakpoints": uniform(stream(SEED), PATH, number, FOR_ALL) < 1.0 / period,
        }.get(change, False)
        if redrawn:
            model = unit(normals(PATH, number, whom, d))
        if change == "flip" and due:
            model = -model
    if change == "turn":
        second = normals(PATH, 0, whom, d)
        second = unit(second - (second @ model) * model)
        angle = 2.0 * math.pi * (step - 1) / period
        model = math.cos(angle) * model + math.sin(angle) * second
    return model


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("models", "name"), [("separate", "lin-drift"), ("shared", "logistic-drift")])
def test_means_of_drifting_models_follow_from_features_and_coefficients(change: str, models: str, name: str) -> None:
    if (change, models) == ("jump", "shared"):
        return
    world = {"dimension": 5, "period": 12, "change": change, "models": models}
    environment = db.environment(name, arms=3, scale=1.5, **world)
    means, _, features = written(environment)
    for step in (1, 2, 12, 13, 14, 25, 26, 60):
        for arm in range(3):
            linear = 1.5 * model_at(step, arm, 3, world) @ features[step - 1, arm if models == "shared" else 0]
            expected = 0.5 + linear / 16.0 if name == "lin-drift" else 1.0 / (1.0 + math.exp(-linear))
            assert means[step - 1, arm] == pytest.approx(expected, abs=1e-12)


def test_features_are_normal_numbers_after_a_constant_and_may_travel() -> None:
    still = db.environment("lin-drift", arms=3, dimension=4, period=12)
    moving = db.environment("moving-contexts", arms=3, dimension=4, period=12, travel=0.5)
    for step in (1, 2, 30):
        drawn = normals(FEATURES, step, 0, 4)
        assert written(still).features[step - 1, 0].tolist() == [1.0, *drawn[1:]]
        shift = 0.5 * np.sin(2.0 * np.pi * (step / 12 + np.arange(1, 4) / 4))
        assert written(moving).features[step - 1, 0, 0] == 1.0
        assert written(moving).features[step - 1, 0, 1:] == pytest.approx(drawn[1:] + shift)
    own = written(db.environment("lin-drift", arms=3, dimension=4, models="shared")).features
    assert own[6, 2].tolist() == normals(FEATURES, 7, 2, 4).tolist()


def test_the_default_reward_of_a_linear_model_is_its_linear_mean() -> None:
    environment = db.environment("lin-drift")
    assert environment.rewards.expected(0.5 + 0.25 / 16.0) == pytest.approx(0.25)
    assert environment.rewards == db.reward_law("normal", low=-8, high=8, deviation=0.5)
    for name in ("lin-abrupt", "lin-slow"):
        assert db.environment(name).rewards == db.reward_law("normal", low=-1, high=1, deviation=1)
    assert db.environment("logistic-drift").rewards == db.reward_law("bernoulli")
    assert db.environment("prompts").rewards == db.reward_law("bounded", concentration=20)


def test_means_of_a_linear_model_with_a_large_scale_end_at_zero_and_one() -> None:
    means = written(db.environment("lin-drift", arms=3, scale=100)).means
    assert (means.min(), means.max()) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("window", "stride", "rotation"), [(None, 0.0, 7), (2, 0.03, 7), (None, 0.0, 1), (None, 0.0, None)]
)
def test_recorded_rows_are_drawn_from_a_moving_window_and_their_rewards_rotate(
    window: int | None, stride: float, rotation: int | None
) -> None:
    given = EXAMPLES["recorded-contexts"] | {"window": window, "stride": stride, "rotation": rotation}
    environment = db.environment("recorded-contexts", **given)
    means, _, features = written(environment)
    rows = []
    for step in range(1, HORIZON + 1):
        row = int((step - 1) * stride) + pick(stream(SEED), FEATURES, step, 0, window or 4)
        rows.append(row)
        assert features[step - 1, 0].tolist() == CONTEXTS[row]
        assert means[step - 1].tolist() == np.roll(MEANS[row], (step - 1) // (rotation or HORIZON)).tolist()
    assert set(rows) == ({0, 1, 2, 3} if window is None else {0, 1, 2})
    assert environment.longest == (2**32 - 1 if window is None else 67)


INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("lin-slow", {"dimension": 1}, "dimension must be a whole number of at least 2 and at most 256, got 1"),
    ("lin-slow", {"turning": 0}, "turning must be a whole number of at least 1 and at most 4294967295, got 0"),
    ("lin-drift", {"dimension": 257}, "dimension must be a whole number of at least 2 and at most 256, got 257"),
    ("lin-drift", {"change": "leap"}, "unknown value of change 'leap'.* Known: breakpoints, flip, jump"),
    ("lin-drift", {"models": "own"}, "unknown value of models 'own'. Known: separate, shared"),
    ("lin-drift", {"models": "shared", "change": "jump"}, "needs models='separate', got 'shared'"),
    ("lin-drift", {"period": 0}, "period must be a whole number of at least 1 and at most 4294967295, got 0"),
    ("lin-drift", {"scale": 0}, r"scale must be a number in \(0, 100\], got 0"),
    ("moving-contexts", {"travel": -1}, r"travel must be a number in \[0, 100\], got -1"),
    ("prompts", {"price": 2}, r"price must be a number in \[0, 1\], got 2"),
    ("digits", {"rotation": 0}, "rotation must be a whole number of at least 1 and at most 4294967295, got 0"),
    ("flights", {"window": 20_000}, "window must be a whole number of at least 1 and at most 17520, got 20000"),
]  # fmt: skip
WRONG_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"stride": 0.5}, "window must be below .* rows, 4, if stride is positive, got window=None and stride=0.5"),
    ({"stride": 0.5, "window": 4}, "if stride is positive, got window=4 and stride=0.5"),
    ({"contexts": CONTEXTS[:3]}, "contexts must have as many rows as means, 4, got 3"),
    ({"contexts": [1.0, 2.0]}, r"contexts must have rows of 1 to 256 features, got an array of shape \(2,\)"),
    (
        {"contexts": [[1.0, math.nan], [math.inf, 1.0], *CONTEXTS[2:]]},
        r"contexts\[0\]\[1\] must be .*, got nan",
    ),
    ({"contexts": [[]] * 4}, r"contexts must have rows of 1 to 256 features, got an array of shape \(4, 0\)"),
    ({"contexts": [[1.0] * 257] * 4}, r"of 1 to 256 features, got an array of shape \(4, 257\)"),
    ({"contexts": [[1.0], [1.0, 2.0]]}, "contexts must be an array of numbers, each row of the same length"),
    ({"means": [[0.1, 1.2], *MEANS[1:]]}, "means must be an array of numbers, each row of the same length"),
    ({"means": [[0.1, 1.2]]}, r"means\[0\]\[1\] must be a number in \[0, 1\], got 1.2"),
    ({"window": 5}, "window must be a whole number of at least 1 and at most 4, got 5"),
    ({"stride": -1}, r"stride must be a number in \[0, 4\], got -1"),
]


@pytest.mark.parametrize(("name", "wrong", "message"), INVALID)
def test_invalid_parameters_are_named(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.environment(name, **wrong)


@pytest.mark.parametrize(("wrong", "message"), WRONG_ROWS)
def test_invalid_rows_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        db.environment("recorded-contexts", **EXAMPLES["recorded-contexts"] | wrong)


@pytest.mark.parametrize("dimension", [1, 256])
def test_rows_may_have_one_feature_or_as_many_as_are_allowed(dimension: int) -> None:
    environment = db.environment("recorded-contexts", contexts=[[1.0] * dimension] * 4, means=MEANS)
    assert environment.context == Context(dimension, per_arm=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_neither_the_reward_law_nor_a_table_is_printed(name: str) -> None:
    shown = repr(db.environment(name, **EXAMPLES[name]))
    assert not [field for field in ("rewards", "contexts", "means") if f"{field}=" in shown]


def test_recorded_rows_cannot_be_changed() -> None:
    contexts, means = np.array(CONTEXTS), np.array(MEANS)
    environment = RecordedContexts(contexts=contexts, means=means)
    for rows in (environment.contexts, environment.means):
        with pytest.raises(ValueError, match="read-only"):
            rows[0][0] = 0.5  # type: ignore[index]
    contexts[0, 0] = means[0, 0] = 0.5  # these belong to the caller
    assert environment.table()[0].tolist() == [*CONTEXTS[0], *MEANS[0]]


@pytest.mark.parametrize("number", [10, 1000])
def test_a_window_does_not_move_beyond_the_last_row(number: int) -> None:
    environment = db.environment("recorded-contexts", contexts=CONTEXTS, means=MEANS, window=2, stride=0.5)
    assert isinstance(environment, RecordedContexts)
    step = EnvironmentStep(number, 3, environment.table(), stream(SEED), np.zeros((1, 2)))
    assert row_of(step, environment.params()) == 2 + pick(stream(SEED), FEATURES, number, 0, 2)


def test_an_environment_ends_with_its_rows() -> None:
    with pytest.raises(ValueError, match="horizon must be at most 17473, where environment 'flights' ends, got 20000"):
        db.environment("flights").path(20_000, seed=1)
