"""The requests of local deciders: the state from which they decide, and the batches that they send."""

from collections.abc import Callable

from starlette.requests import Request

from dynabandit.service import api_types
from dynabandit.service.domain import local_decisions
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.local_bandit import local_id
from dynabandit.service.domain.names import public_id
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.http.handlers import MANY_ARMS, QueryValues, Result, reward_result
from dynabandit.service.http.requests import bandit_name, checked_name
from dynabandit.service.service import Service

MAX_ID = 16  # characters of the id of a decider


async def get_local_state(service: Service, request: Request, query: QueryValues) -> Result:
    """GET /v1/bandits/{name}/local-state."""
    name, after, decider = bandit_name(request), query["after"], query["decider"][:MAX_ID]

    def run(work: UnitOfWork) -> Callable[[], api_types.LocalState] | None:
        state = work.named(name)
        if decider:
            service.decider_contacts.note(state.number, name, decider, after, query["waiting"])
        return local_view(state, after) if len(state.bandit.names) < MANY_ARMS else None

    view = await service.writer.submit(run, name=name)
    if view is not None:
        return Result(view())
    with service.large_states.reserve():  # before a copy is made
        view = await service.writer.submit(lambda work: local_view(work.named(name), after), name=name)
        return Result(await service.large_states.run(lambda store, check: view()))


def local_view(state: LoggedState, after: int) -> Callable[[], api_types.LocalState]:
    """Copy a state now, and return a function that makes the view of the copy that local deciders get."""
    holdout = state.settings.holdout
    view = api_types.LocalState(
        name=state.settings.name,
        id=public_id(state.number),
        sequence=state.sequence,
        rules=RULES,
        sticky_for=state.settings.sticky_for,
        holdout=None if holdout is None else api_types.HoldoutSettings(*holdout),
    )
    if state.sequence == after:
        return lambda: view
    bandit = state.bandit.copy()

    def with_bandit() -> api_types.LocalState:
        view.bandit = bandit.to_json()
        return view

    return with_bandit


async def add_local_decisions(service: Service, request: Request, body: api_types.LocalBatch) -> Result:
    """POST /v1/bandits/{name}/local-decisions."""
    name = bandit_name(request)
    for place, decision in enumerate(body.decisions):
        if decision.unit is not None:
            decision.unit = checked_name(decision.unit, f"decisions[{place}].unit")
    events = len(body.decisions) + len(body.rewards)
    step, errors = await service.writer.submit(
        lambda work: local_decisions.store_batch(work, name, body), name=name, events=events
    )
    ids = [local_id(one.decider, one.step) for one in body.rewards]
    results = [reward_result(decision, error) for decision, error in zip(ids, errors, strict=True)]
    return Result(api_types.LocalBatchResult(step, results))
