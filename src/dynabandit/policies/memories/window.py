"""A sliding window: the latest rewards of all arms have the same weight, older ones have none.

`shared` keeps these rewards: their number since the start, then a ring buffer with room for the longest window. A
window may become longer from one reward to the next, not shorter.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.horizons.formulas import window_for
from dynabandit.policies.memories import sample_mean
from dynabandit.policies.memories.base import NOBODY, Estimate, MemoryKernels
from dynabandit.policies.memories.sample_mean import SampleMean, Sums
from dynabandit.policies.part import Setting
from dynabandit.validation import BOUNDED, check_field, integer, number

COUNT = 0  # how many rewards so far
RING = 1  # from here on: pairs of arm and reward
GONE = -1.0  # in place of the arm of a reward that has left the window or was forgotten

learn_reward = SampleMean.kernels.learn


class Params(NamedTuple):
    window: int


class GrowingParams(NamedTuple):
    alpha: float
    scale: float
    capacity: float


def ring_size(window: int) -> int:
    """Return the length of `shared`."""
    return RING + 2 * window


@kernel
def place_of(shared: np.ndarray, number: int) -> int:
    """Return where a reward is, given how many rewards came before it."""
    return RING + 2 * (number % ((shared.size - RING) // 2))


@kernel
def take_oldest(shared: np.ndarray, window: int) -> tuple[int, float]:
    """Remove the reward that leaves the window with the next push; return its arm, -1 if none leaves, and its value."""
    leaving = int(shared[COUNT]) - window
    if leaving < 0:
        return NOBODY, 0.0
    place = place_of(shared, leaving)
    arm = int(shared[place])
    shared[place] = GONE
    return arm, shared[place + 1]


@kernel
def push(shared: np.ndarray, arm: int, value: float) -> None:
    """Add a reward."""
    count = int(shared[COUNT])
    place = place_of(shared, count)
    shared[place] = arm
    shared[place + 1] = value
    shared[COUNT] = count + 1.0


@kernel
def retract(state: Sums, reward: float) -> Sums:
    """Remove one reward; rounding errors do not move the mean out of [0, 1]."""
    plays = state.plays - 1.0
    if plays <= 0.0:
        return Sums(0.0, 0.0, 0.0)
    total = min(max(state.total - reward, 0.0), plays)
    return Sums(total, max(state.squares - reward * reward, 0.0), plays)


@inlined_kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
    """Add a reward to the window."""
    push(state.shared, arm, reward.value)
    return learn_reward(state, arm, reward, params)


@kernel
def drop(state: PolicyState, params: Params) -> int:
    """Remove the reward that leaves the window with the next one."""
    return drop_oldest(state, params.window)


@kernel
def drop_oldest(state: PolicyState, window: int) -> int:
    """Remove the reward that leaves a window of this length with the next one; return its arm, or NOBODY."""
    memory = state.memory
    leaving, earlier = take_oldest(state.shared, window)
    if leaving != NOBODY:
        sample_mean.store(memory, leaving, retract(sample_mean.load(memory, leaving), earlier))
    return leaving


@kernel
def forget(state: PolicyState, arm: int) -> None:
    """Forget the rewards of an arm in the window; those of the others leave it as if it had kept them."""
    for place in range(RING, state.shared.size - 1, 2):
        if int(state.shared[place]) == arm:
            state.shared[place] = GONE


@kernel
def rewards_in_window(state: PolicyState, number: int, params: Params) -> float:
    """Return min(t, W), at least 1."""
    return max(min(state.shared[COUNT], float(params.window)), 1.0)


@kernel
def all_rewards_so_far(state: PolicyState, number: int, params: Any) -> float:
    """Return the number of rewards of all arms, at least 1."""
    return max(state.shared[COUNT], 1.0)


@kernel
def growing_drop(state: PolicyState, params: GrowingParams) -> int:
    """Do the same for a window whose length depends on the number of rewards; it grows by at most one per reward."""
    rewards = state.shared[COUNT] + 1.0
    window = math.ceil(min(params.scale * rewards**params.alpha, rewards, params.capacity))
    return drop_oldest(state, int(window))  # math.ceil returns a float on CUDA


def window_kernels(drop: Callable[..., int], clock: Callable[..., float], params: type) -> MemoryKernels:
    """Return the kernels of a window: those of the sample mean, of the rewards that are left."""
    return SampleMean.kernels._replace(
        learn=learn,
        drop=drop,
        clock=clock,
        forget=forget,
        shares=True,
        counts_rewards=False,
        params=params,
        while_idle=None,
    )


@dataclass(frozen=True, kw_only=True)
class Window(SampleMean):
    """Remember the latest rewards of all arms. Use it if you know how fast the means change.

    The window moves with the rewards of all arms; a decision whose reward has not arrived yet does not move it.

    Memory: O(K + window).

    Parameters
    ----------
    window
        The window length in rewards of all arms; by default 2 sqrt(horizon log(horizon) / changes), the rule of SW-UCB.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.Window(window=500).parameters
    {'window': 500}

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "window"
    rewards = BOUNDED  # `retract` keeps sums in the range of such rewards
    follows_horizon = True
    kernels = window_kernels(drop, rewards_in_window, Params)

    window: int | None = None

    def __post_init__(self) -> None:
        check_field(self, "window", integer, 1, LARGEST_STEP, optional=True)

    @property
    def needs_changes(self) -> bool:
        return self.window is None

    def _window(self, setting: Setting) -> int:
        return window_for(setting.changes, setting.horizon) if self.window is None else self.window

    def params(self, setting: Setting) -> Params:
        return Params(self._window(setting))

    def limited(self, horizon: int) -> Self:
        return self if self.window is None else replace(self, window=min(self.window, horizon))  # never full

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return ring_size(self._window(setting))


@dataclass(frozen=True, kw_only=True)
class GrowingWindow(SampleMean):
    r"""Remember the latest rewards of all arms, more of them as time goes on, so that no horizon is needed.

    The window moves with the rewards of all arms. Its length after t of them is :math:`\lceil \lambda t^\alpha
    \rceil`, at most t and at most the capacity.

    Memory: O(K + capacity).

    Parameters
    ----------
    alpha
        The exponent of the window, in [0, 1].
    scale
        The paper's lambda, positive: the factor of the window.
    capacity
        The largest window. The paper has no bound; this one bounds the memory.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.memories.GrowingWindow(scale=5).parameters
    {'alpha': 0.5, 'scale': 5.0, 'capacity': 10000}

    References
    ----------
    Wei & Srivastava (2018), On abruptly-changing and slowly-varying multiarmed bandit problems. arXiv 1802.08380.
    """

    name = "growing-window"
    rewards = BOUNDED
    kernels = window_kernels(growing_drop, all_rewards_so_far, GrowingParams)

    alpha: float = 0.5
    scale: float = 12.3
    capacity: int = 10_000

    def __post_init__(self) -> None:
        check_field(self, "alpha", number, 0.0, 1.0)
        check_field(self, "scale", number, 0.0, math.inf, open_low=True)
        check_field(self, "capacity", integer, 1, LARGEST_STEP)

    def params(self, setting: Setting) -> GrowingParams:
        return GrowingParams(self.alpha, self.scale, float(self.capacity))

    def limited(self, horizon: int) -> Self:
        return replace(self, capacity=min(self.capacity, horizon))  # a longer window would never be full

    def shared_size(self, setting: Setting, family: str | None) -> int:
        return ring_size(self.capacity)
