"""Yardsticks: what blind chance gets, and what perfect knowledge gets."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import Stream
from dynabandit.policies import averaging
from dynabandit.policies.base import Kernels, Now

__all__ = ["BestArm", "Uniform"]

SLOTS = (*averaging.SLOTS, "truth")
TRUTH = SLOTS.index("truth")


@kernel
def reveal(memory: np.ndarray, arm: int, mean: float) -> None:
    memory[TRUTH, arm] = mean


@kernel
def true_score(
    memory: np.ndarray,
    arm: int,
    idle: int,
    now: Now,
    parameters: np.ndarray,
    table: np.ndarray,
    source: Stream,
) -> float:
    return memory[TRUTH, arm]


@dataclass(frozen=True, kw_only=True)
class Uniform(averaging.Averaging):
    """Play any arm, each with the same chance.

    Parameters
    ----------
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("uniform").parameters
    {'burn_in': 0}

    Notes
    -----
    Cost of a step: O(log K).

    References
    ----------
    The lower yardstick: a policy that does worse has not learnt but been misled.
    """

    name: ClassVar[str] = "uniform"
    slots: ClassVar[tuple[str, ...]] = averaging.SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=averaging.start, learn=averaging.learn, still=True)


@dataclass(frozen=True, kw_only=True)
class BestArm(averaging.Averaging):
    r"""Play the arm whose true mean is largest now; only a simulation can tell it.

    Parameters
    ----------
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> import dynabandit as db
    >>> sim = db.simulate(db.policy("best-arm"), db.environment("case-1"), horizon=100, seed=1)
    >>> sim.total_regret.mean()
    np.float64(0.0)

    Notes
    -----
    The arm that is played, with the true means:

    .. math:: a_t = \arg\max_a \mu_t(a)

    Cost of a step: O(K).

    References
    ----------
    The upper yardstick: regret is measured against it, so its own is 0.
    """

    name: ClassVar[str] = "best-arm"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    kernels: ClassVar[Kernels] = Kernels(start=averaging.start, score=true_score, learn=averaging.learn, reveal=reveal)
    informed: ClassVar[bool] = True
