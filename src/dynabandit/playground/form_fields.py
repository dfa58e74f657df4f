"""The fields of the playground's form: environments, policies, and a slider for each numeric parameter."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from dynabandit.catalogue import entries, fields_of, part_menus, part_names, summary
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS as WITHOUT_FEATURES
from dynabandit.playground.drawn_means import COLUMNS, LEVELS
from dynabandit.playground.link import CONTEXTUAL, DRAWN, ENVIRONMENTS, MOST_POLICIES, VERSION, arms_of
from dynabandit.plugins import for_simulation
from dynabandit.policies import AUTO, CONTEXTUAL_POLICIES, POLICIES, Policy, policy_class, resolved
from dynabandit.policies.memories.adaptive import LOSSES, VARIANCE_SCALED

TITLES = {
    "small-changes": "Small number of changes",
    "case-1": "Case 1: abrupt changes",
    "case-2": "Case 2: abrupt changes, one arm mostly better",
    "case-3": "Case 3: a slow random walk",
    "case-4": "Case 4: a faster random walk, flat near 0 and 1",
    CONTEXTUAL: "Features: visitors differ",
    DRAWN: "Draw it yourself",
}
KINDS = {**WITHOUT_FEATURES, **CONTEXTUAL_ENVIRONMENTS}


@dataclass(frozen=True)
class Control:
    """How a form asks for a parameter."""

    kind: str = "text"  # or number, pair, choice, flag
    steps: tuple[float, ...] = ()  # values of the slider, in increasing order; without them there is none
    choices: tuple[str, ...] = ()
    word: str | None = None  # text that is valid in place of a number
    word_label: str = ""


def logarithmic_steps(low: float, high: float, whole: bool = False) -> tuple[float, ...]:
    """Return round numbers from low to high, ten per decade.

    Examples
    --------
    >>> logarithmic_steps(0.5, 3)
    (0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0)
    >>> logarithmic_steps(1, 30, whole=True)
    (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
    """
    exponents = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    numbers = [float(f"{digits}e{exponent}") for exponent in exponents for digits in DIGITS]
    return tuple(
        int(number) if whole else number
        for number in numbers
        if low <= number <= high and (number.is_integer() or not whole)
    )


def linear_steps(low: int, high: int, parts: int = 1) -> tuple[float, ...]:
    """Return the numbers from low to high that are a multiple of 1 / parts.

    Examples
    --------
    >>> linear_steps(0, 1, parts=4)
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    return tuple(number if parts == 1 else number / parts for number in range(low * parts, high * parts + 1))


def discount_steps() -> tuple[float, ...]:
    """Return discounts from 0.5 to 1 that come ever closer to 1: a discount d remembers about 1 / (1 - d) rewards."""
    return (*(round(1 - share, 6) for share in reversed(logarithmic_steps(0.0001, 0.5))), 1)


DIGITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)  # of round numbers, nearly equally spaced on a logarithmic scale
# By parameter, or by policy and parameter: useful values for sliders. Others can be typed, and the policy checks them
CONTROLS = {
    "burn_in": Control("number", linear_steps(0, 50)),
    "step_size": Control(
        "number", logarithmic_steps(0.00001, 0.1), word=VARIANCE_SCALED, word_label="scale it by the variance"
    ),
    "floor": Control("number", linear_steps(0, 1, parts=20)),
    "loss": Control("choice", choices=LOSSES),
    "aff-d-greedy threshold": Control("number", logarithmic_steps(0.00001, 1)),
    "epsilon": Control("number", linear_steps(0, 1, parts=100)),
    "discount": Control("number", discount_steps()),
    "persistence": Control("number", discount_steps()),
    "window": Control("number", logarithmic_steps(1, 10_000, whole=True)),
    "memory": Control("number", logarithmic_steps(1, 10_000)),
    "variance_floor": Control("number", (0, *logarithmic_steps(0.0001, 0.25))),
    "prior": Control("pair"),
}  # fmt: skip


