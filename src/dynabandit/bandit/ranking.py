"""The part of a bandit that ranks arms: the choice, and further choices among the arms that are left."""

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dynabandit.bandit.compiled import signed_seed
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
            columns = self.ranked_columns(count, context, among)
            propensities = self.place_propensities(columns, context, among)
            self.play_column(columns[0], context)
        return [RankedArm(self._arms.names[one], each) for one, each in zip(columns, propensities, strict=True)]

    def ranked_columns(
        self, count: int, context: ContextValues | None = None, among: SomeArms | None = None
    ) -> list[int]:
        """Return the columns of the ranking that `rank` would return; `play_column` of the first one records it.

        The parameters are those of `rank`.
        """
        return list(self.each_ranked_column(count, context, among))

    def each_ranked_column(
        self, count: int, context: ContextValues | None = None, among: SomeArms | None = None
    ) -> Iterator[int]:
        """Yield the columns of `ranked_columns`; each takes as long as a choice, and nothing may change between them.

        The parameters are those of `rank`.
        """
        step = self._next_step()
        count = count if count == 1 else integer("count", count, 1, len(self._arms))
        column, vector = self._next_column(step, context, among)
        yield column
        if count == 1:
            return
        left, other = self._candidates(among), copy.copy(self)
        other._shared = self._shared.copy()  # in which a policy may note what it computed for the first choice
        for place in range(1, min(count, len(left))):
            left = left[left != column]
            other._seed = seed_of_place(self._seed, place)
            other._signed_seed = signed_seed(other._seed)
            column = other._by_share_or_policy(self._allowed(left), step, vector)
            yield column

    def place_propensities(
        self, ranking: Sequence[int], context: ContextValues | None = None, among: SomeArms | None = None
    ) -> list[float]:
        """Return the propensity of each place of a `ranking` that was not recorded yet.

        The other parameters are those of `rank`.
        """
        found, left = [], self._candidates(among)
        for column in ranking:
            found.append(self.propensities(context, among=left)[self._arms.names[column]])
            left = left[left != column]
        return found
