"""Thompson sampling from Bayesian logistic regression, without, with fixed and with adaptive forgetting."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import AdaptivePolicy, DiscountedPolicyWithWidth, thompson_functions
from dynabandit.validation import BOUNDED

REGRESSION = make_regression(links.logistic, Kind())
ADAPTIVE = make_regression(links.logistic, Kind(adaptive=True))


@dataclass(frozen=True, kw_only=True)
class LogisticTS(DiscountedPolicyWithWidth):
    r"""Thompson sampling with features for rewards of 0 or 1, such as clicks, which a logistic regression predicts.
    Without a discount it never forgets: use it if the effect of the features does not change.

    This is a Bayesian logistic regression of rewards in [0, 1], which may discount its data.

    Parameters
    ----------
    width
        The standard deviation of a draw in units of that of the posterior, at least 0.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12].
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
    >>> db.policy("logistic-ts", discount=0.99).label
    'logistic-ts(discount=0.99)'

    Notes
    -----
    A reward r with features x is learnt by one Newton step from a normal posterior (an online Laplace approximation),
    with :math:`p = 1 / (1 + e^{-x' \theta})`, after the data were discounted:

    .. math:: \Lambda \leftarrow \gamma \Lambda + (1 - \gamma) \alpha I + p (1 - p) x x', \quad
        \theta \leftarrow \theta + (r - p) \Lambda^{-1} x

    The score of an arm is :math:`x' \tilde\theta` with a draw from :math:`N(\theta, w^2 \Lambda^{-1})`, once per step
    for a shared model, independently for separate ones. The prior returns to one or a few coefficients per reward in
    turn, and pulls them towards 0 (`estimators.regression_kernels`).

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS, algorithm 3, with one Newton step per
    reward instead of a fit to a batch.
    """

    name = "logistic-ts"
    rewards = BOUNDED
    kernels = REGRESSION
    is_drawn = True
    functions = thompson_functions(REGRESSION)


@dataclass(frozen=True, kw_only=True)
class AffLogisticTS(AdaptivePolicy):
    r"""Thompson sampling for rewards of 0 or 1, such as clicks, with a logistic regression that sets its own memory.
    Use it if the effect of the features changes and you do not know how fast.

    Rewards may be any numbers in [0, 1].

    Parameters
    ----------
    width
        The standard deviation of a draw in units of that of the posterior, at least 0.
    step_size
        The step size of the logarithm of the memory, in [0, 1].
    memory
        The memory at first, in steps, in [10, 10000]; its limits are the same.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12].
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-logistic-ts", memory=100).label
    'aff-logistic-ts(memory=100)'

    Notes
    -----
    The model is that of ``"logistic-ts"`` with a forgetting factor :math:`\lambda = 1 - e^{-s}`, which follows the
    gradient of the log-likelihood of each reward as that of ``"aff-lin-ucb"``:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - p) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    The variance of a draw has the squared weights of ``"d-lin-ucb"``.

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for logistic models; the derivation is our own.
    """

    name = "aff-logistic-ts"
    rewards = BOUNDED
    kernels = ADAPTIVE
    is_drawn = True
    functions = thompson_functions(ADAPTIVE)
