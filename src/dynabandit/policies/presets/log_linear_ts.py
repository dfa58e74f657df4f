"""Thompson sampling from Bayesian Poisson regression, without, with fixed and with adaptive forgetting."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import AdaptivePolicy, DiscountedPolicyWithWidth, thompson_functions
from dynabandit.validation import COUNTS

REGRESSION = make_regression(links.log, Kind())
ADAPTIVE = make_regression(links.log, Kind(adaptive=True))


@dataclass(frozen=True, kw_only=True)
class LogLinearTS(DiscountedPolicyWithWidth):
    r"""Thompson sampling with features for counts, such as sales, which a Poisson regression predicts. Without a
    discount it never forgets: use it if the effect of the features does not change.

    This is a Bayesian Poisson regression, which may discount its data.

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
    >>> db.policy("log-linear-ts", discount=0.99).label
    'log-linear-ts(discount=0.99)'

    Notes
    -----
    The model is that of ``"logistic-ts"`` with the mean :math:`p = e^{x' \theta}` of a count r:

    .. math:: \Lambda \leftarrow \gamma \Lambda + (1 - \gamma) \alpha I + v x x', \quad
        \theta \leftarrow \theta + (r - p) \Lambda^{-1} x

    The weight v is p, or, for a count above p, the logarithmic mean :math:`(r - p) / \log(r / p)`: a Newton step would
    otherwise move the predicted mean far beyond a large count.

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    Our own, in analogy to ``"logistic-ts"``.
    """

    name = "log-linear-ts"
    rewards = COUNTS
    kernels = REGRESSION
    is_drawn = True
    functions = thompson_functions(REGRESSION)


@dataclass(frozen=True, kw_only=True)
class AffLogLinearTS(AdaptivePolicy):
    r"""Thompson sampling for counts, such as sales, with a Poisson regression that sets its own memory. Use it if the
    effect of the features changes and you do not know how fast.

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
    >>> db.policy("aff-log-linear-ts", memory=100).label
    'aff-log-linear-ts(memory=100)'

    Notes
    -----
    The model is that of ``"log-linear-ts"`` with a forgetting factor :math:`\lambda = 1 - e^{-s}`, which follows the
    gradient of the log-likelihood of each count as that of ``"aff-lin-ucb"``:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - p) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for counts; the derivation is our own.
    """

    name = "aff-log-linear-ts"
    rewards = COUNTS
    kernels = ADAPTIVE
    is_drawn = True
    functions = thompson_functions(ADAPTIVE)
