"""Policies with features: regressions that forget in different ways, and rules that compare their predictions."""

from dataclasses import dataclass
from typing import ClassVar

from dynabandit.policies.memories import regression, regression_mixture, regression_window
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import greedy, prediction

DISCOUNT = "The factor by which the data fade per step, in (0, 1]."
NOISE = "The standard deviation of the noise of a reward, at least 0; it is the scale of all draws."


@dataclass(frozen=True, kw_only=True)
class LinUCB(Preset):
    r"""Predict the reward of each arm from features by linear regression, and play the arm whose reward could be the
    largest. Without a discount it never forgets: use it if the effect of the features does not change.

    Notes
    -----
    This is a ridge regression. With the discounted sums :math:`\Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s'` and
    :math:`b = \sum_s \gamma^{t - s} r_s x_s`, the score of an arm with features x is

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \theta = \Lambda^{-1} b

    The prior returns to one or a few coefficients per update in turn, and an idle arm fades in the direction of x
    (`memories.linear_model`). In a hybrid the shared model learns all rewards as if it were alone, the model of an
    arm learns what the shared one leaves unexplained, and both predictions and variances are added: simpler than
    algorithm 2 of the paper, which solves for both models at once.

    References
    ----------
    Li, Chu, Langford & Schapire (2010), A contextual-bandit approach to personalized news article recommendation. WWW.
    """

    name = "lin-ucb"
    made_of = regression.Regression, prediction.WidthBound


@dataclass(frozen=True, kw_only=True)
class LinTS(Preset):
    r"""Thompson sampling with features: draw plausible coefficients of a linear regression, and play the arm with the
    largest prediction. Without a discount it never forgets: use it if the effect of the features does not change.

    Notes
    -----
    The coefficients of a shared model are drawn once per step, and the score of an arm with features x is x' times the
    draw:

    .. math:: \tilde\theta \sim N\left( \theta, \; w^2 \Lambda^{-1} \right), \quad
        \Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s'

    Those of separate models are independent, so that the score of an arm is drawn from its own normal law. The paper
    has a shared model without discount, and a width that grows with the logarithm of the step. In a hybrid the shared
    model and that of the arm are drawn independently and added.

    References
    ----------
    Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs. ICML.
    """

    name = "lin-ts"
    made_of = regression.Regression, prediction.LinearThompson
    described: ClassVar[dict[str, str]] = {"width": NOISE}


@dataclass(frozen=True, kw_only=True)
class DLinUCB(Preset):
    r"""LinUCB that gives older rewards less weight, at a constant rate. Use it if you know how fast the effect of the
    features changes.

    Notes
    -----
    With two discounted sums over the past steps, and :math:`\theta = \Lambda^{-1} \sum_s \gamma^{t - s} r_s x_s`,

    .. math:: \Lambda = \alpha I + \sum_s \gamma^{t - s} x_s x_s', \quad
        \Lambda_2 = \alpha I + \sum_s \gamma^{2 (t - s)} x_s x_s'

    the score of an arm with features x is

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} \Lambda_2 \Lambda^{-1} x }

    The width is constant; the paper derives one that grows with the logarithm of the step from bounds of the noise, the
    features and the coefficients. As in all linear policies here, the prior fades with the data between its turns: one
    coefficient per reward gets it back (`memories.linear_model`). The paper has one shared model. If models are
    separate, the data of an idle arm fade as well. In a hybrid the shared model learns all rewards as if it were alone,
    the model of an arm learns what the shared one leaves unexplained, and both predictions and variances are added.

    References
    ----------
    Russac, Vernade & Cappé (2019), Weighted linear bandits for non-stationary environments. NeurIPS. Their code updates
    the second sum from the first one; here each has its own discount, as in the paper.
    """

    name = "d-lin-ucb"
    made_of = regression.SquaredRegression, prediction.WidthBound
    described: ClassVar[dict[str, str]] = {"discount": DISCOUNT}

    discount: float = 0.99


@dataclass(frozen=True, kw_only=True)
class _SavedInThisOrder(Preset):
    """Saved bandits have the width before the last parameter of the memory."""

    prior: float = 1.0
    model: str = "auto"
    width: float = 1.0


@dataclass(frozen=True, kw_only=True)
class SWLinUCB(_SavedInThisOrder):
    r"""LinUCB that uses only the rewards of the latest steps. Use it if you know how fast the effect of the features
    changes.

    Notes
    -----
    The score of an arm with features x, with sums over the last `window` steps:

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \Lambda = \alpha I + \sum_s x_s x_s', \quad
        \theta = \Lambda^{-1} \sum_s r_s x_s

    A reward that leaves the window is subtracted, and each model is computed anew once per window, and whenever the
    difference would be inaccurate, which takes features of 1000 and more (for a prior of 1). A late reward whose
    decision has left the window is ignored; another one leaves it in the order of arrival. The paper has one shared
    model, and a window that follows from the horizon and the variation of the coefficients.

    References
    ----------
    Cheung, Simchi-Levi & Zhu (2019), Learning to optimize under non-stationarity. AISTATS.
    """

    name = "sw-lin-ucb"
    made_of = regression_window.WindowRegression, prediction.WidthBound


