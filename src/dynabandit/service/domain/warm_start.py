"""Warm start: a new policy learns the rewards of a log, in any thread, while the current policy goes on deciding."""

import contextlib
from collections.abc import Callable
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.bandit.arm_tree import choose_in_tree
from dynabandit.bandit.compiled import (
    compiled_choose,
    compiled_choose_in_context,
    compiled_learn,
    compiled_learn_in_context,
)
from dynabandit.bandit.live_policies import models_size
from dynabandit.choosing.draw_tree import MANY_ARMS, uses_draw_tree
from dynabandit.core.code_cache import is_cached
from dynabandit.core.context import Context
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies import Policy, PolicyFunctions, is_contextual, policy as make_policy
from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.learning import AT_ONCE, Learned
from dynabandit.service.domain.log_start import LogStart, read_start
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.logging_setup import log
from dynabandit.service.stores import Store
from dynabandit.simulation.compiled import compiled_learn_many

MAX_STATE = 4_000_000  # numbers that a policy may keep, 32 MB: of each arm times the arms, and besides
ROUNDS = 8
INVALID = (ArithmeticError, TypeError, ValueError)  # what a policy raises for parameters that it cannot use
MAX_EVENTS_LEFT = 500  # to the thread of the writer


class WarmStart:
    """A copy of a bandit with another policy, which has learned the rewards of the log up to event `sequence`.

    Rewards before `start` were removed from the log, and are not learned.
    """

    def __init__(self, state: LoggedState, asked: api_types.SetPolicy, start: LogStart) -> None:
        self.bandit_number = state.bandit_number
        self.start = start
        self.sequence = start.sequence
        self.rewards = 0
        self._latest = 0  # the step of the latest decision whose reward was learned
        self.learner = state.learner.at_start(start.learned_to)
        try:
            check_policy_size(asked.policy, asked.parameters, len(state.bandit.names), state.bandit.context)
            self.bandit = state.bandit.swapped(asked.policy, (), **asked.parameters)
            if state.settings.default_reward is not None:
                self.bandit.rewards.check(state.settings.default_reward, "default_reward")
        except INVALID as error:
            raise InvalidValueError(str(error)) from None
        self._parameters = asked.parameters
        self.narrows = not state.bandit.rewards.is_within(self.bandit.rewards)

    def bandit_for(self, state: LoggedState) -> Bandit | None:
        """Return the bandit with which a state continues; None if the state is another bandit's or has other arms."""
        if self.bandit_number != state.bandit_number or self.sequence > state.sequence:
            return None
        return state.bandit.adopting(self.bandit)

    def learn(
        self,
        store: Store,
        upto: int,
        check: Callable[[], None] = lambda: None,
        learn_page: Callable[[list[Learned], int], int] | None = None,
    ) -> None:
        """Learn the rewards that are new since the last call, up to an event; `check` is called between pages.

        With `learn_page`, another bandit than `self.bandit` learns them.
        """
        learn_page = learn_page or self.bandit.reward_columns
        try:
            contextual = self.bandit.policy.functions.contextual
            for page in self.learner.learned_pages(store, self.bandit_number, self.sequence, upto + 1, contextual):
                check()
                self._latest = learn_page(page, self._latest)
                self.rewards += len(page)
            if self.narrows and self.learner.rule != AT_ONCE:  # decisions that are held will be learned later
                for held in store.held_decisions(self.bandit_number, self.learner.learned_to, LARGEST_STEP, upto + 1):
                    if held.value is not None:
                        self.bandit.rewards.check(held.value)
        except (ArithmeticError, ValueError) as error:
            problem = f"policy {self.bandit.policy.name!r} cannot learn from the log: {error}"
            raise InvalidValueError(problem) from None
        self.sequence = upto

    def finish(self, store: Store, state: LoggedState) -> tuple[Bandit, dict[str, Any]]:
        """Learn the rewards that are left; return the bandit with which a state continues and the body of the event."""
        self.learn(store, state.sequence)
        bandit = self.bandit_for(state)
        assert bandit is not None, "it was made for this state"
        body: dict[str, Any] = {"policy": bandit.policy.name, "parameters": self._parameters}
        if (encoder := self.bandit.features) is not None:  # by which the contexts of these rewards were encoded
            body["encoder"] = encoder.to_json()
        if self.start.sequence > 0:  # a replay must learn the same rewards
            body["log_start"] = self.start
        return bandit, body


