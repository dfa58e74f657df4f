"""Real servers for tests: in their own process to be killed, or in a thread with a clock that tests move."""

import asyncio
import contextlib
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import quote

import httpx
import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest
import structlog
from typer.testing import CliRunner

from dynabandit.client import AsyncClient, Client, ServiceError
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.command_line import app
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import reward
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.http.connections import TimeLimits
from dynabandit.service.http.limits import MAX_CONNECTIONS
from dynabandit.service.http.routes import Instrumentation
from dynabandit.service.http.server import make_server
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, Store, open_store
from dynabandit.service.verify import verify
from tools.patient_service import LONG_LIMITS
from tools.waiting import PATIENCE, wait_for

Result = TypeVar("Result")


class ServerProcess:
    """`dynabandit serve` in a process of its own, with at most `files` open files.

    No call fails because the machine is busy, unless the options say so.
    """

    def __init__(self, store: str, *options: str, files: int | None = None) -> None:
        command = [sys.executable, "-m", "tools.patient_service", "serve", "--port", "0", "--store", store]
        command += ["--patience", str(PATIENCE), *options]
        if files is not None:
            command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
        path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            problem = self.process.communicate()[1]
            raise RuntimeError(f"the server did not start: {line} {problem}")
        self.url = line.split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> str:
        """Stop it as an operator would, and return what it logged."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=PATIENCE)[1]


@contextlib.contextmanager
def process(store: str, *options: str, files: int | None = None) -> Iterator[ServerProcess]:
    server = ServerProcess(store, *options, files=files)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
            server.kill()
        sys.stderr.write(server.process.communicate()[1])  # the report of a failed test has it


def workers(server: ServerProcess) -> list[psutil.Process]:
    """The processes that the server has started, such as those that run the trials of the playground."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    return [one for one in children if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


class ManualClock(Clock):
    """A clock that only moves when told to, by any step, and takes no step for an interruption."""

    def __init__(self) -> None:
        self.seconds = 0.0
        super().__init__(lambda: self.seconds, max_step=math.inf, grace_seconds=0.0)


class Running:
    """A service in a thread of this process, on a real port; windows and keys are checked many times per second.

    No call fails because the machine is busy, unless the arguments say so.
    """

    def __init__(
        self,
        store: Store,
        max_connections: int = MAX_CONNECTIONS,
        max_per_address: int | None = None,
        port: int = 0,
        clock: Clock | None = None,
        telemetry: Callable[[Service], Instrumentation] | None = None,
        limits: TimeLimits = LONG_LIMITS,
        **options: Any,
    ) -> None:
        self.store = store
        self.clock = clock or Clock()
        checks = {"maintenance_seconds": 0.02, "key_seconds": 0.02}
        waits = dict.fromkeys(("patience", "ready_seconds", "snapshot_seconds", "preview_seconds"), PATIENCE)
        self.service = Service(store, clock=self.clock, **{**checks, **waits, **options})
        instrumentation = telemetry and telemetry(self.service)
        self.server = make_server(
            self.service, "127.0.0.1", port, max_connections, max_per_address, instrumentation, limits
        )
        self.server.main_loop = self._main_loop  # type: ignore[method-assign]  # uvicorn's own ends up to 0.1 s later
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        while not self.server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the server did not start")
            threading.Event().wait(0.002)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    async def _main_loop(self) -> None:
        while not await self.server.on_tick(0):
            await asyncio.sleep(0.005)

    def give_up_after(self, seconds: float) -> None:
        """Answer calls with 503 when they have waited for so long."""
        self.service.writer.requests._patience = seconds

    def run_in_writer(self, function: Callable[[UnitOfWork], Result]) -> Result:
        """Run a function in the writer's thread and return its result."""
        loop, writer = self.service.writer.requests.loop, self.service.writer
        assert loop is not None

        async def submit() -> Any:
            return await writer.submit(function, alone=True)

        result: Result = asyncio.run_coroutine_threadsafe(submit(), loop).result(PATIENCE)
        return result

    def finish_maintenance(self) -> None:
        """Return when maintenance that began after this call has ended, with a page of settling."""
        writer = self.service.writer
        for _ in range(2):  # the next one ends before the one after it begins
            before = writer._next_maintenance
            wait_for(lambda before=before: writer._next_maintenance > before)  # type: ignore[misc]

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def erase_all(self) -> None:
        """Remove all bandits, deleted ones included."""
        with talking(self.url) as (_, http):
            for deleted in ("false", "true"):
                listed = http.get("/v1/bandits", params={"deleted": deleted, "limit": 1000}).json()["bandits"]
                for one in listed:
                    query = {"confirm": one["name"], "id": one["id"], "erase": "true"}
                    path = f"/v1/bandits/{quote(one['name'], safe='').replace('.', '%2E')}"
                    while (status := http.delete(path, params=query).status_code) != 404:
                        assert status in (200, 202)


