"""Policies that are a memory, a rule and perhaps a detector: presets with a name of their own, and all others."""

import functools
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from dynabandit.core.context import Context
from dynabandit.core.docstrings import parameter_descriptions
from dynabandit.core.records import NoParams
from dynabandit.policies.base import Policy
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.detectors.base import Detector
from dynabandit.policies.documentation import documentation
from dynabandit.policies.fit import common_domain, misfit
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.memories.base import Memory
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.model_functions import model_functions, slots_of
from dynabandit.policies.part import Setting
from dynabandit.policies.policy_functions import policy_functions, rows_of
from dynabandit.policies.rules.base import Rule
from dynabandit.policies.rules.score_laws import GAMMA
from dynabandit.validation import set_fields


@dataclass(frozen=True, kw_only=True)
class Preset(Policy):
    """A policy that is made of parts.

    A subclass names them in `made_of`: a memory, a rule and perhaps a detector. The parameters of a part that is given
    as a class are those of the policy, with the defaults that the subclass states; a part that is given as an object is
    fixed. Unless a subclass says otherwise, each arm is first played as often as the parts need. The descriptions of
    the parameters come from the parts, too, and what follows from the parts in the docstring (`documentation.py`);
    `described` has descriptions that differ.
    """

    made_of: ClassVar[tuple[Any, ...]]
    described: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        if "made_of" not in vars(cls):  # a base class, or the form of a preset with a doubling horizon
            super().__init_subclass__(**options)
            return
        own = inspect.get_annotations(cls)
        cls.__annotations__ = {**_collected_fields(cls), **own, "burn_in": int}
        memory, rule, detector = (kind_of(part) for part in _three(cls.made_of))
        if (problem := misfit(memory, rule, detector)) is not None:
            raise TypeError(problem)
        if "burn_in" not in vars(cls):
            cls.burn_in = max(kind_of(part).first_plays for part in cls.made_of)
        kernels = memory.kernels_for(rule.kernels.family), rule.kernels, detector and detector.kernels
        if issubclass(memory, ModelMemory):
            cls.functions, cls.slots = model_functions(*kernels[:2]), slots_of(*kernels[:2])
        else:
            cls.functions, cls.slots = policy_functions(*kernels), rows_of(*kernels).slots
        cls.rewards = common_domain([part for part in (memory, rule, detector) if part is not None])
        cls.needs_double = memory.needs_double
        cls.__doc__ = _documentation(cls)
        super().__init_subclass__(**options)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = field_names(_visible(self.made_of))
        for given, part in zip(_three(self.made_of), self.parts(), strict=True):
            if isinstance(given, type) and part is not None:  # parts check their parameters
                set_fields(self, **{names[given, name]: value for name, value in part.parameters.items()})

    def parts(self) -> tuple[Memory, Rule, Detector | None]:
        """Return the memory, the rule and the detector with the parameters of this policy."""
        return self._parts

    @functools.cached_property  # a bandit asks for them several times per decision
    def _parts(self) -> tuple[Memory, Rule, Detector | None]:
        names = field_names(_visible(self.made_of))
        made = [
            part(**{one.name: getattr(self, names[part, one.name]) for one in fields(part)})
            if isinstance(part, type)
            else part
            for part in _three(self.made_of)
        ]
        return made[0], made[1], made[2]

    def _expected(self) -> tuple[int, int]:
        """Return the number of changes and the horizon, 1 for one that is not needed."""
        return 1, 1

    def _setting(self, arms: int) -> Setting:
        prior = getattr(self.parts()[1], "prior", None)
        return Setting(arms, *self._expected(), self.burn_in, Prior(*(prior or (0.0, 0.0))))

    def params(self, arms: int) -> Any:
        setting, kind = self._setting(arms), self.functions.params
        memory, rule, detector = (NoParams() if part is None else part.params(setting) for part in self.parts())
        return kind(memory, rule, detector)

    def memory_size(self) -> int:
        detector = self.parts()[2]
        return len(self.slots) + (0 if detector is None else detector.history_size(self._setting(1)))

    def shared_size(self) -> int:
        memory, rule, detector = self.parts()
        own = memory.shared_size(self._setting(1), rule.kernels.family) + rule.kernels.shared
        return max(own + (0 if detector is None else detector.kernels.shared), 1)

    def models_shape(self, arms: int, context: Context) -> tuple[int, int]:
        memory, rule, _ = self.parts()
        return memory.models_shape(arms, context, rule.kernels.family)

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        memory, rule, _ = self.parts()
        return memory.initial_models(arms, context, rule.kernels.family)

    def forgetting(self, column: np.ndarray) -> float:
        return self.parts()[0].forgetting(column, self._setting(1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        memory, _, detector = self.parts()
        if not memory.has_prior:
            if self.functions.posterior is not None:
                return super().belief(column, shared)
            law = self.functions.law
            if law is not None and law.family == GAMMA:
                _, rate, mean = map(float, self.law_numbers(law.numbers, column, shared))
                return Belief(mean, mean, self.forgetting(column), rate)  # the variance of a Poisson count is its mean
        return memory.belief(column, shared[0 if detector is None else detector.kernels.shared :], self._setting(1))

    def tuned(self, switches: int, horizon: int) -> Self:
        return self._limited(horizon)

    def _limited(self, horizon: int) -> Self:
        """Return the policy as it is needed for so many steps."""
        limited: dict[str, Any] = {}
        names = field_names(_visible(self.made_of))
        for given, part in zip(_three(self.made_of), self.parts(), strict=True):
            if isinstance(given, type) and part is not None:
                limited |= {names[given, name]: value for name, value in part.limited(horizon).parameters.items()}
        changed = {name: value for name, value in limited.items() if value != getattr(self, name)}
        return replace(self, **changed) if changed else self


@dataclass(frozen=True, kw_only=True)
class HorizonPreset(HorizonTuned, Preset):
    """A preset of which a part follows from a horizon and a number of changes, unless its parameters are given."""

    def tuned(self, switches: int, horizon: int) -> Self:
        return super().tuned(switches, horizon)._limited(horizon)

    def _follows_from_changes(self) -> bool:
        return any(part is not None and part.needs_changes for part in self.parts())

    def _follows_from_horizon(self) -> bool:
        return any(part is not None and part.needs_horizon for part in self.parts())


def _three(made_of: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    memory, rule, *rest = made_of
    return memory, rule, rest[0] if rest else None


def kind_of(part: Any) -> Any:
    """Return the class of a part that is given as a class or an object."""
    return part if part is None or isinstance(part, type) else type(part)


def _visible(made_of: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the parts whose parameters are those of the policy."""
    return (part for part in made_of if isinstance(part, type))


def field_names(kinds: Iterable[Any]) -> dict[tuple[Any, str], str]:
    """Return the name that each parameter of a part has in a policy: with that of the part if two parts have it."""
    found: dict[tuple[Any, str], str] = {}
    for kind in kinds:
        for one in fields(kind):
            taken = one.name in found.values()
            found[kind, one.name] = f"{kind.name.replace('-', '_')}_{one.name}" if taken else one.name
    return found


def _collected_fields(cls: type[Preset]) -> dict[str, Any]:
    """Return the annotations of the parameters of the parts, and set their defaults unless the class states others."""
    found: dict[str, Any] = {}
    names = field_names(_visible(cls.made_of))
    for (kind, own), name in names.items():
        if hasattr(HorizonPreset, name):
            raise TypeError(
                f"{kind.__name__}: a part must not have a parameter {own!r}, which policies have themselves"
            )
        one = next(one for one in fields(kind) if one.name == own)
        found[name] = one.type
        if name not in vars(cls) and one.default is not MISSING:
            setattr(cls, name, one.default)
    return found


def _documentation(cls: type[Preset]) -> str:
    """Return the docstring of a preset, with what follows from its parts."""
    own = field_names(_visible(cls.made_of))
    collected = {
        ", ".join(own[part, name] for name in names): description
        for part in _visible(cls.made_of)
        for names, description in parameter_descriptions(inspect.getdoc(part) or "")
    }
    described = collected | cls.described_parameters() | cls.described
    memory, rule, *detector = (kind_of(part) for part in cls.made_of)
    return documentation(cls, (rule, memory, *detector), described)
