"""Kalman-TS and predictive sampling: a Kalman filter of each arm's changing mean."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import SCORE, SECOND, normal_pair, uniform, words
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import checked_prior
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import LARGEST_FACTOR, check_field, number, set_fields

SLOTS = ("decided_at",)  # the step of the arm's latest decision with a reward; then mean and variance for each drift
DECIDED_AT = 0
FILTERS = len(SLOTS)
# shared: for each drift the logarithm of its weight, then its share of all weights
DRIFTS = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)  # equally likely a priori, if the drift is learned
LEARNT = "learnt"
SMALLEST_VARIANCE = 1e-300  # variances may underflow to 0
SMALLEST_MEAN = 0.01  # for the variance of a 0/1 reward, which is 0 if its mean is 0 or 1


class Params(NamedTuple):
    """The parameters of Kalman-TS and of predictive sampling."""

    center: float
    variance: float
    persistence: float
    drifts: np.ndarray  # variances of the change per step


@kernel
def inner_mean(mean: float) -> float:
    """Return a mean that is not too close to 0 and 1."""
    return min(max(mean, SMALLEST_MEAN), 1.0 - SMALLEST_MEAN)


@kernel
def noise(mean: float) -> float:
    """Return the variance of a 0/1 reward."""
    p = inner_mean(mean)
    return p * (1.0 - p)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    drifts = params.drifts.size
    state.memory[DECIDED_AT, arm] = 0.0
    for drift in range(drifts):
        state.memory[FILTERS + 2 * drift, arm] = params.center
        state.memory[FILTERS + 2 * drift + 1, arm] = params.variance
    shares = 0.0
    for drift in range(drifts):
        shares += state.shared[drifts + drift]
    if shares == 0.0:  # an arm that comes later keeps what all arms have learnt
        for drift in range(drifts):
            state.shared[drifts + drift] = 1.0 / drifts


@kernel
def predict(state: PolicyState, arm: int, drift: int, number: int, params: Params) -> tuple[float, float]:
    """Return mean and variance of an arm's mean at a step, under one of the drifts."""
    row = FILTERS + 2 * drift
    mean, variance, change = state.memory[row, arm], state.memory[row + 1, arm], params.drifts[drift]
    steps = max(float(number) - state.memory[DECIDED_AT, arm], 0.0)
    if params.persistence == 1.0:
        return mean, min(variance + steps * change, params.variance)
    kept = params.persistence**steps
    square = kept * kept
    widened = square * variance + change * (1.0 - square) / (1.0 - params.persistence * params.persistence)
    return params.center + kept * (mean - params.center), min(widened, params.variance)


@kernel
def expected(state: PolicyState, arm: int, drift: int, step: Step, params: Params) -> tuple[float, float]:
    """Return mean and variance of an arm's mean at a decision, under one of the drifts.

    Without a reward they are those of the Beta prior, in which pending plays count as failures.
    """
    known = params.variance - state.memory[FILTERS + 1, arm]  # every reward makes the variance smaller
    zeros = assumed_zeros(state, arm, known)
    if zeros == 0.0:
        return predict(state, arm, drift, step.number, params)
    size = params.center * (1.0 - params.center) / params.variance - 1.0  # a + b of the prior
    mean = params.center * size / (size + zeros)
    return mean, mean * (1.0 - mean) / (size + zeros + 1.0)


@kernel
def drawn_drift(state: PolicyState, step: Step, params: Params) -> int:
    """Draw a drift by its weight, the same for all arms of a step."""
    last = params.drifts.size - 1
    if last == 0:
        return 0
    left = uniform(step.random, SECOND, step.number, 0)
    for drift in range(last):
        left -= state.shared[last + 1 + drift]
        if left < 0.0:
            return drift
    return last


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    mean, variance = expected(state, arm, drawn_drift(state, step, params), step, params)
    normal, _ = normal_pair(words(step.random, SCORE, step.number, arm, 0))
    return mean + normal * math.sqrt(variance)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, drifts, value = state.memory, state.shared, params.drifts.size, reward.value
    for drift in range(drifts):
        mean, variance = predict(state, arm, drift, reward.decided_at, params)
        p = inner_mean(mean)
        shared[drift] += math.log(value * p + (1.0 - value) * (1.0 - p))
        gain = variance / (variance + noise(mean))
        memory[FILTERS + 2 * drift, arm] = mean + gain * (value - mean)
        memory[FILTERS + 2 * drift + 1, arm] = (1.0 - gain) * variance
    memory[DECIDED_AT, arm] = max(memory[DECIDED_AT, arm], float(reward.decided_at))
    update_shares(shared, drifts)


@kernel
def update_shares(shared: np.ndarray, drifts: int) -> None:
    """Compute the share of each drift; the largest weight becomes 1, so that nothing underflows in a long run."""
    largest, total = -math.inf, 0.0
    for drift in range(drifts):
        largest = max(largest, shared[drift])
    for drift in range(drifts):
        shared[drift] -= largest
        shared[drifts + drift] = math.exp(shared[drift])
        total += shared[drifts + drift]
    for drift in range(drifts):
        shared[drifts + drift] /= total


