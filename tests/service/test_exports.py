"""Exports: what a download may cost others, and how it ends."""

import asyncio
import contextlib
import sqlite3
import threading

from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore
from service.harness import run_apart, wait_for


class Held:
    """A database whose `hold()` waits inside a statement, and that notes whether one ran when it was closed."""

    def __init__(self, path: str) -> None:
        self.begun, self.release, self.inside = threading.Event(), threading.Event(), False
        self.closed: list[bool] = []
        self.store = SqliteStore(path, connect=self.connect)

    def connect(self, path: str) -> sqlite3.Connection:
        held = self

        class Connection(sqlite3.Connection):
            def close(self) -> None:
                held.closed.append(held.inside)
                if not held.inside:
                    super().close()

        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)
        connection.create_function("hold", 0, self.hold)
        return connection

    def hold(self) -> int:
        self.inside = True
        self.begun.set()
        assert self.release.wait(60)
        self.inside = False
        return 1


def test_a_connection_is_closed_after_the_statement_that_runs_on_it_whoever_hangs_up(tmp_path):
    held = Held(f"{tmp_path}/x.db")

    def pieces(store):
        yield b"first"
        store.rows("SELECT hold()")
        yield b"second"

    async def hang_up() -> None:
        service = Service(held.store)
        stream = service.stream(pieces)
        assert await anext(stream) == b"first"
        listening = asyncio.create_task(anext(stream))
        await asyncio.to_thread(held.begun.wait, 60)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        assert held.closed == []
        held.release.set()
        await asyncio.to_thread(wait_for, lambda: held.closed)
        service._exports.shutdown()

    run_apart(hang_up())
    assert held.closed == [False]
