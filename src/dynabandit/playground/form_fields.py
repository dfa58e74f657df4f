"""The fields of the playground's form: environments, policies, and a slider for each numeric parameter."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from dynabandit.catalogue import entries, fields_of
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS as WITHOUT_FEATURES
from dynabandit.estimators.adaptive_forgetting import LOSSES, VARIANCE_SCALED
from dynabandit.playground.drawn_means import COLUMNS, LEVELS
from dynabandit.playground.link import CONTEXTUAL, DRAWN, ENVIRONMENTS, MOST_POLICIES, VERSION, arms_of
from dynabandit.policies import AUTO, CONTEXTUAL_POLICIES, POLICIES, Policy, policy_class, resolved

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
    low: float | None = None  # ends of the slider; without them there is none
    high: float | None = None
    logarithmic: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    word: str | None = None  # text that is valid in place of a number
    word_label: str = ""


# Useful ranges for sliders; the policy itself checks which values are valid
CONTROLS = {
    "burn_in": Control("number", 0, 50, whole=True),
    "step_size": Control(
        "number", 0.00001, 0.1, logarithmic=True, word=VARIANCE_SCALED, word_label="scale it by the variance"
    ),
    "floor": Control("number", 0, 1),
    "loss": Control("choice", choices=LOSSES),
    "threshold": Control("number", 0.00001, 1, logarithmic=True),
    "epsilon": Control("number", 0, 1),
    "discount": Control("number", 0.5, 1),
    "window": Control("number", 1, 10_000, logarithmic=True, whole=True),
    "memory": Control("number", 1, 10_000, logarithmic=True),
    "variance_floor": Control("number", 0, 0.25),
    "prior": Control("pair"),
}  # fmt: skip


def control(policy: type[Policy], name: str, default: Any) -> Control:
    """Return how to ask for a parameter; one that is not in `CONTROLS` gets a field by the type of its default.

    The ends of a slider are values that the policy accepts.

    Examples
    --------
    >>> control(POLICIES["eps-greedy"], "epsilon", 0.1).high
    1
    """
    known = CONTROLS.get(name) or _by_default(policy, name, default)
    if known.kind == "pair" and not isinstance(default, tuple):  # such as the prior of a regression
        known = _by_default(policy, name, default)
    if known.low is not None and not _fits(policy, name, default, known):
        known = _by_default(policy, name, default)
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
    whole = isinstance(default, int)
    found = Control("number", whole=whole)
    if default:
        spans = [(default / by, default * by) for by in (100, 10)] + [(default / 100, 1)]
        ends = [(max(1, round(low)), round(high)) for low, high in spans] if whole else spans
        wide = [Control("number", low, high, logarithmic=True, whole=whole) for low, high in ends]
        found = next((one for one in wide if _fits(policy, name, default, one)), found)
    return found


def _fits(policy: type[Policy], name: str, default: Any, asked: Control) -> bool:
    assert asked.low is not None
    assert asked.high is not None
    inside = default is None or isinstance(default, str) or asked.low <= default <= asked.high
    return asked.low < asked.high and inside and all(_accepts(policy, name, end) for end in (asked.low, asked.high))


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
        "environments": [_environment(name) for name in ENVIRONMENTS],
        "policies": [
            _policy(name, description) for name, description, _ in entries({**POLICIES, **CONTEXTUAL_POLICIES})
        ],
        "recommended": resolved(AUTO),
        "most_policies": MOST_POLICIES,
        "columns": COLUMNS,
        "levels": LEVELS,
    }


def _environment(name: str) -> dict[str, Any]:
    low, high = arms_of(name)
    if name == DRAWN:
        description = "The mean reward of each arm, as you draw it."
    else:
        description = next(one.description for one in entries(KINDS) if one.name == name)
    return {
        "name": name, "title": TITLES[name], "description": description, "low": low, "high": high,
        "contextual": name == CONTEXTUAL,
    }  # fmt: skip


def _policy(name: str, description: str) -> dict[str, Any]:
    fields = []
    kind = policy_class(name)
    for parameter in fields_of(kind):
        shown = asdict(control(kind, parameter.name, parameter.default))
        explanation = parameter.description.replace("``", "").replace("`", "")
        fields.append({"name": parameter.name, "default": parameter.default, "explanation": explanation, **shown})
    summary, contextual = " ".join(description.split()), name in CONTEXTUAL_POLICIES
    return {"name": name, "description": summary, "fields": fields, "contextual": contextual}
