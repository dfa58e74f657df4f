"""FEWA: filters the arms by means over ever longer windows, for means that only fall."""

import math
from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.pending_plays import pending_plays
from dynabandit.policies.whole import dyadic_windows
from dynabandit.policies.whole.dyadic_windows import PLAYS, WINDOWS, window_mean
from dynabandit.policies.whole.raw_ucb import Params, RottingPolicy

DEPTH = 0  # shared: how many windows the filter used
THRESHOLDS = 1  # from here on: the smallest mean that passed, for each window
FILTERED = 2.0**49  # more than the number of plays


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
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    place = passed(state, arm)
    if place < int(state.shared[DEPTH]):
        return place - FILTERED
    return -(state.memory[PLAYS, arm] + pending_plays(state, arm))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    dyadic_windows.observe(state, arm, reward.value)
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

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("fewa", alpha=0.1).label
    'fewa(alpha=0.1)'

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
    functions = PolicyFunctions(start=dyadic_windows.start, score=score, learn=learn, params=Params)

    alpha: float = 0.06

    def shared_size(self) -> int:
        return THRESHOLDS + WINDOWS
