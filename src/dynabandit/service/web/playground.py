"""The playground: a form, a run to watch, and the same run as a link, as TOML and as Python."""

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from dynabandit import playground
from dynabandit.playground import form_fields, tour
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.http.request_bodies import decode_body
from dynabandit.service.http.requests import authorise, read_body
from dynabandit.service.http.responses import encode, json_response, problem_response
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.service import Service
from dynabandit.service.web.frame import page, render
from dynabandit.service.web.playground_workers import Busy, Process, Workers

__all__ = ["routes"]

LARGEST_BODY = 1 << 14
log = structlog.get_logger("dynabandit.service")


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """A trial: what comes after the question mark of its link."""

    link: str


ASKED = msgspec.json.Decoder(Asked)


class Checked(msgspec.Struct):
    """What is wrong with a trial, or the same trial in other forms."""

    problems: list[playground.FieldProblem]
    link: str = ""
    toml: str = ""
    python: str = ""


async def _asked(request: Request) -> str:
    return decode_body(ASKED, await read_body(request, LARGEST_BODY)).link


async def check(service: Service, request: Request) -> Response:
    """Say what is wrong with a trial; wrong input is an answer here, not a failure."""
    try:
        trial = playground.read(await _asked(request))
    except playground.SpecError as error:
        return json_response(Checked(error.problems))
    return json_response(Checked([], trial.query, playground.toml(trial), playground.python(trial)))


class Watching(Response):
    """The messages of a trial as server-sent events; its process ends when the reader goes away.

    Parameters
    ----------
    workers
        Where it runs.
    link
        The trial.
    after
        Is called at the end.
    check
        Is called before each message and raises `ApiError` where the reader may not go on, such as with a key that
        was revoked meanwhile.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        workers: Workers,
        link: str,
        after: Callable[[], None] = lambda: None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self.workers = workers
        self.link = link
        self.after = after
        self.check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages while somebody listens."""
        sending = asyncio.create_task(self._send(scope, receive, send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.wait({sending})
            self.after()
        if not sending.cancelled() and (error := sending.exception()) is not None:
            log.error("a trial failed", exc_info=error)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self.workers.worker() as process:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._send_messages(process, send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except Busy:
            full = f"{self.workers.most} runs are under way already; try again when one has ended"
            await problem_response(429, full, **{"Retry-After": "2"})(scope, receive, send)

    async def _send_messages(self, process: Process, send: Send) -> None:
        last = b""
        try:
            async with contextlib.aclosing(self.workers.lines(process, self.link)) as lines:
                async for last in lines:
                    self.check()
                    await _event(send, last)
            if b'"kind":"end"' not in last[:20]:
                await _failed(send, self._why())
        except ApiError as error:
            await _failed(send, str(error))
        except TimeoutError:
            limit = f"{self.workers.seconds:g} seconds"
            await _failed(send, f"stopped after {limit}: fewer replications, steps or arms take less")

    def _why(self) -> str:
        if self.workers.closing.is_set():
            return "the service is being stopped"
        return "the process that ran this ended; the log of the service says why"


async def _event(send: Send, line: bytes) -> None:
    body = b"data: " + line.rstrip() + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _failed(send: Send, why: str) -> None:
    await _event(send, encode({"kind": "failed", "text": why}))


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@functools.cache
def _catalogue() -> dict[str, Any]:
    return form_fields.catalogue()


def routes(service: Service, workers: Workers) -> list[Route]:
    """Return the routes of the playground."""

    async def show(service: Service, request: Request) -> Response:
        workers.warm()
        return render(service, "lab.html", catalogue=_catalogue(), steps=[step.shown for step in tour.STEPS])

    async def run(service: Service, request: Request) -> Response:
        try:
            trial = playground.read(await _asked(request))
        except playground.SpecError as error:
            raise InvalidValueError(str(error)) from None
        check = functools.partial(authorise, service, request, "read")
        return Watching(workers, trial.query, workers.warm, check)  # who runs once will run again

    return [
        page(service, "/lab", show),
        page(service, "/lab/check", check, "read", "POST"),
        page(service, "/lab/run", run, "read", "POST"),
    ]