@dataclass(frozen=True, kw_only=True)
class KalmanTS(Policy):
    r"""Thompson sampling for means that drift at random: the longer an arm was not played, the less certain is its
    estimate. Use it for steady drift; it reacts slowly to rare large changes.

    A Kalman filter estimates the mean of each arm as a Gaussian random walk or an AR(1) process. The uncertainty about
    an arm grows while it is idle, up to that of its prior. Rewards between 0 and 1 are taken as normal with the
    variance of a 0/1 reward. Time is counted in steps; a late reward is learned as if the arm had not changed since the
    decision.

    Parameters
    ----------
    drift
        The standard deviation of the change of a mean per step, at least 0. ``"learnt"`` estimates it from the rewards
        of all arms: 0, 0.0003, 0.001, 0.003, 0.01 or 0.03, with equal prior probabilities.
    persistence
        The factor in (0, 1] by which a mean keeps its distance from the prior mean at each step; 1 is a random walk,
        smaller numbers are AR(1) processes.
    prior
        A pair of numbers in [1e-12, 1e12]: the prior of a mean has the mean and the variance of this Beta distribution.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("case-3", arms=10)
    >>> runs = db.compare(["kalman-ts", "ts"], environment, horizon=1000, replications=3, seed=1)
    >>> runs["kalman-ts"].total_regret.mean() < runs["ts"].total_regret.mean()
    np.True_

    Notes
    -----
    With prior mean c and variance V, persistence phi and drift sigma, mean m and variance P of an arm change by

    .. math:: m \leftarrow c + \phi (m - c), \quad P \leftarrow \min(\phi^2 P + \sigma^2, \; V) \quad \text{at each
        step,}

    .. math:: m \leftarrow m + \frac{P}{P + R} (y - m), \quad P \leftarrow \frac{P R}{P + R}, \quad R = m (1 - m) \quad
        \text{with its reward } y

    (in R, the mean is kept in [0.01, 0.99]). The score is a draw from the normal distribution with the predicted m and
    P. If the drift is learned, there is a filter for each drift; its weight is the product of the predictive
    probabilities of all rewards, m for a success and 1 - m for a failure. A step draws one drift by weight for all
    arms.

    Granmo & Berg treat normal rewards with known variances. The variance R of 0/1 rewards, the bound V and the learning
    of the drift are ours.

    Pending plays of an arm without any reward count as failures of its Beta prior.

    Cost per step: O(K), and one update per drift.

    References
    ----------
    Granmo & Berg (2010), Solving non-stationary bandit problems by random sampling from sibling Kalman filters.
    IEA/AIE.
    Liu, Van Roy & Xu (2023), Nonstationary bandit learning via predictive sampling. AISTATS; for AR(1) bandits.
    """

    name = "kalman-ts"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, params=Params)

    burn_in: int = 0
    drift: float | str = LEARNT
    persistence: float = 1.0
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.drift, str):
            if self.drift != LEARNT:
                raise ValueError(f"drift must be a number of at least 0 or 'learnt', got {self.drift!r}")
        else:
            check_field(self, "drift", number, 0.0, LARGEST_FACTOR)
        check_field(self, "persistence", number, 0.0, 1.0, open_low=True)
        set_fields(self, prior=checked_prior(self.prior))
        if not self.params(1).variance > 0.0:
            raise ValueError(f"prior must have a mean that a float can tell from 1, got {self.prior}")

    def _drifts(self) -> tuple[float, ...]:
        return DRIFTS if isinstance(self.drift, str) else (self.drift,)

    def params(self, arms: int) -> Params:
        a, b = self.prior
        center = a / (a + b)
        variance = center * (1.0 - center) / (a + b + 1.0)
        return Params(center, variance, self.persistence, np.square(self._drifts()))

    def memory_size(self) -> int:
        return FILTERS + 2 * len(self._drifts())

    def shared_size(self) -> int:
        return 2 * len(self._drifts())

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return an arm's mean at its latest reward, averaged over the drifts.

        The effective size is the number of rewards that would leave this variance, and the forgetting factor the share
        of the precision that is left after one step.
        """
        params = self.params(1)
        drifts = params.drifts.size
        filters = column[FILTERS:].reshape(drifts, 2)
        shares = shared[drifts : 2 * drifts]
        mean, variance = shares @ filters
        predicted = np.minimum(self.persistence**2 * filters[:, 1] + params.drifts, params.variance)
        kept = float(shares @ np.minimum(filters[:, 1] / np.maximum(predicted, SMALLEST_VARIANCE), 1.0))
        size = float(noise(mean) / max(variance, SMALLEST_VARIANCE))
        return Belief(float(mean), float(mean * (1.0 - mean)), kept, size)


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
def predictive_score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
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
    functions = KalmanTS.functions._replace(score=predictive_score)
