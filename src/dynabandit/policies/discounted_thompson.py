"""D-TS: Thompson sampling on discounted counts, where every arm decays with every reward."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.errors import keep
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior, beta_belief, checked_prior
from dynabandit.policies.tuning_rules import DiscountTuned

__all__ = ["DiscountedTS", "common", "learn", "posterior", "start"]

# The decay that is common to all arms is stored as one scale, as in D-UCB: true count = count * scale
SUCCESSES, FAILURES = range(2)
SCALE = 0
SMALLEST_SCALE = 1e-100


class Params(NamedTuple):
    prior: Prior
    discount: float


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    if state.shared[SCALE] == 0.0:
        state.shared[SCALE] = 1.0
    state.memory[:, arm] = 0.0


@kernel
def common(state: PolicyState, number: int, params: Any) -> float:
    return state.shared[SCALE]


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    a = params.prior.a + state.memory[SUCCESSES, arm] * step.common
    return a, params.prior.b + state.memory[FAILURES, arm] * step.common


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    decay(state.memory, state.shared, params.discount)
    state.memory[SUCCESSES, arm] += reward.value / state.shared[SCALE]
    state.memory[FAILURES, arm] += (1.0 - reward.value) / state.shared[SCALE]


@kernel
def decay(memory: np.ndarray, shared: np.ndarray, discount: float) -> None:
    """Discount the counts of all arms; when the scale gets small, they are multiplied by it and it is set to 1."""
    shared[SCALE] *= discount
    if shared[SCALE] < SMALLEST_SCALE:
        for other in range(memory.shape[1]):
            memory[SUCCESSES, other] *= shared[SCALE]
            memory[FAILURES, other] *= shared[SCALE]
        shared[SCALE] = 1.0


@dataclass(frozen=True, kw_only=True)
class DiscountedTS(DiscountTuned):
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
    >>> db.policy("d-ts", changes=1, horizon=10_000).params(arms=2)
    Params(prior=Prior(a=1.0, b=1.0), discount=0.9975)

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
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=start, learn=learn, posterior=posterior, common=common, params=Params
    )
    needs_double: ClassVar[bool] = True

    burn_in: int = 0
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, prior=checked_prior(self.prior))

    def params(self, arms: int) -> Params:
        return Params(Prior(*self.prior), self._discount())

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Read the posterior of an arm; its effective size is a + b, the prior included."""
        successes, failures = column.tolist()
        a = self.prior[0] + successes * float(shared[SCALE])
        b = self.prior[1] + failures * float(shared[SCALE])
        return beta_belief(a, b, self._discount())
