"""The part of a bandit that learns rewards and counts the decisions whose rewards have not arrived."""

from collections.abc import Callable, Sequence

import numpy as np

from dynabandit.bandit.arms import ArmColumns
from dynabandit.policies import Policy, PolicyState
from dynabandit.policies.pending_plays import UNKNOWN_STEP, end_play
from dynabandit.simulation import compiled
from dynabandit.validation import RewardDomain, integer


class RewardLearning:
    """What `Bandit` does with rewards; it sets the attributes."""

    _policy: Policy
    _rewards: RewardDomain
    _arms: ArmColumns
    _memory: np.ndarray
    _shared: np.ndarray
    _params: np.ndarray
    _step: int
    _learn: Callable[..., None]

    def _open_arms(self) -> int:
        return max(len(self._arms.available()), 1)

    def reward(self, arm: str, value: float, step: int | None = None) -> None:
        """Learn a reward of an arm that was chosen.

        Parameters
        ----------
        arm
            The arm that was chosen.
        value
            The reward; `rewards` says which ones are valid.
        step
            The number of the decision, `step` after its `choose`, if the reward may come after later decisions; by
            default the latest decision for this arm.

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
        self.reward_column(self._arms.of(arm), self._rewards.check(value), self._checked_step(step))

    def close(self, arm: str, step: int | None = None) -> None:
        """Record that a decision for an arm will have no reward: it is no longer pending."""
        self.close_column(self._arms.of(arm), self._checked_step(step))

    def _checked_step(self, step: int | None) -> int | None:
        return None if step is None else integer("step", step, 1, self._step)

    def reward_column(self, column: int, value: float, decided_at: int | None = None, ends_play: bool = True) -> None:
        """Learn a reward of a column, even if its arm was removed after it was chosen.

        `decided_at` is the step of the decision, by default the latest one that chose the column. The idle time of the
        arm is counted from its latest choice, however late the reward is. The decision is no longer pending, unless
        `ends_play` is false because it was not pending any more.
        """
        decided = UNKNOWN_STEP if decided_at is None else decided_at
        played = self._arms.played if ends_play else self._arms.played.copy()
        self._learn(self._memory, self._shared, played, column, value, decided, self._step, self._params)

    def close_column(self, column: int, decided_at: int | None = None) -> None:
        """Record that a decision for a column will have no reward, as `close` does."""
        state = PolicyState(self._memory, self._shared, *self._arms.played)
        end_play(state, column, UNKNOWN_STEP if decided_at is None else decided_at)

    def reward_columns(self, rewards: Sequence[tuple[int, float, int]]) -> None:
        """Learn many (column, reward, decided_at) triples in order, as `reward_column` would, but much faster."""
        columns = np.array([column for column, _, _ in rewards], dtype=np.int64)
        values = np.array([value for _, value, _ in rewards], dtype=np.float64)
        self._rewards.check_all(values)
        decided_at = np.array([step for _, _, step in rewards], dtype=np.int64)
        state = PolicyState(self._memory, self._shared, *self._arms.played)
        learn_many = compiled.learn_many(self._policy.functions)
        arrived_at = np.full(len(columns), self._step)
        learn_many(state, columns, values, decided_at, arrived_at, self._policy.params(self._open_arms()))
