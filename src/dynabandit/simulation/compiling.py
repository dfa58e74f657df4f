"""Compilation ahead of the first step, so that it can be spread over processes."""

import numpy as np

from dynabandit.core.compilation import is_cached
from dynabandit.core.streams import stream
from dynabandit.policies import Policy
from dynabandit.policies.argmax_tree import new_trees
from dynabandit.policies.choose_arm import SCRATCH_ROWS
from dynabandit.simulation.stepper import count_switches, empty_record, episodes
from dynabandit.simulation.work import initial_state

__all__ = ["compile_policy", "is_compiled"]


def is_compiled(policy: Policy, arms: int) -> bool:
    """Whether the machine code that a simulation of `policy` with so many arms needs is on disk."""
    return is_cached(episodes(policy.kernels, arms)) and (not policy.needs_tuning or is_cached(count_switches()))


def compile_policy(policy: Policy, arms: int) -> None:
    """Compile what a simulation of `policy` with so many arms needs, and keep it on disk.

    Examples
    --------
    >>> import dynabandit as db
    >>> compile_policy(db.policy("ucb"), arms=2)
    """
    means, best = np.zeros((1, 1, arms)), np.zeros((1, 1))
    record = empty_record(np.zeros(0, dtype=np.int64), replications=1, kept_steps=0)
    state = initial_state(policy, arms, np.zeros(1, dtype=np.int64), horizon=1)
    table, scratch = policy.kernels.table(arms, 1), np.zeros((SCRATCH_ROWS, arms))
    trees = new_trees(policy.kernels, 1, arms)
    # No step at all: the types of the arguments are what counts
    episodes(policy.kernels, arms)(
        state, record, table, scratch, trees, means, best, 1, 0, policy.burn_in, 0, stream(0)
    )
    if policy.needs_tuning:
        count_switches()(means, best, 0, np.full(1, -1), np.zeros(1, dtype=np.int64))
