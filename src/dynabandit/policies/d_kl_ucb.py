"""D-KL-UCB: the Kullback-Leibler index on discounted averages."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.bernoulli_kl import negentropy
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.estimators.base import Belief
from dynabandit.policies import d_ucb, kl_index
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tuning_rules import Discounting

__all__ = ["DKLUCB"]

SLOTS = (*d_ucb.SLOTS, "negentropy")
NEGENTROPY = SLOTS.index("negentropy")


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    # log n_t, over the scale that is missing in the arms' counts
    return math.log(max(shared[d_ucb.SUM], 1.0)) / shared[d_ucb.SCALE]


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
    width = memory[d_ucb.WIDTH, arm]
    return kl_index.bound(memory[d_ucb.MEAN, arm], memory[NEGENTROPY, arm], now.context * width * width)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    d_ucb.learn(memory, shared, arm, reward, parameters)
    memory[NEGENTROPY, arm] = negentropy(memory[d_ucb.MEAN, arm])


@dataclass(frozen=True, kw_only=True)
class DKLUCB(Discounting):
    r"""KL-UCB on discounted means and counts: all arms forget at the same rate, whether they are played or not.

    The decay moves with the rewards of all arms, as in `DUCB`.

    Parameters
    ----------
    discount
        The factor per reward of any arm, in (0, 1]; by default 1 - sqrt(changes / horizon) / 4.
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
    >>> db.policy("d-kl-ucb", changes=1).label
    'd-kl-ucb(changes=1)'
    >>> db.policy("d-kl-ucb", changes=4, horizon=10_000).numbers(arms=2)
    array([0.995])

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: \max \left\{ q : N_t(a) \, \mathrm{kl}(\bar{x}_t(a), q) \leq \log n_t \right\}

    Cost of a step: O(K), with a root to find for each arm.

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT. With the index
    of Garivier & Cappe (2011), as a baseline of Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point
    detection for tackling piecewise-stationary bandits. JMLR 23.
    """

    name: ClassVar[str] = "d-kl-ucb"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=d_ucb.start, score=score, learn=learn, context=context)
    needs_double: ClassVar[bool] = True

    burn_in: int = 1

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([self._discount()])

    def shared_size(self) -> int:
        return 2

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return d_ucb.belief(column, shared, self._discount())
