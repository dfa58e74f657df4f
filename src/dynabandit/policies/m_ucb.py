"""M-UCB: UCB that starts again when the two halves of an arm's latest rewards differ."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP, Stream
from dynabandit.errors import integer, keep, number
from dynabandit.policies import averaging, exploration, ucb
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tuning_rules import Expecting

__all__ = ["MUCB"]

SUMS = len(ucb.SLOTS)  # from this row on: a ring with the sum of the arm's rewards after each of its latest plays
SEEN, LATEST = range(2)  # shared
ARMS, SHARE, WINDOW, THRESHOLD = range(4)  # parameters


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    age = step - int(shared[LATEST])
    turn = exploration.turn(age, int(parameters[ARMS]), parameters[SHARE])
    return turn if turn < 0.0 else math.sqrt(2.0 * math.log(float(max(age, 1))))


@kernel
def score(
    memory: np.ndarray,
    arm: int,
    idle: int,
    now: Now,
    parameters: np.ndarray,
    table: np.ndarray,
    source: Stream,
) -> float:
    if now.context < 0.0:
        return math.inf if arm == exploration.arm_of(now.context) else 0.0
    return ucb.score(memory, arm, idle, now, parameters, table, source)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    shared[SEEN] += 1.0
    state = ucb.observe(memory, arm, reward)
    window, plays = int(parameters[WINDOW]), int(state.plays)
    before = memory[SUMS + plays % window, arm]  # the sum `window` plays ago
    memory[SUMS + plays % window, arm] = state.total
    if plays < window:
        return
    middle = memory[SUMS + (plays - window // 2) % window, arm]
    # Algorithm 1: the newer half against the older one
    if abs((state.total - middle) - (middle - before)) > parameters[THRESHOLD]:
        shared[LATEST] = shared[SEEN]
        for other in range(memory.shape[1]):
            ucb.start(memory, shared, other, parameters)


@dataclass(frozen=True, kw_only=True)
class MUCB(Expecting, averaging.Averaging):
    r"""Monitored UCB: all arms start again when the sums of two halves of an arm's latest rewards differ by too much.

    So that arms that look bad are monitored too, each arm is played in turn at regular times.

    Parameters
    ----------
    window
        The paper's w, an even number of an arm's own plays. The paper's experiments take 800.
    threshold
        The paper's b, at least 0; by default sqrt(w / 2 log(2 K T^2)).
    exploration
        The paper's gamma, the share of forced exploration in [0, 1]; by default
        sqrt(changes K (2 b + 3 sqrt(w)) / (2 T)), and 1 at most.
    changes
        How many changes are expected; by default a simulation counts how often the best arm changes on its path, and
        1 is the form that does not look.
    horizon
        How many steps there will be, T; a simulation takes its own.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("m-ucb", changes=1).label
    'm-ucb(changes=1)'

    Notes
    -----
    All arms start again when the sums of the two halves of an arm's latest w rewards differ by more than b:

    .. math:: \left| \sum_{i = n - w/2 + 1}^{n} y_i - \sum_{i = n - w + 1}^{n - w/2} y_i \right| > b

    With tau steps since the restart, the score is

    .. math:: \bar{x} + \sqrt{\frac{2 \log \tau}{N}}

    Cost of a step: O(K); memory: O(K w).

    References
    ----------
    Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for piecewise-stationary
    bandit. AISTATS.
    """

    name: ClassVar[str] = "m-ucb"
    slots: ClassVar[tuple[str, ...]] = ucb.SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=ucb.start, score=score, learn=learn, context=context)

    burn_in: int = 1
    window: int = 800
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        window = integer("window", self.window, 2, LARGEST_STEP)
        if window % 2:
            raise ValueError(f"window must be an even number of at least 2, got {self.window!r}")
        keep(self, window=window)
        if self.threshold is not None:
            keep(self, threshold=number("threshold", self.threshold, 0.0, math.inf))
        if self.exploration is not None:
            keep(self, exploration=number("exploration", self.exploration, 0.0, 1.0))

    def _follows_from_changes(self) -> bool:
        return self.exploration is None

    def _follows_from_horizon(self) -> bool:
        return self.exploration is None or self.threshold is None

    def numbers(self, arms: int) -> np.ndarray:
        changes, horizon = self._expected()
        threshold, share = self.threshold, self.exploration
        if threshold is None:
            threshold = math.sqrt(self.window / 2.0 * math.log(2.0 * arms * horizon**2))
        if share is None:
            cost = 2.0 * threshold + 3.0 * math.sqrt(self.window)
            share = min(math.sqrt(changes * arms * cost / (2.0 * horizon)), 1.0)
        return np.array([arms, share, self.window, threshold], dtype=float)

    def memory_size(self) -> int:
        return SUMS + self.window

    def shared_size(self) -> int:
        return 2
