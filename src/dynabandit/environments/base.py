"""The environment contract: how the mean reward of each arm evolves, and which law the rewards have."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from dynabandit.core.compilation import compiled, inlined_kernel, kernel
from dynabandit.core.context import Context, empty_features
from dynabandit.core.lanes import SINGLE_LANE, LaneGroup
from dynabandit.core.records import NoParams, rows_reader
from dynabandit.core.streams import LARGEST_STEP, Stream, shifted, stream
from dynabandit.environments.reward_laws import (
    BERNOULLI,
    MeanByPlays,
    RewardFunctions,
    RewardLaw,
    mean_of_path,
    reward_law,
)
from dynabandit.validation import integer, set_fields


class EnvironmentStep(NamedTuple):
    """What is known when an arm's mean is computed.

    Examples
    --------
    >>> EnvironmentStep._fields
    ('number', 'arms', 'table', 'random', 'features')
    """

    number: int  # 1, 2, ...; 0 at the start
    arms: int
    table: np.ndarray  # what `Environment.table` returns
    random: Stream
    features: np.ndarray  # (rows, dimension): the features of this step; see `core.context.Context`


class PathArrays(NamedTuple):
    """Where a block of paths is written; replications are the first axis, or one of them is selected."""

    means: np.ndarray  # (steps, arms)
    best: np.ndarray  # (steps,): the largest mean
    features: np.ndarray  # (steps, rows, dimension), or one number without a context


# Kernels are called with positional arguments. `params` has the type `EnvironmentFunctions.params`.
class Start(Protocol):
    def __call__(self, state: np.ndarray, arm: int, step: EnvironmentStep, params: Any, /) -> None: ...


class Advance(Protocol):
    def __call__(self, state: np.ndarray, arm: int, step: EnvironmentStep, params: Any, /) -> float: ...


class WriteFeatures(Protocol):
    def __call__(self, state: np.ndarray, row: int, step: EnvironmentStep, params: Any, /) -> None: ...


@kernel
def no_features(state: np.ndarray, row: int, step: EnvironmentStep, params: Any) -> None:
    """Write nothing: the environment has no context."""


class EnvironmentFunctions(NamedTuple):
    """The kernels that make up an environment; arms are independent of each other.

    `state` is an array (slots, arms). `params` is a named tuple of arrays with one number per arm.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environments.Fixed.functions._fields
    ('start', 'advance', 'params', 'mean', 'rising', 'write_features')
    """

    start: Start
    """start(state, arm, step, params): write the arm's state at time 0."""
    advance: Advance
    """advance(state, arm, step, params): move the arm to the step and return its mean there."""
    params: type = NoParams
    """The named tuple that `Environment.params` returns; each field is an array with one number per arm."""
    mean: MeanByPlays = mean_of_path
    """mean(value, plays, arm, params): the arm's mean after so many earlier plays, given the value of the path.

    Regret is then measured against the best policy in hindsight. If means do not rise with plays and the path is
    constant, that policy always plays the arm with the largest current mean."""
    rising: bool = False
    """Whether `mean` rises with the plays: the best policy in hindsight plays one arm only."""
    write_features: WriteFeatures = no_features
    """write_features(state, row, step, params): write one row of `step.features`, for an environment with a context.

    It is called for all rows before `advance`, which computes the mean of an arm for these features."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Base class of all environments; a subclass is a frozen dataclass whose fields are its parameters.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("small-changes")
    >>> isinstance(environment, db.Environment), environment.arms, environment.slots
    (True, 3, ('segment',))
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]]
    functions: ClassVar[EnvironmentFunctions]

    arms: int = 2
    rewards: RewardLaw = field(default=BERNOULLI, repr=False)

    def __post_init__(self) -> None:
        set_fields(self, arms=integer("arms", self.arms, 2), rewards=reward_law(self.rewards))

    @property
    def reward_functions(self) -> RewardFunctions:
        """The functions of the reward law, and how plays change the means."""
        law, functions = self.rewards.functions, self.functions
        if functions.mean is mean_of_path:
            return law
        return law._replace(mean=functions.mean, mean_params=functions.params, rising=functions.rising)

    def params(self) -> Any:
        """Return the parameters as the named tuple that the functions read."""
        return NoParams(*self.per_arm(0.0))

    def per_arm(self, *numbers: float | Sequence[float] | np.ndarray) -> list[np.ndarray]:
        """Return each number, or one number per arm, as an array with one number per arm."""
        return [np.full(self.arms, one, dtype=float) for one in numbers]

    def table(self) -> np.ndarray:
        """Return numbers that belong to no single arm, as a two-dimensional array."""
        return np.zeros((0, 0))

    @property
    def context(self) -> Context | None:
        """The shape of the features of a step; None if there are none."""
        return None

    def state_size(self) -> int:
        """Return the number of rows of the state: one per slot, plus what a parameter adds, such as a vector."""
        return len(self.slots)

    @property
    def longest(self) -> int:
        """The last step that the environment defines."""
        return LARGEST_STEP

    def constant_until(self, step: int) -> int:
        """Return the last step up to which every mean keeps its value of `step`.

        `advance` is not called for the steps in between: a simulation writes one row of means for all of them.

        Examples
        --------
        >>> import dynabandit as db
        >>> db.environment("case-1").constant_until(10), db.environment("small-changes").constant_until(10)
        (10, 2999)
        """
        return step

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name; the reward law as plain values, unless it is the default."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        law = values.pop("rewards")
        return values if law == type(self).rewards else {**values, "rewards": law.parameters}

    def check_horizon(self, horizon: int) -> int:
        """Return `horizon`, or raise an error if the environment ends before it."""
        horizon = integer("horizon", horizon, 1, LARGEST_STEP)
        if horizon > self.longest:
            raise ValueError(
                f"horizon must be at most {self.longest}, where environment {self.name!r} ends, got {horizon}"
            )
        return horizon

    def path(self, horizon: int, seed: int, replication: int = 0) -> np.ndarray:
        """Return one trajectory, an array (horizon, arms): the one that a simulation uses.

        Examples
        --------
        >>> import dynabandit as db
        >>> db.environment("case-3", arms=3).path(horizon=1000, seed=1).shape
        (1000, 3)
        """
        return self._written(horizon, seed, replication).means[0]

    def features(self, horizon: int, seed: int, replication: int = 0) -> np.ndarray:
        """Return the features of one trajectory of an environment with a context, an array (horizon, rows, dimension).

        Examples
        --------
        >>> import dynabandit as db
        >>> db.environment("lin-abrupt", arms=3, dimension=2).features(horizon=1000, seed=1).shape
        (1000, 3, 2)
        """
        if self.context is None:
            raise ValueError(f"environment {self.name!r} has no features")
        return self._written(horizon, seed, replication).features[0]

    def _written(self, horizon: int, seed: int, replication: int) -> PathArrays:
        horizon = self.check_horizon(horizon)
        random = stream(seed, replication)
        state, paths = np.zeros((1, self.state_size(), self.arms)), self.empty_paths(1, horizon)
        write = compiled_write_paths(self.functions)
        write(state, np.array(self.params()), self.table(), paths, 1, horizon, random)
        return paths

    def empty_paths(self, replications: int, steps: int) -> PathArrays:
        """Return the arrays into which paths are written."""
        means, best = np.empty((replications, steps, self.arms)), np.empty((replications, steps))
        return PathArrays(means, best, empty_features(self.context, self.arms, replications, steps))


def cells_per_step(environment: Environment) -> int:
    """Return how many numbers a step of a path has: means and features."""
    context = environment.context
    return environment.arms + (0 if context is None else context.rows(environment.arms) * context.dimension)


@functools.cache
def compiled_write_paths(functions: EnvironmentFunctions) -> Callable[..., None]:
    """Return the compiled `make_write_paths` of an environment."""
    return compiled(make_write_paths(functions))


def make_write_paths(functions: EnvironmentFunctions) -> Callable[..., None]:
    """Return write_paths(state, params, table, paths, first, steps, random), the next block of all paths.

    `state` and the arrays of `paths` have replications as their first axis; `random` belongs to the first of them.
    `paths` gets `steps` steps from step `first` on.
    """
    write_path, select = make_write_path(functions, SINGLE_LANE), make_select_path(functions)

    @kernel
    def write_paths(
        state: np.ndarray,
        params: np.ndarray,
        table: np.ndarray,
        paths: PathArrays,
        first: int,
        steps: int,
        random: Stream,
    ) -> None:
        for row in range(paths.means.shape[0]):
            write_path(state[row], params, table, select(paths, row), first, steps, shifted(random, row))

    return write_paths


def make_select_path(functions: EnvironmentFunctions) -> Callable[[PathArrays, int], PathArrays]:
    """Return select_path(paths, row), the arrays of one replication."""
    has_context = has_features(functions)

    @inlined_kernel
    def select_path(paths: PathArrays, row: int) -> PathArrays:
        return PathArrays(paths.means[row], paths.best[row], paths.features[row if has_context else 0])

    return select_path


def make_write_path(functions: EnvironmentFunctions, lanes: LaneGroup) -> Callable[..., None]:
    """Return write_path(state, params, table, path, first, steps, random), for one replication."""
    start, read_params, has_context = functions.start, rows_reader(functions.params), has_features(functions)
    rounds, arm_at, exists = lanes.rounds, lanes.arm_at, lanes.exists
    write_steps = (
        make_write_single_steps(functions, lanes)
        if has_context or lanes is SINGLE_LANE
        else make_write_pairs_of_steps(functions, lanes)
    )

    @inlined_kernel
    def write_path(
        state: np.ndarray,
        matrix: np.ndarray,
        table: np.ndarray,
        path: PathArrays,
        first: int,
        steps: int,
        random: Stream,
    ) -> None:
        arms = path.means.shape[1]
        params = read_params(matrix)
        if first == 1:
            for turn in range(rounds(arms)):
                if exists(arm_at(0, turn), arms):
                    start(state, arm_at(0, turn), EnvironmentStep(0, arms, table, random, path.features[0]), params)
        write_steps(state, params, table, path, first, steps, random)

    return write_path


def has_features(functions: EnvironmentFunctions) -> bool:
    """Whether an environment has a context."""
    return functions.write_features is not no_features


def make_write_single_steps(functions: EnvironmentFunctions, lanes: LaneGroup) -> Callable[..., None]:
    """Return write_steps(state, params, table, path, first, steps, random), one step after the other."""
    advance, write_features, has_context = functions.advance, functions.write_features, has_features(functions)
    rounds, arm_at, exists, is_leader, highest, sync = (
        lanes.rounds, lanes.arm_at, lanes.exists, lanes.is_leader, lanes.highest, lanes.sync,
    )  # fmt: skip

    @inlined_kernel
    def write_steps(
        state: np.ndarray, params: Any, table: np.ndarray, path: PathArrays, first: int, steps: int, random: Stream
    ) -> None:
        means, best, features = path.means, path.best, path.features
        arms = means.shape[1]
        for offset in range(steps):
            step = EnvironmentStep(first + offset, arms, table, random, features[offset if has_context else 0])
            if has_context:
                for turn in range(rounds(arms)):
                    if arm_at(0, turn) < step.features.shape[0]:
                        write_features(state, arm_at(0, turn), step, params)
                sync()
            row = means[offset]
            largest = 0.0
            for turn in range(rounds(arms)):
                arm = arm_at(0, turn)
                if exists(arm, arms):
                    mean = advance(state, arm, step, params)
                    row[arm] = mean
                    largest = max(largest, mean)
            largest = highest(largest)
            if is_leader():
                best[offset] = largest

    return write_steps


def make_write_pairs_of_steps(functions: EnvironmentFunctions, lanes: LaneGroup) -> Callable[..., None]:
    """Return the same, two steps at a time: on a GPU the loop over arms then takes fewer instructions."""
    advance, highest, is_leader = functions.advance, lanes.highest, lanes.is_leader
    rounds, arm_at, exists = lanes.rounds, lanes.arm_at, lanes.exists

    @inlined_kernel
    def write_steps(
        state: np.ndarray, params: Any, table: np.ndarray, path: PathArrays, first: int, steps: int, random: Stream
    ) -> None:
        means, best, features = path.means, path.best, path.features
        arms = means.shape[1]
        for offset in range(0, steps, 2):
            is_pair = offset + 1 < steps
            step_1 = EnvironmentStep(first + offset, arms, table, random, features[0])
            step_2 = EnvironmentStep(first + offset + 1, arms, table, random, features[0])
            row_1, row_2 = means[offset], means[min(offset + 1, steps - 1)]
            largest_1 = largest_2 = 0.0
            for turn in range(rounds(arms)):
                arm = arm_at(0, turn)
                if exists(arm, arms):
                    mean_1 = mean_2 = advance(state, arm, step_1, params)
                    if is_pair:
                        mean_2 = advance(state, arm, step_2, params)
                    row_1[arm] = mean_1
                    row_2[arm] = mean_2
                    largest_1 = max(largest_1, mean_1)
                    largest_2 = max(largest_2, mean_2)
            largest_1 = highest(largest_1)
            largest_2 = highest(largest_2)
            if is_leader():
                best[offset] = largest_1
                best[min(offset + 1, steps - 1)] = largest_2

    return write_steps
