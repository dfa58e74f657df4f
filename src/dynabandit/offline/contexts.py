"""Columns of features in a log: values as text or as a data frame has them, turned into contexts."""

import json
import math
from typing import Any

import numpy as np

from dynabandit.features import FeatureEncoder
from dynabandit.features.kinds import Feature
from dynabandit.offline.rows import CONTEXT, RawRows, feature_role

TRUE_AND_FALSE = {"true": True, "false": False, "1": True, "0": False}


def with_values_of_contexts(raw: RawRows, features: tuple[str, ...], where: str) -> RawRows:
    """Return rows with the values of features that the column of contexts has, in objects or their JSON."""
    if not features:
        return raw
    given = enumerate(raw.values[CONTEXT], raw.first)
    contexts = [_read_object(value, f"{where}, row {row}, column {CONTEXT!r}") for row, value in given]
    found = {feature_role(name): [context.get(name) for context in contexts] for name in features}
    return RawRows(raw.first, raw.lines, {**raw.values, **found})


def _read_object(given: Any, where: str) -> dict[str, Any]:
    try:
        context = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        context = given
    if context is None or context != context:  # NaN in a data frame
        return {}
    if not isinstance(context, dict):
        raise ValueError(f"{where}: must be an object in JSON, got {given!r}")
    return context


def read_value(value: Any, kind: str | None) -> Any:
    """Return a value of a log as a feature of this kind has it; None if it is missing.

    Without a kind, text may be a boolean, a number, a list of numbers in JSON or anything else, a category. NaN is a
    missing value, as text too unless it is a category.

    Examples
    --------
    >>> read_value("18", "number"), read_value("TRUE", "boolean"), read_value("18", "category")
    (18.0, True, '18')
    >>> read_value("[0.5, 1]", None), read_value("18", None), read_value("NO", None), read_value(math.nan, None)
    ([0.5, 1], 18.0, 'NO', None)
    """
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return _read_text(value, kind)
    if kind == "boolean" and value in (0, 1):
        return bool(value)
    if kind == "category" and isinstance(value, float | np.floating) and value.is_integer():
        return int(value)  # data frames store whole numbers with gaps as floats
    return value


def _read_text(text: str, kind: str | None) -> Any:
    if kind == "category":
        return text
    plain = text.strip().lower()
    if plain == "nan":  # as in a data frame
        return None
    if kind == "boolean" or (kind is None and plain in ("true", "false")):
        return TRUE_AND_FALSE.get(plain, text)
    try:
        return json.loads(text) if plain.startswith("[") else float(text)
    except ValueError:
        return text


def fixed_by_first_row(encoder: FeatureEncoder, raw: RawRows) -> FeatureEncoder:
    """Return an encoder whose features have kinds; if only names are known, those of the values of the first row."""
    if not encoder.is_open:
        return encoder
    return encoder.fixed({name: read_value(raw.values[feature_role(name)][0], None) for name in encoder.names})


def read_contexts(encoder: FeatureEncoder, raw: RawRows, problems: dict[int, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the context of each row, and note each value that is not valid."""
    contexts: list[dict[str, Any]] = [{} for _ in range(len(raw))]
    for feature in encoder.features:
        role = feature_role(feature.name)
        space = np.zeros(feature.width)
        for index, given in enumerate(raw.values[role]):
            value = read_value(given, feature.kind)
            problem = _problem(feature, value, space)
            if problem:
                problems.setdefault(index, (role, problem))
            else:
                contexts[index][feature.name] = value
    return contexts


def _problem(feature: Feature, value: Any, space: np.ndarray) -> str:
    """Return why a value of a feature is not valid, or an empty string."""
    if value is None:
        return "is missing, but required" if feature.required else ""
    try:
        feature.write(space, 0, value, None)
    except (TypeError, ValueError):
        return f"must be {feature.valid}"
    return ""