@dataclass(frozen=True, kw_only=True)
class WeightUCB(Preset):
    r"""LinUCB that gives older rewards less weight, with a bonus that follows from bounds of the noise and the
    coefficients. A baseline of the literature for effects of features that change.

    It has a single covariance matrix, and the confidence radius of its paper.

    Notes
    -----
    The score is that of ``"lin-ucb"`` with the width, for features of norm at most 1,

    .. math:: \sqrt{\alpha} B + \sigma \sqrt{2 \log \frac{1}{\delta} + d \log\left( 1 + \frac{1 - \gamma^{2 (t - 1)}}
        {\alpha d (1 - \gamma^2)} \right)}

    Its authors show that the second matrix of D-LinUCB is not needed for the same regret bound. The paper has one
    shared model.

    References
    ----------
    Wang, Zhao & Zhou (2023), Revisiting weighted strategy for non-stationary parametric bandits. UAI. The radius
    follows the analysis of weighted least squares; it was not compared with the authors' code.
    """

    name = "weight-ucb"
    made_of = regression.Regression, prediction.EllipsoidBound
    described: ClassVar[dict[str, str]] = {"discount": DISCOUNT}

    discount: float = 0.99


@dataclass(frozen=True, kw_only=True)
class RestartLinUCB(_SavedInThisOrder):
    r"""LinUCB that forgets everything after every period of a fixed length. A baseline of the literature for effects of
    features that change.

    Notes
    -----
    The score of an arm with features x, with sums over the past steps of the current period:

    .. math:: x' \theta + w \sqrt{ x' \Lambda^{-1} x }, \quad \Lambda = \alpha I + \sum_s x_s x_s', \quad
        \theta = \Lambda^{-1} \sum_s r_s x_s

    Rewards of decisions of an earlier period that arrive late are ignored. The paper has one shared model, and a period
    that follows from the horizon and the variation of the coefficients.

    References
    ----------
    Zhao, Zhang, Jiang & Zhou (2020), A simple approach for non-stationary linear bandits. AISTATS.
    """

    name = "restart-lin-ucb"
    made_of = regression_window.RestartRegression, prediction.WidthBound


@dataclass(frozen=True, kw_only=True)
class LinEpsGreedy(Preset):
    r"""Play the arm with the largest reward predicted from features, and with probability epsilon a random arm. A
    simple baseline for decisions with features.

    Notes
    -----
    The score of an arm with features x is the prediction of the model of ``"lin-ucb"``:

    .. math:: x' \theta, \quad \theta = \left( \alpha I + \sum_s \gamma^{t - s} x_s x_s' \right)^{-1}
        \sum_s \gamma^{t - s} r_s x_s

    References
    ----------
    Langford & Zhang (2007), The epoch-greedy algorithm for contextual multi-armed bandits. NIPS, with a constant
    epsilon as in Vowpal Wabbit.
    """

    name = "lin-eps-greedy"
    made_of = regression.Regression, greedy.Greedy

    burn_in: int = 0


@dataclass(frozen=True, kw_only=True)
class SquareCB(Preset):
    r"""Play arms at random, the more rarely the further their predicted reward is below the best one. A baseline of the
    literature for decisions with features.

    Notes
    -----
    With the predictions :math:`\hat y_a = x_a' \theta` of the model of ``"lin-ucb"`` and the best one
    :math:`\hat y_b`, an arm other than b is played with probability

    .. math:: p_a = \frac{1}{K + \gamma_t (\hat y_b - \hat y_a)}, \quad \gamma_t = \mathrm{scale} \cdot
        t^{\mathrm{exponent}}

    and b with the rest. The paper has a constant rate for a known horizon; one that grows with the step, and the
    defaults, are those of Vowpal Wabbit.

    References
    ----------
    Foster & Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML.
    """

    name = "square-cb"
    made_of = regression.Regression, prediction.SquareCB


