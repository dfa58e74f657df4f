"""The contexts of a bandit: how they are encoded, and the vectors of decisions whose rewards have not arrived."""

import copy
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynabandit.core.context import Context
from dynabandit.features import ArmFeatures, FeatureEncoder
from dynabandit.validation import integer, listed

KEPT_DECISIONS = 10_000


class Contexts:
    """The features of a bandit, and the vectors of the latest decisions without a reward, at most `kept`.

    The means and variances of the features change once per decision, after it was made.

    Examples
    --------
    >>> contexts = Contexts(FeatureEncoder({"new": {"kind": "boolean", "required": True}}))
    >>> contexts.record(1, 0, contexts.encoded({"new": True}), {"new": True})
    >>> contexts.of_decision(1, 0).tolist(), contexts.shape
    ([1.0, 1.0], Context(dimension=2, per_arm=False))
    """

    def __init__(self, encoder: FeatureEncoder, arms: ArmFeatures | None = None, kept: int | None = None) -> None:
        self.encoder, self.arms = encoder, arms
        self.kept = KEPT_DECISIONS if kept is None else kept
        self._decisions: OrderedDict[int, tuple[int, np.ndarray]] = OrderedDict()  # step -> column and vector

    @property
    def shape(self) -> Context:
        """The shape of the features that a policy sees."""
        dimension = self.encoder.dimension
        if self.arms is None:
            return Context(dimension, per_arm=False)
        return Context(self.arms.dimension(dimension), per_arm=True)

    def encoded(self, context: Mapping[str, Any] | None) -> np.ndarray:
        """Return the vector of a context; it is needed unless there are only features of arms."""
        if context is None and self.encoder.names:
            raise TypeError(f"context must be given: the bandit has the features {listed(self.encoder.names)}")
        return self.encoder.encode({} if context is None else context)

    def features(self, vector: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the features of a decision: one row for all arms, or one for each of some columns."""
        return vector[np.newaxis] if self.arms is None else self.arms.combined(vector, columns)

    def of_arm(self, vector: np.ndarray, column: int) -> np.ndarray:
        """Return the features of one arm."""
        return vector if self.arms is None else self.arms.combined(vector, np.array([column]))[0]

    def record(self, step: int, column: int, vector: np.ndarray, context: Mapping[str, Any] | None) -> None:
        """Keep the vector of a decision, and add its context to the means and variances."""
        self._decisions[step] = column, vector
        if len(self._decisions) > self.kept:
            self._decisions.popitem(last=False)
        if context is not None:
            self.encoder.learn(context)

    def of_decision(self, step: int, column: int) -> np.ndarray:
        """Return the vector of the context of a decision, or raise an error if it is not kept."""
        of_column, vector = self._decisions.get(step, (-1, None))
        if of_column == column and vector is not None:
            return vector
        if vector is not None:
            raise ValueError(f"step {step} chose another arm: give the step of a decision for this arm, or context=...")
        raise ValueError(
            f"the context of step {step} is not known: its decision had another reward, was closed, is older than "
            f"the latest {self.kept} without a reward, or was never made; give context=..."
        )

    def end(self, step: int, column: int) -> None:
        """Forget the vector of a decision."""
        if self._decisions.get(step, (-1,))[0] == column:
            del self._decisions[step]

    def with_arm(self, name: str, features: Mapping[str, Any] | None) -> "Contexts":
        """Return a copy that has the features of one more arm, or raise an error if they do not fit."""
        other = self.copy()
        if other.arms is not None:
            other.arms.add(name, features)
        elif features is not None:
            raise TypeError(f"features must be None: the bandit was made without arm_features=..., got {features!r}")
        return other

    def copy(self) -> "Contexts":
        """Return an independent copy."""
        other = copy.copy(self)
        other.encoder, other._decisions = self.encoder.copy(), self._decisions.copy()
        other.arms = None if self.arms is None else self.arms.copy()
        return other

    def to_json(self) -> dict[str, Any]:
        """Return declarations, statistics and vectors."""
        decisions = [[step, column, vector.tolist()] for step, (column, vector) in self._decisions.items()]
        arms = None if self.arms is None else self.arms.to_json()
        content = {"context": self.encoder.to_json(), "arms": arms, "decisions": decisions}
        return content if self.kept == KEPT_DECISIONS else {**content, "kept": self.kept}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], columns: int, step: int) -> "Contexts":
        """Return what `to_json` wrote for a bandit with so many columns after `step` steps."""
        encoder, arms = FeatureEncoder.from_json(content["context"]), None
        if content["arms"] is not None:
            arms = ArmFeatures.from_json(content["arms"], constant=encoder.constant)
            integer("the number of arms with features", len(arms.vectors), columns, columns)
        contexts = cls(encoder, arms, integer("kept", content.get("kept", KEPT_DECISIONS), 0, KEPT_DECISIONS))
        for decided_at, column, numbers in content["decisions"]:
            vector = np.array(numbers, dtype=np.float64)
            if vector.shape != (encoder.dimension,) or not np.all(np.isfinite(vector)):
                raise ValueError(f"the vector of step {decided_at} must have {encoder.dimension} numbers")
            checked = integer("the column of a decision", column, 0, columns - 1)
            contexts._decisions[integer("the step of a decision", decided_at, 1, step)] = checked, vector
        return contexts


def make_contexts(
    features: FeatureEncoder | Mapping[str, Any] | Iterable[str] | None,
    arm_features: ArmFeatures | Mapping[str, Any] | None,
    arms: Sequence[str],
) -> Contexts | None:
    """Return the contexts of a bandit with these arguments; None if it has no features."""
    if features is None and arm_features is None:
        return None
    encoder = features if isinstance(features, FeatureEncoder) else FeatureEncoder({} if features is None else features)
    if arm_features is None:
        if not encoder.names:
            raise ValueError("features must be at least one feature, got none")
        return Contexts(encoder.copy())
    if not isinstance(arm_features, ArmFeatures):
        arm_features = ArmFeatures.of(arms, arm_features)
    return Contexts(encoder.copy(), arm_features.for_arms(arms, constant=encoder.constant))
