"""D-LinUCB: an upper confidence bound of a linear model whose data are discounted."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import DiscountedPolicyWithWidth, upper_bound_functions

REGRESSION = make_regression(links.identity, Kind(squared=True))


@dataclass(frozen=True, kw_only=True)
class DLinUCB(DiscountedPolicyWithWidth):
    r"""LinUCB that gives older rewards less weight, at a constant rate. Use it if you know how fast the effect of the
    features changes.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    discount
        The factor by which the data fade per step, in (0, 1].
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-lin-ucb", discount=0.98).label
    'd-lin-ucb(discount=0.98)'

    Notes
    -----
    With two discounted sums over the past steps, and :math:`\theta = \Lambda^{-1} \sum_s \gamma^{t - s} r_s x_s`,

    .. math:: \Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s', \quad
        \Lambda_2 = \alpha I + \sum_s \gamma^{2 (t - s)} x_s x_s'

    the score of an arm with features x is

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} \Lambda_2 \Lambda^{-1} x }

    The width is constant; the paper derives one that grows with the logarithm of the step from bounds of the noise, the
    features and the coefficients. As in all linear policies here, the prior fades with the data between its turns: one
    coefficient per reward gets it back (`estimators.linear_model`). The paper has one shared model. If models are
    separate, the data of an idle arm fade as well. In a hybrid the shared model learns all rewards as if it were alone,
    the model of an arm learns what the shared one leaves unexplained, and both predictions and variances are added.

    Cost per step: O(K d^2).

    References
    ----------
    Russac, Vernade & Cappé (2019), Weighted linear bandits for non-stationary environments. NeurIPS. Their code updates
    the second sum from the first one; here each has its own discount, as in the paper.
    """

    name = "d-lin-ucb"
    kernels = REGRESSION
    functions = upper_bound_functions(REGRESSION)

    discount: float = 0.99
