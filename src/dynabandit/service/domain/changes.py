"""Changes of a bandit: create, arms, guardrails, policy, shadow policy, delete."""

import json
import math
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.bandit.contexts import make_contexts
from dynabandit.core.json_values import plain
from dynabandit.policies import AUTO, Policy, resolved
from dynabandit.service import api_types, field_types, monitoring_types
from dynabandit.service.domain.applied_changes import apply_arm_change, new_bandit
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.events import ARM, DELETE, GUARDRAILS, POLICY, SHADOW
from dynabandit.service.domain.guardrails import MAX_TESTS
from dynabandit.service.domain.learning import AT_ONCE, SETTLED
from dynabandit.service.domain.log_start import LogStart, read_start
from dynabandit.service.domain.names import ID_BITS
from dynabandit.service.domain.shadow import shadow_seed
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.domain.warm_start import INVALID, MAX_STATE, WarmStart, check_policy_size, state_size
from dynabandit.service.errors import ConflictError, InvalidValueError, NotFoundError, WriteConflictError
from dynabandit.service.stores.erasing import ERASED_ROWS, events_left
from dynabandit.validation import BOUNDED, REWARD_DOMAINS

# That release 0.1.0 did not have
NEW_FIELDS = ("rewards", "features", "arm_features", "sticky_for", "holdout", "guardrails")
EARLIER_DEFAULT = "aff-ots"  # of release 0.1.0


class NewBandit(NamedTuple):
    """What is needed to create a bandit."""

    text: str  # the body of its first event
    body: dict[str, Any]  # the same
    bandit: Bandit


def create(
    work: UnitOfWork, name: str, asked: api_types.Create, prepared: NewBandit | InvalidValueError | None = None
) -> tuple[LoggedState, bool]:
    """Return a bandit and whether it was created now: the same body again gives the one that exists.

    `prepared` is what `prepare` returned or raised in another thread, which saves time here.
    """
    bandit_number = work.find(name)
    if bandit_number is not None:
        return _existing(work, name, bandit_number, asked), False
    if isinstance(prepared, InvalidValueError):
        raise prepared
    new = prepared or prepare(name, asked)
    state = LoggedState(secrets.randbits(ID_BITS), work.store)
    work.events.append(state.create(work.clock.now(), work.clock.wall(), *new))
    work.created.append((state.bandit_number, name))
    work.states[state.bandit_number], work.names[name] = state, state.bandit_number
    return state, True


def _body(name: str, asked: api_types.Create) -> dict[str, Any]:
    """Return the body of a request without the fields that it does not use, as in the logs of earlier releases."""
    body = {"name": name, **msgspec.to_builtins(asked), "learn": asked.learn or default_rule(asked)}
    return {field: value for field, value in body.items() if value is not None or field not in NEW_FIELDS}


def _existing(work: UnitOfWork, name: str, bandit_number: int, asked: api_types.Create) -> LoggedState:
    """Return the bandit that exists, or raise an error if it was created from another body."""
    body, state = _body(name, asked), work.named(name)  # raises where there is no log to compare with
    first = work.store.events(bandit_number, 0, 1)
    if not first:
        raise WriteConflictError(f"bandit {name!r} was erased meanwhile")
    there = msgspec.json.decode(first[0].body or "{}")
    for field in ("rules", "imported", "imported_from"):
        there.pop(field, None)
    there.setdefault("learn", AT_ONCE)
    if there.pop("auto", there["policy"] == EARLIER_DEFAULT) and asked.policy == AUTO:
        there["policy"] = AUTO
    if asked.learn is None:  # an earlier release had another default
        body["learn"] = there["learn"]
    if there.pop("drawn"):
        there["seed"] = None
    if there != body:
        other = ", ".join(key for key in {**body, **there} if there.get(key) != body.get(key))
        raise ConflictError(f"bandit {name!r} is there already, created from another body: other {other}")
    return state


