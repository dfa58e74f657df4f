"""Experiments as data: what to run, checked in full before anything runs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from dynabandit.core.streams import LARGEST_REPLICATION, stream
from dynabandit.environments import Environment, environment as make_environment
from dynabandit.errors import integer, keep, number, unknown
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.simulation import check_horizon, recorded_times

__all__ = ["CoverageSpec", "Experiment", "Named", "Part", "PathSpec", "Spec"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # an id is also the name of files


@dataclass(frozen=True)
class Named:
    """A policy or an environment: its name, and the parameters that are not left at their defaults.

    A parameter that is None counts as left out, since TOML cannot write it.

    Examples
    --------
    >>> Named("aff-ots", {"prior": [1, 3]}).make_policy().label
    'aff-ots(prior=(1, 3))'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frozen = {key: _freeze(value) for key, value in self.parameters.items() if value is not None}
        keep(self, parameters=frozen)

    def make_policy(self) -> Policy:
        """Return the policy itself."""
        return make_policy(_text("policy", self.name), **self.parameters)

    def make_environment(self) -> Environment:
        """Return the environment itself."""
        return make_environment(_text("environment", self.name), **self.parameters)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What all parts of a spec have: a figure that they belong to, and a seed."""

    figure: str
    seed: int = 1

    def __post_init__(self) -> None:
        _name("figure", self.figure)
        stream(self.seed)


@dataclass(frozen=True, kw_only=True)
class Experiment(Part):
    """Some policies on one environment.

    Parameters
    ----------
    id
        A name made of letters, digits, dots, dashes and underscores.
    title
        What to call it in a report; the id where left out.
    figure
        The figure that it belongs to, a name like an id; the id where left out.
    environment
        The environment, with its number of arms among the parameters.
    policies
        At least one; all see the same paths.
    horizon, replications, seed, times
        As for `dynabandit.compare`.

    Examples
    --------
    >>> trial = Experiment(id="trial", environment=Named("case-3", {"arms": 5}), policies=(Named("ucb"),))
    >>> trial.horizon, trial.replications, trial.figure
    (10000, 100, 'trial')
    """

    id: str
    environment: Named
    policies: tuple[Named, ...]
    title: str = ""
    figure: str = ""
    horizon: int = 10_000
    replications: int = 100
    times: int | tuple[int, ...] = 100

    def __post_init__(self) -> None:
        _name("id", self.id)
        keep(self, title=_text("title", self.title) or self.id, figure=self.figure or self.id)
        keep(self, policies=tuple(self.policies), times=_freeze(self.times))
        super().__post_init__()
        integer("replications", self.replications, 1, LARGEST_REPLICATION)
        policies = [one.make_policy() for one in self.policies]
        if not policies:
            raise ValueError("policies must hold at least one policy, got none")
        labels = [one.label for one in policies]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"policies must be different, got {label!r} twice")
        world = self.environment.make_environment()
        check_horizon(self.horizon, world, dict(zip(labels, policies, strict=True)))
        self.recorded_times()

    def recorded_times(self) -> np.ndarray:
        """Return the steps after which the regret is recorded."""
        return recorded_times(self.times, self.horizon)


@dataclass(frozen=True, kw_only=True)
class PathSpec(Part):
    """Trajectories of an environment's means to look at, thinned to about `points` steps."""

    environment: Named
    replications: int = 3
    horizon: int = 10_000
    points: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("replications", self.replications, 1, LARGEST_REPLICATION)
        integer("points", self.points, 1)
        self.environment.make_environment().check_horizon(self.horizon)


