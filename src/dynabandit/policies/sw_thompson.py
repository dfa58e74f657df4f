"""SW-TS: Thompson sampling on the latest rewards only."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.base import Belief
from dynabandit.estimators.sliding_window import retract
from dynabandit.policies import reward_window, sample_mean_policy, thompson
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.beta_posterior import Prior, beta_belief
from dynabandit.policies.tuning_rules import WindowTuned

__all__ = ["SWTS"]


class Params(NamedTuple):
    prior: Prior
    window: int


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    leaving, earlier = reward_window.oldest(shared, params.window)
    if leaving >= 0:
        sample_mean.store(memory, leaving, retract(sample_mean.load(memory, leaving), earlier))
    sample_mean_policy.observe(state, arm, reward.value)
    reward_window.push(shared, params.window, arm, reward.value)


@dataclass(frozen=True, kw_only=True)
class SWTS(WindowTuned, thompson.TS):
    r"""Sliding-window Thompson sampling: rewards older than the window count no more.

    The window moves with the rewards of all arms, as in `SWUCB`; an arm without a reward in it is drawn from its prior.
    A step costs the same for every length of the window.

    Parameters
    ----------
    window
        How many rewards, of all arms together, to look back. Without one, the rule of SW-UCB, 2 sqrt(T log T / Y) for T
        steps and Y changes: up to the logarithm, the order that the paper's bound for abrupt changes asks for.
    changes
        Y, how often the best arm is expected to change; by default a simulation counts it on its path, and 1 is the
        form that does not look.
    horizon
        T, how many steps are expected; a simulation takes its own.
    prior
        The Beta prior of every arm, a pair of positive numbers.
    burn_in
        How often each arm is played at first; by default the prior decides from the first step on.

    Examples
    --------
    >>> import dynabandit as db
    >>> [db.policy("sw-ts", changes=changes, horizon=10_000).params(arms=2).window for changes in (1, 4)]
    [607, 303]

    Notes
    -----
    With S successes and F failures of the arm among the latest W rewards of all arms:

    .. math:: \theta \sim \mathrm{Beta}(a + S_W, \; b + F_W)

    Cost of a step: O(K) for every W; memory: O(K + W).

    References
    ----------
    Trovò, Paladino, Restelli & Gatti (2020), Sliding-window Thompson sampling for non-stationary settings. JAIR 68.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name: ClassVar[str] = "sw-ts"
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=sample_mean_policy.start, learn=learn, posterior=thompson.posterior, params=Params
    )

    prior: tuple[float, float] = (1.0, 1.0)

    def params(self, arms: int) -> Any:
        return Params(Prior(*self.prior), self._window())

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Read the posterior of an arm; its effective size is a + b, the prior included."""
        a = self.prior[0] + float(column[thompson.TOTAL])
        b = self.prior[1] + float(column[thompson.PLAYS]) - float(column[thompson.TOTAL])
        return beta_belief(a, b, forgetting=1.0)
