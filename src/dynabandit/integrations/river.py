"""A policy as a river policy."""

from collections.abc import Sequence
from typing import Any

from dynabandit.extras import import_extra
from dynabandit.integrations.bandit_adapter import BanditAdapter
from dynabandit.policies import Policy as OwnPolicy, policy as make_policy

import_extra("river", "river")
from river import bandit  # noqa: E402 - after the message that says how to install it

__all__ = ["Policy"]


class Policy(bandit.base.Policy):
    """A `river.bandit.base.Policy` that makes the choices of a dynabandit policy.

    Parameters
    ----------
    policy
        A policy or its name.
    seed
        Seed of the random numbers; random by default.

    Examples
    --------
    >>> from dynabandit.integrations import river
    >>> policy = river.Policy("auto", seed=1)
    >>> for _ in range(100):
    ...     arm = policy.pull(["red", "green", "blue"])
    ...     policy.update(arm, 1 if arm == "blue" else 0)
    >>> policy.ranking[0]
    'blue'
    """

    def __init__(self, policy: OwnPolicy | str = "auto", seed: int | None = None) -> None:
        super().__init__()
        make_policy(policy)
        self.policy = policy
        self.seed = seed
        self._adapter: BanditAdapter | None = None

    def _pull(self, arm_ids: Sequence[Any]) -> Any:
        offered = list(arm_ids)
        if self._adapter is None:
            self._adapter = BanditAdapter(self.policy, offered, seed=self.seed)
        for arm in offered:
            if arm not in self._adapter:
                self._adapter.add(arm)
        return self._adapter.choose(among=offered)

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from a reward of an arm that was pulled."""
        if self._adapter is None:
            raise ValueError(f"arm_id must be one that was pulled before, got {arm_id!r}")
        self._adapter.reward(arm_id, *reward_args, **reward_kwargs)
        super().update(arm_id, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]
