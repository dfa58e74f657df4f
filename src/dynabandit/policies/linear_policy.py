"""What policies with one linear model per arm, or one for all arms, share."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.estimators import linear_model
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Policy, PolicyState, Reward, Step, features_of
from dynabandit.validation import NORMAL, number, set_fields


class Params(NamedTuple):
    prior: float
    discount: float
    width: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Write nothing: `Policy.initial_models` has the models without rewards."""


@kernel
def model_of(state: PolicyState, arm: int) -> np.ndarray:
    """Return the model of an arm: its own, or the one of all arms."""
    return state.models[arm if state.models.shape[0] > 1 else 0]


@kernel
def kept_until(model: np.ndarray, number: int, discount: float) -> float:
    """Return the factor by which the data of a model have faded at a step."""
    return discount ** max(number - model[linear_model.CLOCK], 0.0) if discount < 1.0 else 1.0


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    model = model_of(state, arm)
    kept = kept_until(model, reward.arrived_at, params.discount)
    weight = params.discount ** (reward.arrived_at - reward.decided_at) if params.discount < 1.0 else 1.0
    linear_model.update(model, reward.features, reward.value, weight, kept, params.prior)
    model[linear_model.CLOCK] = max(model[linear_model.CLOCK], reward.arrived_at)


@kernel
def prediction(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    """Return the prediction for an arm in the context of the step, and its variance in units of the noise's."""
    model = model_of(state, arm)
    kept = kept_until(model, step.number - 1, params.discount)
    return linear_model.mean_and_variance(model, features_of(step, arm), kept, params.prior)


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Policy):
    """A policy whose models are those of `estimators.linear_model`."""

    slots = ("unused",)
    rewards = NORMAL

    prior: float = 1.0
    discount: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            prior=number("prior", self.prior, 0.0, 1e12, open_low=True),
            discount=number("discount", self.discount, 0.0, 1.0, open_low=True),
        )

    def initial_models(self, arms: int, context: Context) -> np.ndarray:
        rows = 1 if context.per_arm else arms
        return np.tile(linear_model.initial(context.dimension, self.prior), (rows, 1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return Belief(np.nan, np.nan, self.discount, np.nan)
