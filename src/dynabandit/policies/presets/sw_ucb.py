"""SW-UCB: upper confidence bounds on a sliding window of rewards."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.estimators import sample_mean
from dynabandit.estimators.sliding_window import retract
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.horizons.tuning_rules import WindowTuned
from dynabandit.policies.memories import reward_window
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.presets import ucb

XI = 0.6


class Params(NamedTuple):
    """The parameters of SW-UCB and SW-KL-UCB."""

    window: int


@kernel
def rewards_in_window(state: PolicyState, params: Params) -> float:
    """Return min(t, W), at least 1."""
    return max(min(state.shared[reward_window.COUNT], float(params.window)), 1.0)


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return math.sqrt(XI * math.log(rewards_in_window(state, params)))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    observe(state, arm, reward.value, params.window)


@kernel
def observe(state: PolicyState, arm: int, value: float, window: int) -> int:
    """Add a reward and return the arm whose oldest reward leaves the window, -1 if none does."""
    leaving, earlier = reward_window.take_oldest(state.shared, window)
    if leaving >= 0:
        retract_reward(state, leaving, earlier)
    ucb.observe(state, arm, value)
    reward_window.push(state.shared, arm, value)
    return leaving


@kernel
def retract_reward(state: PolicyState, arm: int, value: float) -> None:
    """Remove a reward; an arm without a reward in the window scores infinity."""
    memory = state.memory
    sums = retract(sample_mean.load(memory, arm), value)
    sample_mean.store(memory, arm, sums)
    if sums.plays > 0.0:
        memory[ucb.MEAN, arm] = sums.total / sums.plays
        memory[ucb.WIDTH, arm] = 1.0 / math.sqrt(sums.plays)
    else:
        memory[ucb.MEAN, arm] = math.inf
        memory[ucb.WIDTH, arm] = 0.0


@dataclass(frozen=True, kw_only=True)
class SWUCB(WindowTuned, SampleMeanPolicy):
    r"""Sliding-window UCB, which uses only the latest rewards. A baseline of the literature for changing means; with
    many arms it explores too much.

    The window moves with the rewards of all arms; a decision whose reward has not arrived yet does not move it.

    Parameters
    ----------
    window
        The window length in rewards of all arms; by default 2 sqrt(horizon log(horizon) / changes).
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        The expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("sw-ucb", changes=4, horizon=10_000).params(arms=2)
    Params(window=303)

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest W of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{0.6 \, \log \min(t, W)}{N_t(a)}}

    Cost per step: O(K), independent of W; memory: O(K + W).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "sw-ucb"
    slots: ClassVar[tuple[str, ...]] = ucb.SLOTS
    functions = PolicyFunctions(start=ucb.start, score=ucb.score, learn=learn, common=common, params=Params)

    burn_in: int = 1

    def params(self, arms: int) -> Params:
        return Params(self._window())
