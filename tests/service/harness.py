"""Real servers for tests: in a process of their own to be killed, or in a thread with a clock to be moved."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil

from dynabandit.client import Client
from dynabandit.service.clock import Clock
from dynabandit.service.http.limits import MAX_CONNECTIONS
from dynabandit.service.http.server import make_server
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, Store, open_store
from dynabandit.service.verify import verify


class ServerProcess:
    """`dynabandit serve` as users run it."""

    def __init__(self, store: str, *options: str, python: tuple[str, ...] = ("-m", "dynabandit.service")) -> None:
        command = [sys.executable, *python, "serve", "--port", "0", "--store", store, *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
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
        return self.process.communicate(timeout=60)[1]


@contextlib.contextmanager
def process(store: str, *options: str) -> Iterator[ServerProcess]:
    server = ServerProcess(store, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
            server.kill()
        server.process.communicate()


def workers(server: ServerProcess) -> list[psutil.Process]:
    """The processes that the server has started, such as those that run the trials of the playground."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    return [one for one in children if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


class ManualClock(Clock):
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0
        super().__init__(lambda: self.seconds)


class Running:
    """A service in a thread of this process, on a real port."""

    def __init__(self, store: Store, max_connections: int = MAX_CONNECTIONS, port: int = 0, **options: Any) -> None:
        self.store = store
        self.service = Service(store, **options)
        self._server = make_server(self.service, port=port, max_connections=max_connections)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the server did not start")
            threading.Event().wait(0.005)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


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

    def commit(self, *arguments) -> None:
        self.begun.set()
        assert self.open.wait(60)
        super().commit(*arguments)

    def hold(self) -> None:
        self.begun.clear()
        self.open.clear()


def run_apart(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread of its own: the browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for something that another thread does."""
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit, "it did not happen in 20 seconds"
        threading.Event().wait(0.005)


@contextlib.contextmanager
def talking(url: str, key: str | None = None, tries: int = 1) -> Iterator[tuple[Client, httpx.Client]]:
    """Both a client and plain HTTP."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    with (
        Client(url, key, timeout=60, tries=tries) as client,
        httpx.Client(base_url=url, headers=headers, timeout=60) as http,
    ):
        yield client, http


def assert_replay_agrees(url: str) -> None:
    """What `dynabandit verify` says."""
    store = open_store(url)
    verdicts = verify(store)
    store.close()
    assert verdicts, "there must be something to verify"
    assert [one.problem for one in verdicts if one.problem is not None] == []
