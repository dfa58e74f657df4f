"""Epsilon-greedy with a linear model."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import regression_policy
from dynabandit.policies.memories.regression_policy import DiscountedPolicy, make_learn, make_prediction
from dynabandit.policies.rules.score_laws import random_exploration
from dynabandit.validation import check_field, number

REGRESSION = make_regression(links.identity, Kind())
PREDICTION = make_prediction(REGRESSION)


class Params(NamedTuple):
    prior: float
    step_size: float
    epsilon: float


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    mean, _ = PREDICTION(state, arm, step, params)
    return mean


@kernel
def exploration(state: PolicyState, leader: int, step: Step, params: Params) -> float:
    return params.epsilon


@dataclass(frozen=True, kw_only=True)
class LinEpsGreedy(DiscountedPolicy):
    r"""Play the arm with the largest reward predicted from features, and with probability epsilon a random arm. A
    simple baseline for decisions with features.

    The prediction is that of a ridge regression.

    Parameters
    ----------
    epsilon
        The probability of a random arm, in [0, 1].
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    discount
        The factor by which the data fade per step, in (0, 1]; 1 keeps all data. The prior does not fade.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("lin-eps-greedy", epsilon=0.05).label
    'lin-eps-greedy(epsilon=0.05)'

    Notes
    -----
    The score of an arm with features x is the prediction of the model of ``"lin-ucb"``:

    .. math:: x' \theta, \quad \theta = \left( \alpha I + \sum_s \gamma^{t - s} x_s x_s' \right)^{-1}
        \sum_s \gamma^{t - s} r_s x_s

    Cost per step: O(K d^2).

    References
    ----------
    Langford & Zhang (2007), The epoch-greedy algorithm for contextual multi-armed bandits. NIPS, with a constant
    epsilon as in Vowpal Wabbit.
    """

    name = "lin-eps-greedy"
    kernels = REGRESSION
    functions = PolicyFunctions(
        start=regression_policy.start,
        learn=make_learn(REGRESSION),
        score=score,
        params=Params,
        contextual=True,
        **random_exploration(exploration),
    )

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "epsilon", number, 0.0, 1.0)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.epsilon)
