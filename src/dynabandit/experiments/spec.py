"""Specs: what to simulate, as data that is checked in full before anything runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dynabandit import plugins
from dynabandit.core.streams import LARGEST_REPLICATION, stream
from dynabandit.environments import Delay, Environment, environment as make_environment
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.simulation import check_simulation, recorded_times
from dynabandit.validation import integer, number, set_fields, unknown

KINDS = ("experiments", "sample_paths", "coverage")  # of parts
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # an id is also the name of files


@dataclass(frozen=True, kw_only=True)
class Part:
    """What all parts of a spec have in common: the figure they belong to, and a seed."""

    figure: str
    seed: int = 1

    def __post_init__(self) -> None:
        _check_name("figure", self.figure)
        stream(self.seed)


@dataclass(frozen=True, kw_only=True)
class Experiment(Part):
    """Some policies on one environment.

    Parameters
    ----------
    id
        A name made of letters, digits, dots, dashes and underscores.
    title
        The title in a report, by default the id.
    figure
        The figure it belongs to, a name like an id; by default the id.
    environment
        The environment, or its name.
    policies
        At least one policy, or the names of policies; all of them see the same paths.
    horizon, replications, seed, times, delay
        As for `dynabandit.compare`.

    Examples
    --------
    >>> import dynabandit as db
    >>> trial = Experiment(id="trial", environment=db.environment("case-3", arms=5), policies=(db.policy("ucb"),))
    >>> trial.horizon, trial.replications, trial.figure
    (10000, 100, 'trial')
    """

    id: str
    environment: Environment
    policies: tuple[Policy, ...]
    title: str = ""
    figure: str = ""
    horizon: int = 10_000
    replications: int = 100
    times: int | tuple[int, ...] = 100
    delay: Delay | None = None

    def __post_init__(self) -> None:
        _check_name("id", self.id)
        set_fields(self, title=_check_text("title", self.title) or self.id, figure=self.figure or self.id)
        set_fields(self, environment=make_environment(self.environment), times=_frozen(self.times))
        set_fields(self, policies=tuple(make_policy(policy) for policy in self.policies))
        super().__post_init__()
        integer("replications", self.replications, 1, LARGEST_REPLICATION)
        if not self.policies:
            raise ValueError("policies must hold at least one policy, got none")
        labels = [policy.label for policy in self.policies]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"policies must be different, got {label!r} twice")
        check_simulation(self.policies_by_label, self.environment, self.horizon, self.delay)
        self.recorded_times()

    @property
    def policies_by_label(self) -> dict[str, Policy]:
        """The policies by label, in their order."""
        return {policy.label: policy for policy in self.policies}

    def recorded_times(self) -> np.ndarray:
        """Return the steps after which the regret is recorded."""
        return recorded_times(self.times, self.horizon)


@dataclass(frozen=True, kw_only=True)
class PathSpec(Part):
    """Sample paths of an environment's means, thinned to about `points` steps."""

    environment: Environment
    replications: int = 3
    horizon: int = 10_000
    points: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, environment=make_environment(self.environment))
        integer("replications", self.replications, 1, LARGEST_REPLICATION)
        integer("points", self.points, 1)
        self.environment.check_horizon(self.horizon)


