"""A policy with the interface of Open Bandit Pipeline."""

import numpy as np

from dynabandit.integrations.bandit_adapter import BanditAdapter
from dynabandit.policies import Policy as OwnPolicy
from dynabandit.validation import integer

__all__ = ["Policy"]


class _ContextFree:
    """Equal to Open Bandit Pipeline's `PolicyType.CONTEXT_FREE`, without that package."""

    name = "CONTEXT_FREE"

    def __eq__(self, other: object) -> bool:
        return getattr(other, "name", None) == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Policy:
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

    policy_type = _ContextFree()

    def __init__(
        self,
        n_actions: int,
        policy: OwnPolicy | str = "auto",
        len_list: int = 1,
        batch_size: int = 1,
        random_state: int | None = None,
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

    def initialize(self) -> None:
        """Return to the initial state."""
        self._adapter = BanditAdapter(self.policy, range(self.n_actions), seed=self.random_state)
        self._pending: list[tuple[int, float]] = []
        self.n_trial = 0
        self.action_counts = np.zeros(self.n_actions, dtype=int)

    def select_action(self) -> np.ndarray:
        """Return the arms to show, in the order of positions."""
        selected: list[int] = []
        for _ in range(self.len_list):
            left = [arm for arm in range(self.n_actions) if arm not in selected]
            selected.append(self._adapter.choose(among=left))
        return np.array(selected)

    def update_params(self, action: int, reward: float) -> None:
        """Add a reward."""
        checked = self._adapter.bandit.rewards.check(reward)
        self.n_trial += 1
        self.action_counts[action] += 1
        self._pending.append((int(action), checked))
        if self.n_trial % self.batch_size == 0:
            for arm, value in self._pending:
                self._adapter.reward(arm, value)
            self._pending.clear()
