"""MIX-Revenue-TS: Thompson sampling from mixtures of memories, for rewards that are mostly 0 and otherwise amounts."""

import math
from dataclasses import dataclass

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta
from dynabandit.core.special_functions import LARGEST_EXPONENT
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import mix_weights
from dynabandit.policies.memories.mix_weights import COUNT, LAST_STEP, MEAN, MEMORIES, MixPolicy, Params
from dynabandit.policies.presets import mix_normal_ts, mix_thompson
from dynabandit.policies.presets.mix_normal_ts import FIRST
from dynabandit.validation import REVENUE

# The rows of the amounts, then those of the conversion; `shared` is divided in the same way
SLOTS = (
    *(f"amount_{slot}" for slot in mix_normal_ts.SLOTS),
    *(f"conversion_{slot}" for slot in mix_weights.SLOTS),
)
CONVERSION, SHARED_CONVERSION = len(mix_normal_ts.SLOTS), mix_normal_ts.NORMAL_SHARED_SIZE


@kernel
def conversion_part(state: PolicyState) -> PolicyState:
    """Return the state as that of a policy that learns only whether a reward is positive."""
    memory, shared = state.memory[CONVERSION:], state.shared[SHARED_CONVERSION:]
    return PolicyState(memory, shared, state.last_played, state.pending, state.models)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    mix_weights.start(state, arm, params)
    mix_weights.start(conversion_part(state), arm, params)


@kernel
def mean_conversion(state: PolicyState, number: int, params: Params) -> float:
    return mix_weights.mean_of_all(conversion_part(state), number, params)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    conversion, size = mix_weights.estimate_with_zeros(conversion_part(state), arm, step, params, step.common)
    drawn = beta(size * conversion, size * (1.0 - conversion), step.random, SCORE, step.number, arm)
    center, size = mix_weights.estimate(state, arm, step, params)
    if state.memory[COUNT + MEMORIES - 1, arm] == 0.0:  # no amount yet
        center = mix_normal_ts.mean_of_all(state, step.number, params)
    variance = mix_normal_ts.noise(state, arm)
    noise, _ = normal_pair(words(step.random, SECOND, step.number, arm, 0))
    # The mean of a log-normal amount
    amount = math.exp(min(center + 0.5 * variance, LARGEST_EXPONENT))
    return amount * max(drawn * math.exp(min(noise * math.sqrt(variance / size), LARGEST_EXPONENT)), conversion)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    is_positive = Reward(1.0 if reward.value > 0.0 else 0.0, reward.decided_at, reward.arrived_at, reward.features)
    learn_conversion(conversion_part(state), arm, is_positive, params)
    if reward.value > 0.0:
        if state.shared[FIRST] == 0.0:
            state.shared[FIRST] = reward.value
        logarithm = math.log(reward.value / state.shared[FIRST])  # so that a change of unit cancels
        mix_normal_ts.learn_value(
            state, arm, Reward(logarithm, reward.decided_at, reward.arrived_at, reward.features), params
        )
    # A play without an amount is no idle time
    state.memory[LAST_STEP, arm] = max(state.memory[LAST_STEP, arm], reward.decided_at)


learn_conversion = mix_weights.make_learn(mix_thompson.likelihood, mix_thompson.variance)


@dataclass(frozen=True, kw_only=True)
class MixRevenueTS(MixPolicy):
    r"""The recommended policy for revenue per visitor: mostly 0, and otherwise amounts of which a few are very large.
    Thompson sampling with memories of several lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for the product of a conversion and the mean of log-normal amounts, both with several memories. All rewards
    times a constant give the same choices.

    Parameters
    ----------
    strength
        The number of rewards, and of amounts, that the priors of each arm count as, in [1e-9, 1e6]. Their means are
        those of the latest rewards and amounts of all arms.
    share
        The share of its weights that an arm takes over from all arms after each of its rewards, in [0, 1].
    shared_share
        The share of the weights of all arms that is spread evenly after each reward, in [0, 1].
    sharpness
        The factor by which the draws are narrower than the posterior, as if there were so many times the rewards.
    surplus
        How much narrower the draws of an arm become with its share of the remembered rewards of all arms, at least 0.
    idle
        How much the memories of an idle arm forget, at least 0: in K steps as much as with this number of rewards.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("mix-revenue-ts", strength=2).rewards.description
    '0 or a number in [1e-100, 1e+100]'

    Notes
    -----
    `MixTS` learns whether a reward is positive: its mean is :math:`m_p`, and p is a draw from its Beta law.
    `MixNormalTS` learns the logarithms of the positive rewards: its mean is m, its noise v, and z is a draw from its
    normal law. The score is the mean reward with p and z, or with the means if that is larger:

    .. math:: \max\left( p \, e^{z + v / 2}, \; m_p \, e^{m + v / 2} \right), \quad p \sim \mathrm{Beta}\left( x_p m_p,
        \; x_p (1 - m_p) \right), \quad z \sim N\left( m, \; \frac{v}{x} \right)

    Amounts are measured in units of the first amount of any arm. For its amounts, too, an arm is idle only while it is
    not played.

    Pending plays of an arm without any reward count as rewards of 0.

    Cost per step: O(K), and 16 memories of the arm that was played.

    References
    ----------
    Our own, see `MixTS`.
    """

    name = "mix-revenue-ts"
    rewards = REVENUE
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=mean_conversion, params=Params)

    burn_in: int = 1
    strength: float = 0.5

    def shared_size(self) -> int:
        return SHARED_CONVERSION + mix_weights.SHARED_SIZE

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        conversion = super().belief(column[CONVERSION:], shared[SHARED_CONVERSION:])
        first = float(shared[FIRST])
        if first == 0.0:
            has_rewards = column[CONVERSION + COUNT + MEMORIES - 1] > 0.0
            return conversion._replace(mean=0.0 if has_rewards else math.nan, variance=0.0)
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        has_amounts = column[COUNT + MEMORIES - 1] > 0.0
        center = float(column[MEAN] if has_amounts else mix_normal_ts.mean_of_all(state, 1, self.params(1)))
        variance = float(mix_normal_ts.noise(state, 0))
        mean = conversion.mean * first * math.exp(min(center + 0.5 * variance, LARGEST_EXPONENT))
        second = conversion.mean * first**2 * math.exp(min(2.0 * center + 2.0 * variance, LARGEST_EXPONENT))
        return conversion._replace(mean=mean, variance=max(second - mean * mean, 0.0))
