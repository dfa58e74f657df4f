"""MIX-Revenue-TS: mixtures of memories for a conversion and for the mean of log-normal amounts."""

import math
from dataclasses import dataclass, fields

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.docstrings import descriptions_of
from dynabandit.core.draws import beta
from dynabandit.core.special_functions import LARGEST_EXPONENT
from dynabandit.core.streams import SCORE, SECOND, normal_pair, words
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import mixture
from dynabandit.policies.memories.mixture import COUNT, FIRST, LAST_STEP, MEAN, MEMORIES, Params
from dynabandit.policies.part import Setting
from dynabandit.validation import REVENUE, set_fields

# The rows of the amounts, then those of the conversion; `shared` is divided in the same way
REVENUE_SLOTS = (
    *(f"amount_{slot}" for slot in mixture.NORMAL_SLOTS),
    *(f"conversion_{slot}" for slot in mixture.SLOTS),
)
CONVERSION, SHARED_CONVERSION = len(mixture.NORMAL_SLOTS), mixture.NORMAL_SHARED_SIZE
learn_conversion = mixture.Mixture.kernels.learn


@kernel
def conversion_part(state: PolicyState) -> PolicyState:
    """Return the state as that of a policy that learns only whether a reward is positive."""
    memory, shared = state.memory[CONVERSION:], state.shared[SHARED_CONVERSION:]
    return PolicyState(memory, shared, state.last_played, state.pending, state.models)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    mixture.start(state, arm, params)
    mixture.start(conversion_part(state), arm, params)


@kernel
def mean_conversion(state: PolicyState, number: int, params: Params) -> float:
    return mixture.mean_of_all(conversion_part(state), number, params)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    conversion, size = mixture.mean_and_size_with_zeros(conversion_part(state), arm, step, params, step.common)
    drawn = beta(size * conversion, size * (1.0 - conversion), step.random, SCORE, step.number, arm)
    center, size = mixture.mean_and_size(state, arm, step, params)
    if state.memory[COUNT + MEMORIES - 1, arm] == 0.0:  # no amount yet
        center = mixture.mean_of_numbers(state, step.number, params)
    variance = mixture.normal_noise(state, arm)
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
        mixture.learn_difference(
            state, arm, Reward(logarithm, reward.decided_at, reward.arrived_at, reward.features), params
        )
    # A play without an amount is no idle time
    state.memory[LAST_STEP, arm] = max(state.memory[LAST_STEP, arm], reward.decided_at)


@dataclass(frozen=True, kw_only=True)
class MixRevenueTS(Policy):
    r"""The recommended policy for revenue per visitor: mostly 0, and otherwise amounts of which a few are very large.
    Thompson sampling with memories of several lengths for each arm, whose weights are learned; it needs no tuning.

    `MixTS` for the product of a conversion and the mean of log-normal amounts, both with several memories. All rewards
    times a constant give the same choices.

    Parameters
    ----------
    strength
        The number of rewards, and of amounts, that the priors of each arm count as, in [1e-9, 1e6]. Their means are
        those of the latest rewards and amounts of all arms.

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
    slots = REVENUE_SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=mean_conversion, params=Params)

    burn_in: int = 1
    strength: float = 0.5
    share: float = 0.005
    shared_share: float = 0.0001
    sharpness: float = 2.0
    surplus: float = 0.1
    idle: float = 0.2

    @classmethod
    def described_parameters(cls) -> dict[str, str]:
        return descriptions_of(mixture.Mixture) | super().described_parameters()

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **self._mixture().parameters)  # which checks them

    def _mixture(self) -> mixture.Mixture:
        """Return the mixture of the conversion; that of the amounts has the same parameters."""
        names = (one.name for one in fields(mixture.Mixture))
        return mixture.Mixture(**{name: getattr(self, name) for name in names})

    def params(self, arms: int) -> Params:
        return self._mixture().params(Setting(arms))

    def shared_size(self) -> int:
        return SHARED_CONVERSION + mixture.SHARED_SIZE

    def forgetting(self, column: np.ndarray) -> float:
        return self._mixture().forgetting(column, Setting(1))

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        conversion = self._mixture().belief(column[CONVERSION:], shared[SHARED_CONVERSION:], Setting(1))
        first = float(shared[FIRST])
        if first == 0.0:
            has_rewards = column[CONVERSION + COUNT + MEMORIES - 1] > 0.0
            return conversion._replace(mean=0.0 if has_rewards else math.nan, variance=0.0)
        state = PolicyState(column[:, np.newaxis], shared, np.zeros(1))
        has_amounts = column[COUNT + MEMORIES - 1] > 0.0
        center = float(column[MEAN] if has_amounts else mixture.mean_of_numbers(state, 1, self.params(1)))
        variance = float(mixture.normal_noise(state, 0))
        mean = conversion.mean * first * math.exp(min(center + 0.5 * variance, LARGEST_EXPONENT))
        second = conversion.mean * first**2 * math.exp(min(2.0 * center + 2.0 * variance, LARGEST_EXPONENT))
        return conversion._replace(mean=mean, variance=max(second - mean * mean, 0.0))
