"""The playground: its page, checking a run, and streaming the results of a run."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from dynabandit import playground
from dynabandit.playground import form_fields, tour
from dynabandit.playground.link import LONGEST
from dynabandit.service.errors import InvalidValueError, OverloadedError
from dynabandit.service.http.authorisation import authorise
from dynabandit.service.http.request_bodies import decode_body
from dynabandit.service.http.requests import read_body
from dynabandit.service.http.responses import encode, json_response, problem_response
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.logging_setup import log
from dynabandit.service.service import Service
from dynabandit.service.web.playground_workers import Process, WorkerPool
from dynabandit.service.web.rendering import page, render

LARGEST_BODY = 1 << 14


class RunRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A run, as the query string of its link."""

    link: str


RUN_REQUEST = msgspec.json.Decoder(RunRequest)


class CheckedRun(msgspec.Struct):
    """What is wrong with a run, or the same run in other formats."""

    problems: list[playground.FieldProblem]
    link: str = ""
    toml: str = ""
    python: str = ""


async def _read_trial(request: Request) -> playground.Trial:
    """Return the run of a request; in another thread, because compositions take some milliseconds to be made."""
    link = decode_body(RUN_REQUEST, await read_body(request, LARGEST_BODY)).link
    return await asyncio.to_thread(playground.read, link)


async def check(service: Service, request: Request) -> Response:
    """Report what is wrong with a run; invalid input is a normal result here, not an error."""
    try:
        trial = await _read_trial(request)
    except playground.SpecError as error:
        return json_response(CheckedRun(error.problems))
    return json_response(CheckedRun([], trial.query, playground.toml(trial), playground.python(trial)))


async def policy(service: Service, request: Request) -> Response:
    """Report what the form shows of a policy, or why its parts do not fit."""
    name = request.query_params.get("name", "")[:LONGEST]
    try:
        return json_response({"policy": await asyncio.to_thread(form_fields.describe, name)})
    except ValueError as error:
        return json_response({"problem": str(error)})


class RunStream(StreamingResponse):
    """The messages of a run as server-sent events.

    Starlette cancels the response when the client disconnects; this ends the process of the run. `sse-starlette` would
    not help: the status is known only when a worker process is free, and the messages arrive encoded.

    `check` is called before each message, and raises `ApiError` when the key of the client is no longer valid.
    """

    media_type = "text/event-stream"

    def __init__(self, workers: WorkerPool, link: str, check: Callable[[], object] = lambda: None) -> None:
        super().__init__((), headers={"Cache-Control": "no-store"}, background=BackgroundTask(workers.prepare))
        self.workers = workers
        self.link = link
        self.check = check

    async def stream_response(self, send: Send) -> None:
        try:
            async with self.workers.worker() as process:
                self.body_iterator = self._events(process)
                await super().stream_response(send)
        except OverloadedError:
            text = f"{self.workers.limit} runs are in progress already; try again when one has ended"
            refused = problem_response(429, text, **{"Retry-After": "2"})
            await send({"type": "http.response.start", "status": 429, "headers": refused.raw_headers})
            await send({"type": "http.response.body", "body": refused.body})
        except Exception:
            log.exception("a run of the playground failed")

    async def _events(self, process: Process) -> AsyncIterator[bytes]:
        line = b""
        try:
            async with contextlib.aclosing(self.workers.messages(process, self.link)) as lines:
                async for line in lines:
                    self.check()
                    yield b"data: " + line.rstrip() + b"\n\n"
            if b'"kind":"end"' not in line[:20]:
                closing = self.workers.closing.is_set()
                yield _failed("the service is being stopped" if closing else "its process ended; see the service's log")
        except ApiError as error:
            yield _failed(str(error))
        except TimeoutError:
            limit = f"{self.workers.time_limit:g} seconds"
            yield _failed(f"stopped after {limit}: use fewer replications, steps or arms")


def _failed(reason: str) -> bytes:
    return b"data: " + encode({"kind": "failed", "text": reason}) + b"\n\n"


@functools.cache
def _catalogue() -> dict[str, Any]:
    return form_fields.catalogue()


def routes(service: Service, workers: WorkerPool) -> list[Route]:
    """Return the routes of the playground; those under /lab are its former addresses, which links still use."""

    async def show(service: Service, request: Request) -> Response:
        await workers.prepare()
        return render(service, "playground.html", catalogue=_catalogue(), tour=[step.shown for step in tour.STEPS])

    async def redirect(service: Service, request: Request) -> Response:
        query = request.url.query
        return RedirectResponse(f"/playground?{query}" if query else "/playground", 308)

    async def run(service: Service, request: Request) -> Response:
        try:
            trial = await _read_trial(request)
        except playground.SpecError as error:
            raise InvalidValueError(str(error)) from None
        return RunStream(workers, trial.query, functools.partial(authorise, service, request, "read"))

    actions = [
        page(service, f"{base}/{name}", handler, "read", "POST")
        for base in ("/playground", "/lab")
        for name, handler in (("check", check), ("run", run))
    ]
    described = page(service, "/playground/policy", policy, "read")
    return [page(service, "/playground", show), page(service, "/lab", redirect), described, *actions]
