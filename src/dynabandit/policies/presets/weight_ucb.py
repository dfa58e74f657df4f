"""WeightUCB: LinUCB with discounted data and the radius of its confidence bound from theory."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.memories import regression_policy
from dynabandit.policies.memories.regression_policy import DiscountedPolicy, make_learn, make_prediction
from dynabandit.validation import LARGEST_FACTOR, check_field, number

REGRESSION = make_regression(links.identity, Kind())
PREDICTION = make_prediction(REGRESSION)


class Params(NamedTuple):
    prior: float
    step_size: float
    discount: float
    noise: float
    bound: float  # of the norm of the coefficients
    confidence: float


@kernel
def radius(number: int, dimension: int, params: Params) -> float:
    """Return the radius of the confidence bound at a step, for features of norm at most 1."""
    squared = params.discount * params.discount
    weight = number - 1.0 if squared == 1.0 else (1.0 - squared ** (number - 1.0)) / (1.0 - squared)
    growth = dimension * math.log(1.0 + weight / (params.prior * dimension))
    return math.sqrt(params.prior) * params.bound + params.noise * math.sqrt(growth - 2.0 * math.log(params.confidence))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    mean, variance = PREDICTION(state, arm, step, params)
    return mean + radius(step.number, step.features.shape[1], params) * math.sqrt(variance)


@dataclass(frozen=True, kw_only=True)
class WeightUCB(DiscountedPolicy):
    r"""LinUCB that gives older rewards less weight, with a bonus that follows from bounds of the noise and the
    coefficients. A baseline of the literature for effects of features that change.

    It has a single covariance matrix, and the confidence radius of its paper.

    Parameters
    ----------
    discount
        The factor by which the data fade per step, in (0, 1].
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    noise
        The standard deviation of a reward around its mean (or its sub-Gaussian parameter), at least 0.
    bound
        A bound of the norm of the coefficients, at least 0.
    confidence
        The probability that the bound fails, in (0, 1].
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("weight-ucb", discount=0.98).label
    'weight-ucb(discount=0.98)'

    Notes
    -----
    The score is that of ``"lin-ucb"`` with the width, for features of norm at most 1,

    .. math:: \sqrt{\alpha} B + \sigma \sqrt{2 \log \frac{1}{\delta} + d \log\left( 1 + \frac{1 - \gamma^{2 (t - 1)}}
        {\alpha d (1 - \gamma^2)} \right)}

    Its authors show that the second matrix of D-LinUCB is not needed for the same regret bound. The paper has one
    shared model.

    Cost per step: O(K d^2).

    References
    ----------
    Wang, Zhao & Zhou (2023), Revisiting weighted strategy for non-stationary parametric bandits. UAI. The radius
    follows the analysis of weighted least squares; it was not compared with the authors' code.
    """

    name = "weight-ucb"
    kernels = REGRESSION
    functions = PolicyFunctions(
        start=regression_policy.start, learn=make_learn(REGRESSION), score=score, params=Params, contextual=True
    )

    discount: float = 0.99
    noise: float = 1.0
    bound: float = 1.0
    confidence: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "noise", number, 0.0, LARGEST_FACTOR)
        check_field(self, "bound", number, 0.0, LARGEST_FACTOR)
        check_field(self, "confidence", number, 0.0, 1.0, open_low=True)

    def params(self, arms: int) -> Any:
        return Params(self.prior, 0.0, self.discount, self.noise, self.bound, self.confidence)
