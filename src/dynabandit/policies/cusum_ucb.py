"""CUSUM-UCB: UCB that starts an arm again when its rewards walk away from their first mean."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import EXPLORE, LARGEST_STEP, Stream, uniform
from dynabandit.errors import integer, keep, number
from dynabandit.policies import averaging, ucb
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tuning_rules import Expecting

__all__ = ["CusumUCB"]

XI = 1.0
SLOTS = (*ucb.SLOTS, "reference", "up", "down")
REFERENCE, UP, DOWN = (SLOTS.index(name) for name in SLOTS[-3:])
HELD = 0  # shared: how many rewards the arms hold since their restarts
EXPLORATION, DRIFT, REFERENCE_PLAYS, THRESHOLD = range(4)  # parameters


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    return math.sqrt(XI * math.log(max(shared[HELD], 1.0)))


@kernel
def explore(memory: np.ndarray, leader: int, idle: int, now: Now, parameters: np.ndarray, source: Stream) -> bool:
    return uniform(source, EXPLORE, now.step, 0) < parameters[EXPLORATION]


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    shared[HELD] += 1.0
    state = ucb.observe(memory, arm, reward)
    if state.plays == parameters[REFERENCE_PLAYS]:
        memory[REFERENCE, arm] = memory[ucb.MEAN, arm]
    if state.plays <= parameters[REFERENCE_PLAYS]:
        return
    # Algorithm 3: two walks, for a rise and for a fall
    above = reward - memory[REFERENCE, arm]
    memory[UP, arm] = max(0.0, memory[UP, arm] + above - parameters[DRIFT])
    memory[DOWN, arm] = max(0.0, memory[DOWN, arm] - above - parameters[DRIFT])
    if max(memory[UP, arm], memory[DOWN, arm]) >= parameters[THRESHOLD]:
        shared[HELD] -= state.plays
        ucb.start(memory, shared, arm, parameters)


@dataclass(frozen=True, kw_only=True)
class CusumUCB(Expecting, averaging.Averaging):
    r"""UCB that restarts an arm when a two-sided CUSUM test finds that its mean is no longer that of its first plays.

    Now and then any arm is played, so that arms that look bad are tested too.

    Parameters
    ----------
    drift
        The paper's epsilon in [0, 1]: what a mean may move without an alarm.
    reference_plays
        The paper's M: so many first plays of an arm give the mean that later ones are compared with.
    threshold
        The paper's h, at least 0; by default log(horizon / changes).
    exploration
        The paper's alpha in [0, 1], how often any arm is played; by default
        sqrt(changes / horizon log(horizon / changes)).
    changes
        How many changes are expected; by default a simulation counts how often the best arm changes on its path, and
        1 is the form that does not look.
    horizon
        How many steps there will be; a simulation takes its own.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("cusum-ucb", changes=1).label
    'cusum-ucb(changes=1)'

    Notes
    -----
    After M plays of an arm with the mean r, each reward y moves two walks, for a rise and for a fall:

    .. math:: g^{+} \leftarrow \max(0, \; g^{+} + y - r - \varepsilon), \quad g^{-} \leftarrow \max(0, \; g^{-} + r -
        y - \varepsilon)

    The arm starts again when one of them reaches the threshold. With n the plays of all arms since their restarts,
    the score is

    .. math:: \bar{x} + \sqrt{\frac{\log n}{N}}

    Cost of a step: O(K).

    References
    ----------
    Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit problem.
    AAAI.
    """

    name: ClassVar[str] = "cusum-ucb"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(
        start=ucb.start, score=ucb.score, learn=learn, context=context, explore=explore
    )

    burn_in: int = 1
    drift: float = 0.05
    reference_plays: int = 100
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(
            self,
            drift=number("drift", self.drift, 0.0, 1.0),
            reference_plays=integer("reference_plays", self.reference_plays, 1, LARGEST_STEP),
        )
        if self.threshold is not None:
            keep(self, threshold=number("threshold", self.threshold, 0.0, math.inf))
        if self.exploration is not None:
            keep(self, exploration=number("exploration", self.exploration, 0.0, 1.0))

    def _follows_from_changes(self) -> bool:
        return self.threshold is None or self.exploration is None

    def numbers(self, arms: int) -> np.ndarray:
        changes, horizon = self._expected()
        ratio = max(horizon / changes, 1.0)
        threshold = math.log(ratio) if self.threshold is None else self.threshold
        share = math.sqrt(math.log(ratio) / ratio) if self.exploration is None else self.exploration
        return np.array([share, self.drift, self.reference_plays, threshold], dtype=float)
