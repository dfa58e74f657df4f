"""A change of policy that keeps no decision waiting: the new policy learns beside the service before it takes over."""

from collections.abc import Callable

from dynabandit.choosing.draw_tree import MANY_ARMS
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy
from dynabandit.service import api_types, field_types
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.domain.warm_start import WarmStart, compile_policy, warm_up
from dynabandit.service.service import Service

WARM_STARTS = 4  # attempts to warm up a policy beside the service; at the last one, requests wait for it


async def compile_before_use(service: Service, policy: str, parameters: field_types.Parameters, arms: int) -> None:
    """Compile a policy in a thread: that takes seconds, during which other requests go on."""
    needed = policy if arms <= MANY_ARMS else f"{policy} with many arms"  # which may have functions of their own
    if policy in {**POLICIES, **CONTEXTUAL_POLICIES} and needed not in service.compiled:
        await service.run_long(lambda store, check: compile_policy(policy, parameters, arms))
        service.compiled.add(needed)


Change = Callable[[UnitOfWork, str, api_types.SetPolicy, WarmStart | None], tuple[int, bool]]
Current = Callable[[LoggedState], Policy | None]


async def set_policy(service: Service, name: str, asked: api_types.SetPolicy) -> tuple[int, bool]:
    """Change the policy of a bandit; return the sequence number and whether it is another one."""
    return await _change(service, name, asked, changes.set_policy, lambda state: state.bandit.policy)


async def set_shadow(service: Service, name: str, asked: api_types.SetPolicy) -> tuple[int, bool]:
    """Start a shadow policy; return the sequence number and whether it is another one."""
    return await _change(service, name, asked, changes.set_shadow, changes.shadow_policy)


async def _change(
    service: Service, name: str, asked: api_types.SetPolicy, change: Change, current: Current
) -> tuple[int, bool]:
    for attempt in range(WARM_STARTS):
        changed = await _try_to_change(service, name, asked, change, current, is_last=attempt == WARM_STARTS - 1)
        if changed is not None:
            return changed
    raise AssertionError("the last attempt always changes the policy")


async def _try_to_change(
    service: Service, name: str, asked: api_types.SetPolicy, change: Change, current: Current, *, is_last: bool
) -> tuple[int, bool] | None:
    """Warm up the policy while decisions go on, then change to it.

    Return None if arms came or went meanwhile, or old events were removed.
    """
    state = await copy_state(service, name)
    warm = await service.run_long(lambda store, check: warm_up(store, state, asked, current(state), check))
    if warm is None:
        return state.sequence, False

    def run(work: UnitOfWork) -> tuple[int, bool] | None:
        state = work.named(name)
        is_current = warm.bandit_for(state) is not None and warm.start == changes.lock_start(work, state)
        if not is_last and not is_current:
            return None
        return change(work, name, asked, warm)

    changed: tuple[int, bool] | None = await service.writer.submit(run, name=name, alone=True, priority=True)
    return changed


async def copy_state(service: Service, name: str) -> LoggedState:
    """Return a copy of the current state of a bandit."""
    state: LoggedState = await service.writer.submit(lambda work: work.named(name).copy(), name=name, priority=True)
    return state
