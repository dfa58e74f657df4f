"""A bandit whose arms are any hashable objects and may differ from call to call; used by all integrations."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.features import FeatureEncoder
from dynabandit.policies import Policy
from dynabandit.validation import listed

Context = Mapping[str, Any] | None
VECTOR = "context"  # the name of the only feature where contexts are lists of numbers


def vector_features() -> FeatureEncoder:
    """Return an encoder that uses lists of numbers as they are, without a constant; the first one decides how many."""
    return FeatureEncoder([VECTOR], constant=False)


class _Bandit(Bandit):
    """A bandit that checks contexts in advance and shows its scores."""

    def check_contexts(self, contexts: Iterable[Context]) -> None:
        """Raise an error if one of some contexts does not fit the features."""
        encoder = None if self._contexts is None else self._contexts.encoder
        for context in contexts:
            if encoder is not None:
                encoder = encoder.fixed(context)
                encoder.encode(context)

    def scores(self, context: Context) -> list[float]:
        """Return the score of each open column in a context, as the next decision would compute it."""
        other = self.copy()
        other._by_policy(other._columns, self._step + 1, other._encoded(context))
        return other._space.scratch[0].tolist()


class BanditAdapter:
    """A bandit with the arm names of another library.

    Examples
    --------
    >>> adapter = BanditAdapter("ucb", [0, 1, "two"], seed=1)
    >>> [adapter.choose() for _ in range(3)], adapter.choose(among=[1])
    ([0, 1, 'two'], 1)
    """

    def __init__(
        self, policy: Policy | str, arms: Iterable[Hashable], seed: int | None = None, features: Any = None
    ) -> None:
        self.arms: list[Hashable] = list(arms)
        self._columns = {arm: column for column, arm in enumerate(self.arms)}
        if len(self._columns) < max(len(self.arms), 2):
            raise ValueError(f"arms must hold at least 2 different arms, got {self.arms!r}")
        self.bandit = _Bandit(policy, [str(column) for column in range(len(self.arms))], seed=seed, features=features)
        self._offered: Sequence[Hashable] = tuple(self.arms)

    def add(self, arm: Hashable) -> None:
        """Add a new arm."""
        if arm in self._columns:
            raise ValueError(f"arms must be different, got {arm!r} twice")
        self.bandit.add_arm(str(len(self.arms)))
        self._columns[arm] = len(self.arms)
        self.arms.append(arm)

    def remove(self, arm: Hashable) -> None:
        """Remove an arm permanently."""
        self.bandit.remove_arm(str(self.column(arm)))
        del self._columns[arm]

    @property
    def active(self) -> list[Hashable]:
        """The arms that have not been removed."""
        return list(self._columns)

    def __contains__(self, arm: Hashable) -> bool:
        return arm in self._columns

    def column(self, arm: Hashable) -> int:
        """Return the column of an arm, or raise an error that lists the known arms."""
        if arm not in self._columns:
            raise ValueError(f"unknown arm {arm!r}. Arms: {listed(self._columns)}")
        return self._columns[arm]

    def choose(self, among: Iterable[Hashable] | None = None, context: Context = None) -> Any:
        """Return the arm to play now, one of `among` where given."""
        self._offer(tuple(self._columns) if among is None else tuple(among))
        return self.arms[self.bandit.choose_column(context)]

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

    def reward(self, arm: Hashable, value: float, context: Context = None) -> None:
        """Learn from the reward of the latest decision for an arm; `context` replaces the one of the decision."""
        self.bandit.reward_column(self.column(arm), self.bandit.rewards.check(value), context=context)

    def record(self, arm: Hashable, context: Context = None) -> None:
        """Count a step at which this arm was chosen elsewhere."""
        self.bandit.play_column(self.column(arm), context)

    def scores(self, context: Context) -> dict[Any, float]:
        """Return the score of each arm in a context, as the next decision would compute it."""
        self._offer(tuple(self._columns))
        return dict(zip(self._columns, self.bandit.scores(context), strict=True))

    def means(self) -> dict[Any, float]:
        """Return the estimated mean reward of each arm; without rewards its prior mean, or NaN."""
        known = self.bandit.arms
        return {arm: known[str(column)].mean for arm, column in self._columns.items()}
