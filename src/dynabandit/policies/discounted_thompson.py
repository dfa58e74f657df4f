"""D-TS: Thompson sampling on discounted counts, where every arm decays with every reward."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import keep
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.thompson import beta_belief, checked_prior
from dynabandit.policies.tuning_rules import Discounting

__all__ = ["PRIOR_A", "PRIOR_B", "DiscountedTS", "context", "learn", "posterior", "start"]

# The decay that is common to all arms is carried as one scale, as in D-UCB: true count = count * scale
SUCCESSES, FAILURES = range(2)
SCALE = 0
SMALLEST_SCALE = 1e-100
PRIOR_A, PRIOR_B, DISCOUNT = range(3)


@kernel
def start(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    if shared[SCALE] == 0.0:
        shared[SCALE] = 1.0
    memory[:, arm] = 0.0


@kernel
def context(shared: np.ndarray, step: int, parameters: np.ndarray) -> float:
    return shared[SCALE]


@kernel
def posterior(memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray) -> tuple[float, float]:
    a = parameters[PRIOR_A] + memory[SUCCESSES, arm] * now.context
    return a, parameters[PRIOR_B] + memory[FAILURES, arm] * now.context


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    decay(memory, shared, parameters[DISCOUNT])
    memory[SUCCESSES, arm] += reward / shared[SCALE]
    memory[FAILURES, arm] += (1.0 - reward) / shared[SCALE]


@kernel
def decay(memory: np.ndarray, shared: np.ndarray, discount: float) -> None:
    """Discount the counts of all arms; a scale that gets small is multiplied into them and starts again at 1."""
    shared[SCALE] *= discount
    if shared[SCALE] < SMALLEST_SCALE:
        for other in range(memory.shape[1]):
            memory[SUCCESSES, other] *= shared[SCALE]
            memory[FAILURES, other] *= shared[SCALE]
        shared[SCALE] = 1.0


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(Discounting):
    r"""Discounted Thompson sampling: all arms forget at the same constant rate, whether they are played or not.

    What an arm forgets gives way to its prior, so that an arm left alone is tried again. The decay moves with the
    rewards of all arms, as in `DUCB`. A reward between 0 and 1 counts as that part of a success, where the paper tosses
    a coin.

    Parameters
    ----------
    discount
        The factor per reward of any arm, in (0, 1]. The paper leaves it to the user; without one, it follows the rule
        of D-UCB, 1 - sqrt(Y / T) / 4 for T steps and Y changes.
    changes
        Y, how often the best arm is expected to change; by default a simulation counts it on its path, and 1 is the
        form that does not look.
    horizon
        T, how many steps are expected; a simulation takes its own.
    prior
        The Beta prior of every arm, a pair of positive numbers; it does not decay.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("d-ts", changes=1, horizon=10_000).numbers(arms=2)
    array([1.    , 1.    , 0.9975])

    Notes
    -----
    The score is a draw from Beta(a + S, b + F), where every reward y discounts the counts of all arms:

    .. math:: S \leftarrow \gamma S + y \, 1[\text{played}], \quad F \leftarrow \gamma F + (1 - y) \, 1[\text{played}]

    Cost of a step: O(K); with many arms, only those that can win are drawn.

    References
    ----------
    Raj & Kalyani (2017), Taming non-stationary bandits: a Bayesian approach. arXiv 1707.09727.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name: ClassVar[str] = "d-ts"
    slots: ClassVar[tuple[str, ...]] = ("successes", "failures")
    kernels: ClassVar[Kernels] = Kernels(start=start, learn=learn, posterior=posterior, context=context)
    needs_double: ClassVar[bool] = True

    burn_in: int = 0
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, prior=checked_prior(self.prior))

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([*self.prior, self._discount()])

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Read the posterior of an arm; its effective size is a + b, the prior included."""
        successes, failures = column.tolist()
        a = self.prior[0] + successes * float(shared[SCALE])
        b = self.prior[1] + failures * float(shared[SCALE])
        return beta_belief(a, b, self._discount())