@dataclass(frozen=True, kw_only=True)
class CoverageSpec(Part):
    """How often a mean lies above the adaptive mean plus the bonus of the appendix, on still streams.

    Parameters
    ----------
    means
        The means of the Bernoulli streams.
    step_sizes
        The step sizes of the adaptive estimator.
    observations
        After how many observations to look, in rising order.
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
            keep(self, **{key: _freeze(getattr(self, key))})
            if not isinstance(getattr(self, key), tuple) or not getattr(self, key):
                raise ValueError(f"{key} must be a list of at least one number, got {getattr(self, key)!r}")
        for index, mean in enumerate(self.means):
            number(f"means[{index}]", mean, 0.0, 1.0)
        for index, step_size in enumerate(self.step_sizes):
            number(f"step_sizes[{index}]", step_size, 0.0, 1.0)
        for index, count in enumerate(self.observations):
            integer(f"observations[{index}]", count, 1)
        if any(np.diff(self.observations) <= 0):
            raise ValueError(f"observations must rise, got {self.observations}")
        integer("streams", self.streams, 1, LARGEST_REPLICATION)


AnyPart = TypeVar("AnyPart", bound=Part)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that one command runs."""

    title: str
    experiments: tuple[Experiment, ...] = ()
    sample_paths: tuple[PathSpec, ...] = ()
    coverage: tuple[CoverageSpec, ...] = ()

    def __post_init__(self) -> None:
        _text("title", self.title)
        ids = [experiment.id for experiment in self.experiments]
        for one in ids:
            if ids.count(one) > 1:
                raise ValueError(f"every experiment must have an id of its own, got {one!r} twice")
        if not self.figures:
            raise ValueError("there must be something to run, in experiments, sample_paths or coverage, got nothing")

    @property
    def parts(self) -> tuple[Part, ...]:
        """Everything that there is to run."""
        return (*self.experiments, *self.sample_paths, *self.coverage)

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures, in order of appearance."""
        return tuple(dict.fromkeys(part.figure for part in self.parts))

    def only(self, figures: Sequence[str]) -> "Spec":
        """Return the part that belongs to some figures; all of it where none is named."""
        for figure in figures:
            if figure not in self.figures:
                raise unknown("figure", figure, self.figures)
        return replace(
            self,
            experiments=_of(figures or self.figures, self.experiments),
            sample_paths=_of(figures or self.figures, self.sample_paths),
            coverage=_of(figures or self.figures, self.coverage),
        )

    def override(
        self, *, replications: int | None = None, horizon: int | None = None, seed: int | None = None
    ) -> "Spec":
        """Return the spec with other numbers of replications and steps, or another seed."""
        seeds: dict[str, Any] = {} if seed is None else {"seed": seed}
        lengths: dict[str, Any] = {} if horizon is None else {"horizon": horizon}
        counts: dict[str, Any] = {} if replications is None else {"replications": replications}
        return replace(
            self,
            experiments=tuple(
                _changed(one, **counts, **lengths, **seeds, times=_cut(one.times, horizon)) for one in self.experiments
            ),
            sample_paths=tuple(replace(one, **lengths, **seeds) for one in self.sample_paths),
            coverage=tuple(replace(one, **seeds) for one in self.coverage),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: what `dynabandit.experiments.toml` writes and metadata keeps."""
        parts = ("experiments", "sample_paths", "coverage")
        return {"title": self.title} | {
            part: [_plain(one) for one in getattr(self, part)] for part in parts if getattr(self, part)
        }


def _plain(part: Part) -> dict[str, Any]:
    values = asdict(part)
    if isinstance(part, (Experiment, PathSpec)):
        values["environment"] = _flat(part.environment)
    if isinstance(part, Experiment):
        values["policies"] = [_flat(one) for one in part.policies]
    return values


def _flat(named: Named) -> dict[str, Any]:
    return {"name": named.name, **named.parameters}


def _of(figures: Iterable[str], parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    return tuple(part for part in parts if part.figure in figures)


def _changed(experiment: Experiment, **values: Any) -> Experiment:
    try:
        return replace(experiment, **values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{experiment.id}: {error}") from None


def _cut(times: int | tuple[int, ...], horizon: int | None) -> int | tuple[int, ...]:
    """Return the times up to another horizon."""
    if isinstance(times, int) or horizon is None:
        return times
    return (*(time for time in times if time < horizon), horizon)


def _freeze(value: Any) -> Any:
    """Return lists and arrays as tuples, however deep."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(_freeze(one) for one in value) if isinstance(value, (list, tuple)) else value


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be text, got {value!r}")
    return value


def _name(argument: str, value: Any) -> None:
    if not NAME.fullmatch(_text(argument, value)):
        raise ValueError(
            f"{argument} must be made of letters, digits, dots, dashes and underscores and start with a letter "
            f"or digit, got {value!r}"
        )
