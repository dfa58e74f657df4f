"""The Kullback-Leibler index of a sample mean, shared by several policies."""

import math
from typing import Any

from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState, Step
from dynabandit.policies.memories import sample_mean_policy
from dynabandit.policies.pending_plays import expected_mean, pending_plays

SLOTS = (*sample_mean_policy.SLOTS, "mean", "negentropy", "inverse")
PLAYS = SLOTS.index("plays")
MEAN = SLOTS.index("mean")
NEGENTROPY = SLOTS.index("negentropy")
INVERSE = SLOTS.index("inverse")  # 1 / N
INDICES = ("kl-ucb", "ucb")  # of a policy with a choice between this index and `ucb_index`
UNSEEN = 2.0  # a mean above this is infinite; fast arithmetic on a GPU need not compare infinities correctly


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    """Write the state of an arm without rewards, which is played first."""
    state.memory[:, arm] = 0.0
    state.memory[MEAN, arm] = math.inf


@kernel
def observe(state: PolicyState, arm: int, value: float) -> None:
    """Update an arm with a reward, and store what the index needs."""
    sums = sample_mean_policy.observe(state, arm, value)
    mean = min(sums.total / sums.plays, 1.0)
    state.memory[MEAN, arm] = mean
    state.memory[NEGENTROPY, arm] = negentropy(mean)
    state.memory[INVERSE, arm] = 1.0 / sums.plays


@kernel
def index(state: PolicyState, arm: int, level: float) -> float:
    """Return the largest q with N kl(mean, q) <= level; infinity for an arm without rewards and pending plays."""
    memory, pending = state.memory, pending_plays(state, arm)
    if pending == 0:
        return bound(memory[MEAN, arm], memory[NEGENTROPY, arm], level * memory[INVERSE, arm])
    return pending_bound(memory[MEAN, arm], pending, level * (1.0 / (memory[PLAYS, arm] + pending)))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    """Return the index with the level that all arms share."""
    return index(state, arm, step.common)


@kernel
def ucb_index(state: PolicyState, arm: int, level: float) -> float:
    """Return the index of UCB, mean + sqrt(2 level / N), from the same slots."""
    memory, pending = state.memory, pending_plays(state, arm)
    if pending == 0:
        return memory[MEAN, arm] + math.sqrt(2.0 * level * memory[INVERSE, arm])
    size = memory[PLAYS, arm] + pending
    return expected_mean(memory[MEAN, arm], pending) + math.sqrt(2.0 * level * (1.0 / size))


@kernel
def bound(mean: float, negentropy: float, level: float) -> float:
    """Return the largest q with kl(mean, q) <= level; infinity for an arm without rewards."""
    return mean if mean > UNSEEN else upper_bound(mean, negentropy, level)


@kernel
def pending_bound(mean: float, pending: int, level: float) -> float:
    """Return the largest q with kl(mean, q) <= level for an arm with pending plays.

    The level is that of the policy divided by the observations, pending plays included, in the same way as without
    pending plays: so ties are equal to the last bit.
    """
    mean = expected_mean(mean, pending)
    return upper_bound(mean, negentropy(mean), level)
