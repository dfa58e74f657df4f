"""SW-TS: Thompson sampling on a sliding window of rewards."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.sliding_window import retract
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.horizons.tuning_rules import WindowTuned
from dynabandit.policies.memories import reward_window, sample_mean_policy
from dynabandit.policies.presets import thompson


class Params(NamedTuple):
    prior: Prior
    window: int


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    leaving, earlier = reward_window.take_oldest(shared, params.window)
    if leaving >= 0:
        sample_mean.store(memory, leaving, retract(sample_mean.load(memory, leaving), earlier))
    sample_mean_policy.observe(state, arm, reward.value)
    reward_window.push(shared, arm, reward.value)


@dataclass(frozen=True, kw_only=True)
class SWTS(WindowTuned, thompson.TS):
    r"""Sliding-window Thompson sampling, which uses only the latest rewards. Use it if you know how fast the means
    change.

    The window moves with the rewards of all arms, as in `SWUCB`. An arm without a reward in the window is drawn from
    its prior.

    Parameters
    ----------
    window
        The window length in rewards of all arms. The default is the rule of SW-UCB, 2 sqrt(T log T / Y) for T steps and
        Y changes, which has the order of the paper's bound for abrupt changes up to the logarithm.
    changes
        Y, the expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    prior
        The Beta prior of each arm, a pair of numbers in [1e-12, 1e12].
    burn_in
        The number of plays of each arm before the policy decides; by default 0, so that the prior is used from the
        first step.

    Examples
    --------
    >>> import dynabandit as db
    >>> [db.policy("sw-ts", changes=changes, horizon=10_000).params(arms=2).window for changes in (1, 4)]
    [607, 303]

    Notes
    -----
    With S successes and F failures of the arm among the latest W rewards of all arms:

    .. math:: \theta \sim \mathrm{Beta}(a + S_W, \; b + F_W)

    Pending plays of an arm without a reward in the window count as failures.

    Cost per step: O(K), independent of W; memory: O(K + W).

    References
    ----------
    Trovò, Paladino, Restelli & Gatti (2020), Sliding-window Thompson sampling for non-stationary settings. JAIR 68.
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ts"
    functions = PolicyFunctions(
        start=sample_mean_policy.start, learn=learn, posterior=thompson.posterior, params=Params
    )

    prior: tuple[float, float] = (1.0, 1.0)

    def params(self, arms: int) -> Any:
        return Params(Prior(*self.prior), self._window())
