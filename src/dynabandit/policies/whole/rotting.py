"""RAW-UCB and FEWA, for means that only fall: they compare means over windows of the latest 1, 2, 4, ... rewards.

An arm has O(log n) numbers. A window of 2^j rewards moves on whenever 2^(j-1) new ones have come. The sum after the
next move starts with these rewards, which are the window of half the length at that time.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, number

SLOTS = sample_mean_policy.SLOTS
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
WINDOWS = 32  # of 1 to 2^31 rewards
CURRENT = len(SLOTS)  # from this row on: the sum of each window
NEXT = CURRENT + WINDOWS  # from this row on: the part that is known of the sum after the next move
SIZE = NEXT + WINDOWS
DEPTH = 0  # shared: how many windows the filter of FEWA used
THRESHOLDS = 1  # from here on: the smallest mean that passed, for each window
FILTERED = 2.0**49  # more than the number of plays


class Params(NamedTuple):
    alpha: float
    sigma: float


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    """Add a reward to the sums of an arm and to its windows."""
    memory, value = state.memory, reward.value
    sums = sample_mean_policy.observe(state, arm, value)
    plays = int(sums.plays)
    memory[CURRENT, arm] = value
    half, place = 1, 1
    while 2 * half <= plays and place < WINDOWS:
        if plays == 2 * half:  # the window is full for the first time
            memory[NEXT + place, arm] = sums.total
        else:
            memory[NEXT + place, arm] += value
        if plays % half == 0:
            memory[CURRENT + place, arm] = memory[NEXT + place, arm]
            memory[NEXT + place, arm] = memory[CURRENT + place - 1, arm]
        half *= 2
        place += 1


@kernel
def window_mean(memory: np.ndarray, arm: int, place: int) -> float:
    """Return the mean of the window of 2^place rewards, which must be full."""
    return memory[CURRENT + place, arm] / float(1 << place)


@dataclass(frozen=True, kw_only=True)
class RottingPolicy(SampleMeanPolicy):
    """What RAW-UCB and FEWA share: dyadic windows and a confidence level.

    Parameters
    ----------
    sigma
        The sub-Gaussian parameter of the rewards, positive: 1/2 is valid for all rewards in [0, 1].
    """

    slots = SLOTS

    burn_in: int = 1
    alpha: float = 1.4
    sigma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "alpha", number, 0.0, math.inf, open_low=True)
        check_field(self, "sigma", number, 0.0, math.inf, open_low=True)

    def params(self, arms: int) -> Params:
        return Params(self.alpha, self.sigma)

    def memory_size(self) -> int:
        return SIZE


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return params.sigma * math.sqrt(2.0 * params.alpha * math.log(float(number)))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    plays = memory[PLAYS, arm]
    if plays + pending == 0.0:
        return math.inf
    if plays == 0.0:
        return expected_mean(math.inf, pending) + step.common / math.sqrt(float(pending))
    smallest = math.inf
    length, place = 1.0, 0
    while length <= plays and place < WINDOWS:
        smallest = min(smallest, window_mean(memory, arm, place) + step.common / math.sqrt(length + pending))
        length *= 2.0
        place += 1
    return smallest


@dataclass(frozen=True, kw_only=True)
class RawUCB(RottingPolicy):
    r"""RAW-UCB: judge each arm by that window of its latest rewards which promises the least. Use it for arms that wear
    out; it does not notice arms that become better.

    An arm is worth the smallest upper confidence bound over windows of its latest rewards. If means only fall, with the
    plays of an arm (rested) or with time (restless), the mean of the latest h rewards is at least the current mean,
    apart from noise. Each window therefore gives an upper confidence bound, and the smallest one is the best: short
    windows have little bias, long ones little noise.

    This is the efficient version of the paper, with windows of 1, 2, 4, ... rewards. A window of 2^j rewards moves on
    whenever 2^(j-1) new rewards have come. While rewards are pending, they count as further rewards of every window.

    Parameters
    ----------
    alpha
        How fast the confidence level 2 / t^alpha falls, positive. The theory of the paper asks for 4 or more; its
        experiments use 1.4.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("rested-drops", arms=5)
    >>> runs = db.compare(["raw-ucb", "ucb"], environment, horizon=2000, replications=5, seed=1)
    >>> bool(runs["raw-ucb"].total_regret.mean() < runs["ucb"].total_regret.mean())
    True

    Notes
    -----
    The score of an arm at step t, with the mean of its latest h rewards:

    .. math:: \min_{h \in \{1, 2, 4, \ldots\}} \; \bar{x}^{(h)} + \sqrt{\frac{2 \sigma^2 \alpha \log t}{h}}

    When the windows move is our reading of the paper's efficient update. `Bandit.arms` shows the mean of all rewards.

    Cost per step: O(K log t), memory: O(K log t); here 64 numbers per arm.

    References
    ----------
    Seznec, Ménard, Lazaric & Valko (2020), A single algorithm for both restless and rested rotting bandits. AISTATS.
    """

    name = "raw-ucb"
    functions = PolicyFunctions(start=sample_mean_policy.start, score=score, learn=learn, common=common, params=Params)


@kernel
def passed(state: PolicyState, arm: int) -> int:
    """Return how many windows of the filter an arm has passed; a window for which it has too few rewards passes."""
    place = 0
    length = 1.0
    depth = int(state.shared[DEPTH])
    while place < depth and (
        state.memory[PLAYS, arm] < length or window_mean(state.memory, arm, place) >= state.shared[THRESHOLDS + place]
    ):
        place += 1
        length *= 2.0
    return place


@kernel
def score_by_filter(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    place = passed(state, arm)
    if place < int(state.shared[DEPTH]):
        return place - FILTERED
    return -(state.memory[PLAYS, arm] + pending_plays(state, arm))


@kernel
def learn_and_filter(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    learn(state, arm, reward, params)
    filter_arms(state, 2.0 * params.sigma * math.sqrt(2.0 * params.alpha * math.log(reward.arrived_at + 1.0)))


@kernel
def filter_arms(state: PolicyState, width: float) -> None:
    """Write the thresholds for the next decision; the filter ends at the first window that an arm left cannot fill."""
    memory, shared = state.memory, state.shared
    shared[DEPTH] = 0.0
    length = 1.0
    for place in range(WINDOWS):
        largest = -math.inf
        for arm in range(memory.shape[1]):
            if passed(state, arm) == place:
                if memory[PLAYS, arm] + pending_plays(state, arm) < length:
                    return
                if memory[PLAYS, arm] >= length:
                    largest = max(largest, window_mean(memory, arm, place))
        shared[THRESHOLDS + place] = largest - width / math.sqrt(length)
        shared[DEPTH] = place + 1.0
        length *= 2.0


@dataclass(frozen=True, kw_only=True)
class Fewa(RottingPolicy):
    r"""FEWA: drop the arms whose latest rewards are clearly worse than others, and play the least played one left. Use
    it for arms that wear out; it does not notice arms that become better.

    If means only fall, an arm whose mean over some window is clearly below the largest one is not the best. The filter
    starts with the latest reward of each arm and doubles the window until an arm that is left has too few rewards;
    among the arms that are left, the one with the fewest plays is chosen.

    This is the efficient version of the paper; `RawUCB` describes its windows. While rewards are pending, they count as
    plays, and an arm passes the windows that only they would fill.

    Parameters
    ----------
    alpha
        How fast the confidence level t^-alpha falls, positive. The theory of the paper asks for 4 or more; its
        experiments use 0.06.

    Notes
    -----
    An arm is left after the window h if

    .. math:: \bar{x}^{(h)}(a) \geq \max_{b \text{ left}} \bar{x}^{(h)}(b) - 2 \sqrt{\frac{2 \sigma^2 \alpha \log t}{h}}

    The thresholds are computed when a reward arrives, for the step that follows.

    Cost per step: O(K log^2 t), memory: O(K log t); here 64 numbers per arm.

    References
    ----------
    Seznec, Locatelli, Carpentier, Lazaric & Valko (2019), Rotting bandits are no harder than stochastic ones. AISTATS.
    """

    name = "fewa"
    functions = PolicyFunctions(
        start=sample_mean_policy.start, score=score_by_filter, learn=learn_and_filter, params=Params
    )

    alpha: float = 0.06

    def shared_size(self) -> int:
        return THRESHOLDS + WINDOWS
