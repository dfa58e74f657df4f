"""New shadow policies, their end, and their promotion."""

import json

from dynabandit.bandit.serialization import plain
from dynabandit.policies import Policy
from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.changes import current_warm_start
from dynabandit.service.domain.events import POLICY, SHADOW
from dynabandit.service.domain.shadow import shadow_seed
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.domain.warm_start import WarmStart
from dynabandit.service.errors import ConflictError, InvalidValueError


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
