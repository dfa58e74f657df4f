"""SW-KL-UCB: the Kullback-Leibler index on the latest rewards only."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.bernoulli_kl import negentropy
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.policies import averaging, kl_index, ring, sw_ucb, ucb
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tuning_rules import Windowing

__all__ = ["SWKLUCB"]

SLOTS = (*ucb.SLOTS, "negentropy")
NEGENTROPY = SLOTS.index("negentropy")


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    return math.log(max(min(shared[ring.SEEN], parameters[0]), 1.0))


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
    width = memory[ucb.WIDTH, arm]
    return kl_index.bound(memory[ucb.MEAN, arm], memory[NEGENTROPY, arm], now.context * width * width)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    leaving, _ = ring.oldest(shared, int(parameters[0]))
    sw_ucb.learn(memory, shared, arm, reward, parameters)
    memory[NEGENTROPY, arm] = negentropy(memory[ucb.MEAN, arm])
    if leaving >= 0:
        memory[NEGENTROPY, leaving] = negentropy(memory[ucb.MEAN, leaving])


@dataclass(frozen=True, kw_only=True)
class SWKLUCB(Windowing, averaging.Averaging):
    r"""KL-UCB on a sliding window: rewards older than the window count no more.

    The window moves with the rewards of all arms, as in `SWUCB`.

    Parameters
    ----------
    window
        How many rewards, of all arms together, to look back; by default 2 sqrt(horizon log(horizon) / changes).
    changes
        How often the best arm is expected to change; by default a simulation counts it on its path, and 1 is the
        form that does not look.
    horizon
        How many steps the changes are expected in; a simulation takes its own.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-kl-ucb", changes=1).label
    'sw-kl-ucb(changes=1)'
    >>> db.policy("sw-kl-ucb", changes=4, horizon=10_000).numbers(arms=2)
    array([303.])

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log \min(t, W) \right\}

    Cost of a step: O(K), with a root to find for each arm; memory: O(K + W).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name: ClassVar[str] = "sw-kl-ucb"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=ucb.start, score=score, learn=learn, context=context)

    burn_in: int = 1

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([float(self._window())])
