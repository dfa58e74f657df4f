"""The part of a bandit that says how likely each choice is: exactly where that is known, else from draws."""

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from dynabandit.bandit.compiled import compiled_count_choices, signed_seed
from dynabandit.bandit.decision import ColumnProbabilities
from dynabandit.bandit.decision_making import ContextValues, DecisionMaking, SomeArms
from dynabandit.choosing.choice_probabilities import (
    LAW_NUMBERS,
    Choice,
    probabilities_of,
    probabilities_of_ties,
    with_exploration,
)
from dynabandit.choosing.choose_arm import Workspace
from dynabandit.core.streams import LARGEST_STEP, seed_of_place, shifted, stream
from dynabandit.policies import PolicyState
from dynabandit.policies.base import no_preparation
from dynabandit.validation import integer

NUMBERS_AT_ONCE = 4_000_000  # of a state times draws, in one part of the draws


class Propensities(DecisionMaking):
    """What `Bandit` does to compute propensities; it sets the attributes."""

    _choice_law: Choice | None
    _write_laws: Callable[..., None]

    def propensities(
        self,
        context: ContextValues | int | np.integer[Any] | None = None,
        draws: int = 200,
        count_pending: bool = True,
        between: Callable[[], None] = lambda: None,
        among: SomeArms | None = None,
    ) -> dict[str, float]:
        """Return the probability that the next `choose` takes each arm.

        It is exact where `exact_propensities` is; otherwise it is estimated from draws, except for the part of a
        minimum share.

        Parameters
        ----------
        context, among
            As for `choose`.
        draws
            How many independent draws it is estimated from.
        count_pending
            If false, the policy decides as if no reward were in flight, as release 0.1.0 did.
        between
            Called between parts of the draws; it may end the work by an error.

        Returns
        -------
        dict
            From the names of arms to probabilities.
        """
        if isinstance(context, int | np.integer):  # release 0.1.0 had (draws, count_pending)
            if isinstance(draws, bool):
                count_pending = draws
            draws, context = integer("draws", context, 1, LARGEST_STEP), None
        draws = integer("draws", draws, 1, LARGEST_STEP)
        if len(self._columns) == 0:
            return {}
        bandit = self._with_fixed_kinds(context)
        vector, columns = bandit._encoded(context), self._allowed(self._candidates(among))
        probabilities = bandit._exact_probabilities(columns, vector, count_pending)
        if probabilities is None:
            probabilities = bandit._shares_of_draws(columns, vector, count_pending, draws, between)
        return self._named(*self._mixed(columns, probabilities))

    def exact_propensities(
        self, context: ContextValues | None = None, among: SomeArms | None = None, count_pending: bool = True
    ) -> dict[str, float] | None:
        """Return the probability that the next `choose` takes each arm, with an error below 1e-6.

        Returns None if it is not known: the scores of the policy are random and have no known law, or the policy is
        Thompson sampling with more than 100 arms (docs/offline.md has a table). The parameters are those of
        `propensities`.

        Examples
        --------
        >>> from dynabandit import Bandit
        >>> bandit = Bandit("ts", arms=["a", "b"], seed=1)
        >>> bandit.reward("a", 1)
        >>> {arm: round(p, 6) for arm, p in bandit.exact_propensities().items()}  # of Beta(3, 2) and Beta(2, 2)
        {'a': 0.628571, 'b': 0.371429}
        """
        found = self.exact_probabilities(context, among, count_pending)
        return None if found is None else self._named(*found)

    def exact_probabilities(
        self, context: ContextValues | None = None, among: SomeArms | None = None, count_pending: bool = True
    ) -> ColumnProbabilities | None:
        """Return what `exact_propensities` returns, by column: with many arms that is much faster.

        The parameters are those of `propensities`.
        """
        if len(self._columns) == 0:
            return ColumnProbabilities(self._columns, np.zeros(0))
        bandit = self._with_fixed_kinds(context)
        vector, columns = bandit._encoded(context), self._allowed(self._candidates(among))
        probabilities = bandit._exact_probabilities(columns, vector, count_pending)
        return None if probabilities is None else self._mixed(columns, probabilities)

    def _with_fixed_kinds(self, context: ContextValues | None) -> Self:
        """Return the bandit, or a copy of it whose features have the kinds that this first context would decide."""
        if self._contexts is None or not self._contexts.encoder.is_open:
            return self
        fixed = copy.copy(self)
        fixed._contexts = self._contexts.copy()
        fixed._encoded(context)
        return fixed

    def _mixed(self, columns: np.ndarray, probabilities: np.ndarray) -> ColumnProbabilities:
        """Return the probability of each column, those of minimum shares included."""
        if self._limits is not None:
            probabilities = self._limits.mixed(columns, probabilities)
        return ColumnProbabilities(columns, probabilities)

    def _named(self, columns: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
        names = self._arms.names
        return {names[column]: p for column, p in zip(columns.tolist(), probabilities.tolist(), strict=True)}

    def _exact_probabilities(
        self, columns: np.ndarray, vector: np.ndarray | None, count_pending: bool, scored: Workspace | None = None
    ) -> np.ndarray | None:
        """Return the probability with which the policy chooses each of the columns, or None if it is not known.

        `scored` has the scores of the columns, if the policy has just chosen between them.
        """
        choice, burning = self._choice_law, self._burn_in_column(columns) if self._in_burn_in else -1
        if burning >= 0:
            return np.asarray(columns == burning, dtype=float)
        if choice is None or not choice.allows(len(columns)):
            return None
        scores = None if scored is None else scored.scratch[0, : len(columns)]
        if choice.law is None and choice.exploration is None and scores is not None:
            return probabilities_of_ties(scores)
        functions = self._policy.functions
        prepares = functions.prepare is not no_preparation  # and may write to the state
        copied = not count_pending or prepares
        state = self._state_of(columns, copied=copied)
        if not count_pending:
            state.pending[:] = 0
        step, (params, space) = self._step + 1, self._workspace(columns, vector)
        if choice.law is None:
            if scores is None or prepares:
                scores = self._scores(state, params, space)
            probabilities = probabilities_of_ties(scores)
        else:
            laws = np.empty((len(columns), LAW_NUMBERS))
            self._write_laws(state, step, params, space, laws)
            found = probabilities_of(choice, laws)
            if found is None:
                return None
            probabilities = found
        if choice.exploration is None:
            return probabilities
        return with_exploration(functions, choice.exploration, (state, step, params, space), probabilities)

    def _scores(self, state: PolicyState, params: np.ndarray, space: Workspace) -> np.ndarray:
        """Return the score of each arm at the next decision."""
        step, seed = self._step + 1, self._signed_seed
        if self._models is None:
            whole = state.memory is self._memory
            played = self._arms.played if whole else np.stack([state.last_played, state.pending])
            self._choose(state.memory, state.shared, played, space.scratch, step, params, space.table, seed)
        else:
            self._choose(state, step, params, space, seed)
        return space.scratch[0, : len(state.last_played)]

    def _shares_of_draws(
        self,
        columns: np.ndarray,
        vector: np.ndarray | None,
        count_pending: bool,
        draws: int,
        between: Callable[[], None],
    ) -> np.ndarray:
        """Return the share of each column among independent draws of the policy's choice."""
        excluded = None if self._tree is None else self._excluded(columns)
        if excluded is not None and len(excluded) > 0:
            return self._shares_in_tree(columns, excluded, count_pending, draws, between)
        counts = np.zeros(len(columns), dtype=np.int64)
        params, space = self._policy.params(len(columns)), self._sized(len(columns))[1]
        count = compiled_count_choices(self._policy.functions)
        state = self._state_of(columns, copied=True)
        state.pending[:] *= count_pending
        if self._models is not None:
            space = space._replace(features=self._features(vector, columns))
        size = sum(part.size for part in state if part is not None)
        part = max(1, NUMBERS_AT_ONCE // size)
        for first in range(0, draws, part):
            between()
            random = shifted(stream(self._seed), first)
            count(state, self._step + 1, params, space, random, counts, min(part, draws - first))
        return np.asarray(counts / draws)

    def _shares_in_tree(
        self,
        columns: np.ndarray,
        excluded: np.ndarray,
        count_pending: bool,
        draws: int,
        between: Callable[[], None],
    ) -> np.ndarray:
        """Return the shares for a decision that leaves out a few of many arms, which still count as arms."""
        assert self._tree is not None
        played = np.stack([self._arms.last_played, self._arms.pending * count_pending])
        given = self._tree_input()._replace(shared=self._shared.copy(), played=played)
        tree, chosen = self._tree.copy(), []
        for draw in range(draws):
            between()
            seed = signed_seed(seed_of_place(self._seed, -1 - draw))  # places of rankings have others
            chosen.append(tree.choose(given._replace(seed=seed), self._step + 1, self._columns, excluded))
        return np.asarray(np.bincount(np.searchsorted(columns, chosen), minlength=len(columns)) / draws)