@dataclass(frozen=True, kw_only=True)
class LogisticTS(Preset):
    r"""Thompson sampling with features for rewards of 0 or 1, such as clicks, which a logistic regression predicts.
    Without a discount it never forgets: use it if the effect of the features does not change.

    Rewards may be any numbers in [0, 1].

    Notes
    -----
    A reward r with features x is learnt by one Newton step from a normal posterior (an online Laplace approximation),
    with :math:`p = 1 / (1 + e^{-x' \theta})`, after the data were discounted:

    .. math:: \Lambda \leftarrow \gamma \Lambda + (1 - \gamma) \alpha I + p (1 - p) x x', \quad
        \theta \leftarrow \theta + (r - p) \Lambda^{-1} x

    The score of an arm is :math:`x' \tilde\theta` with a draw from :math:`N(\theta, w^2 \Lambda^{-1})`, once per step
    for a shared model, independently for separate ones. The prior returns to one or a few coefficients per reward in
    turn, and pulls them towards 0 (`memories.regression_kernels`).

    References
    ----------
    Chapelle & Li (2011), An empirical evaluation of Thompson sampling. NIPS, algorithm 3, with one Newton step per
    reward instead of a fit to a batch.
    """

    name = "logistic-ts"
    made_of = regression.LogisticRegression, prediction.LinearThompson


@dataclass(frozen=True, kw_only=True)
class LogLinearTS(Preset):
    r"""Thompson sampling with features for counts, such as sales, which a Poisson regression predicts. Without a
    discount it never forgets: use it if the effect of the features does not change.

    Notes
    -----
    The model is that of ``"logistic-ts"`` with the mean :math:`p = e^{x' \theta}` of a count r:

    .. math:: \Lambda \leftarrow \gamma \Lambda + (1 - \gamma) \alpha I + v x x', \quad
        \theta \leftarrow \theta + (r - p) \Lambda^{-1} x

    The weight v is p, or, for a count above p, the logarithmic mean :math:`(r - p) / \log(r / p)`: a Newton step would
    otherwise move the predicted mean far beyond a large count.

    References
    ----------
    Our own, in analogy to ``"logistic-ts"``.
    """

    name = "log-linear-ts"
    made_of = regression.PoissonRegression, prediction.LinearThompson


@dataclass(frozen=True, kw_only=True)
class AffLinUCB(Preset):
    r"""LinUCB that sets its own memory: short when its predictions become worse, long otherwise. Use it if the effect
    of the features changes and you do not know how fast.

    Notes
    -----
    The score is that of ``"d-lin-ucb"``, with a forgetting factor :math:`\lambda = 1 - e^{-s}` per model. Its memory
    :math:`e^s` follows the gradient of the log-likelihood of each reward before it is learnt, divided by the root mean
    square of about the last 100 gradients:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - x' \theta) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    where the derivative is with respect to all past forgetting factors, as in the paper's equation (9): for one
    constant feature without a prior, :math:`x' \psi` is its slope. The recursions are in
    `memories.regression_kernels`. The data of a model fade by :math:`\lambda` per step, also while its arm is idle.

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work; the derivatives of recursive least squares are in Haykin (2002), Adaptive filter theory. The
    normalised step in the logarithm of the memory is our own.
    """

    name = "aff-lin-ucb"
    made_of = regression.AdaptiveRegression, prediction.WidthBound


@dataclass(frozen=True, kw_only=True)
class AffLinTS(Preset):
    r"""Thompson sampling with a linear regression that sets its own memory: short when its predictions become worse,
    long otherwise. Use it if the effect of the features changes and you do not know how fast.

    Notes
    -----
    The model is that of ``"aff-lin-ucb"``. The coefficients of a shared model are drawn once per step, those of
    separate models independently:

    .. math:: \tilde\theta \sim N\left( \theta, \; w^2 \Lambda^{-1} \Lambda_2 \Lambda^{-1} \right)

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, with the draws of Agrawal & Goyal (2013), Thompson sampling for contextual bandits with linear payoffs.
    """

    name = "aff-lin-ts"
    made_of = regression.AdaptiveRegression, prediction.LinearThompson
    described: ClassVar[dict[str, str]] = {"width": NOISE}


@dataclass(frozen=True, kw_only=True)
class AffLogisticTS(Preset):
    r"""Thompson sampling for rewards of 0 or 1, such as clicks, with a logistic regression that sets its own memory.
    Use it if the effect of the features changes and you do not know how fast.

    Rewards may be any numbers in [0, 1].

    Notes
    -----
    The model is that of ``"logistic-ts"`` with a forgetting factor :math:`\lambda = 1 - e^{-s}`, which follows the
    gradient of the log-likelihood of each reward as that of ``"aff-lin-ucb"``:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - p) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    The variance of a draw has the squared weights of ``"d-lin-ucb"``.

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for logistic models; the derivation is our own.
    """

    name = "aff-logistic-ts"
    made_of = regression.AdaptiveLogisticRegression, prediction.LinearThompson


