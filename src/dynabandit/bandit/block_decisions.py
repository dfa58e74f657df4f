"""Many decisions at a time, without rewards in between: one call of compiled code instead of one per decision."""

import numpy as np

from dynabandit.bandit.bandit import Bandit
from dynabandit.bandit.compiled import compiled_choose_many


def choose_columns(bandit: Bandit, count: int) -> list[int]:
    """Return the columns of the next decisions, as `count` calls of `choose_column` without a context would.

    Examples
    --------
    >>> bandit = Bandit("ucb", arms=["a", "b", "c"], seed=1)
    >>> choose_columns(bandit, 5), bandit.step
    ([0, 1, 2, 0, 2], 5)
    """
    chosen: list[int] = []
    while len(chosen) < count and (bandit._in_burn_in or not has_blocks(bandit)):
        chosen.append(bandit.choose_column())
    if len(chosen) < count:
        chosen += _block(bandit, count - len(chosen))
    return chosen


def has_blocks(bandit: Bandit) -> bool:
    """Whether the decisions of a bandit can be made in one call: they depend on nothing but the policy."""
    is_free = bandit._limits is None and bandit._contexts is None and len(bandit._columns) > 0
    return is_free and bandit._tree is None  # which changes with every play


def compile_blocks(bandit: Bandit) -> None:
    """Compile what `choose_columns` needs now instead of at its first use."""
    if has_blocks(bandit):
        _block(bandit.copy(), 1)


def _block(bandit: Bandit, count: int) -> list[int]:
    columns, arms = bandit._columns, bandit._arms
    state, places = bandit._state_of(columns), np.empty(count, dtype=np.int64)
    choose = compiled_choose_many(bandit.policy.functions)
    choose(state, bandit.step + 1, bandit._params, bandit._space, bandit._signed_seed, places)
    if not bandit._all_open:  # the state is then a copy
        arms.last_played[columns], arms.pending[columns] = state.last_played, state.pending
    chosen = columns[places]
    arms.plays += np.bincount(chosen, minlength=len(arms))
    bandit._step += count
    return chosen.tolist()
