"""The accuracy of estimators: bias and mean squared error over time, for a path of means."""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.records import rows_reader, to_row, vector_reader
from dynabandit.core.streams import LARGEST_REPLICATION, LARGEST_SEED, Stream, shifted, stream
from dynabandit.environments import (
    Environment,
    RewardFunctions,
    RewardLaw,
    RewardStep,
    environment as make_environment,
    reward_law,
)
from dynabandit.environments.base import cells_per_step, compiled_write_paths
from dynabandit.estimators import Estimator, EstimatorFunctions
from dynabandit.extras import import_extra
from dynabandit.simulation.api import DEFAULT_HORIZON, recorded_times
from dynabandit.simulation.backends import cores
from dynabandit.validation import BOUNDED, integer

if TYPE_CHECKING:
    import pandas

PATH_CELLS = 1 << 20  # means and features per task: 8 MB


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Estimation:
    """What `dynabandit.estimation` returns: the errors of an estimator, and their bias and mean square over time.

    Examples
    --------
    >>> import dynabandit as db
    >>> result = db.estimation(db.estimators.SampleMean(), [0.5] * 100, replications=200, times=[10, 100])
    >>> result.mse.round(3).tolist()
    [0.026, 0.003]
    """

    estimator: Estimator
    """The estimator."""
    seed: int
    """The seed of all randomness."""
    times: np.ndarray = field(repr=False)
    """The recorded steps; the last one is the horizon."""
    errors: np.ndarray = field(repr=False)
    """The estimate after the reward of a step minus the mean of that step, replications x times."""

    @property
    def replications(self) -> int:
        """The number of replications."""
        return len(self.errors)

    @property
    def bias(self) -> np.ndarray:
        """The mean error at each of the times."""
        return self.errors.mean(axis=0)

    @property
    def bias_standard_error(self) -> np.ndarray:
        """The standard error of `bias`."""
        return _standard_error(self.errors)

    @property
    def mse(self) -> np.ndarray:
        """The mean squared error at each of the times."""
        return np.square(self.errors).mean(axis=0)

    @property
    def mse_standard_error(self) -> np.ndarray:
        """The standard error of `mse`."""
        return _standard_error(np.square(self.errors))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas data frame with one row per recorded step.

        Examples
        --------
        >>> import dynabandit as db
        >>> result = db.estimation(db.estimators.SampleMean(), [0.5] * 100, replications=10, times=4)
        >>> list(result.to_pandas())
        ['step', 'bias', 'bias_standard_error', 'mse', 'mse_standard_error']
        """
        names = ("bias", "bias_standard_error", "mse", "mse_standard_error")
        columns = {"step": self.times, **{name: getattr(self, name) for name in names}}
        return import_extra("pandas", "frames").DataFrame(columns)

    def __repr__(self) -> str:
        return (
            f"Estimation({type(self.estimator).__name__}, {self.times[-1]} steps, {self.replications} replications: "
            f"at the end bias {self.bias[-1]:.3g}, mean squared error {self.mse[-1]:.3g})"
        )


def _standard_error(numbers: np.ndarray) -> np.ndarray:
    return numbers.std(axis=0, ddof=1) / np.sqrt(len(numbers))


class FreshEstimator(NamedTuple):
    """An estimator without rewards, as compiled code receives it."""

    state: Any
    params: tuple[Any, ...]
    window: int


def make_estimate(functions: EstimatorFunctions, law: RewardFunctions) -> Callable[..., None]:
    """Return estimate(start, paths, law_row, matrix, times, errors, arm, random), which writes the errors at the times.

    `paths` has one row per replication, or one row for all of them, and one column per step.
    """
    observe, mean, retract = functions
    draw, expected, read_law = law.draw, law.expected, vector_reader(law.params)
    mean_after, read_params = law.mean, rows_reader(law.mean_params)

    @kernel
    def estimate(
        start: FreshEstimator,
        paths: np.ndarray,
        law_row: np.ndarray,
        matrix: np.ndarray,
        times: np.ndarray,
        errors: np.ndarray,
        arm: int,
        random: Stream,
    ) -> None:
        law_params, params = read_law(law_row), read_params(matrix)
        rewards = np.empty(paths.shape[1])
        for row in range(errors.shape[0]):
            path = paths[min(row, paths.shape[0] - 1)]
            own = shifted(random, row)
            state = start.state
            cursor = 0
            for plays in range(path.size):
                value = mean_after(path[plays], plays, arm, params)
                rewards[plays] = draw(value, arm, RewardStep(plays + 1, own), law_params)
                if 0 < start.window <= plays:
                    state = retract(state, rewards[plays - start.window])
                state = observe(state, rewards[plays], *start.params)
                if plays + 1 == times[cursor]:
                    errors[row, cursor] = mean(state) - expected(value, law_params)
                    cursor += 1

    return estimate


@functools.cache
def compiled_estimate(functions: EstimatorFunctions, law: RewardFunctions) -> Callable[..., None]:
    """Return the compiled `make_estimate` of an estimator and a reward law."""
    return compiled(make_estimate(functions, law))


def estimation(
    estimator: Estimator,
    path: Sequence[float] | np.ndarray | Environment | str,
    replications: int = 1000,
    *,
    horizon: int | None = None,
    arm: int = 0,
    rewards: RewardLaw | str | None = None,
    seed: int = 1,
    times: int | Sequence[int] | np.ndarray = 200,
) -> Estimation:
    """Measure how far an estimator is from the mean of an arm that is played at every step.

    Estimators with the same path and seed see the same rewards.

    Parameters
    ----------
    estimator
        An estimator without rewards, such as ``db.estimators.AdaptiveForgetting(step_size=0.01)``.
    path
        The means of the arm, a sequence of numbers in [0, 1], the same for all replications; or an environment or its
        name, with a path of its own for each replication.
    replications
        How many independent replications, at least 2.
    horizon
        How many steps; by default all of a sequence, and 10,000 of an environment, or as many as it has.
    arm
        Which arm of the environment.
    rewards
        The reward law for a sequence of means: ``"bernoulli"``, the default, or ``"bounded"``. An environment has its
        own.
    seed
        The seed of all randomness, a whole number of at least 0.
    times
        The steps after which the errors are recorded: an increasing list that ends at the horizon, or their number,
        evenly spaced.

    Returns
    -------
    Estimation
        The errors of the estimator at the recorded steps, with their bias and their mean square.

    Examples
    --------
    >>> import dynabandit as db
    >>> jump = [0.3] * 500 + [0.6] * 100
    >>> for estimator in (db.estimators.SampleMean(), db.estimators.SlidingWindow(window=100)):
    ...     print(db.estimation(estimator, jump, replications=100))
    Estimation(SampleMean, 600 steps, 100 replications: at the end bias -0.246, mean squared error 0.0608)
    Estimation(SlidingWindow, 600 steps, 100 replications: at the end bias 0.0052, mean squared error 0.00242)
    """
    functions = _functions(estimator)
    replications = integer("replications", replications, 2, LARGEST_REPLICATION)
    random = stream(integer("seed", seed, 0, LARGEST_SEED))
    arm_paths = (
        _of_environment(make_environment(path), horizon, arm, rewards)
        if isinstance(path, (Environment, str))
        else _of_means(path, horizon, arm, rewards)
    )
    law, law_functions = arm_paths.law, arm_paths.functions
    if not law.domain.is_within(BOUNDED):
        raise ValueError(f"an estimator needs rewards in [0, 1], but law {law.name!r} draws {law.domain.description}")
    marks = recorded_times(times, arm_paths.horizon)
    errors = np.empty((replications, len(marks)))
    start = FreshEstimator(estimator.state, estimator.params, estimator.window)
    estimate, law_row = compiled_estimate(functions, law_functions), to_row(law.params())

    def task(low: int) -> None:
        part, own = errors[low : low + arm_paths.per_task], shifted(random, low)
        estimate(start, arm_paths.write(len(part), own), law_row, arm_paths.params, marks, part, arm, own)

    with ThreadPoolExecutor(cores(), thread_name_prefix="dynabandit") as pool:
        for future in [pool.submit(task, low) for low in range(0, replications, arm_paths.per_task)]:
            future.result()
    return Estimation(estimator=estimator, seed=seed, times=marks, errors=errors)


class ArmPaths(NamedTuple):
    """Where the means of the arm come from."""

    horizon: int
    law: RewardLaw
    functions: RewardFunctions
    params: np.ndarray  # (fields, arms): those of the environment
    per_task: int  # how many replications a task has
    write: Callable[[int, Stream], np.ndarray]  # (replications, stream of the first one) -> their paths, or one for all


def _of_means(path: Any, horizon: int | None, arm: int, rewards: RewardLaw | str | None) -> ArmPaths:
    try:
        means = np.asarray(path, dtype=float)
    except (TypeError, ValueError):
        means = np.empty(0)
    if means.ndim != 1 or not means.size or not np.all((means >= 0.0) & (means <= 1.0)):
        raise ValueError(f"path must be an environment or a sequence of numbers in [0, 1], got {path!r}")
    integer("arm", arm, 0, 0)
    steps = len(means) if horizon is None else integer("horizon", horizon, 1, len(means))
    law = reward_law("bernoulli" if rewards is None else rewards)
    return ArmPaths(
        steps,
        law,
        law.functions,
        np.zeros((1, 1)),
        max(1, PATH_CELLS // steps),
        lambda count, random: means[np.newaxis, :steps],
    )


def _of_environment(
    environment: Environment, horizon: int | None, arm: int, rewards: RewardLaw | str | None
) -> ArmPaths:
    if rewards is not None:
        raise ValueError(f"rewards go with a sequence of means; environment {environment.name!r} has its own")
    integer("arm", arm, 0, environment.arms - 1)
    steps = environment.check_horizon(min(DEFAULT_HORIZON, environment.longest) if horizon is None else horizon)
    params, table = np.array(environment.params()), environment.table()

    def write(count: int, random: Stream) -> np.ndarray:
        state = np.zeros((count, environment.state_size(), environment.arms))
        paths = environment.empty_paths(count, steps)
        compiled_write_paths(environment.functions)(state, params, table, paths, 1, steps, random)
        return np.ascontiguousarray(paths.means[:, :, arm])

    per_task = max(1, PATH_CELLS // (steps * cells_per_step(environment)))
    return ArmPaths(steps, environment.rewards, environment.reward_functions, params, per_task, write)


def _functions(estimator: Estimator) -> EstimatorFunctions:
    """Return the functions of an estimator without rewards, or raise an error."""
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator must be an estimator such as dynabandit.estimators.SampleMean(), got {estimator!r}")
    kind = type(estimator)
    if not isinstance(getattr(kind, "functions", None), EstimatorFunctions):
        raise TypeError(f"estimator must have compiled functions: set {kind.__name__}.functions to EstimatorFunctions")
    if estimator.weight != 0.0:
        raise ValueError(f"estimator must have no rewards yet, got {estimator!r}")
    return kind.functions
