"""Values of parameters over their whole ranges, which are those that error messages name."""

import inspect
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from dynabandit import estimators
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy
from dynabandit.validation import RewardDomain
from tools.ready import READY

BETWEEN = (1e-300, 1e-6, 0.5, 7.0, 1e6, 1e300)  # some numbers of all sizes
LARGEST_SIZE = 100_000  # numbers that a policy may keep in these tests
NUMBER = re.compile(r"must be a number in ([\[(])([-+.\de]+), ([-+.\dinfe]+)([\])])")
WHOLE = re.compile(r"must be a whole number of at least (\d+)(?: and at most (\d+))?")
NAMES = re.compile(r"Known: (.*)$"), re.compile(r"must be (?:one of )?('.*'), got nan$")
WRONG = math.nan  # of which every message says what would be valid

ALL_POLICIES = {**POLICIES, **CONTEXTUAL_POLICIES}
# Parameters with which environments can be made
SMALL: dict[str, dict[str, Any]] = {
    "fixed": {"means": (0.2, 0.5, 0.8)},
    "piecewise": {"starts": (1, 4), "means": ((0.2, 0.8), (0.8, 0.2))},
    "exponential-clock": {"rates": (0.1, 0.2), "low": (0.1, 0.2), "high": (0.9, 0.8)},
    "path": {"means": ((0.2, 0.8),) * 8},
    "recorded": {"means": ((0.2, 0.8),) * 8},
}
INSTEAD_OF_NUMBERS = {"step_size": "variance-scaled", "rate": "learnt", "drift": "learnt"}
LISTS: dict[str, dict[str, list[Any]]] = {
    "fixed": {"means": [(0.0, 0.0), (1.0, 1.0), (0.0, 5e-324, 1.0)]},
    "exponential-clock": {
        "rates": [(0.0, 0.0), (5e-324, 1e-300), (1e300, 1.7e308)],
        "low": [(0.0, 0.0), (0.9, 0.8)],
        "high": [(0.1, 0.2), (1.0, 1.0)],
    },
    "piecewise": {"starts": [(1, 2), (1, LARGEST_STEP)], "means": [((0.0, 1.0), (1.0, 0.0))]},
}
NEEDS_DATA = ("recorded", "recorded-contexts", "digits", "image-segments", "phishing", "bananas", "prompts", "flights")
MADE = {name: kind for name, kind in {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS}.items() if name not in NEEDS_DATA}
ESTIMATORS: dict[str, Any] = {
    name: kind
    for name in estimators.__all__
    if inspect.isclass(kind := getattr(estimators, name)) and hasattr(kind, "update") and name != "Estimator"
}


def range_of(make: Callable[..., Any], name: str) -> list[Any]:
    """Return the lowest and the highest number that a parameter can be and some between, and the names that it can be.

    For others, such as lists, it returns nothing.
    """
    try:
        make(**{name: WRONG})
        message = ""
    except (TypeError, ValueError) as error:
        message = str(error)
    assert message, f"{name} = {WRONG} is accepted"
    if (found := NUMBER.search(message)) is not None:
        low, high = float(found[2]), float(found[3])
        lowest = math.nextafter(low, math.inf) if found[1] == "(" else low
        highest = min(high, 1.7e308) if found[4] == "]" or high == math.inf else math.nextafter(high, low)
        numbers = sorted({lowest, highest, *(one for one in BETWEEN if lowest < one < highest)})
        return numbers + [
            one for one in (INSTEAD_OF_NUMBERS.get(name),) if one is not None and is_valid(make, name, one)
        ]
    if (found := WHOLE.search(message)) is not None:
        least, most = int(found[1]), int(found[2] or LARGEST_STEP)
        return sorted({one for one in (least, least + 1, 6, 50, most) if least <= one <= most})
    listed = next((found[1] for pattern in NAMES if (found := pattern.search(message)) is not None), "")
    return [one for one in re.findall(r"[\w-]+", listed.replace(" or ", ", ")) if is_valid(make, name, one)]


