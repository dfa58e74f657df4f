"""Two halves: the sum of an arm's latest rewards is compared with that of the rewards before them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies import forced_exploration
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.detectors.base import ALL_ARMS, NO_RESTART, Detector, DetectorKernels
from dynabandit.policies.part import Setting
from dynabandit.validation import check_field, integer, number, set_fields

SEEN, LATEST = range(2)  # shared: the step at which the latest reward arrived, and that of the latest restart
LARGEST_SHARE = 0.25  # of forced exploration, unless it is given: the paper's rule exceeds 1 if there are many arms


class Params(NamedTuple):
    arms: int
    share: float
    window: int
    threshold: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Write nothing: all sums are 0."""


@inlined_kernel
def observe(state: PolicyState, arm: int, reward: Reward, total: float, plays: float, params: Params) -> int:
    """Compare the halves as in algorithm 1. The rows are a ring of the sums after each of the arm's latest plays."""
    memory, shared, window, number = state.memory, state.shared, params.window, int(plays)
    shared[SEEN] = float(reward.arrived_at)
    before = memory[number % window, arm]  # the sum `window` plays ago
    memory[number % window, arm] = total
    if number < window:
        return NO_RESTART
    middle = memory[(number - window // 2) % window, arm]
    if abs((total - middle) - (middle - before)) <= params.threshold:
        return NO_RESTART
    shared[LATEST] = shared[SEEN]
    return ALL_ARMS


@kernel
def steps_since_restart(shared: np.ndarray, number: int, params: Params) -> float:
    """Return how many steps were played since the restart, at least 1."""
    return float(max(number - int(shared[LATEST]) - 1, 1))


@kernel
def steps_with_this_one(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the same with the step that is decided, as M-UCB counts."""
    return float(max(number - int(shared[LATEST]), 1))


@kernel
def share(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the share of steps with forced exploration."""
    return params.share


@kernel
def forced(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the turn of an arm at this step: the schedule starts anew with a restart."""
    return forced_exploration.scheduled(number - int(shared[LATEST]), params.arms, params.share)


@dataclass(frozen=True, kw_only=True)
class Halves(Detector):
    r"""Forget all rewards when the two halves of an arm's latest rewards differ too much: for abrupt changes.

    All arms restart when the sums of the two halves of an arm's latest w rewards differ by more than b:

    .. math:: \left| \sum_{i = n - w/2 + 1}^{n} y_i - \sum_{i = n - w + 1}^{n - w/2} y_i \right| > b

    Arms are also played in turn at regular times, so that arms with small means are tested too; if arms are compared by
    random draws, a random arm is played with the same probability. The logarithm of a bound counts the steps since the
    restart.

    Memory: O(K x window).

    Parameters
    ----------
    window
        The paper's w, an even number of an arm's own plays; 800 in the experiments of the paper.
    threshold
        The paper's b, at least 0; by default sqrt(w / 2 log(2 K T^2)) with the horizon T.
    exploration
        The paper's gamma, the share of forced exploration in [0, 1]; by default sqrt(changes K (2 b + 3 sqrt(w)) / (2
        T)), but at most 1/4. The paper has no such bound, and its rule exceeds 1 with many arms: the policy would only
        explore.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.detectors.Halves(window=200, threshold=30).parameters
    {'window': 200, 'threshold': 30.0, 'exploration': None}

    References
    ----------
    Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for piecewise-stationary
    bandit. AISTATS.
    """

    name = "halves"
    follows_horizon = True
    kernels = DetectorKernels(
        slots=(),
        start=start,
        observe=observe,
        clock=steps_since_restart,
        share=share,
        forced=forced,
        shared=2,
        params=Params,
    )

    window: int = 800
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        window = integer("window", self.window, 2, LARGEST_STEP)
        if window % 2:
            raise ValueError(f"window must be an even number of at least 2, got {self.window!r}")
        set_fields(self, window=window)
        check_field(self, "threshold", number, 0.0, math.inf, optional=True)
        check_field(self, "exploration", number, 0.0, 1.0, optional=True)

    @property
    def needs_changes(self) -> bool:
        return self.exploration is None

    @property
    def needs_horizon(self) -> bool:
        return self.exploration is None or self.threshold is None

    def params(self, setting: Setting) -> Params:
        arms, changes, horizon = setting.arms, setting.changes, setting.horizon
        threshold, share = self.threshold, self.exploration
        if threshold is None:
            threshold = math.sqrt(self.window / 2.0 * math.log(2.0 * arms * horizon**2))
        if share is None:
            cost = 2.0 * threshold + 3.0 * math.sqrt(self.window)
            share = min(math.sqrt(changes * arms * cost / (2.0 * horizon)), LARGEST_SHARE)
        return Params(arms, share, self.window, threshold)

    def history_size(self, setting: Setting) -> int:
        return self.window


@dataclass(frozen=True, kw_only=True)
class HalvesWithThisStep(Halves):
    """The same test; the logarithm of a bound also counts the step that is decided, as in the paper of M-UCB.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("m-ucb", window=200).parts()[2].parameters
    {'window': 200, 'threshold': None, 'exploration': None}

    References
    ----------
    Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for piecewise-stationary
    bandit. AISTATS.
    """

    name = "halves-with-this-step"
    variant_of = Halves
    kernels = Halves.kernels._replace(clock=steps_with_this_one)
