"""The part of a bandit that learns rewards and counts the decisions whose rewards have not arrived."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit.decision_making import DecisionMaking
from dynabandit.policies import PolicyState, Reward
from dynabandit.policies.pending_plays import UNKNOWN_STEP, end_play
from dynabandit.simulation.compiled import compiled_learn_many
from dynabandit.validation import RewardDomain, integer


class RewardLearning(DecisionMaking):
    """What `Bandit` does with rewards; it sets the attributes."""

    _rewards: RewardDomain
    _learn: Callable[..., None]

    def reward(
        self,
        arm: str,
        value: float,
        step: int | None = None,
        context: Mapping[str, Any] | None = None,
        chosen: str | None = None,
    ) -> None:
        """Learn a reward of an arm that was chosen.

        Parameters
        ----------
        arm
            The arm that was chosen, or another one of its ranking.
        value
            The reward; `rewards` says which ones are valid.
        step
            The number of the decision, `step` after its `choose`, if the reward may come after later decisions; by
            default the latest decision for this arm.
        context
            The context of the decision, if the bandit has features; by default the one that it was made in, which is
            kept for the latest 10,000 decisions without a reward. A context without `step` is that of a decision that
            another system has just made: no decision of the bandit ends.
        chosen
            The arm that was chosen, the first one of the ranking, if the reward is for another one. The decision then
            ends without a reward of the chosen arm.

        Examples
        --------
        >>> from dynabandit import Bandit
        >>> bandit = Bandit("ucb", arms=["a", "b"], seed=1)
        >>> first = bandit.choose(), bandit.step
        >>> second = bandit.choose(), bandit.step
        >>> bandit.reward(first[0], 1, step=first[1])
        >>> [arm.pending for arm in bandit.arms.values()]
        [0, 1]
        """
        column, checked, decided_at = self._arms.of(arm), self._rewards.check(value), self._checked_step(step)
        if chosen is not None:
            self.reward_column(column, checked, decided_at, context=context, chosen=self._arms.of(chosen))
        elif context is not None and decided_at is None:
            self.reward_column(column, checked, self._step, ends_play=False, context=context)
        else:
            self.reward_column(column, checked, decided_at, context=context)

    def close(self, arm: str, step: int | None = None) -> None:
        """Record that a decision for an arm will have no reward: it is no longer pending.

        Parameters
        ----------
        arm
            The arm that was chosen.
        step
            The number of the decision; by default the latest decision for this arm.
        """
        self.close_column(self._arms.of(arm), self._checked_step(step))

    def _checked_step(self, step: int | None) -> int | None:
        return None if step is None else integer("step", step, 1, self._step)

    def reward_column(
        self,
        column: int,
        value: float,
        decided_at: int | None = None,
        ends_play: bool = True,
        context: Mapping[str, Any] | None = None,
        chosen: int | None = None,
    ) -> None:
        """Learn the reward `value` of a `column`, even if its arm was removed after it was chosen.

        `context` is as for `reward`. `decided_at` is the step of the decision, by default the latest one that chose the
        column. The idle time of the arm is counted from its latest choice, however late the reward is. The decision is
        no longer pending, unless `ends_play` is false because it was not pending any more. `chosen` is the column that
        the decision chose, by default the column of the reward.
        """
        chosen = column if chosen is None else chosen
        decided = UNKNOWN_STEP if decided_at is None else decided_at
        vector = None
        if self._contexts is not None or context is not None:
            vector = self._vector_of_decision(chosen, decided, context)
            if ends_play:
                self._forget_context(chosen, decided)
        if chosen != column:
            decided = self._known_step(chosen, decided)
            if ends_play:
                self.close_column(chosen, decided)
            ends_play = False  # no play of the rewarded column ends
        played = self._arms.played if ends_play else self._arms.played.copy()
        if self._models is None:
            self._learn(self._memory, self._shared, played, column, value, decided, self._step, self._params)
        else:
            self._learn_vector(column, value, decided, vector, played)
        self._mark_in_tree(column)

    def _learn_vector(
        self, column: int, value: float, decided: int, vector: np.ndarray | None, played: np.ndarray
    ) -> None:
        """Learn a reward with the vector of its context."""
        assert self._contexts is not None
        assert vector is not None
        state = PolicyState(self._memory, self._shared, played[0], played[1], self._models)
        reward = Reward(value, decided, self._step, self._contexts.of_arm(vector, column))
        self._learn(state, column, reward, self._params)

    def _vector_of_decision(self, column: int, decided_at: int, context: Mapping[str, Any] | None) -> np.ndarray | None:
        """Return the vector of the context of a decision; without a given one, only if the policy uses it."""
        if context is not None:
            return self._encoded(context)
        if self._contexts is None or self._models is None:
            return None
        return self._contexts.of_decision(self._known_step(column, decided_at), column)

    def _forget_context(self, column: int, decided_at: int) -> None:
        if self._contexts is not None:
            self._contexts.end(self._known_step(column, decided_at), column)

    def _known_step(self, column: int, decided_at: int) -> int:
        return int(self._arms.last_played[column]) if decided_at == UNKNOWN_STEP else decided_at

    def close_column(self, column: int, decided_at: int | None = None) -> None:
        """Record that the decision for a `column` at step `decided_at` will have no reward, as `close` does."""
        decided = UNKNOWN_STEP if decided_at is None else decided_at
        self._forget_context(column, decided)
        end_play(PolicyState(self._memory, self._shared, *self._arms.played), column, decided)
        self._mark_in_tree(column)

    def reward_columns(self, rewards: Sequence[tuple[Any, ...]], latest: int = 0) -> int:
        """Learn many `rewards` in order, as `reward_column` would, but much faster.

        Each is a triple of column, reward and step of the decision; a bandit with features may be given the context as
        the fourth element. A contextual policy learns each reward as of the latest decision before it in this order,
        and not as of now: by then, nearly all would be old. Returns the step of this decision, which is `latest` for
        the next rewards, if there are more.
        """
        if len(rewards) == 0:
            return latest
        columns = np.array([one[0] for one in rewards], dtype=np.int64)
        values = np.array([one[1] for one in rewards], dtype=np.float64)
        self._rewards.check_all(values)
        decided_at = np.array([one[2] for one in rewards], dtype=np.int64)
        features = np.zeros((1, 1))
        if self._contexts is not None and self._models is not None:
            vectors = [self._vector_of_decision(one[0], one[2], one[3] if len(one) > 3 else None) for one in rewards]
            pairs = zip(vectors, columns.tolist(), strict=True)
            features = np.array(
                [self._contexts.of_arm(vector, column) for vector, column in pairs if vector is not None]
            )
        for one in rewards if self._contexts is not None else ():
            self._forget_context(one[0], one[2])
        state = PolicyState(self._memory, self._shared, self._arms.last_played, self._arms.pending, self._models)
        learn_many = compiled_learn_many(self._policy.functions)
        arrived_at = np.full(len(columns), self._step)
        if self._models is not None:
            known = [self._known_step(one[0], one[2]) for one in rewards]
            arrived_at = np.maximum.accumulate([latest, *known])[1:]
        params = self._policy.params(self._arms.count_open())
        learn_many(state, columns, values, decided_at, arrived_at, features, params)
        if self._tree is not None:
            self._tree.forget()
        return int(arrived_at[-1])
