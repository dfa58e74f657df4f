"""LinTS: Thompson sampling from the posterior of a linear model."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import DiscountedPolicyWithWidth, thompson_functions

REGRESSION = make_regression(links.identity, Kind())


@dataclass(frozen=True, kw_only=True)
class LinTS(DiscountedPolicyWithWidth):
    r"""Thompson sampling with features: draw plausible coefficients of a linear regression, and play the arm with the
    largest prediction. Without a discount it never forgets: use it if the effect of the features does not change.

    This is a Bayesian linear regression, which may discount its data.

    Parameters
    ----------
    width
        The standard deviation of the noise of a reward, at least 0; it is the scale of all draws.
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
    >>> db.policy("lin-ts", width=0.5).label
    'lin-ts(width=0.5)'

    Notes
    -----
    The coefficients of a shared model are drawn once per step, and the score of an arm with features x is x' times the
    draw:

    .. math:: \tilde\theta \sim N\left( \theta, \; w^2 \Lambda^{-1} \right), \quad
        \Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s'

    Those of separate models are independent, so that the score of an arm is drawn from its own normal law. The paper
    has a shared model without discount, and a width that grows with the logarithm of the step. In a hybrid the shared
    model and that of the arm are drawn independently and added.

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs. ICML.
    """

    name = "lin-ts"
    kernels = REGRESSION
    is_drawn = True
    functions = thompson_functions(REGRESSION)
