"""The part of a bandit that ranks arms: the choice, and further choices among the arms that are left."""

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dynabandit.bandit.compiled import signed_seed
from dynabandit.bandit.decision import Decision
from dynabandit.bandit.decision_making import ContextValues, SomeArms
from dynabandit.bandit.propensities import Propensities
from dynabandit.core.streams import seed_of_place
from dynabandit.validation import integer


class RankedArm(NamedTuple):
    """An arm of a ranking, and the probability that it is chosen among the arms that the places before it left."""

    arm: str
    propensity: float


class Ranking(Propensities):
    """What `Bandit` does to rank arms."""

    def decide(
        self, context: ContextValues | None = None, among: SomeArms | None = None, *, propensity: bool = True
    ) -> Decision:
        """Choose the arm to play now, and compute the probability with which it was chosen. This is a step.

        It is the arm that `choose` would return.

        Parameters
        ----------
        context, among
            As for `choose`; `among` may also have columns.
        propensity
            Whether the exact probability is computed, where it is known (`exact_propensities`).

        Returns
        -------
        Decision
            The arm, its propensity, and what else was computed for it.

        Examples
        --------
        >>> from dynabandit import Bandit
        >>> bandit = Bandit("eps-greedy", arms=["a", "b"], seed=3, epsilon=0.5)
        >>> for _ in range(2):
        ...     arm = bandit.choose()
        ...     bandit.reward(arm, arm == "a")
        >>> decision = bandit.decide()
        >>> decision.arm, decision.step, decision.propensity
        ('a', 3, 0.75)
        """
        with self.undone_by_errors():
            [decision] = self.each_place(1, context, among, propensity=propensity)
            self.play_column(decision.column, context, vector=decision.vector)
        return decision

    def rank(
        self, count: int, context: ContextValues | None = None, among: Sequence[str] | None = None
    ) -> list[RankedArm]:
        """Return the best `count` arms in order, or all if there are fewer; this is one decision, for the first arm.

        The first one is the arm that `choose` would return. Each further one is the choice among the arms that are
        left, in the same state and with random numbers of its own. Report a reward for another arm than the first one
        by `reward(arm, value, chosen=first)`.

        Parameters
        ----------
        count
            How many arms.
        context, among
            As for `choose`.

        Returns
        -------
        list
            The arms in order, each with its name and its propensity: the probability that it is chosen among the arms
            that the places before it left.

        Examples
        --------
        >>> from dynabandit import Bandit
        >>> bandit = Bandit("ucb", arms=["a", "b", "c"], seed=1)
        >>> first, second = bandit.rank(2)
        >>> first, second
        (RankedArm(arm='a', propensity=1.0), RankedArm(arm='b', propensity=1.0))
        >>> bandit.reward(second.arm, 1, chosen=first.arm)
        >>> [arm.pending for arm in bandit.arms.values()], bandit.arms["b"].mean
        ([0, 0, 0], 1.0)
        """
        with self.undone_by_errors():
            places, left = list(self.each_place(count, context, among)), self._candidates(among)
            ranking = list[RankedArm]()
            for place in places:
                propensity = place.propensity
                if propensity is None:
                    propensity = self.propensities(context, among=left)[place.arm]
                ranking.append(RankedArm(place.arm, propensity))
                left = left[left != place.column]
            self.play_column(places[0].column, context, vector=places[0].vector)
        return ranking

    def ranked_columns(
        self, count: int, context: ContextValues | None = None, among: SomeArms | None = None
    ) -> list[int]:
        """Return the columns of the ranking that `rank` would return; `play_column` of the first one records it.

        The parameters are those of `rank`.
        """
        return [place.column for place in self.each_place(count, context, among, propensity=False)]

    def each_place(
        self,
        count: int,
        context: ContextValues | None = None,
        among: SomeArms | None = None,
        *,
        propensity: bool = True,
    ) -> Iterator[Decision]:
        """Yield the places of the ranking that `rank` would return, as decisions that are not recorded.

        Each takes as long as a choice, and nothing may change between them. `count`, `context` and `among` are as for
        `rank`. Without `propensity` the decisions have no probabilities.
        """
        count = count if count == 1 else integer("count", count, 1, len(self._arms))
        step, columns, vector = self._next_decision(context, among)
        first = self._decision(self, columns, step, vector, propensity)
        yield first
        if count == 1:
            return
        column, left, other = first.column, self._candidates(among), copy.copy(self)
        other._shared = self._shared.copy()  # in which a policy may note what it computed for the first choice
        for place in range(1, min(count, len(left))):
            left = left[left != column]
            other._seed = seed_of_place(self._seed, place)
            other._signed_seed = signed_seed(other._seed)
            decision = self._decision(other, self._allowed(left), step, vector, propensity)
            column = decision.column
            yield decision

    def _decision(
        self, chooser: "Ranking", columns: np.ndarray, step: int, vector: np.ndarray | None, propensity: bool
    ) -> Decision:
        """Return the decision between some columns that `chooser` makes: this bandit, or its copy for a later place."""
        column, scored = chooser._choose_between(columns, step, vector)
        probabilities = self._exact_probabilities(columns, vector, True, scored) if propensity else None
        known = None if probabilities is None else self._mixed(columns, probabilities)
        return Decision(self._arms.names[column], column, step, known, vector)
