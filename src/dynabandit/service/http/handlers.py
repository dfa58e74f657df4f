"""One function per request of the API: it reads the request, hands the work to the writer or a reader, and responds."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from dynabandit.service import api_types, export, policy_change, snapshots
from dynabandit.service.domain import changes, decisions, rewards
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.events import KINDS
from dynabandit.service.domain.names import in_namespace, is_whole, legible, public_id, read_public_id
from dynabandit.service.domain.rewards import RewardOfDecision
from dynabandit.service.domain.steps import Steps
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import InvalidValueError, NotFoundError, ReplayMismatchError
from dynabandit.service.http.authorisation import may_still_read
from dynabandit.service.http.page_keys import check_may_reward, page_key, stored_key, unit_of
from dynabandit.service.http.requests import (
    bandit_name,
    caller_of,
    checked_name,
    namespace_of,
    new_name,
    path_name,
)
from dynabandit.service.http.responses import JSON, MAX_PROBLEM, LimitedStream, bandit_view, cut, encoded_view
from dynabandit.service.http.status_codes import DAMAGED, STATUSES, ApiError, damage_problem
from dynabandit.service.request_queue import MAX_LOCKED_BANDITS
from dynabandit.service.service import Service
from dynabandit.service.stores import BanditRow, Store

NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
MAX_PROBLEMS = 2_000_000  # characters of the problems of a response: 200 for each of the most rewards
QueryValues = dict[str, Any]
Content = TypeVar("Content")


class Result(NamedTuple):
    """The body of a response, its status, and whether the request was a change that is to be logged.

    What is logged is `change`, or else the body of the request.
    """

    content: Any
    status: int = 200
    changed: bool = False
    change: dict[str, Any] | None = None


class DecisionOfRequest(NamedTuple):
    """The decision that the path of a request names, and the name of its bandit if the path has one."""

    id: str
    bandit_number: int
    step: int
    name: str | None

    def check_bandit(self, work: UnitOfWork) -> None:
        """Raise an error if the decision belongs to another bandit than the named one."""
        if self.name is not None and work.find(self.name) != self.bandit_number:
            raise NotFoundError(no_decision(self.id))


async def decision_of(service: Service, request: Request) -> DecisionOfRequest:
    """Return the decision of a request, or raise an error if no decision has this id."""
    decision = request.path_params["id"]
    name = bandit_name(request) if "name" in request.path_params else None
    found = (await service.decision_ids()).read(decision, signed=page_key(request) is not None)
    if found is None:
        raise NotFoundError(no_decision(decision))
    return DecisionOfRequest(decision, *found, name)


# Decisions and rewards


async def decide(service: Service, request: Request, body: api_types.Decide) -> Result:
    """POST /v1/bandits/{name}/decisions."""
    name = bandit_name(request)
    body.unit = await unit_of(service, request, body)
    sent_key = stored_key(request, body.unit)
    if body.among is not None:
        body.among = [checked_name(arm, "an arm of among") for arm in body.among]
    decisions.check_context(body.context)  # a request that waits for its bandit keeps its body in memory
    made = await service.writer.submit(
        lambda work: decisions.decide_in_steps(work, name, body, sent_key),
        name=name,
        events=body.count,
        idempotency_key=sent_key,
        unit=body.unit,
        takes_long=lambda work: decisions.takes_long(work, name, body),
        caller=caller_of(request),
    )
    return Result(api_types.Decisions(made))


async def add_reward(service: Service, request: Request, body: api_types.Reward) -> Result:
    """PUT /v1/decisions/{id}/reward and PUT /v1/bandits/{name}/decisions/{id}/reward."""
    check_may_reward(request)
    value, namespace = body.reward, namespace_of(request)
    arm = None if body.arm is None else checked_name(body.arm, "arm")
    found = await decision_of(service, request)

    def run(work: UnitOfWork) -> None:
        found.check_bandit(work)
        rewards.reward(work, found.bandit_number, found.step, value, namespace, arm)

    await service.writer.submit(run, name=found.name, bandits=[found.bandit_number], caller=caller_of(request))
    return Result(api_types.Rewarded(found.id, value, arm))


async def add_rewards(service: Service, request: Request, body: api_types.Rewards) -> Result:
    """POST /v1/rewards and POST /v1/bandits/{name}/rewards."""
    check_may_reward(request)
    ids, namespace, signed = await service.decision_ids(), namespace_of(request), page_key(request) is not None
    name = bandit_name(request) if "name" in request.path_params else None
    given = [
        RewardOfDecision(
            ids.read(one.decision, signed), one.reward, None if one.arm is None else checked_name(one.arm, "arm")
        )
        for one in body.rewards
    ]
    bandit_numbers = {one.decision[0] for one in given if one.decision is not None}
    if len(bandit_numbers) > MAX_LOCKED_BANDITS:
        raise InvalidValueError(
            f"rewards must belong to at most {MAX_LOCKED_BANDITS} bandits per call, got {len(bandit_numbers)}"
        )

    def run(work: UnitOfWork) -> Steps[list[rewards.RewardError | None]]:
        if name is None:
            return (yield from rewards.reward_many(work, given, namespace))
        bandit_number = work.named(name).bandit_number
        is_own = (one.decision is not None and one.decision[0] == bandit_number for one in given)
        own = [one if is_there else one._replace(decision=None) for one, is_there in zip(given, is_own, strict=True)]
        return (yield from rewards.reward_many(work, own, namespace))

    def takes_long(work: UnitOfWork) -> bool:
        return rewards.takes_long(work, (one.decision[0] for one in given if one.decision is not None))

    errors = await service.writer.submit(
        run,
        name=name,
        bandits=bandit_numbers,
        events=len(given),
        takes_long=takes_long,
        caller=caller_of(request),
    )
    return Result(api_types.RewardResults(reward_results([one.decision for one in body.rewards], errors)))


def reward_results(
    decisions: Sequence[str], errors: Sequence[rewards.RewardError | None]
) -> list[api_types.RewardResult]:
    """Return the result of each of several rewards; the more there are, the shorter are their problems."""
    longest = min(MAX_PROBLEM, MAX_PROBLEMS // max(1, len(errors)))
    mismatches = {error for error in errors if isinstance(error, ReplayMismatchError)}
    damage_problems = {error: damage_problem(error) for error in mismatches}  # each is logged once
    results = []
    for decision, error in zip(decisions, errors, strict=True):
        if error is None:
            results.append(api_types.RewardResult(decision, 200))
        elif isinstance(error, ReplayMismatchError):
            results.append(api_types.RewardResult(decision, DAMAGED, damage_problems[error]))
        else:
            problem = cut(str(error) or no_decision(decision), longest)
            results.append(api_types.RewardResult(decision, STATUSES[type(error)], problem))
    return results


def no_decision(decision: str) -> str:
    """Return what is wrong with an id that belongs to no decision."""
    return f"there is no decision {decision[:100]!r}"


# Bandits


async def create(service: Service, request: Request, body: api_types.Create) -> Result:
    """PUT /v1/bandits/{name}."""
    await _with_arms(len(body.arms), lambda: _check_arms(body))
    name, namespace = new_name(path_name(request, "name"), "name"), namespace_of(request)
    if not in_namespace(name, namespace):
        raise ApiError(403, f"with this key, the name of a bandit must begin with {f'{namespace}/'!r}, got {name!r}")
    if body.holdout is not None and body.holdout.control is not None:
        body.holdout.control = checked_name(body.holdout.control, "holdout.control")
    policy = changes.recommended_for(body)
    await policy_change.compile_before_use(service, policy, body.parameters, len(body.arms))
    prepared = None if len(body.arms) < snapshots.LARGE_STATE_ARMS else await asyncio.to_thread(_prepared, name, body)

    def run(work: UnitOfWork) -> tuple[Callable[[], api_types.BanditState], bool]:
        state, created = changes.create(work, name, body, prepared)
        return bandit_view(state, service.decider_contacts), created

    view, created = await service.writer.submit(run, name=name, alone=True, priority=True)
    content = await _with_arms(len(body.arms), lambda: encoded_view(view()))
    return Result(content, 201 if created else 200, changed=created)


async def _with_arms(count: int, function: Callable[[], Content]) -> Content:
    """Return the result of a function that takes a while with so many arms: it is then run in a thread."""
    return function() if count < snapshots.LARGE_STATE_ARMS else await asyncio.to_thread(function)


def _check_arms(body: api_types.Create) -> None:
    """Write the names of arms as they are stored, or raise an error."""
    body.arms = [new_name(arm, "an arm's name") for arm in body.arms]
    if body.arm_features is not None:
        body.arm_features = {new_name(arm, "an arm's name"): own for arm, own in body.arm_features.items()}


def _prepared(name: str, body: api_types.Create) -> changes.NewBandit | InvalidValueError:
    """Return a new bandit, or the error that its body deserves unless the bandit exists already."""
    try:
        return changes.prepare(name, body)
    except InvalidValueError as error:
        return error


async def get_bandit(service: Service, request: Request, _: None) -> Result:
    """GET /v1/bandits/{name}."""

    def encoder(state: LoggedState) -> Callable[[], msgspec.Raw]:
        view = bandit_view(state, service.decider_contacts)
        return lambda: encoded_view(view())

    return Result(await encode_copy(service, bandit_name(request), encoder))


async def encode_copy(
    service: Service, name: str, encoder: Callable[[LoggedState], Callable[[], Content]], priority: bool = False
) -> Content:
    """Return the result of the function that `encoder` makes of a copy of a state; many arms take a thread."""

    def run(work: UnitOfWork) -> Callable[[], Content] | None:
        state = work.named(name)
        return encoder(state) if len(state.bandit.names) < snapshots.LARGE_STATE_ARMS else None

    encode = await service.writer.submit(run, name=name, priority=priority)
    if encode is not None:
        return encode()
    with service.large_states.reserve():  # before a copy is made
        encode = await service.writer.submit(lambda work: encoder(work.named(name)), name=name)
        return await service.large_states.run(lambda store, check: encode())


async def list_bandits(service: Service, request: Request, query: QueryValues) -> Result:
    """GET /v1/bandits."""
    deleted, after, limit = query["deleted"] == "true", query["after"], query["limit"]
    namespace = namespace_of(request)
    found, has_more = await service.read(lambda store: _page_of_bandits(store, deleted, after, limit, namespace))
    listed = [api_types.BanditSummary(legible(row.name), public_id(row.number), row.deleted) for row in found]
    return Result(api_types.BanditList(listed, listed[-1].name if has_more else None))


def _page_of_bandits(
    store: Store, deleted: bool, after: str, limit: int, namespace: str | None
) -> tuple[list[BanditRow], bool]:
    """Return a page of bandits and whether there may be more; it ends at an undamaged name, to continue after."""
    found = store.bandits(deleted, after, limit, namespace)
    has_more = len(found) >= limit
    while has_more and not is_whole(found[-1].name):
        following = store.bandits(deleted, found[-1].name, 1, namespace)
        found += following
        has_more = bool(following)
    return found, has_more


async def delete(service: Service, request: Request, query: QueryValues) -> Result:
    """DELETE /v1/bandits/{name}."""
    name, identity, erase = bandit_name(request), query["id"] or None, query["erase"] == "true"
    if not query["confirm"] or checked_name(query["confirm"], "confirm") != name:
        got = query["confirm"][:200]
        raise InvalidValueError(f"confirm must repeat the name of the bandit, {name!r}, got {got!r}")
    asked = None if identity is None else read_public_id(identity)
    bandit_number, changed, left = await service.writer.submit(
        lambda work: changes.delete(work, name, identity, erase),
        name=name,
        bandits=() if asked is None else (asked,),
        alone=True,
        priority=True,
    )
    deleted = api_types.Deleted(name, public_id(bandit_number), not erase, left)
    return Result(deleted, 202 if left else 200, changed=changed)


# Arms and policy


async def add_arm(service: Service, request: Request, body: api_types.AddArm) -> Result:
    """POST /v1/bandits/{name}/arms."""
    name, arm = bandit_name(request), new_name(body.arm, "an arm's name")
    return await submit_change(service, name, lambda work: changes.add_arm(work, name, arm, body.features))


async def change_arm(service: Service, request: Request, body: api_types.ChangeArm) -> Result:
    """PATCH /v1/bandits/{name}/arms/{arm}."""
    name, arm = bandit_name(request), path_name(request, "arm")
    return await submit_change(service, name, lambda work: changes.change_arm(work, name, arm, body))


async def submit_change(
    service: Service, name: str, change: Callable[[UnitOfWork], tuple[int, bool]], alone: bool = False
) -> Result:
    """Let the writer change a bandit, and return the response."""
    return changed(await service.writer.submit(change, name=name, alone=alone, priority=True))


def changed(change: tuple[int, bool]) -> Result:
    """Return the response to a change: the sequence number from which it holds."""
    sequence, is_new = change
    return Result(api_types.Changed(sequence), changed=is_new)


async def set_policy(service: Service, request: Request, body: api_types.SetPolicy) -> Result:
    """PUT /v1/bandits/{name}/policy."""
    return changed(await policy_change.set_policy(service, bandit_name(request), body))


async def set_shadow(service: Service, request: Request, body: api_types.SetPolicy) -> Result:
    """PUT /v1/bandits/{name}/shadow."""
    return changed(await policy_change.set_shadow(service, bandit_name(request), body))


async def end_shadow(service: Service, request: Request, _: None) -> Result:
    """DELETE /v1/bandits/{name}/shadow."""
    name = bandit_name(request)
    return await submit_change(service, name, lambda work: changes.end_shadow(work, name))


async def promote_shadow(service: Service, request: Request, body: api_types.PromoteShadow) -> Result:
    """POST /v1/bandits/{name}/shadow/promote."""
    name = bandit_name(request)
    return await submit_change(service, name, lambda work: changes.promote_shadow(work, name, body), alone=True)


async def preview_policy(service: Service, request: Request, body: api_types.PreviewPolicy) -> Result:
    """POST /v1/bandits/{name}/policy/preview."""
    name = bandit_name(request)
    with service.previews.reserve():
        state = await policy_change.copy_state(service, name)
        work = service.previews.run(lambda store, check: service.preview_worker.preview(store, state, body, check))
        return Result(await _unless_disconnected(request, work))


async def _unless_disconnected(request: Request, work: Coroutine[Any, Any, Content]) -> Content:
    """Return the result of some work, which is cancelled if the client disconnects; the body was read before."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        leaving.cancel()
        working.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# The log


