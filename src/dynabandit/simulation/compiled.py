"""The compiled functions of simulations: a block of steps, changes of the best arm, and rewards learned again."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dynabandit.choosing.argmax_tree import new_trees
from dynabandit.choosing.choose_arm import is_pruned, new_workspace
from dynabandit.choosing.draw_tree import uses_draw_tree
from dynabandit.core.code_cache import is_cached
from dynabandit.core.compilation import compiled_once, inlined_kernel, kernel
from dynabandit.core.context import Context, empty_features
from dynabandit.core.records import to_row
from dynabandit.core.streams import stream
from dynabandit.environments.delays import NO_DELAY
from dynabandit.environments.reward_laws import BERNOULLI, Bernoulli, RewardFunctions
from dynabandit.policies import Policy
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, compiled_for
from dynabandit.policies.pending_plays import UNKNOWN_STEP, end_play
from dynabandit.simulation.request import initial_states
from dynabandit.simulation.stepper import Block, Paths, add_changes, empty_record, make_play


def compiled_play(
    functions: PolicyFunctions, arms: int, law: RewardFunctions = Bernoulli.functions, *, delayed: bool = False
) -> Callable[..., None]:
    """Return the compiled `make_play` of a policy; numbers of arms with the same method share it."""
    in_tree = uses_draw_tree(functions, arms)
    return _play(functions, law, functions.posterior is not None and is_pruned(arms), delayed, in_tree)


@functools.cache
def _play(
    functions: PolicyFunctions, law: RewardFunctions, pruned: bool, delayed: bool, in_tree: bool
) -> Callable[..., None]:
    return compiled_for(functions, make_play(functions, law, pruned=pruned, delayed=delayed, in_tree=in_tree))


def make_learn_pending(functions: PolicyFunctions) -> Callable[..., None]:
    """Return learn(state, arm, reward, params) for an arm that was played before: one of its plays is over.

    A decision at `UNKNOWN_STEP` is taken for the latest one of the arm.
    """
    update = functions.learn

    @inlined_kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        end_play(state, arm, reward.decided_at)
        decided_at = state.last_played[arm] if reward.decided_at == UNKNOWN_STEP else reward.decided_at
        update(state, arm, Reward(reward.value, decided_at, reward.arrived_at, reward.features), params)

    return learn


@functools.cache
def compiled_learn_many(functions: PolicyFunctions) -> Callable[..., None]:
    """Return learn_many(state, arms, values, decided_at, arrived_at, features, params), for rewards of earlier plays.

    The rows of `features` are those of the chosen arms, for a contextual policy.
    """
    update, contextual = make_learn_pending(functions), functions.contextual

    @kernel
    def learn_many(
        state: PolicyState,
        arms: np.ndarray,
        values: np.ndarray,
        decided_at: np.ndarray,
        arrived_at: np.ndarray,
        features: np.ndarray,
        params: Any,
    ) -> None:
        for i in range(arms.size):
            own = features[i] if contextual else None
            update(state, arms[i], Reward(values[i], decided_at[i], arrived_at[i], own), params)

    return compiled_for(functions, learn_many)


def is_compiled(policy: Policy, arms: int) -> bool:
    """Whether the machine code that a simulation of `policy` with so many arms needs is on disk."""
    return is_cached(compiled_play(policy.functions, arms)) and (
        not policy.needs_tuning or is_cached(compiled_once(add_changes))
    )


def compile_policy(policy: Policy, arms: int) -> None:
    """Compile what a simulation of `policy` with so many arms needs, and cache it on disk.

    Examples
    --------
    >>> import dynabandit as db
    >>> compile_policy(db.policy("ucb"), arms=2)
    """
    context = Context(dimension=1, per_arm=False) if policy.functions.contextual else None
    features = empty_features(context, arms, 1, 1)
    paths = Paths(np.zeros((1, 1, arms)), np.zeros((1, 1)), to_row(BERNOULLI.params()), np.zeros((1, arms)), features)
    record = empty_record(np.zeros(0, dtype=np.int64), replications=1, kept_steps=0)
    states = initial_states(policy, arms, np.zeros(1, dtype=np.int64), horizon=1, context=context)
    space = new_workspace(policy.functions, arms, 1)._replace(tree=new_trees(policy.functions, 1, arms))
    # No steps: only the types of the arguments matter
    block = Block(1, 0, policy.burn_in, 0, False)
    compiled_play(policy.functions, arms)(states, record, paths, block, space, NO_DELAY, stream(0))
    if policy.needs_tuning:
        compiled_once(add_changes)(paths.means, paths.best, 0, np.full(1, -1), np.zeros(1, dtype=np.int64))