@dataclass(frozen=True, kw_only=True)
class AffLogLinearTS(Preset):
    r"""Thompson sampling for counts, such as sales, with a Poisson regression that sets its own memory. Use it if the
    effect of the features changes and you do not know how fast.

    Notes
    -----
    The model is that of ``"log-linear-ts"`` with a forgetting factor :math:`\lambda = 1 - e^{-s}`, which follows the
    gradient of the log-likelihood of each count as that of ``"aff-lin-ucb"``:

    .. math:: s \leftarrow s + \eta \frac{g}{\sqrt{G}}, \quad g = (r - p) (1 - \lambda) \, x' \psi, \quad
        \psi = \frac{\partial \theta}{\partial \lambda}

    References
    ----------
    The contextual extension that Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, name as
    future work, for counts; the derivation is our own.
    """

    name = "aff-log-linear-ts"
    made_of = regression.AdaptivePoissonRegression, prediction.LinearThompson


@dataclass(frozen=True, kw_only=True)
class MixLinUCB(Preset):
    r"""The recommended policy for decisions with features: linear regressions with memories of several lengths, whose
    weights are learned. It needs no tuning, whether the effect of the features changes fast, slowly or never.

    The score is a randomised confidence bound. This is ``"auto"`` together with features. It needs no horizon, no
    number of changes, no discount and no scale of the rewards.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("lin-abrupt", arms=5)
    >>> runs = db.compare(["lin-ucb", "mix-lin-ucb"], environment, horizon=3000, replications=2, seed=1)
    >>> bool(runs["mix-lin-ucb"].total_regret.mean() < 0.5 * runs["lin-ucb"].total_regret.mean())
    True

    Notes
    -----
    Memory i = 0, ..., 5 forgets the share :math:`\rho_i = 0.1 \cdot 0.003^{i / 5}` of its data with each reward, so
    that it holds about 10, 32, 102, 326, 1043 and 3333 of them; memory 6 forgets nothing, :math:`\rho_6 = 0`. It is a
    ridge regression with coefficients :math:`\theta_i` and inverse precision matrix :math:`P_i`, whose prior,
    :math:`\alpha I` with the parameter `prior`, does not fade (`memories.linear_model`). All memories of a model have
    the same data: the rewards of one arm, or of all arms.

    For features x, after d idle steps, which are those between the latest decision whose reward the model knows and
    this one, its prediction is

    .. math::

        k_i = \frac{1}{1 + \kappa \rho_i d / K}, \quad
        \frac{1}{q_i} = \frac{k_i}{x' P_i x} + \frac{(1 - k_i) \alpha}{x' x}, \quad
        m_i = x' \theta_i \, \frac{k_i q_i}{x' P_i x} + \mu \frac{\alpha q_i}{x' x}

    with :math:`\kappa` the parameter `idle`. The prior mean :math:`\mu` of the prediction is 0 if all arms share their
    models, and else the mean of the rewards of all arms. This mean and the noise :math:`\sigma^2` are computed from
    discounted sums over all rewards y, of which :math:`y_0` is the newest, with the errors
    :math:`e = y - \sum_i w_i m_i` and variances :math:`q = \sum_i w_i q_i` of their predictions, with the weights
    before the reward:

    .. math::

        n = \sum_j 0.999^j, \quad \mu = \frac{1}{1 + n} \sum_j 0.999^j y_j, \quad
        \sigma^2 = \frac{1}{1 + n} \left( \sum_j 0.999^j \frac{e_j^2}{1 + q_j} + \frac{g}{1 + n} \right)

    The first guess g of the noise is the mean square :math:`\sum_j 0.999^j y_j^2 / n` of the rewards, or 1/4 as long as
    all of them are 0.

    When a reward y arrives, the weights of the memories, which all arms share and which are equal at first, are
    multiplied by the density of y and mixed with the share :math:`\beta`; d is the idle time at the decision:

    .. math:: w_i \leftarrow (1 - \beta) \frac{w_i f_i}{\sum_j w_j f_j} + \frac{\beta}{7}, \quad
        f_i = \frac{1}{\sqrt{1 + q_i}} \exp\left( - \frac{(y - m_i)^2}{2 \sigma^2 (1 + q_i)} \right)

    and each memory learns y after its data were discounted by :math:`k_i (1 - \rho_i)`. The sums over all rewards are
    updated last. With the sharpness s, the score of an arm is

    .. math:: m + \max(z, 0) \sqrt{v / s}, \quad m = \sum_i w_i m_i, \quad
        v = \sum_i w_i \left( m_i^2 + \sigma^2 q_i \right) - m^2

    where z is one standard normal number per step, the same for all arms: arms whose predictions come from the same
    model are then explored together. A feature vector of zeros has the prediction 0 with certainty.

    References
    ----------
    Our own. Weights that are multiplied by likelihoods and mixed: Herbster & Warmuth (1998), Tracking the best expert.
    Machine Learning 32. One random number for the confidence bounds of all arms: Vaswani, Mehrabian, Durand & Kveton
    (2020), Old dog learns new tricks: randomized UCB for bandit problems. AISTATS.
    """

    name = "mix-lin-ucb"
    made_of = regression_mixture.RegressionMixture, prediction.RandomBound()
