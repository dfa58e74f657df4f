"""Environments: the mean reward of each arm at each step."""

from dataclasses import MISSING, fields
from typing import Any

from dynabandit import plugins
from dynabandit.core.one_line_syntax import with_written
from dynabandit.environments.base import Environment, EnvironmentFunctions, EnvironmentStep
from dynabandit.environments.burst import Burst
from dynabandit.environments.delays import DELAYS, Delay, delay
from dynabandit.environments.drifting_models import LinDrift, LogisticDrift, MovingContexts
from dynabandit.environments.exponential_clock import Case1, Case2, ExponentialClock
from dynabandit.environments.linear import LinAbrupt, LinSlow
from dynabandit.environments.needle import Needle
from dynabandit.environments.piecewise_benchmarks import PB1, PB2, PB3, PB4, RandomBreakpoints
from dynabandit.environments.random_walks import Autoregressive, Case3, Case4, LogisticWalk, ReflectedWalk
from dynabandit.environments.real_contexts import Bananas, Digits, Flights, ImageSegments, Phishing, Prompts
from dynabandit.environments.recorded import Recorded
from dynabandit.environments.recorded_contexts import RecordedContexts
from dynabandit.environments.rested import RestedDrops, RestedRising, RestedRotting
from dynabandit.environments.reward_laws import (
    REWARD_LAWS,
    Bernoulli,
    Bounded,
    Counts,
    Normal,
    Revenue,
    RewardFunctions,
    RewardLaw,
    RewardStep,
    reward_law,
)
from dynabandit.environments.rotting import Rotting
from dynabandit.environments.scheduled import Fixed, Path, Piecewise, SmallChanges
from dynabandit.environments.seasonal import Seasonal
from dynabandit.validation import MissingParameterError, check_parameter_names, unknown

__all__ = [
    "DELAYS", "Delay", "delay",
    "ENVIRONMENTS", "PB1", "PB2", "PB3", "PB4", "Autoregressive", "Burst", "Case1", "Case2", "Case3", "Case4",
    "Environment", "EnvironmentFunctions", "EnvironmentStep", "ExponentialClock",
    "Fixed", "LogisticWalk", "Needle", "Path", "Piecewise", "RandomBreakpoints", "Recorded", "ReflectedWalk",
    "RestedDrops", "RestedRising", "RestedRotting", "Rotting",
    "Seasonal", "SmallChanges", "environment", "environment_class",
    "CONTEXTUAL_ENVIRONMENTS", "Bananas", "Digits", "Flights", "ImageSegments", "LinAbrupt", "LinDrift", "LinSlow",
    "LogisticDrift", "MovingContexts", "Phishing", "Prompts", "RecordedContexts",
    "REWARD_LAWS", "Bernoulli", "Bounded", "Counts", "Normal", "Revenue",
    "RewardFunctions", "RewardLaw", "RewardStep", "reward_law",
]  # fmt: skip

ENVIRONMENTS: dict[str, type[Environment]] = {
    "small-changes": SmallChanges,
    "case-1": Case1,
    "case-2": Case2,
    "case-3": Case3,
    "case-4": Case4,
    "fixed": Fixed,
    "piecewise": Piecewise,
    "exponential-clock": ExponentialClock,
    "reflected-walk": ReflectedWalk,
    "logistic-walk": LogisticWalk,
    "path": Path,
    "pb-1": PB1,
    "pb-2": PB2,
    "pb-3": PB3,
    "pb-4": PB4,
    "random-breakpoints": RandomBreakpoints,
    "ar-1": Autoregressive,
    "seasonal": Seasonal,
    "rotting": Rotting,
    "rested-rotting": RestedRotting,
    "rested-drops": RestedDrops,
    "rested-rising": RestedRising,
    "burst": Burst,
    "needle": Needle,
    "recorded": Recorded,
}

CONTEXTUAL_ENVIRONMENTS: dict[str, type[Environment]] = {
    "lin-abrupt": LinAbrupt,
    "lin-slow": LinSlow,
    "lin-drift": LinDrift,
    "logistic-drift": LogisticDrift,
    "moving-contexts": MovingContexts,
    "recorded-contexts": RecordedContexts,
    "digits": Digits,
    "image-segments": ImageSegments,
    "phishing": Phishing,
    "bananas": Bananas,
    "prompts": Prompts,
    "flights": Flights,
}


def environment_class(name: Any) -> type[Environment]:
    """Return the class of the environment with this name: one of the registry, or of an installed plug-in.

    Examples
    --------
    >>> environment_class("case-3").__name__
    'Case3'
    """
    known = {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS}
    kind = known.get(name) if isinstance(name, str) else None
    kind = kind or plugins.find(plugins.ENVIRONMENTS, name, Environment)
    if kind is None:
        raise unknown("environment", name, (*known, *plugins.installed(plugins.ENVIRONMENTS)))
    return kind


def environment(name: str | Environment | type[Environment], **parameters: Any) -> Environment:
    """Return the environment with this name.

    Parameters
    ----------
    name
        A name of the registry, such as ``"case-3"``, or of an installed plug-in, or a class; an environment object is
        returned unchanged. A name may be followed by parameters, as in ``"case-1:arms=50"``.
    parameters
        Its parameters, such as ``arms=50``; `environments.ENVIRONMENTS[name]` documents them.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.environment("case-1", arms=50).parameters
    {'arms': 50}
    >>> db.environment("fixed:means=[0.2, 0.8]").arms
    2
    """
    if isinstance(name, Environment):
        if parameters:
            raise TypeError(f"parameters {sorted(parameters)} go with an environment's name, not with {name!r}")
        return name
    if isinstance(name, str):
        name, parameters = with_written(name, parameters)
    kind = name if isinstance(name, type) and issubclass(name, Environment) else environment_class(name)
    known = {field.name: field for field in fields(kind) if field.init}
    check_parameter_names(f"environment {kind.name!r}", parameters, known)
    missing = [key for key, field in known.items() if field.default is MISSING and key not in parameters]
    if missing:
        raise MissingParameterError(
            f"environment {kind.name!r} needs {', '.join(missing)}", f"{_public_module(kind)}.{kind.__name__}"
        )
    return kind(**parameters)


def _public_module(kind: type[Environment]) -> str:
    """Return the module in which a user finds a class."""
    return "dynabandit.environments" if kind.__module__.startswith("dynabandit.") else kind.__module__
