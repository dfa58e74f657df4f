"""What the adapters share: a bandit whose arms have names of any kind, and come and go as the caller likes."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.errors import listed
from dynabandit.policies import Policy

__all__ = ["Seat"]


class _Bandit(Bandit):
    """A bandit that can be told of decisions that others made."""

    def note(self, column: int) -> None:
        """Count a step at which someone else chose this arm."""
        self._step += 1
        self._arms.play(column, self._step)


class Seat:
    """A bandit in the place of another tool's: arms are what that tool calls them.

    Examples
    --------
    >>> seat = Seat("ucb", [0, 1, "two"], seed=1)
    >>> [seat.choose() for _ in range(3)], seat.choose(among=[1])
    ([0, 1, 'two'], 1)
    """

    def __init__(self, policy: Policy | str, arms: Iterable[Hashable], seed: int | None = None) -> None:
        self.arms: list[Hashable] = list(arms)
        self._columns = {arm: column for column, arm in enumerate(self.arms)}
        if len(self._columns) < max(len(self.arms), 2):
            raise ValueError(f"arms must hold at least 2 different arms, got {self.arms!r}")
        self.bandit = _Bandit(policy, [str(column) for column in range(len(self.arms))], seed=seed)
        self._offered: Sequence[Hashable] = tuple(self.arms)

    def add(self, arm: Hashable) -> None:
        """Add an arm that nothing is known about."""
        if arm in self._columns:
            raise ValueError(f"arms must be different, got {arm!r} twice")
        self.bandit.add_arm(str(len(self.arms)))
        self._columns[arm] = len(self.arms)
        self.arms.append(arm)

    def remove(self, arm: Hashable) -> None:
        """Remove an arm for good."""
        self.bandit.remove_arm(str(self.column(arm)))
        del self._columns[arm]

    @property
    def active(self) -> list[Hashable]:
        """The arms that were not removed."""
        return list(self._columns)

    def __contains__(self, arm: Hashable) -> bool:
        return arm in self._columns

    def column(self, arm: Hashable) -> int:
        """Return the column of an arm, or raise an error that lists those there are."""
        if arm not in self._columns:
            raise ValueError(f"unknown arm {arm!r}. Arms: {listed(self._columns)}")
        return self._columns[arm]

    def choose(self, among: Iterable[Hashable] | None = None) -> Any:
        """Return the arm to play now; of those `among` only, where given."""
        self._offer(tuple(self._columns) if among is None else tuple(among))
        return self.arms[self.bandit.choose_column()]

    def _offer(self, arms: tuple[Hashable, ...]) -> None:
        if arms == self._offered:
            return
        if not arms:
            raise ValueError("arms must be offered to choose among, at least one, got none")
        wanted = {self.column(arm) for arm in arms}
        known = self.bandit.arms
        for column in self._columns.values():
            paused = known[str(column)].paused
            if paused and column in wanted:
                self.bandit.resume_arm(str(column))
            if not paused and column not in wanted:
                self.bandit.pause_arm(str(column))
        self._offered = arms

    def reward(self, arm: Hashable, value: float) -> None:
        """Take in a reward of an arm that was chosen."""
        self.bandit.reward(str(self.column(arm)), value)

    def note(self, arm: Hashable) -> None:
        """Count a step at which someone else chose this arm."""
        self.bandit.note(self.column(arm))

    def means(self) -> dict[Any, float]:
        """Return the mean reward that is expected of each arm; NaN where nothing is known."""
        known = self.bandit.arms
        return {arm: known[str(column)].mean for arm, column in self._columns.items()}
