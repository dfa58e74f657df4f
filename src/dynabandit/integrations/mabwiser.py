"""A policy with the interface of MABWiser."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from dynabandit.integrations.bandit_adapter import BanditAdapter
from dynabandit.policies import Policy, policy as make_policy

__all__ = ["MAB"]


class MAB:
    """A bandit with the methods `fit`, `partial_fit` and `predict` of MABWiser's `MAB`.

    Every decision is a step. A decision of `predict` counts when it is made, and `partial_fit` adds its reward. All
    other decisions count when they are passed to `fit` or `partial_fit`, in the given order, so idle times in a fitted
    history are numbers of decisions.

    Parameters
    ----------
    arms
        At least two hashable objects.
    learning_policy
        A policy or its name.
    seed
        Seed of the random numbers.

    Examples
    --------
    >>> from dynabandit.integrations import mabwiser
    >>> mab = mabwiser.MAB(["red", "blue"], "auto", seed=1)
    >>> mab.fit(decisions=["red", "blue"] * 50, rewards=[0, 1] * 50)
    >>> mab.predict()
    'blue'
    """

    def __init__(self, arms: Sequence[Hashable], learning_policy: Policy | str = "auto", seed: int = 123456) -> None:
        self.learning_policy = make_policy(learning_policy)
        self.seed = seed
        self._adapter = BanditAdapter(self.learning_policy, arms, seed=seed)
        self._predicted: Counter[Hashable] = Counter()

    @property
    def arms(self) -> list[Any]:
        """The arms that can be chosen."""
        return self._adapter.active

    def add_arm(self, arm: Hashable) -> None:
        """Add a new arm."""
        self._adapter.add(arm)

    def remove_arm(self, arm: Hashable) -> None:
        """Remove an arm permanently."""
        self._adapter.remove(arm)
        del self._predicted[arm]

    def fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: None = None) -> None:
        """Start again, and learn from decisions and their rewards."""
        _check(decisions, rewards, contexts)
        self._adapter = BanditAdapter(self.learning_policy, self.arms, seed=self.seed)
        self._predicted.clear()
        self.partial_fit(decisions, rewards)

    def partial_fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: None = None) -> None:
        """Learn from more decisions and their rewards, in the order given."""
        _check(decisions, rewards, contexts)
        arms = [decision.item() if hasattr(decision, "item") else decision for decision in decisions]
        pairs = [(arm, self._adapter.bandit.rewards.check(value)) for arm, value in zip(arms, rewards, strict=True)]
        for arm in arms:
            self._adapter.column(arm)
        for arm, value in pairs:  # all were checked first, so an error leaves the bandit unchanged
            if self._predicted[arm] > 0:
                self._predicted[arm] -= 1
            else:
                self._adapter.record(arm)
            self._adapter.reward(arm, value)

    def predict(self, contexts: Sequence[Any] | None = None) -> Any:
        """Return the arm to play now, or one arm per context; contexts are ignored."""
        if contexts is None:
            arm = self._adapter.choose()
            self._predicted[arm] += 1
            return arm
        return [self.predict() for _ in contexts]

    def predict_expectations(self) -> dict[Any, float]:
        """Return the estimated mean reward of each arm; without rewards its prior mean, or NaN."""
        return self._adapter.means()


def _check(decisions: Sequence[Any], rewards: Sequence[float], contexts: object) -> None:
    if contexts is not None:
        raise ValueError("contexts must be None: no policy of dynabandit uses them")
    if len(decisions) != len(rewards):
        raise ValueError(
            f"decisions and rewards must be equally many, got {len(decisions)} decisions and {len(rewards)} rewards"
        )
