"""KL-UCB: upper confidence bounds in the geometry of Bernoulli laws."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.errors import keep, number
from dynabandit.policies import averaging, kl_index
from dynabandit.policies.base import Kernels, Now

__all__ = ["KLUCB"]

LOGLOG = 0


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    # Algorithm 1: log t + c log log t, where t steps have been played
    level = math.log(float(max(step - 1, 1)))
    return level + parameters[LOGLOG] * math.log(max(level, 1.0))


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
    return kl_index.index(memory, arm, now.context)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    kl_index.observe(memory, arm, reward)


@dataclass(frozen=True, kw_only=True)
class KLUCB(averaging.Averaging):
    r"""Play the arm with the largest q that its rewards leave plausible, N kl(mean, q) <= log t.

    The bound is never above 1, and tight where a mean is near 0 or 1. For arms that stand still it is as good as
    any policy can be in the long run.

    Parameters
    ----------
    loglog
        The paper's c in log t + c log log t, at least 0. Its theory takes 3, its experiments 0.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.simulate("kl-ucb", db.environment("fixed", means=[0.2, 0.8]), horizon=100, seed=1).total_regret[0] < 10
    np.True_

    Notes
    -----
    The score of an arm with N plays and the sample mean x, after t steps:

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t + c \log \log t \right\}

    .. math:: \mathrm{kl}(p, q) = p \log \frac{p}{q} + (1 - p) \log \frac{1 - p}{1 - q}

    Cost of a step: O(K), with a root to find for each arm.

    References
    ----------
    Garivier & Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.
    """

    name: ClassVar[str] = "kl-ucb"
    slots: ClassVar[tuple[str, ...]] = kl_index.SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=kl_index.start, score=score, learn=learn, context=context)

    burn_in: int = 1
    loglog: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, loglog=number("loglog", self.loglog, 0.0, math.inf))

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([self.loglog])
