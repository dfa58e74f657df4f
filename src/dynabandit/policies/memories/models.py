"""The contract of a memory that predicts the rewards of an arm from features, with a regression model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dynabandit.core.records import NoParams
from dynabandit.policies.memories.base import Memory, steps_so_far
from dynabandit.policies.part import Setting

COEFFICIENTS = "coefficients"  # the family of a rule that draws the coefficients of models


class Draws(NamedTuple):
    """The kernels with which coefficients are drawn; `scale` multiplies the deviation of all draws."""

    prepare: Callable[..., None]
    """prepare(state, step, scale): draw the coefficients of a model that all arms share."""
    score: Callable[..., float]
    """score(state, arm, step, scale, params): the prediction with the drawn coefficients."""
    law: Callable[..., tuple[float, float, float]]
    """law(state, arm, step, scale, params): the Student law of this score; NaN if scores depend on each other."""


class ModelKernels(NamedTuple):
    """The kernels of a memory that predicts; `params` is what `Memory.params` returns, with the field `prior`.

    The models are the rows of `state.models`; the numbers of an arm are the first rows of `state.memory`, and those of
    all arms together the first of `state.shared`.
    """

    slots: tuple[str, ...]
    start: Callable[..., None]
    """start(state, arm, params): prepare an arm without rewards."""
    learn: Callable[..., None]
    """learn(state, arm, reward, params): learn a reward."""
    predict: Callable[..., tuple[float, float]]
    """predict(state, arm, step, params): the predictor of an arm's reward, and its variance."""
    prepare: Callable[..., None] | None = None
    """prepare(state, step, params): called once per step, before the predictions."""
    clock: Callable[..., float] = steps_so_far
    """clock(state, number, params): for a bound that grows with the data, how many rewards the models may have."""
    draws: Draws | None = None
    shared: int = 0
    """How many numbers the memory keeps for all arms together."""
    params: type = NoParams


@dataclass(frozen=True, kw_only=True)
class ModelMemory(Memory):
    """A memory with a regression model for each arm, or one for all arms."""

    kernels: ClassVar[Any]  # `ModelKernels`
    needs_double = True  # with the 24 bits of a float32, small variances would be rounding errors after 10,000 rewards

    @classmethod
    def kernels_for(cls, family: str | None) -> Any:
        return cls.kernels

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return self.kernels.shared