@contextlib.contextmanager
def running(store: Store, **options: Any) -> Iterator[Running]:
    server = Running(store, **options)
    try:
        yield server
    finally:
        server.stop()


class HeldStore(SqliteStore):
    """A store whose commits wait until they are let go."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.open, self.begun = threading.Event(), threading.Event()
        self.open.set()

    def commit(self, *arguments: Any) -> None:
        self.begun.set()
        assert self.open.wait(PATIENCE)
        super().commit(*arguments)

    def hold(self) -> None:
        self.begun.clear()
        self.open.clear()


def run_apart(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@contextlib.contextmanager
def talking(url: str, key: str | None = None, tries: int = 1) -> Iterator[tuple[Client, httpx.Client]]:
    """Both a client and plain HTTP."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    with (
        Client(url, key, timeout=PATIENCE, tries=tries) as client,
        httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, verify=False) as http,
    ):
        yield client, http


def assert_replay_agrees(url: str) -> None:
    """Fail where `dynabandit verify` would."""
    with contextlib.closing(open_store(url)) as store:
        results = verify(store)
    assert results, "there must be something to verify"
    assert [one.problem for one in results if one.problem is not None] == []


def wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients wait for a busy machine although an example of the documentation names no time limit."""
    for kind in (Client, AsyncClient):
        monkeypatch.setattr(kind.__init__, "__defaults__", (None, PATIENCE, 6))


ARMS = ["red", "green", "blue"]


def status_of(call: Callable[..., object], *arguments: Any, **more: Any) -> int:
    """Return the status of a request that a client sends."""
    try:
        call(*arguments, **more)
    except ServiceError as error:
        return error.status
    return 200


# A bandit whose decisions have a context and a unit, and that has a holdout
PRODUCT: dict[str, Any] = {
    "policy": "lin-ucb",
    "features": {"hour": "number", "new": "boolean"},
    "sticky_for": 3600,
    "holdout": {"share": 0.2, "control": "red"},
}


def visitor(unit: str, number: int) -> dict[str, Any]:
    """Return a unit and its context, as `Client.decide` takes them."""
    return {"unit": unit, "context": {"hour": number % 24, "new": number % 3 == 0}}


def learn(client: Client, name: str, steps: int) -> None:
    """Decide and reward, one step after the other; only blue is rewarded."""
    for _ in range(steps):
        decision = client.decide(name)
        client.reward(decision.decision, decision.arm == "blue")


def failed_command(*arguments: str, code: int = 1) -> str:
    """Return the output of a command that must fail."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, (arguments, result.output)
    assert isinstance(result.exception, SystemExit), "it says what is wrong, without a traceback"
    return result.output


@contextlib.contextmanager
def captured_log(module: str, name: str = "log") -> Iterator[list[MutableMapping[str, Any]]]:
    """Collect what a module of the service logs; `name` is what it calls the log."""
    capture = structlog.testing.LogCapture()
    with mock.patch(f"dynabandit.service.{module}.{name}", structlog.wrap_logger(None, processors=[capture])):
        yield capture.entries


def copied_store(url: str, folder: Path, *statements: str) -> str:
    """Copy a closed SQLite store, change the copy, and return its URL."""
    path = folder / "copy.db"
    shutil.copy(url.removeprefix("sqlite:///"), path)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return f"sqlite:///{path}"


class DirectWriter:
    """A unit of work with a store and without HTTP or threads, for long logs of a bandit "b"."""

    def __init__(self, url: str, policy: str = "aff-ots", parameters: dict[str, Any] | None = None) -> None:
        self.store = open_store(url)
        self.store.prepare()
        self.work = UnitOfWork(self.store, Clock(lambda: 0.0))
        asked = api_types.Create(arms=ARMS, policy=policy, parameters=parameters or {}, seed=11)
        self.state, _ = self.commit(lambda: changes.create(self.work, "b", asked))
        self.bandit_number = self.state.bandit_number

    def commit(self, run: Callable[[], Result]) -> Result:
        self.store.begin({})
        result = run()
        work = self.work
        self.store.commit(*work.batch())
        self.work.clear()
        return result

    def learn(self, steps: int, late: int = 0) -> None:
        made = self.commit(lambda: decide(self.work, "b", api_types.Decide(steps)))
        rng = np.random.default_rng(self.state.sequence)
        order = made if not late else [made[i] for i in rng.permutation(len(made))]

        def rewards() -> None:
            for one in order:
                reward(
                    self.work, self.bandit_number, one.step, float(rng.random() < (0.7 if one.arm == "blue" else 0.3))
                )

        self.commit(rewards)

    def replayed_hash(self) -> str:
        return UnitOfWork(self.store, Clock(lambda: 0.0)).state(self.bandit_number).state_hash()
