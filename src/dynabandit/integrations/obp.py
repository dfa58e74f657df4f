"""A policy with the interface of Open Bandit Pipeline."""

import numpy as np

from dynabandit.features import FeatureEncoder
from dynabandit.integrations.bandit_adapter import VECTOR, BanditAdapter, Context
from dynabandit.policies import Policy as OwnPolicy
from dynabandit.validation import integer

__all__ = ["ContextualPolicy", "Policy"]


class _PolicyType:
    """Equal to a member of Open Bandit Pipeline's `PolicyType`, without that package."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return getattr(other, "name", None) == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class _PipelinePolicy:
    """What policies with and without context share."""

    def __init__(
        self, n_actions: int, policy: OwnPolicy | str, len_list: int, batch_size: int, random_state: int | None
    ) -> None:
        self.n_actions = integer("n_actions", n_actions, 2)
        self.len_list = integer("len_list", len_list, 1, self.n_actions)
        self.batch_size = integer("batch_size", batch_size, 1)
        self.policy = policy
        self.random_state = random_state
        self.initialize()

    @property
    def policy_name(self) -> str:
        """The name shown in results."""
        return self._adapter.bandit.policy.label

    def _features(self) -> FeatureEncoder | None:
        return None

    def initialize(self) -> None:
        """Return to the initial state."""
        self._adapter = BanditAdapter(self.policy, range(self.n_actions), self.random_state, self._features())
        self._pending: list[tuple[int, float, Context]] = []
        self.n_trial = 0
        self.action_counts = np.zeros(self.n_actions, dtype=int)

    def _select(self, context: Context) -> np.ndarray:
        selected: list[int] = []
        for _ in range(self.len_list):
            left = [arm for arm in range(self.n_actions) if arm not in selected]
            selected.append(self._adapter.choose(among=left, context=context))
        return np.array(selected)

    def _update(self, action: int, reward: float, context: Context) -> None:
        checked = self._adapter.bandit.rewards.check(reward)
        self._adapter.bandit.check_contexts([context])
        self.n_trial += 1
        self.action_counts[action] += 1
        self._pending.append((int(action), checked, context))
        if self.n_trial % self.batch_size == 0:
            for arm, value, given in self._pending:
                self._adapter.reward(arm, value, given)
            self._pending.clear()


class Policy(_PipelinePolicy):
    """A context-free policy with the methods `select_action` and `update_params` of Open Bandit Pipeline.

    Its simulator selects an action in every round of a log, so every round is a step, and a selected arm counts as
    played with or without a reward. `dynabandit.offline.replay` counts only the rows that it accepts.

    Parameters
    ----------
    n_actions
        Number of arms.
    policy
        A policy or its name.
    len_list
        Number of different arms to select per round; each is chosen among the remaining ones.
    batch_size
        Number of rewards that are learned from together.
    random_state
        Seed of the random numbers; random by default.

    Examples
    --------
    >>> from dynabandit.integrations import obp
    >>> policy = obp.Policy(n_actions=3, policy="auto", random_state=1)
    >>> for _ in range(100):
    ...     (arm,) = policy.select_action()
    ...     policy.update_params(action=arm, reward=float(arm == 2))
    >>> int(policy.action_counts.argmax())
    2
    """

    policy_type = _PolicyType("CONTEXT_FREE")

    def __init__(
        self,
        n_actions: int,
        policy: OwnPolicy | str = "auto",
        len_list: int = 1,
        batch_size: int = 1,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_actions, policy, len_list, batch_size, random_state)

    def select_action(self) -> np.ndarray:
        """Return the arms to show, in the order of positions."""
        return self._select(None)

    def update_params(self, action: int, reward: float) -> None:
        """Add a reward."""
        self._update(action, reward, None)


class ContextualPolicy(_PipelinePolicy):
    """A contextual policy with the methods `select_action` and `update_params` of Open Bandit Pipeline.

    The numbers of a context are used as they are; add a column of ones for a constant.

    Parameters
    ----------
    dim
        Number of columns of a context.
    n_actions
        Number of arms.
    policy
        A policy or its name; "auto" is the recommended contextual policy.
    len_list, batch_size, random_state
        As for `Policy`.

    Examples
    --------
    >>> from dynabandit.integrations import obp
    >>> policy = obp.ContextualPolicy(dim=2, n_actions=2, policy="lin-ucb", random_state=1)
    >>> contexts = np.array([[[1.0, 0.0]], [[1.0, 1.0]]])
    >>> for step in range(100):
    ...     (arm,) = policy.select_action(contexts[step % 2])
    ...     policy.update_params(action=arm, reward=float(arm == step % 2), context=contexts[step % 2])
    >>> policy.select_action(contexts[0]), policy.select_action(contexts[1])
    (array([0]), array([1]))
    """

    policy_type = _PolicyType("CONTEXTUAL")

    def __init__(
        self,
        dim: int,
        n_actions: int,
        policy: OwnPolicy | str = "auto",
        len_list: int = 1,
        batch_size: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.dim = integer("dim", dim, 1)
        super().__init__(n_actions, policy, len_list, batch_size, random_state)

    def _features(self) -> FeatureEncoder:
        return FeatureEncoder({VECTOR: {"kind": "vector", "size": self.dim, "required": True}}, constant=False)

    def _row(self, context: np.ndarray) -> Context:
        if np.shape(context) != (1, self.dim):
            raise ValueError(f"context must have shape (1, {self.dim}), got {np.shape(context)}")
        return {VECTOR: np.asarray(context, dtype=np.float64)[0]}

    def select_action(self, context: np.ndarray) -> np.ndarray:
        """Return the arms to show in a context, in the order of positions."""
        return self._select(self._row(context))

    def update_params(self, action: int, reward: float, context: np.ndarray) -> None:
        """Add a reward in a context."""
        self._update(action, reward, self._row(context))
