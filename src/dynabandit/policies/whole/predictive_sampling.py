"""Predictive sampling: Thompson sampling that does not pay for information that will soon be out of date."""

import math
from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import SCORE, normal_pair, words
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.whole.kalman_thompson import KalmanTS, Params, drawn_drift, expected, noise


@kernel
def predictive_variance(mean: float, variance: float, change: float, persistence: float) -> float:
    """Return the variance of the mean at the next step, given the rewards of all later steps."""
    rest = noise(mean)
    square = persistence * persistence
    b = 1.0 - square - change / rest
    unknown = 0.5 * rest * (b + math.sqrt(b * b + 4.0 * change / rest))  # of the mean after the next, given them
    error = (change + unknown) / square
    return variance * variance / (variance + error) if variance > 0.0 else 0.0


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    drift = drawn_drift(state, step, params)
    mean, variance = expected(state, arm, drift, step, params)
    reduced = predictive_variance(mean, variance, params.drifts[drift], params.persistence)
    normal, _ = normal_pair(words(step.random, SCORE, step.number, arm, 0))
    return mean + normal * math.sqrt(reduced)


@dataclass(frozen=True, kw_only=True)
class PredictiveSampling(KalmanTS):
    r"""Thompson sampling for means that drift at random, which explores less where the result would soon be outdated.
    Use it for steady drift.

    The means are AR(1) processes, and the score is the expected next reward, given a draw of all later rewards.
    Thompson sampling draws a mean and explores as if the mean could be learned exactly. A mean that changes cannot:
    later rewards say little about its present value. Predictive sampling draws the rewards of all later steps, and
    scores an arm by its expected next reward given them. It learns as `KalmanTS` does, and its draws are narrower;
    without drift both policies are the same.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("predictive-sampling", drift=0.01).label
    'predictive-sampling(drift=0.01)'

    Notes
    -----
    With the predicted mean m and variance P of an arm, R = m (1 - m), persistence phi and drift sigma, the score is a
    draw from the normal distribution with the mean m and the variance

    .. math:: \frac{P^2}{P + E}, \quad E = \frac{\sigma^2 + U}{\phi^2}, \quad U = \frac{R}{2} \left( b + \sqrt{b^2 + 4
        \sigma^2 / R} \right), \quad b = 1 - \phi^2 - \sigma^2 / R

    U is the error variance of the mean after the next one, given the rewards from then on, the solution of 1 / U = 1 /
    R + phi^2 / (sigma^2 + U). We derived these formulas from the definition of the algorithm; the closed form of the
    paper could not be compared. Rewards are taken as normal and the drift is learned as in `KalmanTS`.

    Pending plays of an arm without any reward count as failures of its Beta prior.

    Cost per step: O(K), and one update per drift.

    References
    ----------
    Liu, Van Roy & Xu (2023), Nonstationary bandit learning via predictive sampling. AISTATS; the version for AR(1)
    bandits.
    """

    name = "predictive-sampling"
    functions = KalmanTS.functions._replace(score=score)
