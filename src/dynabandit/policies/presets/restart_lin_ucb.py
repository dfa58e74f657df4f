"""RestartUCB: LinUCB that forgets everything after a fixed number of steps."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.estimators import links, regression_kernels
from dynabandit.estimators.linear_model import CLOCK, square
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step, row_of
from dynabandit.policies.memories import regression_policy
from dynabandit.policies.memories.regression_policy import RegressionPolicy, make_learn, make_prediction
from dynabandit.validation import LARGEST_FACTOR, check_field, integer, number

REGRESSION = make_regression(links.identity, Kind())
PREDICTION, LEARN = make_prediction(REGRESSION), make_learn(REGRESSION)


class Params(NamedTuple):
    prior: float
    step_size: float
    width: float
    period: int


@kernel
def is_of_period(model: np.ndarray, number: int, period: int) -> bool:
    """Whether a model has learnt a reward in the period of a step."""
    return model[CLOCK] > (number - 1) // period * period


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    if not is_of_period(state.models[row_of(state.models, arm)], step.number, params.period):
        return params.width * math.sqrt(square(step.features[row_of(step.features, arm)]) / params.prior)
    mean, variance = PREDICTION(state, arm, step, params)
    return mean + params.width * math.sqrt(variance)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    if reward.decided_at <= (reward.arrived_at - 1) // params.period * params.period:
        return  # a late reward of an earlier period
    model = state.models[row_of(state.models, arm)]
    if not is_of_period(model, reward.arrived_at, params.period):
        regression_kernels.reset(model, reward.features.size, params.prior)
    LEARN(state, arm, reward, params)


@dataclass(frozen=True, kw_only=True)
class RestartLinUCB(RegressionPolicy):
    r"""LinUCB that forgets everything after every period of a fixed length. A baseline of the literature for effects of
    features that change.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
    period
        The number of steps between two restarts, at least 1.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("restart-lin-ucb", period=500).label
    'restart-lin-ucb(period=500)'

    Notes
    -----
    The score of an arm with features x, with sums over the past steps of the current period:

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \Lambda = \alpha I + \sum_s x_s x_s', \quad
        \theta = \Lambda^{-1} \sum_s r_s x_s

    Rewards of decisions of an earlier period that arrive late are ignored. The paper has one shared model, and a period
    that follows from the horizon and the variation of the coefficients.

    Cost per step: O(K d^2).

    References
    ----------
    Zhao, Zhang, Jiang & Zhou (2020), A simple approach for non-stationary linear bandits. AISTATS.
    """

    name = "restart-lin-ucb"
    kernels = REGRESSION
    models = ("auto", "separate", "shared")
    functions = PolicyFunctions(start=regression_policy.start, learn=learn, score=score, params=Params, contextual=True)

    width: float = 1.0
    period: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "width", number, 0.0, LARGEST_FACTOR)
        check_field(self, "period", integer, 1, LARGEST_STEP)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.width, self.period)
