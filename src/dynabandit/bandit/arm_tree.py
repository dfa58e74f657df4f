"""The draw tree of a bandit with many arms: built when a decision needs it, and then updated by plays and rewards.

Its leaves are the arms that can be chosen. The tree is a function of the state, the step and its cells, so that only
the cells are saved, and a bandit that is restored makes the same choices. If other arms can be chosen, it is built
again, because the posteriors of most policies depend on how many there are.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.bandit.serialization import array_from_json
from dynabandit.choosing import draw_tree
from dynabandit.choosing.choose_arm import Workspace
from dynabandit.choosing.draw_cells import BOUNDARY, EXCESS, SAVED
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.philox import MASK
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import Stream
from dynabandit.policies.base import PolicyFunctions, PolicyState, Step, compiled_for

Part = tuple[np.ndarray, np.ndarray]  # copies of the memory and the plays of the arms, if not of all columns
MOST_EXCLUDED = 64  # of the arms of the tree: a decision between the others closes these for a moment


@functools.cache
def choose_in_tree(functions: PolicyFunctions) -> Callable[..., int]:
    """Return choose(memory, shared, played, space, number, params, seed, fills): the arm to play at step `number`.

    If it only `fills`, the tree of `space` is brought up to date, and no arm is chosen. Both are one function, because
    compiling each takes long.
    """
    bring_up_to_date, decide = draw_tree.make_bring_up_to_date(functions), draw_tree.make_choose_in_tree(functions)
    common, prepare, read_params = functions.common, functions.prepare, vector_reader(functions.params)

    @kernel
    def choose(
        memory: np.ndarray,
        shared: np.ndarray,
        played: np.ndarray,
        space: Workspace,
        number: int,
        params: np.ndarray,
        seed: int,
        fills: bool,
    ) -> int:
        state, values = PolicyState(memory, shared, played[0], played[1], None), read_params(params)
        random = Stream(seed & MASK, (seed >> 32) & MASK, 0)
        step = Step(number, memory.shape[1], common(state, number, values), space.features, space.table, random)
        prepare(state, step, values)
        if fills:
            bring_up_to_date(space.tree, state, step, values)
            return -1
        return decide(space.tree, state, step, values, space.scratch)

    return compiled_for(functions, choose)


@functools.cache
def compiled_mark_arm() -> Callable[[np.ndarray, int, int], None]:
    """Return the compiled `draw_tree.mark_arm`, the same for all policies."""
    return compiled(draw_tree.mark_arm)


@functools.cache
def compiled_close_arm() -> Callable[[np.ndarray, int, int], None]:
    """Return the compiled `draw_tree.close_arm`, the same for all policies."""
    return compiled(draw_tree.close_arm)


def restored_cells(saved: list[Any]) -> np.ndarray:
    """Return the cells of a saved bandit, or raise an error if they are not valid."""
    cells = array_from_json(saved)
    if cells.shape != (SAVED,) or not np.isfinite(cells).all() or (np.diff(cells[BOUNDARY:]) >= 0.0).any():
        raise ValueError("cells must be the numbers of a tree")
    return cells


class TreeInput(NamedTuple):
    """What a bandit gives its tree: the state of all columns, the workspace without a tree, parameters and seed."""

    memory: np.ndarray
    shared: np.ndarray
    played: np.ndarray
    space: Workspace
    params: np.ndarray
    seed: int


class RestoreOnError:
    """A context that returns trees to the cells they had at its start if an error ends it."""

    def __init__(self, trees: Iterable["ArmTree | None"]) -> None:
        self._before = [(tree, tree.cells) for tree in trees if tree is not None]

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            for tree, cells in self._before:
                tree.restore(cells)


class ArmTree:
    """The tree of one bandit; `cells` are those of a saved bandit."""

    def __init__(self, functions: PolicyFunctions, cells: np.ndarray | None = None) -> None:
        self._functions, self._choose = functions, choose_in_tree(functions)
        self._cells = cells  # None before they are placed, by the first decision
        self._tree: np.ndarray | None = None
        self._columns = np.zeros(0, dtype=np.int64)  # of the arms of the tree, in order
        self._part: Part | None = None

    @property
    def cells(self) -> np.ndarray | None:
        """The numbers to save; None before the first decision."""
        return self._cells if self._tree is None else self._tree[0, :SAVED].copy()

    def copy(self) -> "ArmTree":
        """Return a tree with the same cells, which is built again when it is needed."""
        return ArmTree(self._functions, self.cells)

    def is_built(self, columns: np.ndarray) -> bool:
        """Whether the tree can choose between these columns; they must be the array that it was built for."""
        return self._tree is not None and self._columns is columns

    def build(self, given: TreeInput, number: int, columns: np.ndarray) -> None:
        """Build the tree for the decision of step `number` between some columns; an error changes nothing."""
        cells, part = self.cells, None
        if len(columns) < given.memory.shape[1]:
            part = np.ascontiguousarray(given.memory[:, columns]), np.ascontiguousarray(given.played[:, columns])
        tree = draw_tree.new_draw_trees(1, len(columns))[0]
        if cells is not None:
            tree[0, BOUNDARY:SAVED] = cells[BOUNDARY:]
        self._call(given, number, tree, part, fills=True)
        if cells is not None:  # only now: a decision places the boundaries again, and rewards can come before it
            tree[0, EXCESS] = cells[EXCESS]
        self._tree, self._columns, self._part = tree, columns, part

    def mark(self, given: TreeInput, column: int) -> None:
        """Note a play or a reward of a column."""
        if self._tree is None:
            return
        place = int(np.searchsorted(self._columns, column))
        if place == len(self._columns) or self._columns[place] != column:
            return
        if self._part is not None:
            for part, whole in zip(self._part, (given.memory, given.played), strict=True):
                part[:, place] = whole[:, column]
        compiled_mark_arm()(self._tree, place, len(self._columns))

    def forget(self) -> None:
        """Build the tree again before the next decision: many columns have changed."""
        self._cells, self._tree = self.cells, None

    def restore(self, cells: np.ndarray | None) -> None:
        """Return to the cells before a decision that was not made; if they are the same, the tree is kept."""
        now = self.cells
        if now is None or cells is None or not np.array_equal(now, cells):
            self._cells, self._tree = cells, None

    def choose(self, given: TreeInput, number: int, columns: np.ndarray, excluded: np.ndarray) -> int:
        """Return the column to play at step `number`: one of `columns` that is not `excluded`.

        Excluded arms still count as arms: posteriors that depend on the number of arms are those of all `columns`.
        """
        if not self.is_built(columns):
            self.build(given, number, columns)
        places, tree, part = np.searchsorted(columns, excluded).tolist(), self._tree, self._part
        assert tree is not None
        if places:
            self._call(given, number, tree, part, fills=True)  # what has not expired is not computed again
        try:
            for place in places:
                compiled_close_arm()(tree, place, len(columns))
            return int(columns[self._call(given, number, tree, part)])
        finally:
            for place in places:
                compiled_mark_arm()(tree, place, len(columns))

    def _call(self, given: TreeInput, number: int, tree: np.ndarray, part: Part | None, *, fills: bool = False) -> int:
        memory, played = (given.memory, given.played) if part is None else part
        space = given.space._replace(tree=tree)
        return int(self._choose(memory, given.shared, played, space, number, given.params, given.seed, fills))
