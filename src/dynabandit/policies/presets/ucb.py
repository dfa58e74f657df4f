"""UCB: the sample mean plus a bonus for uncertainty."""

import math
from dataclasses import dataclass
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.estimators.sample_mean import Sums
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import sample_mean_policy
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.pending_plays import expected_mean, pending_plays

SLOTS = (*sample_mean_policy.SLOTS, "mean", "width")
PLAYS = SLOTS.index("plays")
MEAN = SLOTS.index("mean")
WIDTH = SLOTS.index("width")  # 1 / sqrt(N), so that a step needs no root and no division per arm


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    sample_mean_policy.start(state, arm, params)
    state.memory[MEAN, arm] = math.inf


@kernel
def common(state: PolicyState, number: int, params: Any) -> float:
    return math.sqrt(2.0 * math.log(float(max(number - 1, 1))))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    # mean + sqrt(2 log(t - 1) / N), section 3.2: t - 1 plays so far
    memory, pending = state.memory, pending_plays(state, arm)
    if pending == 0:
        return memory[MEAN, arm] + step.common * memory[WIDTH, arm]
    width = 1.0 / math.sqrt(memory[PLAYS, arm] + pending)  # as in `observe`: ties are equal to the last bit
    return expected_mean(memory[MEAN, arm], pending) + step.common * width


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    observe(state, arm, reward.value)


@kernel
def observe(state: PolicyState, arm: int, value: float) -> Sums:
    """Update an arm with a reward and return its new sums."""
    sums = sample_mean_policy.observe(state, arm, value)
    state.memory[MEAN, arm] = sums.total / sums.plays
    state.memory[WIDTH, arm] = 1.0 / math.sqrt(sums.plays)
    return sums


@dataclass(frozen=True, kw_only=True)
class UCB(SampleMeanPolicy):
    r"""Play the arm whose mean could be the largest: its average reward plus a bonus, which is large for arms with few
    plays. A baseline for constant means: it never forgets, so it reacts slowly to changes.

    Parameters
    ----------
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.simulate(db.policy("ucb"), db.environment("fixed", means=[0.2, 0.8]), horizon=100, seed=1)
    Simulation(ucb on fixed, 2 arms, 100 steps, 1 replication: mean total regret 6)

    Notes
    -----
    The score of an arm with N plays and the sample mean x, at step t:

    .. math:: \bar{x} + \sqrt{\frac{2 \log (t - 1)}{N}}

    The logarithm of t - 1 is our reading. The formula of Lu, Adams & Kantas (section 3.2) has log t next to the plays
    up to time t, and Auer et al. take the logarithm of the plays so far; at the decision of step t, these are t - 1.

    Cost per step: O(K).

    References
    ----------
    Auer, Cesa-Bianchi & Fischer (2002), Finite-time analysis of the multiarmed bandit problem.
    """

    name = "ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common)

    burn_in: int = 1
