"""What is recorded: by the replications of one policy on one environment, as sample paths, and as coverage."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.environments import Delay, Environment
from dynabandit.extras import import_extra
from dynabandit.policies import Policy

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

KEYS = ("experiment", "environment", "arms", "environment_parameters", "label", "policy", "parameters")


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedRegret:
    """What the replications of one policy on one environment recorded.

    `Simulation` adds the policy and the environment themselves, `Run` their names, as result files keep them.
    `regret` is the expected regret, the sum of max_a mu_t(a) - mu_t(a_t); burn-in plays count. For rested arms, whose
    means depend on their plays, it is the mean reward of the best policy in hindsight for that many steps minus that of
    this policy. A best arm is then one with the largest current mean or, if means rise, the best single arm.
    """

    horizon: int
    """The number of steps."""
    seed: int
    """The seed of all randomness."""
    times: np.ndarray = field(repr=False)
    """The recorded steps; the last one is the horizon."""
    regret: np.ndarray = field(repr=False)
    """Cumulative regret, replications x times."""
    correct: np.ndarray = field(repr=False)
    """Share of replications that played a best arm, at each of the times."""
    correct_by_replication: np.ndarray | None = field(default=None, repr=False)
    """Whether a best arm was played, replications x times; None in results of version 0.1.0."""

    @property
    def total_regret(self) -> np.ndarray:
        """The regret at the horizon, one number per replication; paired between runs on the same paths."""
        return self.regret[:, -1]

    @property
    def replications(self) -> int:
        """The number of replications."""
        return len(self.regret)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the regret as a pandas data frame, with one row per replication and recorded step.

        Examples
        --------
        >>> import dynabandit as db
        >>> db.simulate("ts", "case-1", horizon=100, replications=3, times=5).to_pandas().shape
        (15, 3)
        """
        return import_extra("pandas", "frames").DataFrame(self._columns())

    def to_polars(self) -> "polars.DataFrame":
        """Return the regret as a polars data frame, with one row per replication and recorded step."""
        return import_extra("polars", "frames").DataFrame(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        return {
            "replication": np.repeat(np.arange(self.replications), len(self.times)),
            "step": np.tile(self.times, self.replications),
            "regret": self.regret.ravel(),
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Simulation(RecordedRegret):
    """What `dynabandit.simulate` and `dynabandit.compare` return.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = db.simulate("ucb", "case-1", horizon=100, replications=3, times=5)
    >>> run.times.tolist(), run.regret.shape, run.total_regret.shape
    ([20, 40, 60, 80, 100], (3, 5), (3,))
    """

    policy: Policy
    """The policy, with its parameters."""
    environment: Environment
    """The environment, with its parameters."""
    correct_by_replication: np.ndarray
    arms: np.ndarray | None = None
    """Chosen arms, replications x horizon, if asked for with ``keep``."""
    rewards: np.ndarray | None = None
    """Rewards, replications x horizon, if asked for with ``keep``."""
    first_replication: int = 0
    """The number of the first replication; with the seed, it identifies a part of a long run."""
    delay: Delay | None = None
    """When rewards arrived; None if each arrived at the step of its decision."""

    def to_xarray(self) -> "xarray.Dataset":
        """Return everything that was recorded as an xarray data set with named axes.

        Examples
        --------
        >>> import dynabandit as db
        >>> data = db.simulate("ts", "case-1", horizon=100, replications=3, times=5).to_xarray()
        >>> dict(data.regret.sizes)
        {'replication': 3, 'step': 5}
        """
        numbers = np.arange(self.first_replication, self.first_replication + self.replications)
        coordinates: dict[str, Any] = {"replication": numbers, "step": self.times}
        variables: dict[str, Any] = {
            "regret": (("replication", "step"), self.regret),
            "correct": (("step",), self.correct),
        }
        for name, kept in (("arm", self.arms), ("reward", self.rewards)):
            if kept is not None:
                coordinates["every_step"] = np.arange(1, self.horizon + 1)
                variables[name] = (("replication", "every_step"), kept)
        names = {"policy": self.policy.label, "environment": self.environment.name, "seed": self.seed}
        return import_extra("xarray", "frames").Dataset(variables, coords=coordinates, attrs=names)

    def __repr__(self) -> str:
        plural = "" if self.replications == 1 else "s"
        return (
            f"Simulation({self.policy.label} on {self.environment.name}, {self.environment.arms} arms, "
            f"{self.horizon} steps, {self.replications} replication{plural}: "
            f"mean total regret {self.total_regret.mean():.4g})"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(RecordedRegret):
    """One policy of one experiment, as `Results` hold it and result files keep it.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = db.Run(
    ...     experiment="mine", environment="case-1", arms=2, environment_parameters={}, label="ucb", policy="ucb",
    ...     parameters={}, horizon=2, seed=1, times=np.array([1, 2]), regret=np.array([[0.0, 0.5], [0.5, 1.0]]),
    ...     correct=np.array([0.5, 0.0]),
    ... )
    >>> run.replications, run.total_regret.tolist()
    (2, [0.5, 1.0])
    """

    experiment: str
    """The name of the experiment in its spec."""
    environment: str
    """The name of the environment."""
    arms: int
    """The number of arms."""
    environment_parameters: dict[str, Any]
    """The other parameters of the environment, by name."""
    label: str
    """The label of the policy in figures and tables."""
    policy: str
    """The name of the policy."""
    parameters: dict[str, Any]
    """The parameters of the policy, by name."""

    def keys(self) -> dict[str, Any]:
        """Return what identifies this run among others; parameters as JSON, which sorts and compares."""
        values = {key: getattr(self, key) for key in KEYS}
        return {
            key: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
            for key, value in values.items()
        }


@dataclass(frozen=True, eq=False)
class SamplePath:
    """A sample path of an environment's means, thinned for a figure."""

    environment: str
    arms: int
    replication: int
    times: np.ndarray = field(repr=False)
    means: np.ndarray = field(repr=False)
    """Mean rewards, times x arms."""


@dataclass(frozen=True)
class Coverage:
    """How often a constant mean lay above the adaptive mean plus the bonus of the paper's appendix."""

    mean: float
    step_size: float
    observations: int
    streams: int
    exceeded: int
