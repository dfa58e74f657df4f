"""AFF-LinUCB and AFF-LinTS: linear models whose forgetting factor follows the data."""

from dataclasses import dataclass

from dynabandit.estimators import links
from dynabandit.estimators.regression_kernels import Kind, make_regression
from dynabandit.policies.memories.regression_policy import AdaptivePolicy, thompson_functions, upper_bound_functions

REGRESSION = make_regression(links.identity, Kind(adaptive=True))


@dataclass(frozen=True, kw_only=True)
class AffLinUCB(AdaptivePolicy):
    r"""LinUCB that sets its own memory: short when its predictions become worse, long otherwise. Use it if the effect
    of the features changes and you do not know how fast.

    Parameters
    ----------
    width
        The width of the confidence bound, at least 0, in units of the reward.
    step_size
        The step size of the logarithm of the memory, in [0, 1].
    memory
        The memory at first, in steps, in [10, 10000]; its limits are the same.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-lin-ucb", width=0.5).label
    'aff-lin-ucb(width=0.5)'

    Notes
    -----
    The score is that of ``"d-lin-ucb"``, with a forgetting factor :math:`\lambda = 1 - e^{-s}` per model. Its memory
    :math:`e^s` follows the gradient of the log-likelihood of each reward before it is learnt, divided by the root mean
    square of about the last 100 gradients:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - x' \theta) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    where the derivative is with respect to all past forgetting factors, as in the paper's equation (9): for one
    constant feature without a prior, :math:`x' \psi` is its slope. The recursions are in
    `estimators.regression_kernels`. The data of a model fade by :math:`\lambda` per step, also while its arm is idle.

    Cost per step: O(K d^2).

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work; the derivatives of recursive least squares are in Haykin (2002), Adaptive filter theory. The
    normalised step in the logarithm of the memory is our own.
    """

    name = "aff-lin-ucb"
    kernels = REGRESSION
    functions = upper_bound_functions(REGRESSION)


@dataclass(frozen=True, kw_only=True)
class AffLinTS(AdaptivePolicy):
    r"""Thompson sampling with a linear regression that sets its own memory: short when its predictions become worse,
    long otherwise. Use it if the effect of the features changes and you do not know how fast.

    Parameters
    ----------
    width
        The standard deviation of the noise of a reward, at least 0; it is the scale of all draws.
    step_size
        The step size of the logarithm of the memory, in [0, 1].
    memory
        The memory at first, in steps, in [10, 10000]; its limits are the same.
    prior
        The precision of the prior of every coefficient, in [1e-12, 1e12], in rewards: the ridge penalty.
    model
        ``"separate"``: a model for each arm; ``"shared"``: one model for all arms, which have features of their own;
        ``"hybrid"``: both; ``"auto"``: shared if arms have features of their own, else separate.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("aff-lin-ts", step_size=0.1).label
    'aff-lin-ts(step_size=0.1)'

    Notes
    -----
    The model is that of ``"aff-lin-ucb"``. The coefficients of a shared model are drawn once per step, those of
    separate models independently:

    .. math:: \tilde\theta \sim N\left( \theta, \; w^2 \Lambda^{-1} \Lambda_2 \Lambda^{-1} \right)

    Cost per step: O(K d^2), and O(d^3) more for a shared model.

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, with the draws of Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs.
    """

    name = "aff-lin-ts"
    kernels = REGRESSION
    is_drawn = True
    functions = thompson_functions(REGRESSION)
