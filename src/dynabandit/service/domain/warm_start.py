"""Warming: a policy to come is fed the rewards of a log, in any thread, while the present one decides."""

import contextlib
from collections.abc import Callable
from typing import Any

import structlog

from dynabandit.bandit import Bandit
from dynabandit.core.compilation import is_cached
from dynabandit.policies import Policy, compiled, policy as make_policy
from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import State
from dynabandit.service.errors import Refused
from dynabandit.service.stores import Store

__all__ = ["MOST_SHARED", "Warming", "announce", "check_size", "compile_policy", "warmed"]

MOST_SHARED = 1_000_000
ROUNDS = 8
FEW_EVENTS = 500

log = structlog.get_logger("dynabandit.service")


class Warming:
    """A bandit with another policy, which knows the rewards of its log up to event `sequence`.

    Parameters
    ----------
    state
        The bandit as it is; it is left so.
    asked
        The policy to come. One that is not valid is refused.
    """

    def __init__(self, state: State, asked: api_types.SetPolicy) -> None:
        self.number = state.number
        self.sequence = 0
        self.rewards = 0
        self.bandit = _with_policy(state.bandit, asked)

    def fits(self, state: State) -> bool:
        """Whether a state can go on with what was learnt: it is the same bandit, with the same arms."""
        return (
            self.number == state.number
            and self.sequence <= state.sequence
            and state.bandit.adopting(self.bandit) is not None
        )

    def bandit_of(self, state: State) -> Bandit:
        """Return the bandit with which a state that fits goes on."""
        bandit = state.bandit.adopting(self.bandit)
        assert bandit is not None, "it must fit"
        return bandit

    def feed(self, store: Store, upto: int) -> None:
        """Take in the rewards from where it is up to an event."""
        for page in store.reward_pages(self.number, self.sequence, upto + 1):
            self.bandit.reward_columns([(column, value) for _, column, value in page])
            self.rewards += len(page)
            self.sequence = page[-1][0]
        self.sequence = upto


def warmed(store: Store, state: State, asked: api_types.SetPolicy) -> Warming | None:
    """Return a policy that has learnt nearly all there is to learn, or None where it is the present one.

    Rewards go on to come meanwhile; they are followed until so few are left that nobody waits long for the rest.
    """
    warming = Warming(state, asked)
    if warming.bandit.policy == state.bandit.policy:
        return None
    announce(warming.bandit.policy, compiled.choose, compiled.learn, compiled.learn_many)
    warming.bandit.compile()
    for _ in range(ROUNDS):
        last = store.last_sequence(state.number)
        if last - warming.sequence < FEW_EVENTS:
            break
        warming.feed(store, last)
    return warming


def _with_policy(bandit: Bandit, asked: api_types.SetPolicy) -> Bandit:
    try:
        check_size(asked.policy, asked.parameters)
        return bandit.swapped(asked.policy, (), **asked.parameters)
    except (TypeError, ValueError) as error:
        raise Refused(422, str(error)) from None


def compile_policy(name: str, parameters: dict[str, Any]) -> None:
    """Compile what a policy needs; one that is not valid needs nothing."""
    with contextlib.suppress(TypeError, ValueError):
        check_size(name, parameters)
        bandit = Bandit(name, ["a", "b"], seed=0, **parameters)
        announce(bandit.policy, compiled.choose, compiled.learn)
        bandit.compile()


def announce(policy: Policy, *needed: Callable[..., Any]) -> None:
    """Say in the log that functions of a policy are about to be compiled, unless they were before, here or on disk."""
    functions: list[Any] = [one(policy.kernels) for one in needed]
    if not all(getattr(one, "signatures", True) or is_cached(one) for one in functions):
        log.info("compiling, which takes some seconds the first time", policy=policy.name)


def check_size(name: str, parameters: dict[str, Any]) -> None:
    """Refuse a policy whose memory would not fit: a window is a number that anybody can write down."""
    policy = make_policy(name, **parameters)
    size = max(policy.shared_size(), policy.memory_size())
    if size > MOST_SHARED:
        raise ValueError(
            f"policy {name!r} must keep at most {MOST_SHARED} numbers beside its arms or of each arm, got {size}"
        )
