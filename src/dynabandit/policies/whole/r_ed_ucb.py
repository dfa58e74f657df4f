"""R-ed-UCB: extends the recent trend of each arm, for rested arms whose means rise."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.validation import check_field, integer, number

# Sums over the latest h rewards (recent) and the h before them (older), plain and weighted by the number of the play
SLOTS = ("total", "plays", "h", "recent", "older", "weighted_recent", "weighted_older")
TOTAL, PLAYS, H, RECENT, OLDER, WEIGHTED_RECENT, WEIGHTED_OLDER = range(7)
RING = len(SLOTS)  # from this row on: the latest rewards, as many as both sums can have


class Params(NamedTuple):
    alpha: float
    sigma: float
    epsilon: float
    window: int


@kernel
def window_of(plays: float, params: Params) -> float:
    """Return h."""
    return min(math.floor(params.epsilon * plays), float(params.window))


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return params.sigma * math.sqrt(10.0 * params.alpha * math.log(float(number)))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    plays, h, t = memory[PLAYS, arm] + pending, memory[H, arm], float(step.number)
    bonus_h = window_of(plays, params) if pending > 0 else h
    if bonus_h == 0.0:
        return math.inf
    bonus = step.common * (t - plays + bonus_h - 1.0) / (bonus_h * math.sqrt(bonus_h))
    if h == 0.0:
        return expected_mean(math.inf, pending) + bonus
    recent, older = memory[RECENT, arm], memory[OLDER, arm]
    trend = t * (recent - older) - memory[WEIGHTED_RECENT, arm] + memory[WEIGHTED_OLDER, arm] + h * older
    return recent / h + trend / (h * h) + bonus


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, size, value = state.memory, 2 * params.window, reward.value
    plays, old_h = int(memory[PLAYS, arm]) + 1, int(memory[H, arm])
    h = int(window_of(float(plays), params))
    if h > old_h:  # both sums become one longer: the recent one at its end, the older one at its start
        first = plays - 2 * h + 1
        longer = memory[RING + (first - 1) % size, arm]
        memory[OLDER, arm] += longer
        memory[WEIGHTED_OLDER, arm] += first * longer
    elif h > 0:
        moved, left = memory[RING + (plays - h - 1) % size, arm], memory[RING + (plays - 2 * h - 1) % size, arm]
        memory[RECENT, arm] -= moved
        memory[WEIGHTED_RECENT, arm] -= (plays - h) * moved
        memory[OLDER, arm] += moved - left
        memory[WEIGHTED_OLDER, arm] += (plays - h) * moved - (plays - 2 * h) * left
    if h > 0:
        memory[RECENT, arm] += value
        memory[WEIGHTED_RECENT, arm] += plays * value
    memory[RING + (plays - 1) % size, arm] = value
    memory[TOTAL, arm] += value
    memory[PLAYS, arm] = plays
    memory[H, arm] = h


@dataclass(frozen=True, kw_only=True)
class REdUCB(Policy):
    r"""R-ed-UCB: play the arm that would be the best if its rewards kept rising as they do now. Use it for arms that
    improve as they are played, such as models in training, over long horizons.

    For rested arms whose means rise with their plays, ever more slowly (rising bandits). The score is the recent mean
    of an arm, extended to now along its recent slope, plus a bonus: an arm that is bad now may be the best one to play
    for the rest of the time, so the policy estimates what its mean would be if it had been played at every step. The
    bonus is large: it explores long, and needs long horizons. If the noise is small, a smaller `sigma` explores less.

    While rewards are pending, they count as plays in the bonus.

    Parameters
    ----------
    alpha
        How fast the confidence level t^-alpha falls, positive; the theory of the paper asks for more than 2.
    sigma
        The sub-Gaussian parameter of the rewards, positive: 1/2 is valid for all rewards in [0, 1].
    epsilon
        The share of the plays of an arm that are recent, in (0, 0.5).
    window
        The largest number h of recent plays, which bounds the memory; the paper has no bound.

    Notes
    -----
    With the N rewards of an arm and h = floor(epsilon N):

    .. math:: \frac{1}{h} \sum_{l = N - h + 1}^{N} \left( R_l + (t - l) \frac{R_l - R_{l - h}}{h} \right)
        + \sigma (t - N + h - 1) \sqrt{\frac{10 \alpha \log t}{h^3}}

    An arm with h = 0 is played first. `Bandit.arms` shows the mean of the h recent rewards.

    Cost per step: O(K), memory: O(K x window).

    References
    ----------
    Metelli, Trovò, Pirola & Restelli (2022), Stochastic rising bandits. ICML.
    """

    name = "r-ed-ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)
    needs_double = True

    alpha: float = 2.0
    sigma: float = 0.5
    epsilon: float = 0.25
    window: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "alpha", number, 0.0, math.inf, open_low=True)
        check_field(self, "sigma", number, 0.0, math.inf, open_low=True)
        check_field(self, "epsilon", number, 0.0, 0.499, open_low=True)
        check_field(self, "window", integer, 1, LARGEST_STEP)

    def params(self, arms: int) -> Params:
        return Params(self.alpha, self.sigma, self.epsilon, self.window)

    def memory_size(self) -> int:
        return RING + 2 * self.window

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        total, plays, h, recent = column[:OLDER].tolist()
        if plays == 0.0:
            return Belief(math.nan, 0.0, 1.0, 0.0)
        mean, size = (recent / h, h) if h > 0.0 else (total / plays, plays)
        mean = min(max(mean, 0.0), 1.0)  # rewards that leave the window leave rounding errors
        return Belief(mean, mean * (1.0 - mean), 1.0, size)
