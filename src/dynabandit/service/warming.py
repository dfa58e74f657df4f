"""Warming: a policy to come is fed the rewards of a log, in any thread, while the present one decides."""

from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.policies import policy as make_policy
from dynabandit.service import types
from dynabandit.service.errors import Refused
from dynabandit.service.fold import State
from dynabandit.service.stores import Store

__all__ = ["MOST_SHARED", "Warming", "check_size"]

MOST_SHARED = 1_000_000


class Warming:
    """A bandit with another policy, which knows the rewards of its log up to event `sequence`.

    Parameters
    ----------
    state
        The bandit as it is; it is left so.
    asked
        The policy to come. One that is not valid is refused.
    """

    def __init__(self, state: State, asked: types.SetPolicy) -> None:
        self.number = state.number
        self.sequence = 0
        self.rewards = 0
        self.bandit = _with_policy(state.bandit, asked)

    def feed(self, store: Store, upto: int) -> None:
        """Take in the rewards from where it is up to an event."""
        for page in store.reward_pages(self.number, self.sequence, upto + 1):
            self.bandit.reward_columns([(column, value) for _, column, value in page])
            self.rewards += len(page)
            self.sequence = page[-1][0]
        self.sequence = upto


def _with_policy(bandit: Bandit, asked: types.SetPolicy) -> Bandit:
    try:
        check_size(asked.policy, asked.parameters)
        return bandit.swapped(asked.policy, (), **asked.parameters)
    except (TypeError, ValueError) as error:
        raise Refused(422, str(error)) from None


def check_size(name: str, parameters: dict[str, Any]) -> None:
    """Refuse a policy whose memory would not fit: a window is a number that anybody can write down."""
    size = make_policy(name, **parameters).shared_size()
    if size > MOST_SHARED:
        raise ValueError(
            f"policy {name!r} would keep {size} numbers besides the arms, at most {MOST_SHARED} are allowed"
        )
