"""ArmFeatures: what is known about each arm, for one model that all arms share."""

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynabandit.features.encoder import FeatureEncoder, extended
from dynabandit.features.kinds import Number
from dynabandit.validation import listed

__all__ = ["ArmFeatures"]


class ArmFeatures:
    """The features of each arm, encoded; the vector of an arm and a context is made of both.

    It has the columns of the context, those of the arm and, with `interactions`, the product of each column of the
    context with each one of the arm (but for the constant column of the context). Without products, a linear model
    prefers the same arm in every context. The numbers of all arms are standardised by their mean and variance over the
    first arms, of which none is forgotten; if these are equal, by the variance 1.

    Examples
    --------
    >>> context = FeatureEncoder({"returning": {"kind": "boolean", "required": True}})
    >>> arms = {"red": {"price": 1.0}, "green": {"price": 3.0}}
    >>> both = ArmFeatures.of(["red", "green"], arms, {"price": {"kind": "number", "required": True}})
    >>> both.combined(context.encode({"returning": True}), np.array([0, 1])).round(4).tolist()
    [[1.0, 1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        encoder: FeatureEncoder,
        vectors: np.ndarray,
        *,
        interactions: bool = True,
        constant: bool = True,
        names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(interactions, bool):
            raise TypeError(f"interactions must be True or False, got {interactions!r}")
        self.encoder, self.vectors = encoder, vectors
        self.interactions = interactions
        self.names = None if names is None else tuple(names)  # of the arms, one per vector; None if not known
        self._constant = constant  # whether the first column of a context is the constant 1

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        arm_features: Mapping[str, Any],
        kinds: Mapping[str, Any] | Iterable[str] | None = None,
        *,
        interactions: bool = True,
        constant: bool = True,
    ) -> "ArmFeatures":
        """Return the features of the named arms; without `kinds`, the values of the first arm decide them."""
        if not isinstance(arm_features, Mapping):
            raise TypeError(f"arm_features must be a mapping from arms to their features, got {arm_features!r}")
        known = set(names)
        for name in arm_features:
            if name not in known:
                raise ValueError(f"arm_features has features of an unknown arm {name!r}. Arms: {listed(names)}")
        for name in names:
            own = arm_features.get(name)
            if not isinstance(own, Mapping):
                raise ValueError(f"arm_features must have a mapping with the features of arm {name!r}, got {own!r}")
        given = [arm_features[name] for name in names]
        encoder = _encoder_of_arms(list(given[0]) if kinds is None else kinds, names[0], given[0])
        for name in names:
            _encoded(encoder, name, arm_features[name])
        for features in given:
            encoder.learn(features)
        encoder.use_unit_scale()
        vectors = np.array([encoder.encode(features) for features in given])
        return cls(encoder, vectors, interactions=interactions, constant=constant, names=names)

    def for_arms(self, arms: Sequence[str], *, constant: bool) -> "ArmFeatures":
        """Return a copy in the order of these arms, for contexts with or without a constant column."""
        other = self.copy()
        other._constant = constant
        if self.names is None:
            if len(self.vectors) != len(arms):
                raise ValueError(f"arm_features must have features of {len(arms)} arms, got {len(self.vectors)}")
        elif Counter(self.names) != Counter(arms):
            raise ValueError(f"arm_features must have features of the arms {listed(arms)}, got {listed(self.names)}")
        else:
            column = {name: number for number, name in enumerate(self.names)}
            other.vectors = self.vectors[[column[name] for name in arms]]
            other.names = tuple(arms)
        return other

    def add(self, name: str, features: Any) -> None:
        """Add the features of a new arm, or raise an error that names the arm and the feature."""
        self.vectors = np.vstack([self.vectors, _encoded(self.encoder, name, features)])
        self.names = None if self.names is None else (*self.names, name)

    def dimension(self, context: int) -> int:
        """Return the length of the vector of an arm and a context, given that of a context."""
        own = self.encoder.dimension
        products = own * (context - self._constant) if self.interactions else 0
        return context + own + products

    def combined(self, vector: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the vector of each of some arms, one per row, given the vector of the context."""
        own = self.vectors[columns]
        parts = [np.broadcast_to(vector, (len(own), len(vector))), own]
        if self.interactions:
            factors = vector[1:] if self._constant else vector
            parts.append((own[:, :, np.newaxis] * factors).reshape(len(own), -1))
        return np.hstack(parts)

    def copy(self) -> "ArmFeatures":
        """Return an independent copy."""
        return copy.copy(self)  # `add` replaces the vectors

    def to_json(self) -> dict[str, Any]:
        """Return the declaration, the statistics and the vector of each arm."""
        return {**self.encoder.to_json(), "interactions": self.interactions, "vectors": self.vectors.tolist()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], *, constant: bool = True) -> "ArmFeatures":
        """Return what `to_json` wrote."""
        encoder, vectors = FeatureEncoder.from_json(content), np.array(content["vectors"], dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != encoder.dimension or not np.all(np.isfinite(vectors)):
            raise ValueError(f"its arm features have shape {vectors.shape}, not {encoder.dimension} columns")
        return cls(encoder, vectors, interactions=content["interactions"], constant=constant)


def _encoder_of_arms(
    kinds: Mapping[str, Any] | Iterable[str], first: str, features: Mapping[str, Any]
) -> FeatureEncoder:
    """Return an encoder of arms; if only the names of features are known, the first arm decides their kinds."""
    encoder = FeatureEncoder(kinds, constant=False)
    for name in encoder.names if encoder.is_open else ():
        if features.get(name) is None:
            raise ValueError(
                f"arm_features of arm {first!r} must have a value of feature {name!r}, because the first arm decides "
                f"the kinds of the features; or declare them: ArmFeatures.of(names, arm_features, kinds)"
            )
    try:
        fixed = encoder.fixed(features)
    except (TypeError, ValueError) as error:
        raise extended(error, f"arm {first!r}: {error}") from None
    declared = {one.name: replace(one, forgetting=1.0) if isinstance(one, Number) else one for one in fixed.features}
    return FeatureEncoder(declared, constant=False)


def _encoded(encoder: FeatureEncoder, name: str, features: Any) -> np.ndarray:
    if not isinstance(features, Mapping):
        raise TypeError(
            f"features of arm {name!r} must be a mapping from the features of arms to their values, got {features!r}. "
            f"Features: {listed(encoder.names)}"
        )
    try:
        return encoder.encode(features)
    except (TypeError, ValueError) as error:
        raise extended(error, f"arm {name!r}: {error}") from None