def prepare(name: str, asked: api_types.Create, imported: Mapping[str, Any] = {}) -> NewBandit:
    """Return a new bandit, or raise `InvalidValueError`; with many arms this takes a while, in any thread.

    `imported` says what its first decisions are imported from.
    """
    body = _body(name, asked)
    body["auto"] = asked.policy == AUTO  # the policy itself is recorded: a later release may recommend another one
    body["policy"] = recommended_for(asked)
    body["drawn"] = body["seed"] is None
    body["rules"] = RULES
    body |= imported
    if body["drawn"]:
        body["seed"] = secrets.randbits(63)
    if body["learn"] != AT_ONCE and default_rule(asked) == AT_ONCE:
        raise InvalidValueError(
            f"learn must be {AT_ONCE!r} without both a reward_window and a default_reward, got {body['learn']!r}"
        )
    try:
        contexts = make_contexts(asked.features, asked.arm_features, asked.arms)
        shape = None if contexts is None else contexts.shape
        check_policy_size(body["policy"], body["parameters"], len(body["arms"]), shape)
        text = json.dumps(body)
        body = json.loads(text)  # as a replay reads it
        bandit = new_bandit(body)
        if asked.default_reward is not None:
            bandit.rewards.check(asked.default_reward, "default_reward")
        if asked.holdout is not None and asked.holdout.control not in (None, *asked.arms):
            raise ValueError(f"holdout.control must be one of the arms, got {asked.holdout.control!r}")
        check_guardrails(asked.guardrails or {}, len(asked.arms))
    except INVALID as error:
        raise InvalidValueError(str(error)) from None
    return NewBandit(text, body, bandit)


def recommended_for(asked: api_types.Create) -> str:
    """Return the name of the policy of a new bandit, of the recommended one in place of `AUTO`."""
    domain = BOUNDED if asked.rewards is None else REWARD_DOMAINS[asked.rewards]
    return str(resolved(asked.policy, domain, contextual=asked.features is not None or asked.arm_features is not None))


def default_rule(asked: api_types.Create) -> str:
    """Return when rewards are learned if the caller does not say: see `domain/learning.py`."""
    return AT_ONCE if asked.reward_window is None or asked.default_reward is None else SETTLED


def add_arm(work: UnitOfWork, name: str, arm: str, features: field_types.Context | None = None) -> tuple[int, bool]:
    """Add an arm; return the sequence number from which it exists and whether anything changed."""
    state = work.named(name)
    if arm in state.bandit.active:
        return state.sequence, False
    check_more_arms(state, 1)
    body = {"arm": arm, "add": True, **({} if features is None else {"features": features})}
    try:
        apply_arm_change(state.bandit.copy(), body)
    except (TypeError, ValueError) as error:  # the features do not fit
        raise InvalidValueError(str(error)) from None
    return _append_arm_event(work, state, body)


def check_more_arms(state: LoggedState, count: int) -> None:
    """Raise an error if a bandit cannot have so many more arms."""
    arms = len(state.bandit.names) + count
    if arms > field_types.MAX_ARMS:
        most = field_types.MAX_ARMS
        raise ConflictError(f"a bandit must have at most {most} arms, with retired ones, got {arms}")
    guardrails = state.monitoring.guardrails.rules
    if len(guardrails) * arms > MAX_TESTS:
        most = MAX_TESTS // len(guardrails)
        raise ConflictError(f"a bandit with {len(guardrails)} guardrails must have at most {most} arms, got {arms}")
    for bandit in state.bandits:
        if state_size(bandit.policy, arms, bandit.context) > MAX_STATE:
            policy = bandit.policy.label
            raise ConflictError(f"{policy} must keep at most {MAX_STATE} numbers; with {arms} arms it would keep more")


