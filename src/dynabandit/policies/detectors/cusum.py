"""CUSUM: two random walks compare the rewards of an arm with the mean of its first ones."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.detectors.base import NO_RESTART, THE_ARM, Detector, DetectorKernels
from dynabandit.policies.part import Setting
from dynabandit.validation import check_field, integer, number

SLOTS = ("reference", "up", "down")
REFERENCE, UP, DOWN = range(3)
HELD = 0  # shared: how many rewards the arms have since their restarts


class Params(NamedTuple):
    exploration: float
    drift: float
    reference_plays: float
    threshold: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Write nothing: both random walks start at 0."""


@inlined_kernel
def observe(state: PolicyState, arm: int, reward: Reward, total: float, plays: float, params: Params) -> int:
    """Update the random walks of algorithm 3, one for an increase and one for a decrease."""
    memory = state.memory
    state.shared[HELD] += 1.0
    if plays == params.reference_plays:
        memory[REFERENCE, arm] = total / plays
    if plays <= params.reference_plays:
        return NO_RESTART
    above = reward.value - memory[REFERENCE, arm]
    up = max(0.0, memory[UP, arm] + above - params.drift)
    down = max(0.0, memory[DOWN, arm] - above - params.drift)
    memory[UP, arm], memory[DOWN, arm] = up, down
    if max(up, down) < params.threshold:
        return NO_RESTART
    state.shared[HELD] -= plays
    return THE_ARM


@kernel
def rewards_held(shared: np.ndarray, number: int, params: Params) -> float:
    """Return how many rewards the arms have since their restarts, at least 1."""
    return max(shared[HELD], 1.0)


@kernel
def share(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the probability of playing a random arm."""
    return params.exploration


@dataclass(frozen=True, kw_only=True)
class Cusum(Detector):
    r"""Forget the rewards of an arm when they differ too much from its first ones: for abrupt changes.

    After M plays of an arm with mean r, each reward y updates two statistics, for an increase and for a decrease:

    .. math:: g^{+} \leftarrow \max(0, \; g^{+} + y - r - \varepsilon), \quad g^{-} \leftarrow \max(0, \; g^{-} + r -
        y - \varepsilon)

    The arm restarts when one of them reaches the threshold. With a small probability a random arm is played, so that
    arms with small means are tested too. The logarithm of a bound counts the rewards of all arms since their restarts.

    Parameters
    ----------
    drift
        The paper's epsilon in [0, 1]: changes of a mean up to this size cause no alarm.
    reference_plays
        The paper's M: the number of first plays of an arm whose mean later plays are compared with.
    threshold
        The paper's h, at least 0; by default log(horizon / changes).
    exploration
        The paper's alpha in [0, 1]: the probability of playing a random arm; by default sqrt(changes / horizon
        log(horizon / changes)).

    Examples
    --------
    >>> import dynabandit as db
    >>> db.detectors.Cusum(drift=0.1, threshold=10).threshold
    10.0

    References
    ----------
    Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit problem.
    AAAI.
    """

    name = "cusum"
    follows_horizon = True
    kernels = DetectorKernels(
        slots=SLOTS, start=start, observe=observe, clock=rewards_held, share=share, shared=1, params=Params
    )

    drift: float = 0.05
    reference_plays: int = 100
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        check_field(self, "drift", number, 0.0, 1.0)
        check_field(self, "reference_plays", integer, 1, LARGEST_STEP)
        check_field(self, "threshold", number, 0.0, math.inf, optional=True)
        check_field(self, "exploration", number, 0.0, 1.0, optional=True)

    @property
    def needs_changes(self) -> bool:
        return self.threshold is None or self.exploration is None

    def params(self, setting: Setting) -> Params:
        ratio = max(setting.horizon / setting.changes, 1.0)
        threshold = math.log(ratio) if self.threshold is None else self.threshold
        share = math.sqrt(math.log(ratio) / ratio) if self.exploration is None else self.exploration
        return Params(share, self.drift, float(self.reference_plays), threshold)
