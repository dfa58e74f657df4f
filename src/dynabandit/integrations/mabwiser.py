"""A policy of dynabandit in the calling convention of MABWiser."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from dynabandit.errors import reward as checked_reward
from dynabandit.integrations.bandit_adapter import Seat
from dynabandit.policies import Policy, policy as make_policy

__all__ = ["MAB"]


class MAB:
    """A bandit with `fit`, `partial_fit` and `predict`, as MABWiser's `MAB` has them.

    Every decision is a step. One that `predict` made counts when it is made, and `partial_fit` brings its reward; any
    other that `fit` and `partial_fit` tell of counts when they do, in the order in which they tell. So a history that
    is fitted has its own clock: an arm that was not chosen lately has been idle as long as there were decisions since.

    Parameters
    ----------
    arms
        At least two, of any kind that can be a key of a dictionary.
    learning_policy
        A policy of dynabandit or its name.
    seed
        Of all randomness.

    Examples
    --------
    >>> from dynabandit.integrations import mabwiser
    >>> mab = mabwiser.MAB(["red", "blue"], "aff-ots", seed=1)
    >>> mab.fit(decisions=["red", "blue"] * 50, rewards=[0, 1] * 50)
    >>> mab.predict()
    'blue'
    """

    def __init__(self, arms: Sequence[Hashable], learning_policy: Policy | str = "aff-ots", seed: int = 123456) -> None:
        self.learning_policy = make_policy(learning_policy)
        self.seed = seed
        self._seat = Seat(self.learning_policy, arms, seed=seed)
        self._predicted: Counter[Hashable] = Counter()

    @property
    def arms(self) -> list[Any]:
        """The arms that can be chosen."""
        return self._seat.active

    def add_arm(self, arm: Hashable) -> None:
        """Add an arm that nothing is known about."""
        self._seat.add(arm)

    def remove_arm(self, arm: Hashable) -> None:
        """Remove an arm for good."""
        self._seat.remove(arm)
        del self._predicted[arm]

    def fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: None = None) -> None:
        """Forget everything, then learn from decisions and their rewards."""
        _check(decisions, rewards, contexts)
        self._seat = Seat(self.learning_policy, self.arms, seed=self.seed)
        self._predicted.clear()
        self.partial_fit(decisions, rewards)

    def partial_fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: None = None) -> None:
        """Learn from more decisions and their rewards in [0, 1], in the order given."""
        _check(decisions, rewards, contexts)
        arms = [decision.item() if hasattr(decision, "item") else decision for decision in decisions]
        pairs = [(arm, checked_reward(value)) for arm, value in zip(arms, rewards, strict=True)]
        for arm in arms:
            self._seat.column(arm)
        for arm, value in pairs:  # all of them are fine, so that none is learned from twice
            if self._predicted[arm] > 0:
                self._predicted[arm] -= 1
            else:
                self._seat.note(arm)
            self._seat.reward(arm, value)

    def predict(self, contexts: Sequence[Any] | None = None) -> Any:
        """Return the arm to play now, or for a list of contexts, which are not looked at, as many arms."""
        if contexts is None:
            arm = self._seat.choose()
            self._predicted[arm] += 1
            return arm
        return [self.predict() for _ in contexts]

    def predict_expectations(self) -> dict[Any, float]:
        """Return the mean reward that is expected of each arm; NaN where nothing is known."""
        return self._seat.means()


def _check(decisions: Sequence[Any], rewards: Sequence[float], contexts: object) -> None:
    if contexts is not None:
        raise ValueError("contexts must be None: no policy of dynabandit looks at them")
    if len(decisions) != len(rewards):
        raise ValueError(
            f"decisions and rewards must be equally many, got {len(decisions)} decisions and {len(rewards)} rewards"
        )