def change_arm(work: UnitOfWork, name: str, arm: str, change: api_types.ChangeArm) -> tuple[int, bool]:
    """Pause, resume, retire or limit an arm; return the sequence number and whether anything changed.

    Values that the arm has already are left out: setting a share again would restart its count.
    """
    state = work.named(name)
    if arm not in state.bandit.active:
        if change.retired and arm in state.bandit.names:
            return state.sequence, False
        raise NotFoundError(f"there is no arm {arm!r}")
    min_share, max_share = state.bandit.shares(arm)
    now = {"paused": state.bandit.paused(arm), "min_share": min_share, "max_share": max_share, "retired": False}
    asked = {field: value for field, value in msgspec.to_builtins(change).items() if value not in (None, now[field])}
    return _append_arm_event(work, state, {"arm": arm, **asked}) if asked else (state.sequence, False)


def _append_arm_event(work: UnitOfWork, state: LoggedState, body: dict[str, Any]) -> tuple[int, bool]:
    try:
        for bandit in state.bandits if body.keys() - {"arm", "paused"} else ():  # a pause cannot fail
            apply_arm_change(bandit.copy(), body)
    except (TypeError, ValueError) as error:
        raise ConflictError(str(error)) from None
    work.append(state, ARM, body)
    return state.sequence, True


def set_guardrails(work: UnitOfWork, name: str, asked: monitoring_types.SetGuardrails) -> tuple[int, bool]:
    """Replace the guardrails, whose tests start again; return the sequence number and whether anything changed."""
    state = work.named(name)
    try:
        check_guardrails(asked.guardrails, len(state.bandit.names))
    except ValueError as error:
        raise InvalidValueError(str(error)) from None
    if asked.guardrails == state.monitoring.guardrails.rules:
        return state.sequence, False
    work.append(state, GUARDRAILS, msgspec.to_builtins(asked))
    return state.sequence, True


def check_guardrails(guardrails: dict[str, monitoring_types.Guardrail], arms: int) -> None:
    """Raise an error for a guardrail that is not valid, or for too many with this many arms."""
    if len(guardrails) * arms > MAX_TESTS:
        raise ValueError(f"guardrails must be at most {MAX_TESTS // arms} with {arms} arms, got {len(guardrails)}")
    for metric, rule in guardrails.items():
        if not metric.isprintable():
            raise ValueError(f"a metric of guardrails must have a name of printable characters, got {metric!r}")
        low, high = rule.range or (-math.inf, math.inf)
        if not low < high:
            raise ValueError(f"guardrails.{metric}.range must have the smaller value first, got [{low:g}, {high:g}]")
        if not low < rule.bound < high:
            raise ValueError(f"guardrails.{metric}.bound must be above {low:g} and below {high:g}, got {rule.bound:g}")


def set_policy(
    work: UnitOfWork, name: str, asked: api_types.SetPolicy, warm: WarmStart | None = None
) -> tuple[int, bool]:
    """Continue with another policy that has learned all rewards so far; return the sequence and whether it is new.

    Rewards that `warm` has learned already need not be learned here, where all other requests wait.
    """
    state = work.named(name)
    warm = current_warm_start(work, state, asked, warm)
    if warm.bandit.policy == state.bandit.policy:
        return state.sequence, False
    if state.shadow is not None and not warm.bandit.rewards.is_within(state.shadow.bandit.rewards):
        accepted = state.shadow.bandit.rewards.description
        raise ConflictError(f"the shadow policy learns only rewards that are {accepted}: end it first")
    bandit, body = warm.finish(work.store, state)
    body["rules"] = RULES
    work.events.append(state.change_policy(work.now(state), work.clock.wall(), json.dumps(body), bandit))
    return state.sequence, True


def current_warm_start(
    work: UnitOfWork, state: LoggedState, asked: api_types.SetPolicy, warm: WarmStart | None
) -> WarmStart:
    """Return a warm start for a state as it is now, the given one if it still fits."""
    start = lock_start(work, state)
    if warm is None or warm.start != start or warm.bandit_for(state) is None:
        warm = WarmStart(state, asked, start)
    return warm