@dataclass(frozen=True, kw_only=True)
class CoverageSpec(Part):
    """How often a constant mean lies above the adaptive mean plus the bonus of the paper's appendix.

    Parameters
    ----------
    means
        The means of the Bernoulli streams.
    step_sizes
        The step sizes of the adaptive estimator.
    observations
        The numbers of observations after which to compare, increasing.
    streams
        How many streams for each mean and step size.
    """

    means: tuple[float, ...]
    step_sizes: tuple[float, ...]
    observations: tuple[int, ...]
    streams: int = 20_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("means", "step_sizes", "observations"):
            values = _frozen(getattr(self, key))
            if not isinstance(values, tuple) or not values:
                raise ValueError(f"{key} must be a list of at least one number, got {values!r}")
            for index, value in enumerate(values):
                if key == "observations":
                    integer(f"{key}[{index}]", value, 1)
                else:
                    number(f"{key}[{index}]", value, 0.0, 1.0)
            set_fields(self, **{key: values})
        if any(np.diff(self.observations) <= 0):
            raise ValueError(f"observations must rise, got {self.observations}")
        integer("streams", self.streams, 1, LARGEST_REPLICATION)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that one command runs."""

    title: str
    experiments: tuple[Experiment, ...] = ()
    sample_paths: tuple[PathSpec, ...] = ()
    coverage: tuple[CoverageSpec, ...] = ()

    def __post_init__(self) -> None:
        _check_text("title", self.title)
        ids = [experiment.id for experiment in self.experiments]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"every experiment must have an id of its own, got {name!r} twice")
        if not self.figures:
            raise ValueError("there must be something to run, in experiments, sample_paths or coverage, got nothing")

    @property
    def parts(self) -> tuple[Part, ...]:
        """All experiments, sample paths and coverage."""
        return (*self.experiments, *self.sample_paths, *self.coverage)

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures, in order of appearance."""
        return tuple(dict.fromkeys(part.figure for part in self.parts))

    def only(self, figures: Sequence[str]) -> "Spec":
        """Return the parts that belong to some figures; all parts if no figure is named."""
        for figure in figures:
            if figure not in self.figures:
                raise unknown("figure", figure, self.figures)
        wanted = figures or self.figures
        kept: dict[str, Any] = {
            kind: tuple(part for part in getattr(self, kind) if part.figure in wanted) for kind in KINDS
        }
        return replace(self, **kept)

    def override(
        self, *, replications: int | None = None, horizon: int | None = None, seed: int | None = None
    ) -> "Spec":
        """Return the spec with another number of replications or steps, or another seed."""
        given = {"replications": replications, "horizon": horizon, "seed": seed}
        values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        of_paths = {name: value for name, value in values.items() if name != "replications"}
        of_coverage = {name: value for name, value in values.items() if name == "seed"}
        return replace(
            self,
            experiments=tuple(_override(experiment, horizon, values) for experiment in self.experiments),
            sample_paths=tuple(replace(paths, **of_paths) for paths in self.sample_paths),
            coverage=tuple(replace(coverage, **of_coverage) for coverage in self.coverage),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the tables of a spec file, as `dynabandit.experiments.dumps` writes them and metadata keeps them."""
        return {"title": self.title} | {
            kind: [_table(part) for part in getattr(self, kind)] for kind in KINDS if getattr(self, kind)
        }


def parameters_to_write(named: Policy | Environment) -> dict[str, Any]:
    """Return what to write after a name: of a policy the parameters that differ from their defaults, else all.

    Parameters that are None are left out, since TOML cannot write them; None is always a default.

    Examples
    --------
    >>> import dynabandit as db
    >>> parameters_to_write(db.policy("dts", memory=5)), parameters_to_write(db.environment("case-1"))
    ({'memory': 5.0}, {'arms': 2})
    """
    defaults = {field.name: field.default for field in fields(named)} if isinstance(named, Policy) else {}
    written = {name: _frozen(value) for name, value in named.parameters.items() if value is not None}
    return {name: value for name, value in written.items() if name not in defaults or value != defaults[name]}


def _table(part: Part) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    if values.get("delay") is None:
        values.pop("delay", None)
    else:
        values["delay"] = values["delay"].parameters
    if isinstance(part, (Experiment, PathSpec)):
        values["environment"] = _named(part.environment)
    if isinstance(part, Experiment):
        values["policies"] = [_named(policy) for policy in part.policies]
    return values


def _named(named: Policy | Environment) -> dict[str, Any]:
    group = plugins.POLICIES if isinstance(named, Policy) else plugins.ENVIRONMENTS
    return {"name": plugins.reference_to(group, type(named)), **parameters_to_write(named)}


def _override(experiment: Experiment, horizon: int | None, values: dict[str, Any]) -> Experiment:
    times = experiment.times
    if horizon is not None and isinstance(times, tuple):
        times = (*(time for time in times if time < horizon), horizon)
    try:
        return replace(experiment, **values, times=times)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{experiment.id}: {error}") from None


def _frozen(value: Any) -> Any:
    """Return lists and arrays as tuples, at any depth."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(_frozen(inner) for inner in value) if isinstance(value, (list, tuple)) else value


def _check_text(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be text, got {value!r}")
    return value


def _check_name(argument: str, value: Any) -> None:
    if not NAME.fullmatch(_check_text(argument, value)):
        raise ValueError(
            f"{argument} must be made of letters, digits, dots, dashes and underscores and start with a letter "
            f"or digit, got {value!r}"
        )
