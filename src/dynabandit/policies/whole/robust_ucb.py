"""Robust UCB: Catoni's mean of the latest rewards of each arm, plus a bonus for uncertainty."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import pooled_moments
from dynabandit.policies.memories.pooled_moments import is_variance
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.validation import LARGEST_FACTOR, NORMAL, check_field, integer, number, set_fields

SLOTS = ("count", "mean", "own_variance")  # then the latest rewards, a ring buffer
COUNT, MEAN, OWN_VARIANCE = range(3)
RING = len(SLOTS)
NEWTON_STEPS = 12  # more than enough, because the median of the means of blocks is near the root
BLOCKS = 5  # of which the variance is the median, so that extreme rewards in two of them do not count


class Params(NamedTuple):
    window: int
    level: float
    exploration: float


class Moments(NamedTuple):
    """The mean and the variance of some rewards."""

    mean: float
    variance: float


@kernel
def block_moments(rewards: np.ndarray, first: int, spacing: int) -> Moments:
    """Return mean and variance of each `spacing`-th reward from `first` on; the variance of one reward is 0."""
    count = 0.0
    mean = 0.0
    squares = 0.0
    for i in range(first, rewards.size, spacing):
        count += 1.0
        deviation = rewards[i] - mean
        mean += deviation / count
        squares += deviation * (rewards[i] - mean)
    return Moments(mean, squares / (count - 1.0) if count > 1.0 else 0.0)


@kernel
def median_of_five(a: float, b: float, c: float, d: float, e: float) -> float:
    """Return the number with at most two smaller and at most two larger ones.

    Examples
    --------
    >>> median_of_five(9.0, 1.0, 4.0, 4.0, 7.0)
    4.0
    """
    five = (a, b, c, d, e)
    for one in five:
        below = 0
        above = 0
        for other in five:
            if other < one:
                below += 1
            elif other > one:
                above += 1
        if below <= 2 and above <= 2:
            return one
    return a


@kernel
def robust_moments(rewards: np.ndarray) -> Moments:
    """Return the medians of the means and of the variances of five blocks; with few rewards, the sample moments."""
    sample = block_moments(rewards, 0, 1)
    if rewards.size < 2 * BLOCKS:
        return sample
    a, b = block_moments(rewards, 0, BLOCKS), block_moments(rewards, 1, BLOCKS)
    c, d = block_moments(rewards, 2, BLOCKS), block_moments(rewards, 3, BLOCKS)
    e = block_moments(rewards, 4, BLOCKS)
    variance = median_of_five(a.variance, b.variance, c.variance, d.variance, e.variance)
    if not is_variance(variance, sample.mean):
        return sample
    return Moments(median_of_five(a.mean, b.mean, c.mean, d.mean, e.mean), variance)


@kernel
def catoni_mean(rewards: np.ndarray, moments: Moments, level: float) -> float:
    """Return the root theta of sum psi(alpha (x - theta)), by Newton's method from `moments.mean`.

    psi(x) = sign(x) log(1 + |x| + x^2 / 2) grows slowly beyond about 1, and alpha = sqrt(2 level / (n variance)).
    """
    if not is_variance(moments.variance, moments.mean):
        return moments.mean
    alpha = math.sqrt(2.0 * level / (rewards.size * moments.variance))
    theta = moments.mean
    for _ in range(NEWTON_STEPS):
        value = 0.0
        slope = 0.0
        for i in range(rewards.size):
            x = alpha * (rewards[i] - theta)
            size = abs(x)
            inside = 1.0 + size + 0.5 * size * size
            value += math.copysign(math.log(inside), x)
            slope += (1.0 + size) / inside
        theta += min(max(value / slope, -1.0), 1.0) / alpha  # far from the root, the slope is too small
    return theta


def check_confidence(confidence: float) -> float:
    """Return a confidence in (0, 1) as a float; with 1, alpha would be 0."""
    return number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return params.exploration * 2.0 * math.log(float(max(number - 1, 1)))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, shared = state.memory, state.shared
    count = memory[COUNT, arm]
    mean = pooled_moments.mean_of(shared, memory[MEAN, arm], count)
    variance = pooled_moments.variance_of(shared, memory[OWN_VARIANCE, arm])
    size = min(max(count, 1.0), float(params.window)) + pending_plays(state, arm)
    return mean + math.sqrt(step.common * variance / size)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory = state.memory
    memory[RING + int(memory[COUNT, arm]) % params.window, arm] = reward.value
    memory[COUNT, arm] += 1.0
    latest = memory[RING : RING + min(int(memory[COUNT, arm]), params.window), arm]
    moments = robust_moments(latest)
    memory[MEAN, arm] = catoni_mean(latest, moments, params.level)
    memory[OWN_VARIANCE, arm] = moments.variance if is_variance(moments.variance, moments.mean) else 0.0
    pooled_moments.add(state.shared, reward.value)


@dataclass(frozen=True, kw_only=True)
class RobustUCB(Policy):
    r"""UCB with an average that a few extreme rewards cannot dominate. Use it if rewards have heavy tails and no model
    of them fits.

    The average is Catoni's mean of the latest rewards of each arm, a window per arm. If the rewards are revenue, the
    model of `AffRevenueTS` may fit. All rewards times a constant give the same choices.

    Parameters
    ----------
    window
        How many of the latest rewards of an arm count.
    confidence
        The probability delta in Catoni's mean, in (0, 1): a small one makes the mean more robust.
    exploration
        The factor c of the bonus, at least 0; 4 in the reference for Catoni's mean, which is the bonus of `UCB` for
        rewards with variance 1/4.
    burn_in
        The number of plays of each arm before the policy decides, so that a variance can be estimated.

    Notes
    -----
    The score of an arm with n rewards in its window, at step t, with theta and v of `CatoniMean`:

    .. math:: \hat{\theta} + \sqrt{\frac{c \, v \log t^2}{n}}

    The reference assumes a known bound v of the variance, and lets delta decrease like 1 / t^2. Before the rewards of
    an arm differ, the variance of the rewards of all arms takes the place of v; an arm without rewards takes their
    mean. Plays whose rewards are pending count in n.

    Cost per step: O(K), and O(window) for the reward.

    References
    ----------
    Bubeck, Cesa-Bianchi & Lugosi (2013), Bandits with heavy tail. IEEE Transactions on Information Theory 59.
    """

    name = "robust-ucb"
    rewards = NORMAL
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 2
    window: int = 100
    confidence: float = 0.05
    exploration: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "window", integer, 1, 10**6)
        set_fields(self, confidence=check_confidence(self.confidence))
        check_field(self, "exploration", number, 0.0, LARGEST_FACTOR)

    def params(self, arms: int) -> Params:
        return Params(self.window, -math.log(self.confidence), self.exploration)

    def memory_size(self) -> int:
        return RING + self.window

    def shared_size(self) -> int:
        return pooled_moments.SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        count, mean, variance = column[:RING].tolist()
        if count == 0.0:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        return Belief(mean, variance, 1.0, min(count, float(self.window)))
