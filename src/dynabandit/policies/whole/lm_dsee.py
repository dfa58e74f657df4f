"""LM-DSEE: epochs of exploration and exploitation in a fixed order; each epoch forgets the earlier ones."""

import bisect
import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies import forced_exploration
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import LARGEST_FACTOR, check_field, number

TOTAL, PLAYS = (sample_mean_policy.SLOTS.index(name) for name in ("total", "plays"))
EPOCH, BEGIN = range(2)  # shared: the number of the epoch whose rewards are in memory, and the step before its first
LONGEST = 10**7  # of a first epoch
LEAST = 1e-8  # of min_gap, a and b: with smaller ones the first epoch would be too long


class Params(NamedTuple):
    arms: int
    gamma: float
    rho: float
    a: float
    b: float
    length: float


@kernel
def plays_per_arm(epoch: float, params: Params) -> int:
    """Return L(k), how often an epoch explores each arm."""
    return math.ceil(params.gamma * math.log(epoch**params.rho * params.length * params.b))


@kernel
def epoch_at(state: PolicyState, step: int, params: Params) -> tuple[float, int]:
    """Return the number of the epoch of a step and the step before it, starting from the epoch in memory."""
    epoch, begin = state.shared[EPOCH], int(state.shared[BEGIN])
    while True:
        steps = math.ceil(params.a * epoch**params.rho * params.length)
        end = begin + max(steps, params.arms * plays_per_arm(epoch, params))
        if step <= end:
            return epoch, begin
        epoch += 1.0
        begin = end


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    sample_mean_policy.start(state, arm, params)
    if state.shared[EPOCH] == 0.0:
        state.shared[EPOCH] = 1.0


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    epoch, begin = epoch_at(state, number, params)
    place = number - 1 - begin
    explores = place < params.arms * plays_per_arm(epoch, params)
    return -1.0 - float(place % params.arms) if explores else forced_exploration.NOT_FORCED


@kernel
def explored_mean(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    plays = state.memory[PLAYS, arm]
    return state.memory[TOTAL, arm] / plays if plays > 0.0 else -1.0


score = forced_exploration.make_score(explored_mean)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, decided_at = state.memory, state.shared, reward.decided_at
    if decided_at <= int(shared[BEGIN]):
        return  # a late reward of an earlier epoch
    epoch, begin = epoch_at(state, decided_at, params)
    if epoch > shared[EPOCH]:
        for other in range(memory.shape[1]):
            sample_mean_policy.start(state, other, params)
        shared[EPOCH] = epoch
        shared[BEGIN] = begin
    if decided_at - begin <= params.arms * plays_per_arm(epoch, params):
        sample_mean_policy.observe(state, arm, reward.value)


def first_epoch(arms: int, gamma: float, a: float, b: float) -> int:
    """Return l, the length of the first epoch: the first one from K gamma / a on that has room for its exploration."""
    length = max(math.ceil(arms * gamma / a), math.floor(1.0 / b) + 1)  # so that the logarithm is positive
    beyond = LONGEST + 1
    if length <= LONGEST:  # from here on a l - K gamma log(l b) grows, and where it is negative there is no room
        tried = range(length, beyond)
        length += bisect.bisect_left(tried, 0.0, key=lambda length: a * length - arms * gamma * math.log(length * b))
    while length < beyond and arms * math.ceil(gamma * math.log(length * b)) > a * length:
        length += 1
    if length > LONGEST:
        raise ValueError(f"min_gap or a must be larger: with {arms} arms the first epoch has more than {LONGEST} steps")
    return length


@dataclass(frozen=True, kw_only=True)
class LMDSEE(SampleMeanPolicy):
    r"""LM-DSEE: explore all arms equally often, play the best one for a while, and start anew, in ever longer epochs. A
    baseline of the literature for abrupt changes.

    Exploration plays the arms in turn. The order of exploration and exploitation does not depend on rewards, and an
    epoch uses only the rewards of its own exploration. Arms with equal means are played in random order. Late rewards
    count if their epoch is not over. `Bandit.arms` shows the means of the exploration of the current epoch: NaN for an
    arm without rewards in it.

    Parameters
    ----------
    min_gap
        The smallest difference between the best mean and another one, in [1e-8, 1]; the paper's gamma is 2 /
        min_gap^2.
    nu
        The exponent of the number of changes, about t^nu in t steps, in [0, 1); by default their number is bounded.
    a
        The paper's a, in [1e-8, 1e12]: the factor of the length of an epoch.
    b
        The paper's b, in [1e-8, 1]: a factor in the logarithm of the exploration.
    burn_in
        The number of plays of each arm before the policy decides; exploration needs none.

    Notes
    -----
    Epoch k has ceil(a k^rho l) steps, of which each of the K arms gets L(k), with

    .. math:: L(k) = \lceil \gamma \log(k^\rho \, l \, b) \rceil, \quad \rho = \frac{1 - \nu}{1 + \nu}, \quad \gamma =
        \frac{2}{\Delta^2}

    and l the first number from K gamma / a on with room for the exploration of the first epoch, K L(1) <= a l. (From
    there on, epochs grow faster than their exploration. The implementation in SMPyBandits takes the smallest number
    with room, near 1 / b, and then has none for exploitation.) Otherwise the rule and the defaults of `min_gap`, `a`
    and `b` are those of SMPyBandits; the text of the paper could not be compared.

    Cost per step: O(K).

    References
    ----------
    Wei & Srivastava (2018), On abruptly-changing and slowly-varying multiarmed bandit problems. arXiv 1802.08380.
    """

    name = "lm-dsee"
    slots = sample_mean_policy.SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 0
    min_gap: float = 0.5
    nu: float = 0.0
    a: float = 1.0
    b: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "min_gap", number, LEAST, 1.0)
        check_field(self, "nu", number, 0.0, 1.0, open_high=True)
        check_field(self, "a", number, LEAST, LARGEST_FACTOR)
        check_field(self, "b", number, LEAST, 1.0)

    def params(self, arms: int) -> Params:
        gamma, rho = 2.0 / self.min_gap**2, (1.0 - self.nu) / (1.0 + self.nu)
        return Params(arms, gamma, rho, self.a, self.b, float(first_epoch(arms, gamma, self.a, self.b)))

    def shared_size(self) -> int:
        return 2
