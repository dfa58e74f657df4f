"""SW-UCB: upper confidence bounds from the latest rewards only."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.sliding_window import retract
from dynabandit.policies import averaging, ring, ucb
from dynabandit.policies.base import Kernels
from dynabandit.policies.tuning_rules import Windowing

__all__ = ["SWUCB", "learn"]

XI = 0.6


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    return math.sqrt(XI * math.log(max(min(shared[ring.SEEN], parameters[0]), 1.0)))


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    window = int(parameters[0])
    leaving, earlier = ring.oldest(shared, window)
    if leaving >= 0:
        forget(memory, leaving, earlier)
    ucb.observe(memory, arm, reward)
    ring.push(shared, window, arm, reward)


@kernel
def forget(memory: np.ndarray, arm: int, reward: float) -> None:
    """Take a reward out again; an arm without one in the window scores infinity."""
    state = retract(sample_mean.load(memory, arm), reward)
    sample_mean.store(memory, arm, state)
    if state.plays > 0.0:
        memory[ucb.MEAN, arm] = state.total / state.plays
        memory[ucb.WIDTH, arm] = 1.0 / math.sqrt(state.plays)
    else:
        memory[ucb.MEAN, arm] = math.inf
        memory[ucb.WIDTH, arm] = 0.0


@dataclass(frozen=True, kw_only=True)
class SWUCB(Windowing, averaging.Averaging):
    r"""Sliding-window UCB: rewards older than the window count no more.

    The window moves with the rewards of all arms. In a simulation every step has its reward; in a `Bandit`, a
    choice whose reward is still to come moves nothing yet. A step costs the same for every length of the window.

    Parameters
    ----------
    window
        How many rewards, of all arms together, to look back; by default 2 sqrt(horizon log(horizon) / changes).
    changes
        How often the best arm is expected to change; by default a simulation counts it on its path, knowledge that no
        real user has, and 1 is the form that does not look.
    horizon
        How many steps the changes are expected in; a simulation takes its own.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-ucb", changes=4, horizon=10_000).numbers(arms=2)
    array([303.])

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{0.6 \, \log \min(t, W)}{N_t(a)}}

    Cost of a step: O(K) for every W; memory: O(K + W).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name: ClassVar[str] = "sw-ucb"
    slots: ClassVar[tuple[str, ...]] = ucb.SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=ucb.start, score=ucb.score, learn=learn, context=context)

    burn_in: int = 1

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([float(self._window())])