def is_valid(make: Callable[..., Any], name: str, value: Any) -> bool:
    """Return whether a parameter can have this value beside the others."""
    try:
        make(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def with_values(kind: Any, base: Mapping[str, Any], values: Mapping[str, Any], arms: int = 3) -> Any:
    """Return an object, or None if it is refused: alone, with the other parameters, or because it would be huge."""
    try:
        made = kind(**{**base, **values})
        if isinstance(made, Policy):
            made.params(arms)
            if arms * made.memory_size() + made.shared_size() > LARGEST_SIZE:
                return None
    except ValueError:
        return None
    return made


def ready(name: str) -> dict[str, Any]:
    """Return parameters with which a policy decides without a simulation."""
    return ALL_POLICIES[name](**READY.get(name, {})).tuned(2, 300).parameters


def values_of_policy(name: str) -> dict[str, list[Any]]:
    """Return the values that are tried of each parameter of a policy.

    A burn-in is not the policy's; the horizon and the number of changes make other parameters.
    """
    kind, base = ALL_POLICIES[name], ready(name)
    found: dict[str, list[Any]] = {}
    for one in (field.name for field in fields(kind) if field.name not in ("burn_in", "horizon", "changes")):
        if one == "prior" and isinstance(base[one], tuple):
            found[one] = [(1e-12, 1e-12), (1e-12, 1e12), (1e12, 1e-12), (1e12, 1e12)]
        else:
            found[one] = range_of(lambda **given: kind(**{**base, **given}), one)
    return {one: values for one, values in found.items() if values}


def values_of_environment(name: str) -> dict[str, list[Any]]:
    """Return the values that are tried of each parameter of an environment."""
    kind, base = MADE[name], SMALL.get(name, {})
    known = [field.name for field in fields(kind) if field.init and field.name not in ("rewards", "arms")]
    found = {one: range_of(lambda **given: kind(**{**base, **given}), one) for one in known}
    return {one: values for one, values in found.items() if values} | LISTS.get(name, {})


def parameters_of_estimator(name: str, dimension: int) -> list[dict[str, Any]]:
    """Return the parameters with which an estimator is tried."""
    kind = ESTIMATORS[name]
    known = [key for key in inspect.signature(kind).parameters if key not in ("loss", "dimension")]
    base: dict[str, Any] = {"dimension": dimension} if "dimension" in inspect.signature(kind).parameters else {}
    base |= {key: value for key, value in {"forgetting": 0.9, "window": 5}.items() if key in known}
    values = {key: range_of(lambda **given: kind(**{**base, **given}), key) for key in known}
    few = {
        key: [one for one in tried if not isinstance(one, int) or one < LARGEST_SIZE] for key, tried in values.items()
    }
    return [base, *({**base, **case} for case in combinations(few, 0))]


def combinations(values: Mapping[str, list[Any]], at_random: int) -> Iterator[dict[str, Any]]:
    """Yield each value alone, both ends of each two parameters, and so many combinations of all at random."""
    for name, tried in values.items():
        yield from ({name: one} for one in tried)
    for first, second in itertools.combinations(values, 2):
        for one, other in itertools.product(ends(values[first]), ends(values[second])):
            yield {first: one, second: other}
    source = random.Random(1)
    for _ in range(at_random if len(values) > 2 else 0):
        yield {name: source.choice(tried) for name, tried in values.items()}


def ends(values: list[Any]) -> list[Any]:
    """Return the first and the last number, and what is no number."""
    numbers = [one for one in values if isinstance(one, (int, float))]
    return [*dict.fromkeys((*numbers[:1], *numbers[-1:])), *(one for one in values if one not in numbers)]


def extremes(domain: RewardDomain) -> list[float]:
    """Return the smallest and the largest rewards of a domain, and some that are tiny or huge."""
    sizes = (5e-324, 1e-300, 1e-100, 1e-50, 1e-6, 1.0, 30.0, 31.0, 1e6, 1e15, 1e50, 1e100, 1e300)
    found = [domain.low, domain.high, 0.0, *sizes, *(-size for size in sizes)]
    return sorted({one for one in found if domain.contains(one)})


def rewards(count: int) -> list[float]:
    """Return zeros, then ones, then both in turn."""
    return [0.0] * count + [1.0] * count + [0.0, 1.0] * (count // 2)
