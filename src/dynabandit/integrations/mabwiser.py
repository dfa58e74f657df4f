"""A policy with the interface of MABWiser."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from dynabandit.integrations.bandit_adapter import VECTOR, BanditAdapter, Context, vector_features
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
        A policy or its name; a contextual one, such as "lin-ucb", needs contexts: tables of numbers, used as they are.
    seed
        Seed of the random numbers.

    Examples
    --------
    >>> from dynabandit.integrations import mabwiser
    >>> mab = mabwiser.MAB(["red", "blue"], "auto", seed=1)
    >>> mab.fit(decisions=["red", "blue"] * 50, rewards=[0, 1] * 50)
    >>> mab.predict()
    'blue'

    With contexts, here a column that is 1 where "red" is better:

    >>> mab = mabwiser.MAB(["red", "blue"], "lin-ucb", seed=1)
    >>> contexts = [[1, 1], [1, 1], [1, 0], [1, 0]] * 25
    >>> mab.fit(["red", "blue"] * 50, [1, 0, 0, 1] * 25, contexts)
    >>> mab.predict([[1, 1], [1, 0]])
    ['red', 'blue']
    """

    def __init__(self, arms: Sequence[Hashable], learning_policy: Policy | str = "auto", seed: int = 123456) -> None:
        self.learning_policy = make_policy(learning_policy)
        self.seed = seed
        self._adapter = self._new_adapter(arms)
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

    def fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: Any = None) -> None:
        """Start again, and learn from decisions and their rewards, each with its context if the policy uses one."""
        adapter = self._new_adapter(self.arms)
        checked = self._checked(adapter, decisions, rewards, contexts)
        self._adapter = adapter
        self._predicted.clear()
        self._learn(*checked)

    def partial_fit(self, decisions: Sequence[Any], rewards: Sequence[float], contexts: Any = None) -> None:
        """Learn from more decisions and their rewards, in the order given."""
        self._learn(*self._checked(self._adapter, decisions, rewards, contexts))

    def _learn(self, arms: list[Any], values: list[float], contexts: list[Context]) -> None:
        for arm, value, context in zip(arms, values, contexts, strict=True):
            if self._predicted[arm] > 0:
                self._predicted[arm] -= 1
            else:
                self._adapter.record(arm, context)
            self._adapter.reward(arm, value, context)

    def predict(self, contexts: Any = None) -> Any:
        """Return the arm to play now; with several contexts a list with an arm for each.

        A policy without context ignores the contexts, except for their number.
        """
        if not self.learning_policy.functions.contextual:
            return self._predict(None) if contexts is None else [self._predict(None) for _ in contexts]
        chosen = [self._predict(context) for context in self._rows(contexts)]
        return chosen if len(chosen) > 1 else chosen[0]

    def _predict(self, context: Context) -> Any:
        arm = self._adapter.choose(context=context)
        self._predicted[arm] += 1
        return arm

    def predict_expectations(self, contexts: Any = None) -> Any:
        """Return the estimated mean reward of each arm; without rewards its prior mean, or NaN.

        A contextual policy returns the score of each arm in a context instead, as MABWiser's LinUCB and LinTS do, and
        for several contexts a list.
        """
        if not self.learning_policy.functions.contextual:
            return self._adapter.means()
        found = [self._adapter.scores(context) for context in self._rows(contexts)]
        return found if len(found) > 1 else found[0]

    def _new_adapter(self, arms: Sequence[Hashable]) -> BanditAdapter:
        features = vector_features() if self.learning_policy.functions.contextual else None
        return BanditAdapter(self.learning_policy, arms, seed=self.seed, features=features)

    def _checked(
        self, adapter: BanditAdapter, decisions: Sequence[Any], rewards: Sequence[float], contexts: Any
    ) -> tuple[list[Any], list[float], list[Context]]:
        """Return arms, rewards and contexts, or raise an error that names what is wrong, before any is learned."""
        arms = [decision.item() if hasattr(decision, "item") else decision for decision in decisions]
        if len(arms) != len(rewards):
            raise ValueError(
                f"decisions and rewards must be equally many, got {len(arms)} decisions and {len(rewards)} rewards"
            )
        values = [adapter.bandit.rewards.check(value) for value in rewards]
        for arm in arms:
            adapter.column(arm)
        if not self.learning_policy.functions.contextual:
            if contexts is not None:
                raise ValueError(f"contexts must be None: policy {self.learning_policy.label!r} does not use them")
            return arms, values, [None] * len(arms)
        rows = self._rows(contexts)
        if len(rows) != len(arms):
            raise ValueError(
                f"decisions and contexts must be equally many, got {len(arms)} decisions and {len(rows)} contexts"
            )
        adapter.bandit.check_contexts(rows)
        return arms, values, rows

    def _rows(self, contexts: Any) -> list[Context]:
        """Return each row of a table of numbers as a context."""
        if contexts is None:
            raise ValueError(f"contexts must be given: policy {self.learning_policy.label!r} decides by them")
        try:
            table = np.asarray(contexts, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"contexts must be a table of numbers with a row for each decision, got {contexts!r}")
        return [{VECTOR: row} for row in table]
