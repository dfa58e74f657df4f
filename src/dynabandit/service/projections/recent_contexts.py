"""The latest decisions with their contexts: which arms are chosen for which values of the features."""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynabandit.features import FeatureEncoder
from dynabandit.features.kinds import Category, Feature, Vector

MAX_DECISIONS = 1_000
MAX_FEATURES = 12
MAX_VALUES = 5  # of one feature; numbers with more are divided into three groups, other values are combined
MAX_TEXT = 40  # characters of a value
MAX_ARMS = 3  # the most chosen ones
SHOWN_KINDS = ("number", "boolean", "category")
MISSING, OTHER = "missing", "other values"


def example_context(encoder: FeatureEncoder) -> dict[str, Any]:
    """Return a valid context, for examples of calls.

    Examples
    --------
    >>> example_context(FeatureEncoder({"hour": "number", "country": {"kind": "category", "values": ["NO", "SE"]}}))
    {'hour': 1, 'country': 'NO'}
    """
    values: dict[str, Any] = {"number": 1, "boolean": True, "category": "value", "hashed": {"name": 1}}
    found: dict[str, Any] = dict.fromkeys(encoder.names, 1)  # if only names are declared
    for one in encoder.features:
        if isinstance(one, Vector):
            found[one.name] = [0] * one.size
        elif isinstance(one, Category) and one.values:
            found[one.name] = one.values[0]
        else:
            found[one.name] = values[one.kind]
    return found


class RecentContexts:
    """The columns, contexts and rewards of the latest decisions, by step.

    Examples
    --------
    >>> from dynabandit.features import FeatureEncoder
    >>> recent = RecentContexts()
    >>> for step, new in enumerate([True, False, True]):
    ...     recent.add(step, int(new), {"new": new})
    ...     recent.reward(step, float(new))
    >>> found = recent.by_feature(FeatureEncoder({"new": "boolean"}).features)
    >>> [(one["value"], one["decisions"], one["arms"], one["rate"]) for one in found["new"]]
    [('yes', 2, {1: 1.0}, 1.0), ('no', 1, {0: 1.0}, 0.0)]
    """

    def __init__(self) -> None:
        self._decisions: OrderedDict[int, tuple[int, Mapping[str, Any], float | None]] = OrderedDict()

    def add(self, step: int, column: int, context: Mapping[str, Any]) -> None:
        """Add a decision; vectors are not kept."""
        kept = {name: value for name, value in context.items() if isinstance(value, bool | int | float | str)}
        self._decisions[step] = column, kept, None
        if len(self._decisions) > MAX_DECISIONS:
            self._decisions.popitem(last=False)

    def reward(self, step: int, value: float) -> None:
        """Add the reward of a decision."""
        if step in self._decisions:
            self._decisions[step] = *self._decisions[step][:2], value

    def by_feature(self, features: Iterable[Feature]) -> dict[str, list[dict[str, Any]]]:
        """Return the decisions for each value of each feature: how many, shares of the arms and the mean reward."""
        shown = [feature.name for feature in features if feature.kind in SHOWN_KINDS]
        return {name: self._by_value(name) for name in shown[:MAX_FEATURES]}

    def _by_value(self, name: str) -> list[dict[str, Any]]:
        values = [context.get(name) for _, context, _ in self._decisions.values()]
        groups: dict[str, list[tuple[Any, int, float | None]]] = {}
        for label, value, (column, _, reward) in zip(_labels(values), values, self._decisions.values(), strict=True):
            groups.setdefault(label, []).append((value, column, reward))
        order = sorted(groups, key=lambda label: _place(label, [value for value, _, _ in groups[label]]))
        return [_summary(label, groups[label]) for label in order]

    def to_plain(self) -> list[Any]:
        """Return all decisions as plain values."""
        return [[step, *decision] for step, decision in self._decisions.items()]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "RecentContexts":
        """Return what `to_plain` wrote."""
        recent = cls()
        for step, column, context, reward in content:
            recent._decisions[step] = column, context, reward
        return recent


def _place(label: str, values: Sequence[Any]) -> tuple[bool, float, str]:
    """Return a key that sorts groups: numbers by value, others by their decisions, missing and other values last."""
    if label in (MISSING, OTHER):
        return True, 0.0, label
    is_number = isinstance(values[0], int | float) and not isinstance(values[0], bool)
    return False, float(min(values)) if is_number else -len(values), label


def _summary(label: str, decisions: Sequence[tuple[Any, int, float | None]]) -> dict[str, Any]:
    plays = Counter(column for _, column, _ in decisions)
    rewards = [reward for _, _, reward in decisions if reward is not None]
    return {
        "value": label,
        "decisions": len(decisions),
        "arms": {column: plays[column] / len(decisions) for column, _ in plays.most_common(MAX_ARMS)},
        "rate": math.fsum(rewards) / len(rewards) if rewards else None,
    }


def _labels(values: Sequence[Any]) -> list[str]:
    """Return the group of each value of a feature."""
    distinct = Counter(value for value in values if value is not None)
    if len(distinct) > MAX_VALUES and all(isinstance(value, int | float) for value in distinct):
        return _labels_of_numbers(values)
    common = {value for value, _ in distinct.most_common(MAX_VALUES)}
    return [MISSING if value is None else _text(value) if value in common else OTHER for value in values]


def _labels_of_numbers(values: Sequence[float | None]) -> list[str]:
    """Return one of three groups of about equal size for each number."""
    known = sorted(value for value in values if value is not None)
    low, high = known[len(known) // 3], known[2 * len(known) // 3]
    names = f"below {low:.4g}", f"{low:.4g} to {high:.4g}", f"above {high:.4g}"
    return [MISSING if value is None else names[(value >= low) + (value > high)] for value in values]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else f"{value:.6g}"
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
