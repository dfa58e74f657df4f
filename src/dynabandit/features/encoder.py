"""FeatureEncoder: declared features, their statistics, and the vector of numbers of a context."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynabandit.features.kinds import Feature, Number, declared, inferred
from dynabandit.features.standardisation import RunningMoments
from dynabandit.validation import listed, number, repeated, suggestion

__all__ = ["FeatureEncoder", "checked_context", "extended"]


class FeatureEncoder:
    """Turns contexts into vectors of `dimension` numbers.

    The first column is the constant 1. Each feature then has its columns in the order of the declaration, and one more
    that is 1 if the value is missing, unless the feature is required. `encode` changes nothing; `learn` adds a context
    to the means and variances by which numbers are standardised.

    Parameters
    ----------
    features
        A mapping from names to kinds ("number", "boolean", "category", "vector", "hashed"), or to mappings with a kind
        and its options; or only names, whose kinds the first context decides (`fixed`).
    constant
        Whether the first column is the constant 1.

    Examples
    --------
    >>> encoder = FeatureEncoder({"hour": "number", "country": {"kind": "category", "values": ["NO", "SE"]}})
    >>> for hour in (10, 14, 10, 14):
    ...     encoder.learn({"hour": hour})
    >>> encoder.columns
    ['1', 'hour', 'hour missing', 'country=NO', 'country=SE', 'country other', 'country missing']
    >>> encoder.encode({"hour": 14, "country": "SE"}).round(4).tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    >>> encoder.encode({"country": "DK"}).tolist()
    [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, features: Mapping[str, Any] | Iterable[str], *, constant: bool = True) -> None:
        if isinstance(features, str | bytes) or not isinstance(features, Iterable):
            raise TypeError(f"features must be a list of names, or a mapping from names to kinds, got {features!r}")
        self.constant = constant
        self.names = _checked_names(features)
        self.is_open = not isinstance(features, Mapping) and bool(self.names)
        """Whether only the names of the features are known."""
        found = features if isinstance(features, Mapping) else {}
        self._set_features([declared(name, declaration) for name, declaration in found.items()])

    def _set_features(self, features: list[Feature]) -> None:
        self.features = tuple(features)
        standardised = (isinstance(one, Number) and one.standardise for one in features)
        self._moments = [RunningMoments() if has_moments else None for has_moments in standardised]
        self._first, column = [], int(self.constant)
        for one in features:
            self._first.append(column)
            column += one.width + (not one.required)
        self.dimension = column
        """The length of a vector."""
        self._template = np.zeros(column)
        self._template[: int(self.constant)] = 1.0
        self._index_features()

    def _index_features(self) -> None:
        self._plan = list(zip(self.features, self._first, self._moments, strict=True))

    def fixed(self, context: Any) -> "FeatureEncoder":
        """Return this encoder, or if only names are known one whose features have the kinds of the context's values."""
        if not self.is_open:
            return self
        for name in checked_context(context):
            if name not in self.names:
                raise self._unknown(name)
        features = []
        for name in self.names:
            if context.get(name) is None:
                raise ValueError(
                    f"feature {name!r} is missing in the first context, which decides the kinds of the features: "
                    f'give it a value, or declare the kinds, such as features={{"{name}": "number"}}'
                )
            features.append(inferred(name, context[name]))
        result = FeatureEncoder({one.name: one for one in features}, constant=self.constant)
        result.encode(context)
        return result

    def encode(self, context: Any) -> np.ndarray:
        """Return the vector of a context, or raise an error that names the feature; `None` is a missing value."""
        get, found = checked_context(context).get, 0
        vector = self._template.copy()
        try:
            for feature, first, moments in self._plan:
                value = get(feature.name)
                if value is not None:
                    found += 1
                    feature.write(vector, first, value, moments)
                elif feature.required:
                    raise ValueError(f"feature {feature.name!r} is required, but it is missing")
                else:
                    found += feature.name in context
                    vector[first + feature.width] = 1.0
        except (TypeError, ValueError) as error:
            raise extended(error, f"{error}. {self._known()}") from None
        if found < len(context):
            raise self._unknown(next(name for name in context if name not in self.names))
        return vector

    def learn(self, context: Any) -> None:
        """Add the numbers of a context that `encode` accepted to the means and variances."""
        for feature, _, moments in self._plan:
            if moments is not None:
                value = context.get(feature.name)
                if value is not None:
                    moments.observe(float(value), feature.forgetting)  # type: ignore[attr-defined]

    def use_unit_scale(self) -> None:
        """Standardise numbers that have not varied so far by the variance 1, so that later values differ from them."""
        for moments in self._moments:
            if moments is not None and not moments.has_variance:
                moments.weight = moments.squares = max(moments.weight, 1.0)

    @property
    def columns(self) -> list[str]:
        """A description of each column."""
        found = ["1"] * self.constant
        for one in self.features:
            found += [one.name] if one.width == 1 else _described(one)
            found += [] if one.required else [f"{one.name} missing"]
        return found

    def _known(self) -> str:
        kinds = [f"{one.name!r} ({one.kind}{', required' if one.required else ''})" for one in self.features[:20]]
        more = len(self.features) - len(kinds)
        return f"Features: {', '.join(kinds)}" + (f" and {more} more" if more else "")

    def _unknown(self, name: Any) -> ValueError:
        known = f"Features: {listed(self.names)}" if self.is_open else self._known()
        return ValueError(f"unknown feature {name!r}.{suggestion(name, self.names)} {known}")

    def copy(self) -> "FeatureEncoder":
        """Return an independent copy."""
        return FeatureEncoder.from_json(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the declaration and the statistics."""
        features = {one.name: one.to_json() for one in self.features}
        moments = [one.to_json() for one in self._moments if one is not None]
        return {
            "features": list(self.names) if self.is_open else features,
            "constant": self.constant,
            "moments": moments,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "FeatureEncoder":
        """Return what `to_json` wrote."""
        encoder = cls(content["features"], constant=content["constant"])
        left = [[number("each moment", one, -1e300, 1e300) for one in three] for three in content["moments"]]
        if len(left) != len(encoder._moments) - encoder._moments.count(None):
            raise ValueError(f"it has moments of {len(left)} features, which does not fit its features")
        encoder._moments = [None if one is None else RunningMoments(*left.pop(0)) for one in encoder._moments]
        encoder._index_features()
        return encoder


def checked_context(context: Any) -> Mapping[str, Any]:
    """Return a context, or raise an error if it is no mapping."""
    if type(context) is not dict and not isinstance(context, Mapping):  # the check of the type is much faster
        raise TypeError(f"context must be a mapping from the names of features to their values, got {context!r}")
    return context


def extended(error: TypeError | ValueError, message: str) -> TypeError | ValueError:
    """Return an error of the same type with a message that says more."""
    return TypeError(message) if isinstance(error, TypeError) else ValueError(message)


def _checked_names(features: Iterable[Any]) -> tuple[str, ...]:
    names = tuple(features)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a feature must be a string that is not empty, got {name!r}")
    if (twice := repeated(names)) is not None:
        raise ValueError(f"features must have different names, got {twice[0]!r} twice")
    return names


def _described(feature: Feature) -> list[str]:
    values = getattr(feature, "values", None)
    if values is not None:
        return [*(f"{feature.name}={value}" for value in values), f"{feature.name} other"]
    return [f"{feature.name} {column}" for column in range(feature.width)]