def lock_start(work: UnitOfWork, state: LoggedState) -> LogStart:
    """Return where the log of a bandit starts; until the commit no other process can compact it."""
    if not work.store.in_transaction:
        work.store.begin({state.bandit_number: state.sequence})
    return read_start(work.store, state.bandit_number)


def shadow_policy(state: LoggedState) -> Policy | None:
    """Return the shadow policy of a state."""
    return None if state.shadow is None else state.shadow.bandit.policy


def set_shadow(
    work: UnitOfWork, name: str, asked: api_types.SetPolicy, warm: WarmStart | None = None
) -> tuple[int, bool]:
    """Start a shadow policy that has learned all rewards so far; return the sequence and whether it is new.

    Rewards that `warm` has learned already need not be learned here, where all other requests wait.
    """
    state = work.named(name)
    warm = current_warm_start(work, state, asked, warm)
    if warm.bandit.policy == shadow_policy(state):
        return state.sequence, False
    if warm.narrows:
        accepted, learned = state.bandit.rewards.description, warm.bandit.rewards.description
        raise InvalidValueError(
            f"policy must learn every reward that the bandit accepts, {accepted}, but {asked.policy!r} learns {learned}"
        )
    now, wall = work.now(state), work.clock.wall()
    if state.rules < RULES:
        work.events.append(state.adopt_rules(now, wall))
    bandit, body = warm.finish(work.store, state)
    body["seed"] = shadow_seed(state.bandit.seed, state.sequence + 1)
    work.events.append(state.start_shadow(now, wall, json.dumps(body), bandit.reseeded(body["seed"])))
    return state.sequence, True


def end_shadow(work: UnitOfWork, name: str) -> tuple[int, bool]:
    """End the shadow policy; return the sequence number and whether there was one."""
    state = work.named(name)
    if state.shadow is None:
        return state.sequence, False
    work.append(state, SHADOW, {"ended": True})
    return state.sequence, True


def promote_shadow(work: UnitOfWork, name: str, asked: api_types.PromoteShadow) -> tuple[int, bool]:
    """Let the shadow policy decide from now on, with what it has learned; the policy becomes the shadow, or ends."""
    state, keep = work.named(name), asked.keep
    if asked.seed is not None and asked.seed == state.bandit.seed:  # the request came before
        return state.sequence, False
    if state.shadow is None:
        raise ConflictError(f"bandit {name!r} has no shadow policy")
    if asked.seed not in (None, state.shadow.bandit.seed):
        raise ConflictError(f"seed must be {state.shadow.bandit.seed}, that of the shadow policy, got {asked.seed}")
    if keep and not state.shadow.bandit.rewards.is_within(state.bandit.rewards):
        learned = state.bandit.rewards.description
        raise ConflictError(f"keep must be false: policy {state.bandit.policy.name!r} learns only {learned}")
    policy = state.shadow.bandit.policy
    body = {"policy": policy.name, "parameters": policy.parameters, "rules": RULES, "promoted": True, "kept": keep}
    work.append(state, POLICY, plain(body))
    return state.sequence, True


def delete(work: UnitOfWork, name: str, identity: str | None, erase: bool) -> tuple[int, bool, int]:
    """Delete a bandit and keep its log, or erase both.

    Return its number, whether anything changed, and how many events are still to be erased, which is done later, in
    small batches. With its id the log of a bandit that was deleted before can be erased. A log that is damaged can be
    erased, too.
    """
    store = work.store
    bandit_number = store.find_log(name, identity, erasing=erase)
    left = events_left(store, bandit_number) if erase else 0
    row = store.bandit(bandit_number)
    if row is not None and row.erasing:
        return bandit_number, False, left
    exists = work.find(name) == bandit_number
    if left > ERASED_ROWS:
        work.erasing.append(bandit_number)
    elif erase:
        work.erased.append(bandit_number)
        left = 0
    elif exists:
        state = work.named(name)
        work.append(state, DELETE)
        work.deleted.append(bandit_number)
    if exists:
        work.names.pop(name, None)
    return bandit_number, erase or exists, left
