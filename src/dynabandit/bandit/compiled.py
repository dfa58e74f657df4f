"""The compiled functions of a live bandit: one decision, one reward, propensities, decisions in blocks.

Arguments of `choose` and `learn` are flat arrays and numbers: unpacking a named tuple in every call takes longer than
most decisions.
"""

import functools
from collections.abc import Callable

import numpy as np

from dynabandit.choosing.choose_arm import Workspace, make_choose, make_count_choices
from dynabandit.core.compilation import kernel
from dynabandit.core.philox import MASK
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import Stream
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, compiled_for
from dynabandit.policies.pending_plays import begin_play
from dynabandit.simulation.compiled import make_learn_pending


def signed_seed(seed: int) -> int:
    """Return a 64-bit seed as the signed number that `choose` takes: larger ones would have a type of their own."""
    return seed - 2**64 if seed >= 2**63 else seed


@functools.cache
def compiled_choose(functions: PolicyFunctions) -> Callable[..., int]:
    """Return choose(memory, shared, played, scratch, number, params, table, seed), the arm to play.

    The rows of `played` are the latest step of each arm's plays and the number of its pending plays.
    """
    choose_arm, read_params = make_choose(functions), vector_reader(functions.params)

    @kernel
    def choose(
        memory: np.ndarray,
        shared: np.ndarray,
        played: np.ndarray,
        scratch: np.ndarray,
        number: int,
        params: np.ndarray,
        table: np.ndarray,
        seed: int,
    ) -> int:
        state = PolicyState(memory, shared, played[0], played[1], None)
        space = Workspace(scratch, scratch, table, table[:0])
        return choose_arm(state, number, read_params(params), space, Stream(seed & MASK, (seed >> 32) & MASK, 0))

    return compiled_for(functions, choose)


@functools.cache
def compiled_choose_in_context(functions: PolicyFunctions) -> Callable[..., int]:
    """Return choose(state, number, params, space, seed), the arm that a contextual policy plays."""
    choose_arm, read_params = make_choose(functions), vector_reader(functions.params)

    @kernel
    def choose(state: PolicyState, number: int, params: np.ndarray, space: Workspace, seed: int) -> int:
        return choose_arm(state, number, read_params(params), space, Stream(seed & MASK, (seed >> 32) & MASK, 0))

    return compiled_for(functions, choose)


@functools.cache
def compiled_choose_many(functions: PolicyFunctions) -> Callable[..., None]:
    """Return choose_many(state, first, params, space, seed, arms), which writes the arms to play from step `first` on.

    The plays are recorded in the state, and have no rewards.
    """
    choose_arm, read_params = make_choose(functions), vector_reader(functions.params)

    @kernel
    def choose_many(
        state: PolicyState, first: int, params: np.ndarray, space: Workspace, seed: int, arms: np.ndarray
    ) -> None:
        random, values = Stream(seed & MASK, (seed >> 32) & MASK, 0), read_params(params)
        for i in range(arms.size):
            arms[i] = choose_arm(state, first + i, values, space, random)
            begin_play(state, arms[i], first + i)

    return compiled_for(functions, choose_many)


@functools.cache
def compiled_count_choices(functions: PolicyFunctions) -> Callable[..., None]:
    """Return the compiled `make_count_choices` of a policy."""
    return compiled_for(functions, make_count_choices(make_choose(functions)))


@functools.cache
def compiled_learn(functions: PolicyFunctions) -> Callable[..., None]:
    """Return learn(memory, shared, played, arm, value, decided_at, arrived_at, params), `played` as in `choose`."""
    update, read_params = make_learn_pending(functions), vector_reader(functions.params)

    @kernel
    def learn(
        memory: np.ndarray,
        shared: np.ndarray,
        played: np.ndarray,
        arm: int,
        value: float,
        decided_at: int,
        arrived_at: int,
        params: np.ndarray,
    ) -> None:
        state = PolicyState(memory, shared, played[0], played[1], None)
        update(state, arm, Reward(value, decided_at, arrived_at, None), read_params(params))

    return compiled_for(functions, learn)


@functools.cache
def compiled_learn_in_context(functions: PolicyFunctions) -> Callable[..., None]:
    """Return learn(state, arm, reward, params), for a contextual policy."""
    update, read_params = make_learn_pending(functions), vector_reader(functions.params)

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: np.ndarray) -> None:
        update(state, arm, reward, read_params(params))

    return compiled_for(functions, learn)


def compiled_choose_and_learn(
    functions: PolicyFunctions, *, in_context: bool
) -> tuple[Callable[..., int], Callable[..., None]]:
    """Return the compiled functions of a live bandit: one chooses an arm, the other learns a reward."""
    if in_context:
        return compiled_choose_in_context(functions), compiled_learn_in_context(functions)
    return compiled_choose(functions), compiled_learn(functions)