async def get_events(service: Service, request: Request, query: QueryValues) -> Result | Response:
    """GET /v1/bandits/{name}/events."""
    name, identity, after, limit = bandit_name(request), query["id"] or None, query["after"], query["limit"]
    bandit_number = await service.read(lambda store: store.find_log(name, identity))
    kinds = KINDS.get(query["kind"], ())
    if query["format"] == "ndjson":
        return _stream(
            service, request, lambda store, _: export.event_lines(store, bandit_number, after, kinds), NDJSON
        )
    page = await service.read_log(lambda store: export.page_of_events(store, bandit_number, after, limit, kinds))
    return Response(b'{"events":[%b]}' % b",".join(page), media_type=JSON)  # as `api_types.Events`


async def get_export(service: Service, request: Request, query: QueryValues) -> Response:
    """GET /v1/bandits/{name}/export."""
    name, identity, draws = bandit_name(request), query["id"] or None, query["draws"]
    bandit_number = await service.read(lambda store: store.find_log(name, identity))
    await service.read_log(lambda store: export.check_draws(store, bandit_number, draws))
    make, media_type = export.decision_lines, NDJSON
    if query["format"] == "parquet":
        make, media_type = export.parquet_pieces, PARQUET
        if not export.has_parquet():
            raise ApiError(501, "Parquet needs pyarrow, which is not installed: pip install 'dynabandit[lab]'")
    return _stream(service, request, lambda store, is_wanted: make(store, bandit_number, draws, is_wanted), media_type)


def _stream(
    service: Service, request: Request, make: Callable[[Store, Callable[[], bool]], Iterator[bytes]], media_type: str
) -> Response:
    may_continue = functools.partial(may_still_read, service, request)
    return LimitedStream(service.streams, service.stream(make, may_continue), media_type)


# Health


async def healthz(service: Service, request: Request, _: None) -> Result:
    """GET /healthz."""
    return Result(api_types.Ready("live"))


async def readyz(service: Service, request: Request, _: None) -> Result:
    """GET /readyz."""
    await service.check_ready()
    return Result(api_types.Ready("ready"))


async def metrics(service: Service, request: Request, _: None) -> Response:
    """GET /metrics."""
    return Response(service.metrics.page(namespace_of(request)), media_type="text/plain; version=0.0.4; charset=utf-8")
