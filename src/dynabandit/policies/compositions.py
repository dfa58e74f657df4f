"""Any memory with any rule, and perhaps a detector: by name, by object, or all combinations that make sense."""

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dynabandit import plugins
from dynabandit.policies.detectors import DETECTORS
from dynabandit.policies.detectors.base import Detector
from dynabandit.policies.fit import misfit
from dynabandit.policies.memories import MEMORIES
from dynabandit.policies.memories.base import Memory
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.part import Part
from dynabandit.policies.preset import HorizonPreset, Preset, field_names, kind_of
from dynabandit.policies.rules import RULES
from dynabandit.policies.rules.base import Rule
from dynabandit.validation import check_parameter_names, unknown

PLUS = " + "
_making = threading.RLock()
ROLES: dict[str, tuple[type[Part], dict[str, Any]]] = {
    "memory": (Memory, MEMORIES),
    "rule": (Rule, RULES),
    "detector": (Detector, DETECTORS),
}

Kind = TypeVar("Kind", bound=Part)


class Chosen:
    """The parts of a composition: each a class, whose parameters are the defaults, or an object."""

    def __init__(self, memory: Any, rule: Any, detector: Any = None) -> None:
        self.memory, self.rule, self.detector = memory, rule, detector
        _check_fit(*self.kinds())

    def replaced(self, parameters: dict[str, Any]) -> "Chosen":
        """Return the parts with those that are among the parameters, which are removed there."""
        own = {"memory": self.memory, "rule": self.rule, "detector": self.detector}
        numbers = {field.name for kind in self.kinds() for field in fields(kind)}
        for role in ROLES:
            if role in parameters and (is_part(parameters[role]) or role not in numbers):
                given = parameters.pop(role)
                own[role] = None if role == "detector" and given is None else _part(role, given)
        return Chosen(**own)

    def all(self) -> tuple[Any, ...]:
        """Return the parts that there are."""
        return tuple(part for part in (self.memory, self.rule, self.detector) if part is not None)

    def kinds(self) -> tuple[Any, ...]:
        """Return the classes of the parts."""
        return tuple(kind_of(part) for part in self.all())

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the parts that are objects."""
        found: dict[str, Any] = {}
        names = field_names(self.kinds())
        for part in self.all():
            if not isinstance(part, type):
                found |= {names[type(part), name]: value for name, value in part.parameters.items()}
        return found


def compose(*, memory: Any = None, rule: Any, detector: Any = None, **parameters: Any) -> Preset:
    """Return the policy that compares arms by a rule, with what a memory keeps of their rewards.

    A composition that has a name of its own is the policy with this name: `compose(memory="adaptive", rule="ots")` is
    ``"aff-ots"``.

    Parameters
    ----------
    memory
        A memory such as `db.memories.Window(window=500)`, its class or its name; by default the sample mean.
    rule
        A rule such as `db.rules.UCB(xi=0.6)`, its class or its name.
    detector
        A detector such as `db.detectors.GLR()`, its class or its name; by default none.
    parameters
        Other parameters: those of parts that are given by class or name, and `burn_in`.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.compose(memory=db.memories.Window(window=500), rule="hoeffding").label
    'hoeffding + window(window=500)'
    >>> db.compose(memory="adaptive", rule="ots", step_size=0.01).label
    'aff-ots(step_size=0.01)'
    """
    chosen = Chosen(
        _part("memory", SampleMean if memory is None else memory),
        _part("rule", rule),
        None if detector is None else _part("detector", detector),
    )
    return made(chosen, parameters)


def made(chosen: Chosen, parameters: dict[str, Any]) -> Preset:
    """Return the policy of some parts: one with a name of its own if there is one, else their composition."""
    for is_same in (_is_same, _is_variant):
        for kind in _presets():
            if (found := _as_preset(kind, chosen, parameters, is_same)) is not None:
                return found
    plugins.check_composition(name_of(chosen.kinds()))
    kind = composition_class(*chosen.kinds())
    given = chosen.parameters()
    check_parameter_names(
        f"policy {kind.name!r}", parameters, [one.name for one in fields(kind) if one.name not in given]
    )
    return kind(**given, **parameters)


def class_of(chosen: Chosen) -> type[Preset]:
    """Return the class of the policy that `made` returns without parameters."""
    return type(made(chosen, {}))


def named(text: str) -> Chosen | None:
    """Return the parts of a composition that is written like ``"ots + adaptive + glr"``; None for other names.

    A rule without a memory has the sample mean. The first name may be that of a policy that is made of parts; the names
    after it replace its memory, or add a detector.

    Examples
    --------
    >>> [part.name for part in named("ots + adaptive").all()]
    ['adaptive', 'ots']
    >>> named("ots") is None
    True
    """
    if "+" not in text:
        return Chosen(SampleMean, RULES[text]) if text in RULES and text not in _policy_names() else None
    found: dict[str, Any] = {}
    replaceable: set[str] = set()  # roles of which a part was taken from a policy
    names = [name.strip() for name in text.split("+")]
    for place, name in enumerate(names):
        role = next((role for role, (_, known) in ROLES.items() if name in known), None)
        preset = next((kind for kind in _presets() if kind.name == name), None)
        if place == 0 and preset is not None and role is None:
            found |= dict(zip(ROLES, preset.made_of, strict=False))
            replaceable.add("memory")
            continue
        if role is None:
            every = {one for _, known in ROLES.values() for one in known}
            own = "A part of your own must be registered first, with db.policies.register."
            raise ValueError(f"{unknown('memory, rule or detector', name, every)}. {own}")
        if role in found and role not in replaceable:
            raise ValueError(f"a policy has one {role}, got {text!r}")
        replaceable.discard(role)
        found[role] = ROLES[role][1][name]
    if "rule" not in found:
        raise ValueError(f"a composition needs a rule, one of {', '.join(sorted(RULES))}, got {text!r}")
    if "memory" not in found:
        _check_ambiguity(names, found)
    return Chosen(found.get("memory", SampleMean), found["rule"], found.get("detector"))


def _check_ambiguity(names: list[str], found: dict[str, Any]) -> None:
    """Raise an error if the name of a rule is also that of a policy with another rule, and no memory says which."""
    for kind in _presets():
        if kind.name == found["rule"].name and not _is_variant(kind.made_of[1], found["rule"]):
            others = PLUS.join(name for name in names if name != kind.name)
            policy = name_of(tuple(map(kind_of, kind.made_of[:2])))
            raise ValueError(
                f"{kind.name!r} is a rule, and also the policy {policy!r}: write '{policy}{PLUS}{others}', or name a "
                f"memory for the rule {kind.name!r}"
            )


def parts_of(policy: type[Any]) -> Chosen:
    """Return the parts of a policy that is made of parts, or raise an error."""
    if not issubclass(policy, Preset):
        raise ValueError(
            f"policy {policy.name!r} is not made of a memory and a rule. Policies that are: "
            f"{', '.join(kind.name for kind in _presets())}"
        )
    return Chosen(*policy.made_of)


def grid(
    memories: Iterable[Any] | None = None,
    rules: Iterable[Any] | None = None,
    detectors: Iterable[Any] = (None,),
) -> list[Preset]:
    """Return all combinations that make sense of memories, rules and detectors, such as for `compare`.

    Parameters
    ----------
    memories
        Objects, classes or names; by default all that need neither a horizon nor features.
    rules
        The same; by default all that fit.
    detectors
        The same; None means no detector.

    Examples
    --------
    >>> import dynabandit as db
    >>> [policy.label for policy in db.grid(["sample-mean", "adaptive"], ["ts", "ots"])]
    ['ts', 'ots', 'aff-ts', 'aff-ots']
    """
    if memories is None:
        memories = [
            kind for kind in MEMORIES.values() if not kind.follows_horizon and not issubclass(kind, ModelMemory)
        ]
    compared = [kind for kind in RULES.values() if kind.variant_of is None] if rules is None else list(rules)
    tested = list(detectors)
    found: dict[str, Preset] = {}
    for memory in memories:
        for rule in compared:
            for detector in tested:
                parts = _part("memory", memory), _part("rule", rule), detector and _part("detector", detector)
                if misfit(*(kind_of(part) for part in parts if part is not None)) is None:
                    one = compose(memory=parts[0], rule=parts[1], detector=parts[2])
                    found[one.label] = one
    return list(found.values())


def register_part(kind: type[Kind]) -> type[Kind]:
    """Add a memory, a rule or a detector of your own to the registry of this process, under its name.

    A class that is defined again, as in a notebook, takes the place of the earlier one.
    """
    for base, known in ROLES.values():
        if issubclass(kind, base):
            before = known.get(kind.name, kind)
            is_other = (before.__module__, before.__qualname__) != (kind.__module__, kind.__qualname__)
            if is_other or any(kind.name == one.name for one in _presets()):
                raise ValueError(f"{kind.__name__}.name must not be that of another part, got {kind.name!r}")
            known[kind.name] = kind
    return kind


def name_of(kinds: tuple[Any, ...]) -> str:
    """Return the name of a composition: that of the rule, of the memory and of the detector."""
    memory, rule, *detector = kinds
    return PLUS.join(kind.name for kind in (rule, memory, *detector))


def composition_class(*kinds: Any) -> type[Preset]:
    """Return the class of the policies that are made of these parts, without a name of their own."""
    with _making:  # two threads would make two classes, whose policies are not equal
        return _composition_class(*kinds)


@functools.cache
def _composition_class(*kinds: Any) -> type[Preset]:
    base: type[Preset] = HorizonPreset if any(kind.follows_horizon for kind in kinds) else Preset
    name = name_of(kinds)
    body: dict[str, Any] = {
        "name": name,
        "made_of": kinds,
        "__module__": __name__,
        "__reduce__": _reduce,
    }
    kind: Any = type("Composition", (base,), body)
    return dataclass(frozen=True, kw_only=True)(kind)


def is_composition(kind: type[Any]) -> bool:
    """Whether a class of policies is made of parts without a name of its own."""
    return issubclass(kind, Preset) and kind.__module__ == __name__


def _reduce(self: Preset) -> tuple[Any, ...]:
    """Let a composition be pickled: its class is made when it is needed."""
    return _unpickled, (self.made_of, self.parameters)


def _unpickled(kinds: tuple[Any, ...], parameters: dict[str, Any]) -> Preset:
    return composition_class(*kinds)(**parameters)


def _policy_names() -> set[str]:
    from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES

    return {*POLICIES, *CONTEXTUAL_POLICIES}


def _presets() -> Iterator[type[Preset]]:
    from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES

    for kind in (*POLICIES.values(), *CONTEXTUAL_POLICIES.values()):
        if issubclass(kind, Preset) and "made_of" in vars(kind):
            yield kind


def _is_same(own: Any, part: Any) -> bool:
    return kind_of(own) is kind_of(part)


def _is_variant(own: Any, part: Any) -> bool:
    """Whether the part of a preset is the given one, or stands for it in this preset."""
    return _is_same(own, part) or kind_of(own).variant_of is kind_of(part)


def _as_preset(
    kind: type[Preset], chosen: Chosen, parameters: dict[str, Any], is_same: Callable[[Any, Any], bool]
) -> Preset | None:
    """Return a policy of this class if it is made of these parts with these parameters, else None."""
    if len(kind.made_of) != len(chosen.all()):
        return None
    visible: dict[str, Any] = {}
    names, left = field_names(chosen.kinds()), dict(parameters)
    for own, part in zip(kind.made_of, chosen.all(), strict=True):
        if not is_same(own, part):
            return None
        if isinstance(own, type):
            visible |= {} if isinstance(part, type) else part.parameters
            continue
        if isinstance(part, type):
            part = _with_its_own(part, names, left)
        if own.parameters != part.parameters:
            return None
    allowed = {one.name for one in fields(kind)} - set(visible)
    return kind(**visible, **left) if set(left) <= allowed else None


def _with_its_own(kind: type[Part], names: dict[tuple[Any, str], str], parameters: dict[str, Any]) -> Part:
    """Return a part with those of the parameters that are its own, which are removed there."""
    own = [field.name for field in fields(kind) if names[kind, field.name] in parameters]
    return kind(**{name: parameters.pop(names[kind, name]) for name in own})


def is_part(given: Any) -> bool:
    """Whether a parameter with the name of a role is meant as a part: the memory `bounded` has a number `memory`."""
    return isinstance(given, (str, type, Part))


def _part(role: str, given: Any) -> Any:
    """Return a part that is given as an object, a class, or a name."""
    base, known = ROLES[role]
    if isinstance(given, base) or (isinstance(given, type) and issubclass(given, base)):
        return given
    if isinstance(given, str):
        if given not in known:
            raise unknown(role, given, known)
        return known[given]
    raise TypeError(f"{role} must be a {base.__name__}, its class or its name, got {given!r}")


def _check_fit(*kinds: Any) -> None:
    """Raise an error if parts do not fit together; it names those that would fit in place of each."""
    problem = misfit(*kinds)
    if problem is None:
        return
    sentences = [problem]
    plurals = {"memory": "Memories", "rule": "Rules", "detector": "Detectors"}
    for (role, (_, known)), kind in zip(ROLES.items(), kinds, strict=False):
        others = [one for one in known.values() if one.variant_of is None]
        fitting = [one.name for one in others if misfit(*(one if each is kind else each for each in kinds)) is None]
        if fitting:
            sentences.append(f"{plurals[role]} that fit: {', '.join(fitting)}")
    raise ValueError(". ".join(sentences))
