"""BORL: Exp3 chooses the window length of SW-UCB for each block of steps."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.records import NoParams
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.memories import window
from dynabandit.policies.policy_functions import policy_functions, rows_of
from dynabandit.policies.rules import ucb
from dynabandit.policies.whole import learned_draws
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, integer, number

MOST_WINDOWS = 32
# shared: of the current block its length, its window, the place of the window among all, the probability with which it
# was drawn, the number of rewards so far and their sum; and a hash of all rewards
LENGTH, WINDOW, CHOSEN, CHANCE, SEEN, TOTAL, HASH = range(7)
LOG_WEIGHTS = 7  # from here on: of each window length
LATEST = LOG_WEIGHTS + MOST_WINDOWS  # from here on: the latest rewards, see `memories.window`
# SW-UCB, which decides inside a block
PARTS = window.Window.kernels, ucb.UCB.kernels, None
SW_UCB = policy_functions(*PARTS)
start_arm, learn_in_window, bound, level = SW_UCB.start, SW_UCB.learn, SW_UCB.score, SW_UCB.common
ParamsInBlock = SW_UCB.params
XI = 0.6


class Params(NamedTuple):
    block: float
    exploration: float
    choices: int  # how many windows there are
    windows: np.ndarray  # MOST_WINDOWS numbers, from `choices` on unused


@kernel
def in_block(state: PolicyState) -> PolicyState:
    """Return the state as SW-UCB has it."""
    return PolicyState(state.memory, state.shared[LATEST:], state.last_played, state.pending, state.models)


@inlined_kernel
def params_in_block(state: PolicyState) -> Any:
    """Return the parameters of SW-UCB."""
    return ParamsInBlock(window.Params(int(state.shared[WINDOW])), ucb.Params(XI), NoParams(0.0))


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    shared = state.shared
    if shared[LENGTH] == 0.0:
        begin_block(shared, params.choices - 1, 1.0, params)
    start_arm(in_block(state), arm, params_in_block(state))


@kernel
def begin_block(shared: np.ndarray, chosen: int, chance: float, params: Params) -> None:
    """Start a block with a window."""
    shared[LENGTH] = params.block
    shared[WINDOW] = params.windows[chosen]
    shared[CHOSEN] = chosen
    shared[CHANCE] = chance
    shared[SEEN] = 0.0
    shared[TOTAL] = 0.0
    shared[LATEST + window.COUNT] = 0.0


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return level(in_block(state), number, params_in_block(state))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    return bound(in_block(state), arm, step, params_in_block(state))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    shared = state.shared
    learned_draws.update_hash(shared, HASH, arm, reward.value)
    learn_in_window(in_block(state), arm, reward, params_in_block(state))
    shared[SEEN] += 1.0
    shared[TOTAL] += reward.value
    if shared[SEEN] >= shared[LENGTH]:
        mean = shared[TOTAL] / shared[LENGTH]
        shared[LOG_WEIGHTS + int(shared[CHOSEN])] += params.exploration / params.choices * mean / shared[CHANCE]
        for other in range(state.memory.shape[1]):
            start_arm(in_block(state), other, params_in_block(state))
        draw_window(shared, params)


@kernel
def draw_window(shared: np.ndarray, params: Params) -> None:
    """Draw the window of the next block from the probabilities of Exp3."""
    largest = -math.inf
    for place in range(params.choices):
        largest = max(largest, shared[LOG_WEIGHTS + place])
    total = 0.0
    for place in range(params.choices):
        total += math.exp(shared[LOG_WEIGHTS + place] - largest)
    left = learned_draws.draw(shared, HASH, 0, 0)
    chance = 0.0
    for place in range(params.choices):
        share = math.exp(shared[LOG_WEIGHTS + place] - largest) / total
        chance = (1.0 - params.exploration) * share + params.exploration / params.choices
        if left < chance:
            begin_block(shared, place, chance, params)
            return
        left -= chance
    begin_block(shared, params.choices - 1, chance, params)  # rounding


def window_lengths(block: int) -> list[int]:
    """Return 1, H^(1 / D), H^(2 / D), ..., H with D = log H, rounded."""
    steps = max(math.ceil(math.log(block)), 1)
    return [math.floor(block ** (place / steps) + 1e-9) for place in range(steps + 1)]


@dataclass(frozen=True, kw_only=True)
class Borl(HorizonTuned, SampleMeanPolicy):
    r"""Sliding-window UCB that learns the length of its window: each block of steps tries one length. It need not know
    how often or how much the means change; with many arms it is costly.

    Bandit over bandit: for each block of steps, Exp3 draws the window of sliding-window UCB. Each block starts anew,
    which is costly with many arms. Blocks and windows count rewards.

    Parameters
    ----------
    block
        H, the number of rewards of a block; by default sqrt(K T) for K arms and T steps.
    exploration
        The gamma of Exp3, in (0, 1]; by default sqrt(n log n / ((e - 1) ceil(T / H))), at most 1, for n window lengths.
    capacity
        The largest block. The paper has no bound; this one bounds the memory.

    Examples
    --------
    >>> import dynabandit as db
    >>> params = db.policy("borl", horizon=10_000).params(arms=10)
    >>> params.block, params.windows[: params.choices].astype(int).tolist()
    (316.0, [1, 2, 6, 17, 46, 121, 316])

    Notes
    -----
    The window lengths are floor(H^(j / D)), j = 0, ..., D, with D = ceil(log H). After a block with mean reward r, the
    weight v of its window and then the probabilities of the windows of the next block are

    .. math:: v_j \leftarrow v_j \exp\left( \frac{\gamma}{n} \frac{r}{p_j} \right), \quad p_j = (1 - \gamma)
        \frac{v_j}{\sum_i v_i} + \frac{\gamma}{n}

    The first block has the longest window. Inside a block the score is that of `SWUCB`. The paper treats linear bandits
    of dimension d with H = d sqrt(T), a larger confidence bound and unbounded noise; H for K arms, the bound of SW-UCB
    and the mean reward, which is in [0, 1] here, are our reading. Windows are drawn with a hash of the rewards so far,
    because learning has no random numbers of its own.

    Cost per step: O(K), independent of the window; memory: O(K + capacity).

    References
    ----------
    Cheung, Simchi-Levi & Zhu (2019), Learning to optimize under non-stationarity. AISTATS. Cheung, Simchi-Levi & Zhu
    (2022), Hedging the drift: learning to optimize under nonstationarity. Management Science 68.
    """

    name = "borl"
    slots = rows_of(*PARTS).slots
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 1
    block: int | None = None
    exploration: float | None = None
    capacity: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "capacity", integer, 1, LARGEST_STEP)
        check_field(self, "block", integer, 1, self.capacity, optional=True)
        check_field(self, "exploration", number, 0.0, 1.0, open_low=True, optional=True)

    def _follows_from_horizon(self) -> bool:
        return self.block is None or self.exploration is None

    def params(self, arms: int) -> Params:
        _, horizon = self._expected()
        block = self.block
        if block is None:
            block = min(math.floor(math.sqrt(arms * horizon)), self.capacity, horizon)
        windows = window_lengths(block)
        count, blocks = len(windows), math.ceil(horizon / block)
        exploration = self.exploration
        if exploration is None:
            exploration = min(1.0, math.sqrt(count * math.log(count) / ((math.e - 1.0) * blocks)))
        return Params(float(block), exploration, count, np.pad(np.array(windows, float), (0, MOST_WINDOWS - count)))

    def shared_size(self) -> int:
        return LATEST + window.ring_size(self.capacity if self.block is None else self.block)

    def tuned(self, switches: int, horizon: int) -> Self:
        tuned = super().tuned(switches, horizon)
        if tuned.block is not None:
            return tuned
        return replace(tuned, capacity=min(self.capacity, horizon))  # a longer block would never end
