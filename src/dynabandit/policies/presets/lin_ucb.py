"""LinUCB: an upper confidence bound of a linear model of the reward."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import DiscountedPolicyWithWidth, upper_bound_functions

REGRESSION = make_regression(links.identity, Kind())


@dataclass(frozen=True, kw_only=True)
class LinUCB(DiscountedPolicyWithWidth):
    r"""Predict the reward of each arm from features by linear regression, and play the arm whose reward could be the
    largest. Without a discount it never forgets: use it if the effect of the features does not change.

    This is a ridge regression, which may discount its data.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
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
    >>> db.policy("lin-ucb", discount=0.99).label
    'lin-ucb(discount=0.99)'

    Notes
    -----
    With the discounted sums :math:`\Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s'` and
    :math:`b = \sum_s \gamma^{t - s} r_s x_s`, the score of an arm with features x is

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \theta = \Lambda^{-1} b

    The prior returns to one or a few coefficients per update in turn, and an idle arm fades in the direction of x
    (`estimators.linear_model`). In a hybrid the shared model learns all rewards as if it were alone, the model of an
    arm learns what the shared one leaves unexplained, and both predictions and variances are added: simpler than
    algorithm 2 of the paper, which solves for both models at once.

    Cost per step: O(K d^2).

    References
    ----------
    Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation. WWW.
    """

    name = "lin-ucb"
    kernels = REGRESSION
    functions = upper_bound_functions(REGRESSION)
