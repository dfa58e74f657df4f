"""LinUCB: an upper confidence bound of a linear model of the reward."""

import math
from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.policies import linear_policy
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step
from dynabandit.policies.linear_policy import LinearPolicy, Params
from dynabandit.validation import number, set_fields


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    mean, variance = linear_policy.prediction(state, arm, step, params)
    return mean + params.width * math.sqrt(variance)


@dataclass(frozen=True, kw_only=True)
class LinUCB(LinearPolicy):
    r"""The largest upper confidence bound of a ridge regression, which may discount its data.

    Every arm has its own model if the context is the same for all arms; one model is shared by all arms if each of them
    has features of its own.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
    prior
        The precision of the prior of every coefficient, positive, in rewards: the ridge penalty.
    discount
        The factor by which the data fade per step, in (0, 1]; 1 keeps all data. The prior does not fade.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("lin-ucb", discount=0.99).label
    'lin-ucb(discount=0.99)'

    Notes
    -----
    With the discounted sums :math:`\Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s'` and
    :math:`b = \sum_s \gamma^{t - s} r_s x_s`, the score of an arm with features x is

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \theta = \Lambda^{-1} b

    The prior returns to one coefficient per update in turn, and an idle arm fades in the direction of x
    (`estimators.linear_model`), so that a step takes O(K d^2). D-LinUCB (``"d-lin-ucb"``) has another bound.

    References
    ----------
    Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation. WWW.
    """

    name = "lin-ucb"
    functions = PolicyFunctions(
        start=linear_policy.start, learn=linear_policy.learn, score=score, params=Params, contextual=True
    )

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, width=number("width", self.width, 0.0, 1e12))

    def params(self, arms: int) -> Params:
        return Params(self.prior, self.discount, self.width)
