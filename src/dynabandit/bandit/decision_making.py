"""The part of a bandit that decides: burn-in, reserved traffic or the policy's choice, with or without context."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit.arm_tree import MOST_EXCLUDED, ArmTree, RestoreOnError, TreeInput
from dynabandit.bandit.arms import ArmColumns
from dynabandit.bandit.contexts import Contexts
from dynabandit.bandit.live_policies import check_state_size
from dynabandit.bandit.traffic_limits import TrafficLimits
from dynabandit.choosing.choose_arm import Workspace, new_workspace
from dynabandit.choosing.draw_tree import uses_draw_tree
from dynabandit.core.records import to_row
from dynabandit.core.streams import LARGEST_LIVE_STEP, SHARE, stream, uniform
from dynabandit.policies import Policy, PolicyState
from dynabandit.simulation.stepper import least_played_arm
from dynabandit.validation import integer

TABLE_HORIZON = 1024  # the length of a policy's table; beyond it the policy computes the same numbers one by one
ContextValues = Mapping[str, Any]
Columns = Sequence[int] | np.ndarray
SomeArms = Columns | Sequence[str]  # columns or names


class DecisionMaking:
    """What `Bandit` does to make a decision; it sets the attributes."""

    _policy: Policy
    _arms: ArmColumns
    _limits: TrafficLimits | None
    _contexts: Contexts | None
    _memory: np.ndarray
    _shared: np.ndarray
    _models: np.ndarray | None
    _columns: np.ndarray  # those that can be chosen
    _all_open: bool  # whether these are all columns
    _in_burn_in: bool
    _params: np.ndarray
    _space: Workspace
    _seed: int
    _signed_seed: int
    _step: int
    _choose: Callable[..., int]
    _tree: ArmTree | None  # with many arms, if the policy draws from posteriors

    def choose(self, context: ContextValues | None = None, among: Sequence[str] | None = None) -> str:
        """Return the arm to play now. This is a step, whether or not its reward arrives.

        Parameters
        ----------
        context
            The values of the features, by name; needed if the bandit has features.
        among
            The names of the arms to choose from; by default all that are not paused.

        Returns
        -------
        str
            The name of the arm; `reward` takes it.
        """
        return self._arms.names[self.choose_column(context, among)]

    def choose_column(self, context: ContextValues | None = None, among: SomeArms | None = None) -> int:
        """Return the column of the arm to play now, its place in `names`.

        The parameters are those of `choose`; `among` may also have columns.
        """
        step, columns, vector = self._next_decision(context, among)
        column, _ = self._choose_between(columns, step, vector)
        self._record_play(column, step, vector, context)
        return column

    def _next_decision(
        self, context: ContextValues | None, among: SomeArms | None
    ) -> tuple[int, np.ndarray, np.ndarray | None]:
        """Return the number of the next decision, the columns that it may choose, and the vector of its context."""
        step = self._next_step()
        if len(self._columns) == 0:
            raise ValueError("no arm can be chosen: every arm is paused; resume one, or add another")
        vector = None if self._contexts is None and context is None else self._encoded(context)
        return step, self._allowed(self._candidates(among)), vector

    def _choose_between(
        self, columns: np.ndarray, step: int, vector: np.ndarray | None
    ) -> tuple[int, Workspace | None]:
        """Return the column to play, and the workspace with the scores of `columns` if they decided."""
        if self._limits is None and columns is self._columns:
            return self._by_burn_in_or_policy(step, vector)
        return self._by_share_or_policy(columns, step, vector)

    def check_context(self, context: ContextValues | None) -> None:
        """Raise an error unless a decision can have this context."""
        self._encoded(context)

    def available_columns(self, among: Columns | None = None) -> np.ndarray:
        """Return the columns whose arms are neither paused nor removed, in order; with `among`, those of these columns.

        The array must not be changed.
        """
        return self._columns if among is None else self._arms.available(among)

    def is_available(self, column: int) -> bool:
        """Return whether the arm of a column is neither paused nor removed."""
        return bool(self._arms.active[column] and not self._arms.paused[column])

    def _candidates(self, among: SomeArms | None) -> np.ndarray:
        """Return the columns that a decision may choose: not paused, and of the asked ones."""
        if among is None:
            return self._columns
        if not isinstance(among, np.ndarray):
            among = np.array([self._arms.of(one) if isinstance(one, str) else one for one in among], dtype=np.int64)
        columns = self._arms.available(among)
        if len(columns) == 0:
            raise ValueError("no arm can be chosen: every arm of among is paused or was removed")
        return columns

    def _allowed(self, columns: np.ndarray) -> np.ndarray:
        """Return those of the columns that are below their maximum share."""
        return columns if self._limits is None else self._limits.allowed(columns)

    def play_column(
        self,
        column: int,
        context: ContextValues | None = None,
        *,
        counts_for_shares: bool = True,
        vector: np.ndarray | None = None,
    ) -> None:
        """Record a decision for a column that was made elsewhere, as if `choose_column` had returned `column`.

        Its `context` is as for `choose`; `vector` is that of the context, if it is known. Unless it
        `counts_for_shares`, the shares of arms are those of the other decisions.

        Examples
        --------
        >>> from dynabandit import Bandit
        >>> bandit = Bandit("ucb", arms=["a", "b"], seed=1)
        >>> bandit.play_column(1)
        >>> bandit.step, bandit.arms["b"].plays
        (1, 1)
        """
        step, column = self._next_step(), integer("column", column, 0, len(self._arms) - 1)
        vector = self._encoded(context) if vector is None else vector
        self._record_play(column, step, vector, context, counts_for_shares)

    def _encoded(self, context: ContextValues | None) -> np.ndarray | None:
        """Return the vector of a context; the first one decides the kinds of features of which only names are known."""
        if self._contexts is None:
            if context is not None:
                raise TypeError(f"context must be None: the bandit was made without features=..., got {context!r}")
            return None
        if self._contexts.encoder.is_open:
            self._fix_kinds(self._contexts, context)
        return self._contexts.encoded(context)

    def _fix_kinds(self, contexts: Contexts, context: ContextValues | None) -> None:
        encoder = contexts.encoder
        contexts.encoder = encoder.fixed(context)
        try:
            check_state_size(self._policy, len(self._arms), contexts.shape)
            if self._models is not None:
                self._models = self._policy.initial_models(len(self._arms), contexts.shape)
        except ValueError:
            contexts.encoder = encoder
            raise

    def _next_step(self) -> int:
        step = self._step + 1
        return step if step <= LARGEST_LIVE_STEP else integer("step", step, 1, LARGEST_LIVE_STEP)

    def _record_play(
        self,
        column: int,
        step: int,
        vector: np.ndarray | None,
        context: ContextValues | None,
        counts_for_shares: bool = True,
    ) -> None:
        self._step = step
        self._arms.play(column, step)
        if self._limits is not None and counts_for_shares:
            self._limits.plays[column] += 1
        if self._contexts is not None and vector is not None:
            self._contexts.record(step, column, vector, context)
        self._mark_in_tree(column)

    def _mark_in_tree(self, column: int) -> None:
        """Note that a column was played, or that one of its plays or rewards is no longer pending."""
        if self._tree is not None:
            self._tree.mark(self._tree_input(), column)

    def _by_burn_in_or_policy(self, step: int, vector: np.ndarray | None) -> tuple[int, Workspace | None]:
        column = self._burn_in_column(self._columns) if self._in_burn_in else -1
        if column >= 0:
            return column, None
        self._in_burn_in = False
        if not self._all_open or self._models is not None or self._tree is not None:
            return self._by_policy(self._columns, step, vector)
        memory, shared, played, space = self._memory, self._shared, self._arms.played, self._space
        column = self._choose(memory, shared, played, space.scratch, step, self._params, space.table, self._signed_seed)
        return self._checked(column, space), space

    def _by_share_or_policy(
        self, columns: np.ndarray, step: int, vector: np.ndarray | None
    ) -> tuple[int, Workspace | None]:
        """Return the column that is chosen among some, by its minimum share or else by the policy."""
        limits = self._limits
        place = -1 if limits is None else limits.reserved(columns, uniform(stream(self._seed), SHARE, step, 0))
        column = int(columns[place]) if place >= 0 else self._burn_in_column(columns)
        return (column, None) if column >= 0 else self._by_policy(columns, step, vector)

    def _workspace(self, columns: np.ndarray, vector: np.ndarray | None) -> tuple[np.ndarray, Workspace]:
        """Return the parameters and the workspace of a decision between some columns."""
        params, space = (self._params, self._space) if len(columns) == len(self._columns) else self._sized(len(columns))
        if self._models is not None:
            space = Workspace(space.scratch, space.tree, space.table, self._features(vector, columns))
        return params, space

    def _by_policy(self, columns: np.ndarray, step: int, vector: np.ndarray | None) -> tuple[int, Workspace | None]:
        """Return the column that the policy chooses, and the workspace with the scores unless a tree chose it."""
        excluded = self._excluded(columns) if self._tree is not None else None
        if self._tree is not None and excluded is not None:
            return self._tree.choose(self._tree_input(), step, self._columns, excluded), None
        params, space = self._workspace(columns, vector)
        if self._models is None:
            memory, played = self._part_of(columns)
            place = self._choose(
                memory, self._shared, played, space.scratch, step, params, space.table, self._signed_seed
            )
        else:
            place = self._choose(self._state_of(columns), step, params, space, self._signed_seed)
        return int(columns[self._checked(place, space)]), space

    def _checked(self, place: int, space: Workspace) -> int:
        """Return the place of the chosen arm, or raise an error if its score is not a number."""
        if math.isnan(space.scratch[0, place]):
            raise ValueError(
                f"policy {self._policy.label!r} cannot decide: what it has learned gives scores that are not numbers; "
                "change its parameters, or use another policy"
            )
        return int(place)

    def _excluded(self, columns: np.ndarray) -> np.ndarray | None:
        """Return the columns that a decision between `columns` leaves out, or None if the tree is no use for it."""
        missing = len(self._columns) - len(columns)
        if missing > MOST_EXCLUDED or not uses_draw_tree(self._policy.functions, len(columns)):
            return None
        return columns[:0] if missing == 0 else np.setdiff1d(self._columns, columns, assume_unique=True)

    def undone_by_errors(self, *others: "DecisionMaking") -> RestoreOnError:
        """Undo the changes of a choice, those of the tree's cells, if an error comes before its play is recorded.

        `others` are bandits that choose at the same time. This is a context manager.
        """
        return RestoreOnError([one._tree for one in (self, *others)])

    def _tree_input(self) -> TreeInput:
        return TreeInput(self._memory, self._shared, self._arms.played, self._space, self._params, self._signed_seed)

    @property
    def unbuilt_arms(self) -> int:
        """How many arms the tree has that `build_tree` would build; 0 if the next decision needs no new one."""
        if self._tree is None or self._tree.cells is None or self._tree.is_built(self._columns):
            return 0
        return len(self._columns)

    def build_tree(self) -> None:
        """Build what decisions between many arms need, if there was one before; for any thread.

        Otherwise the next decision builds it, which takes about a tenth of a second with 100,000 arms.
        """
        if self._tree is not None and self.unbuilt_arms > 0:
            self._tree.build(self._tree_input(), self._step + 1, self._columns)

    def _features(self, vector: np.ndarray | None, columns: np.ndarray) -> np.ndarray:
        assert self._contexts is not None
        assert vector is not None
        return self._contexts.features(vector, columns)

    def _part_of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of the memory, the latest plays and the pending plays of some of the columns."""
        return np.ascontiguousarray(self._memory[:, columns]), np.ascontiguousarray(self._arms.played[:, columns])

    def _state_of(self, columns: np.ndarray, *, copied: bool = False) -> PolicyState:
        """Return the state of some of the columns; a copy if they are not all of them.

        If there is a model for each column, further ones belong to all arms.
        """
        models = self._models
        if len(columns) == len(self._arms) and not copied:
            return PolicyState(self._memory, self._shared, self._arms.last_played, self._arms.pending, models)
        memory, played = self._part_of(columns)
        if models is not None:
            rows = [0] if len(models) == 1 else [*columns, *range(len(self._arms), len(models))]
            models = models[rows]
        shared = self._shared.copy() if copied else self._shared
        return PolicyState(memory, shared, played[0], played[1], models)

    def _sized(self, arms: int) -> tuple[np.ndarray, Workspace]:
        return to_row(self._policy.params(arms)), new_workspace(self._policy.functions, arms, TABLE_HORIZON)

    def _burn_in_column(self, columns: np.ndarray) -> int:
        """Return the column that the burn-in plays, or -1 after the burn-in."""
        place = least_played_arm(self._arms.plays[columns], self._policy.burn_in)
        return int(columns[place]) if place >= 0 else -1