def control(policy: type[Policy], name: str, default: Any) -> Control:
    """Return how to ask for a parameter; one that is not in `CONTROLS` gets a field by the type of its default.

    The ends of a slider are values that the policy accepts, and the default is one of its values.

    Examples
    --------
    >>> control(POLICIES["eps-greedy"], "epsilon", 0.1).steps[:3]
    (0.0, 0.01, 0.02)
    """
    known = CONTROLS.get(f"{policy.name} {name}") or CONTROLS.get(name) or _by_default(policy, name, default)
    if known.kind == "pair" and not isinstance(default, tuple):  # such as the prior of a regression
        known = _by_default(policy, name, default)
    if known.steps and not _fits(policy, name, default, known.steps):
        known = _by_default(policy, name, default)
    if known.steps and isinstance(default, int | float):
        known = replace(known, steps=tuple(sorted({*known.steps, default})))
    if known.word is not None and not _accepts(policy, name, known.word):
        known = replace(known, word=None, word_label="")
    return known


def _by_default(policy: type[Policy], name: str, default: Any) -> Control:
    if isinstance(default, bool):
        return Control("flag")
    if isinstance(default, tuple) and len(default) == 2:
        return Control("pair")
    if default is not None and not isinstance(default, int | float):
        return Control("text")
    if not default:
        return Control("number")
    whole = isinstance(default, int)
    spans = [(default / by, default * by) for by in (100, 10)] + [(default / 100, 1)]
    scales = [logarithmic_steps(max(1, low) if whole else low, high, whole) for low, high in spans]
    return Control("number", next((steps for steps in scales if _fits(policy, name, default, steps)), ()))


def _fits(policy: type[Policy], name: str, default: Any, steps: tuple[float, ...]) -> bool:
    if len(steps) < 2:
        return False
    inside = default is None or isinstance(default, str) or steps[0] <= default <= steps[-1]
    return inside and all(_accepts(policy, name, end) for end in (steps[0], steps[-1]))


def _accepts(policy: type[Policy], name: str, value: Any) -> bool:
    try:
        policy(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def catalogue() -> dict[str, Any]:
    """Return everything that the form needs, as plain values."""
    return {
        "version": VERSION,
        "environments": [_environment(name) for name in (DRAWN, *(one for one in ENVIRONMENTS if one != DRAWN))],
        "policies": [describe(name) for name in {**POLICIES, **CONTEXTUAL_POLICIES}],
        "parts": part_menus(),
        "recommended": resolved(AUTO),
        "most_policies": MOST_POLICIES,
        "columns": COLUMNS,
        "levels": LEVELS,
    }


def _environment(name: str) -> dict[str, Any]:
    low, high = arms_of(name)
    if name == DRAWN:
        description = ""  # the drawing says it
    else:
        description = next(one.description for one in entries(KINDS) if one.name == name)
    return {
        "name": name, "title": TITLES[name], "description": description, "low": low, "high": high,
        "contextual": name == CONTEXTUAL,
    }  # fmt: skip


def describe(name: str) -> dict[str, Any]:
    """Return what the form shows of a policy, which may be a composition.

    Examples
    --------
    >>> described = describe("kl-ucb + adaptive")
    >>> described["parts"], [field["name"] for field in described["fields"]]
    ({'memory': 'adaptive', 'rule': 'kl-ucb', 'detector': ''}, ['step_size', 'floor', 'loss', 'loglog', 'burn_in'])
    """
    fields = []
    with for_simulation():
        kind = policy_class(name)
    for parameter in fields_of(kind):
        shown = asdict(control(kind, parameter.name, parameter.default))
        explanation = parameter.description.replace("``", "").replace("`", "")
        fields.append({"name": parameter.name, "default": parameter.default, "explanation": explanation, **shown})
    return {
        "name": kind.name, "description": summary(kind), "fields": fields, "contextual": kind.functions.contextual,
        "parts": part_names(kind),
    }  # fmt: skip
