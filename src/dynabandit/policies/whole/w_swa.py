"""wSWA: the mean of the latest M rewards of each arm, with M for a horizon that doubles."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import sample_mean
from dynabandit.policies.memories.window import retract
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import LARGEST_FACTOR, check_field, integer, number

SLOTS = (*sample_mean_policy.SLOTS, "rewards")
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")  # of the window
REWARDS = SLOTS.index("rewards")  # how many rewards the arm has in this run
RING = len(SLOTS)  # from this row on: the rewards of the window
SEEN, STEPS, WINDOW = range(3)  # shared: the rewards of this run, its length, and M
FIRST_RUN = 2.0
UNFINISHED = 1.0  # more than the mean of an arm whose window is full, together with the plays that are missing


class Params(NamedTuple):
    arms: float
    alpha: float
    sigma: float
    capacity: int


@kernel
def window_of(steps: float, params: Params) -> float:
    """Return M for a run of so many steps, at least 1 and at most the capacity."""
    cube = 16.0 * params.sigma * params.sigma * steps * steps * math.log(math.sqrt(2.0) * steps)
    scale = (cube / (params.arms * params.arms)) ** (1.0 / 3.0)
    return max(float(math.ceil(min(params.alpha * scale, float(params.capacity)))), 1.0)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    sample_mean_policy.start(state, arm, params)
    if state.shared[STEPS] == 0.0:
        state.shared[STEPS] = FIRST_RUN
        state.shared[WINDOW] = window_of(FIRST_RUN, params)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    plays = memory[PLAYS, arm]
    if plays + pending < state.shared[WINDOW]:
        return UNFINISHED + (state.shared[WINDOW] - plays - pending)
    return memory[TOTAL, arm] / plays if plays > 0.0 else expected_mean(math.inf, pending)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    window, rewards = int(shared[WINDOW]), int(memory[REWARDS, arm])
    place = RING + rewards % window
    if rewards >= window:
        sample_mean.store(memory, arm, retract(sample_mean.load(memory, arm), memory[place, arm]))
    sample_mean_policy.observe(state, arm, reward.value)
    memory[place, arm] = reward.value
    memory[REWARDS, arm] += 1.0
    shared[SEEN] += 1.0
    if shared[SEEN] >= shared[STEPS]:
        shared[SEEN] = 0.0
        shared[STEPS] *= 2.0
        shared[WINDOW] = window_of(shared[STEPS], params)
        for other in range(memory.shape[1]):
            start(state, other, params)


@dataclass(frozen=True, kw_only=True)
class WSWA(SampleMeanPolicy):
    r"""wSWA: play each arm some times, then the arm with the best average of its latest rewards. The first policy for
    arms that wear out as they are played; RAW-UCB and FEWA do not have to start anew.

    Each arm is played M times, and its latest M rewards count. M suits a horizon T. As the horizon is unknown, the
    policy runs for 2, 4, 8, ... rewards, each time from scratch, which is expensive if the arms have dropped by then.

    While rewards are pending, they count as plays. `Bandit.arms` shows the means of the current run: NaN for an arm
    without rewards in it.

    Parameters
    ----------
    alpha
        A factor for M, in (0, 1e12]; 0.2 in the experiments of the paper.
    sigma
        The sub-Gaussian parameter of the rewards, in (0, 1e12]: 1/2 is valid for all rewards in [0, 1].
    capacity
        The largest M, which bounds the memory.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("w-swa", arms=["a", "b"], seed=1)
    >>> for _ in range(4):
    ...     bandit.reward(bandit.choose(), 1)
    >>> sum(arm.plays for arm in bandit.arms.values())
    4

    Notes
    -----
    In a run of T steps with K arms:

    .. math:: M = \left\lceil \alpha \, 4^{2/3} \sigma^{2/3} K^{-2/3} T^{2/3} \ln^{1/3} (\sqrt{2} \, T) \right\rceil

    Without `capacity` the paper has no bound on M: 1000 is reached in runs of 100,000 steps with 2 arms.

    Cost per step: O(K), memory: O(K x capacity).

    References
    ----------
    Levine, Crammer & Mannor (2017), Rotting bandits. NIPS.
    """

    name = "w-swa"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, params=Params)

    alpha: float = 0.2
    sigma: float = 0.5
    capacity: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "alpha", number, 0.0, LARGEST_FACTOR, open_low=True)
        check_field(self, "sigma", number, 0.0, LARGEST_FACTOR, open_low=True)
        check_field(self, "capacity", integer, 1, LARGEST_STEP)

    def params(self, arms: int) -> Params:
        return Params(float(arms), self.alpha, self.sigma, self.capacity)

    def memory_size(self) -> int:
        return RING + self.capacity

    def shared_size(self) -> int:
        return 3