def warm_up(
    store: Store,
    state: LoggedState,
    asked: api_types.SetPolicy,
    current: Policy | None,
    check: Callable[[], None] = lambda: None,
) -> WarmStart | None:
    """Return a policy that has learned nearly all rewards, or None if it is the current policy.

    New rewards arrive meanwhile. They are followed until the rest is so short that nobody waits long for it. `check` is
    called every now and then, and ends the work by an error.
    """
    warm = WarmStart(state, asked, read_start(store, state.bandit_number))
    if warm.bandit.policy == current:
        return None
    compile_bandit(warm.bandit, compiled_learn_many)
    for _ in range(ROUNDS):
        last = store.last_sequence(state.bandit_number)
        if last - warm.sequence < MAX_EVENTS_LEFT:
            break
        warm.learn(store, last, check)
    return warm


def compile_policy(name: str, parameters: dict[str, Any], arms: int = 2) -> None:
    """Compile a policy; one that is not valid, or would be too large with this many arms, is ignored here."""
    with contextlib.suppress(*INVALID):
        check_policy_size(name, parameters, arms)
        compile_bandit(bandit_to_compile(name, parameters, min(arms, MANY_ARMS + 1)))


def compile_bandit(bandit: Bandit, *others: Callable[..., Any]) -> None:
    """Compile what decisions and rewards of a bandit need, or load it from disk; the caller will use `others`."""
    log_compilation(bandit.policy, *needed_functions(bandit), *others)
    bandit.compile()


def needed_functions(bandit: Bandit) -> tuple[Callable[..., Any], ...]:
    """Return what makes the functions with which a bandit decides and learns."""
    functions, in_tree = code_of(bandit)
    needed: tuple[Callable[..., Any], ...] = (compiled_choose, compiled_learn)
    if functions.contextual:
        needed = (compiled_choose_in_context, compiled_learn_in_context)
    return (*needed, choose_in_tree) if in_tree else needed


def code_of(bandit: Bandit) -> tuple[PolicyFunctions, bool]:
    """Return what `compile_bandit` depends on: the functions of the policy, and whether arms are many."""
    functions = bandit.policy.functions
    return functions, uses_draw_tree(functions, len(bandit.available_columns()))


def bandit_to_compile(name: str, parameters: dict[str, Any], arms: int = 2) -> Bandit:
    """Return a bandit with a policy, with a feature if it decides by features."""
    features = {"x": "number"} if is_contextual(name) else None
    return Bandit(name, [str(arm) for arm in range(arms)], seed=0, features=features, **parameters)


def is_compiled(policy: Policy, *needed: Callable[..., Any]) -> bool:
    """Return whether functions of a policy are compiled, in memory or on disk."""
    functions: list[Any] = [one(policy.functions) for one in needed]
    return all(getattr(one, "signatures", True) or is_cached(one) for one in functions)


def log_compilation(policy: Policy, *needed: Callable[..., Any]) -> None:
    """Log that functions of a policy are about to be compiled, unless they are already."""
    if not is_compiled(policy, *needed):
        log.info("compiling, which takes some seconds the first time", policy=policy.name)


def check_policy_size(name: str, parameters: dict[str, Any], arms: int, context: Context | None = None) -> None:
    """Raise an error for a policy that would need too much memory, such as one with a very long window.

    `context` is the shape of the features, if the bandit has any.
    """
    size = state_size(make_policy(name, **parameters), arms, context)
    if size > MAX_STATE:
        given = "".join(f", {key}={value!r}" for key, value in parameters.items() if not isinstance(value, list))
        causes = [key for key in parameters if _size_without(name, parameters, key, arms, context) < size]
        causes = causes or ["arms", *(["features"] if context else [])]
        raise ValueError(
            f"{' and '.join(causes)} must be smaller: policy {name!r} with {arms} arms{given} would keep {size} "
            f"numbers, but at most {MAX_STATE} are possible"
        )


def state_size(policy: Policy, arms: int, context: Context | None = None) -> int:
    """Return how many numbers a policy keeps."""
    return policy.shared_size() + arms * policy.memory_size() + models_size(policy, arms, context)


def _size_without(name: str, parameters: dict[str, Any], key: str, arms: int, context: Context | None) -> int:
    """Return how many numbers the policy would keep with the default of a parameter, 0 if it must be given."""
    try:
        others = {other: parameters[other] for other in parameters if other != key}
        return state_size(make_policy(name, **others), arms, context)
    except INVALID:
        return 0
