"""A policy as a river policy."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from dynabandit.extras import import_extra
from dynabandit.features.encoder import checked_context
from dynabandit.integrations.bandit_adapter import BanditAdapter
from dynabandit.policies import Policy as OwnPolicy, policy as make_policy

import_extra("river", "river")
from river import bandit  # noqa: E402 - after the message that says how to install it

__all__ = ["ContextualPolicy", "Policy"]


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
        if self._adapter is None:
            self._adapter = BanditAdapter(self.policy, arm_ids, seed=self.seed)
        return _choose(self._adapter, arm_ids, None)

    def update(self, arm_id: Any, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from a reward of an arm that was pulled."""
        if self._adapter is None:
            raise ValueError(f"arm_id must be one that was pulled before, got {arm_id!r}")
        self._adapter.reward(arm_id, *reward_args, **reward_kwargs)
        super().update(arm_id, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]


class ContextualPolicy(bandit.base.ContextualPolicy):
    """A `river.bandit.base.ContextualPolicy` that makes the choices of a dynabandit policy, as `LinUCBDisjoint`.

    Parameters
    ----------
    policy
        A policy or its name; "auto" is the recommended contextual policy.
    features
        The features of a context and their kinds, as for `Bandit`; by default those of the first context.
    seed
        Seed of the random numbers; random by default.

    Examples
    --------
    >>> from dynabandit.integrations import river
    >>> policy = river.ContextualPolicy("lin-ucb", seed=1)
    >>> for step in range(100):
    ...     context = {"hour": step % 24, "returning": step % 2 == 0}
    ...     arm = policy.pull(["red", "green"], context)
    ...     policy.update(arm, context, float((arm == "red") == context["returning"]))
    >>> policy.pull(["red", "green"], {"hour": 9, "returning": True})
    'red'
    """

    def __init__(
        self,
        policy: OwnPolicy | str = "auto",
        features: Mapping[str, Any] | Sequence[str] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        make_policy(policy)
        self.policy = policy
        self.features = features
        self.seed = seed
        self._adapter: BanditAdapter | None = None

    def _pull(self, arm_ids: Sequence[Any], context: dict[Any, Any]) -> Any:  # type: ignore[override]
        if self._adapter is None:
            features = list(checked_context(context)) if self.features is None else self.features
            self._adapter = BanditAdapter(self.policy, arm_ids, self.seed, features)
        return _choose(self._adapter, arm_ids, context)

    def update(self, arm_id: Any, context: dict[Any, Any] | None, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from a reward of an arm that was pulled in a context; None stands for that of its latest pull."""
        if self._adapter is None:
            raise ValueError(f"arm_id must be one that was pulled before, got {arm_id!r}")
        reward = functools.partial(self._adapter.reward, context=context)
        reward(arm_id, *reward_args, **reward_kwargs)
        super().update(arm_id, context, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]


def _choose(adapter: BanditAdapter, arm_ids: Sequence[Any], context: Any) -> Any:
    offered = list(arm_ids)
    for arm in offered:
        if arm not in adapter:
            adapter.add(arm)
    return adapter.choose(among=offered, context=context)
