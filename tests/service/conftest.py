import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import httpx
import pytest

from dynabandit.client import Client
from dynabandit.service.stores import open_store
from tools.harness import ManualClock, Running, talking
from tools.postgres_server import drop_database, make_database, patient, postgres
from tools.waiting import PATIENCE


@pytest.fixture(scope="session", autouse=True)
def _patient_sqlite() -> Iterator[None]:
    """Let a connection to SQLite wait for another one as long as a busy machine needs."""
    with mock.patch("dynabandit.service.stores.sqlite.BUSY_SECONDS", PATIENCE):
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty database."""
    name = f"test_{uuid.uuid4().hex}"
    yield patient(make_database(postgres_server, name))
    drop_database(postgres_server, name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(scope="session")
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Running]]:
    """Returns one service per kind of store, which tests share one after the other."""
    servers: dict[str, Running] = {}

    def find(kind: str) -> Running:
        if kind not in servers:
            url = f"sqlite:///{tmp_path_factory.mktemp('shared')}/store.db"
            if kind == "postgres":
                url = patient(make_database(request.getfixturevalue("postgres_server"), "shared"))
            servers[kind] = Running(open_store(url), clock=ManualClock())
        return servers[kind]

    yield find
    for server in servers.values():
        server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Running]) -> Iterator[Running]:
    """A service without bandits, whose clock stands still unless a test moves it."""
    one = shared_server(request.param)
    yield one
    one.erase_all()


@pytest.fixture
def sqlite_server(shared_server: Callable[[str], Running]) -> Iterator[Running]:
    """A service for tests of what does not depend on the store; their modules use it as their `server`."""
    one = shared_server("sqlite")
    yield one
    one.erase_all()


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> ManualClock:
    """The clock of the `server` of the test, or a new one."""
    if "server" not in request.fixturenames:
        return ManualClock()
    shared: Running = request.getfixturevalue("server")
    assert isinstance(shared.clock, ManualClock)
    return shared.clock


@pytest.fixture
def talk(server: Running) -> Iterator[tuple[Client, httpx.Client]]:
    with talking(server.url) as both:
        yield both


@pytest.fixture
def client(talk: tuple[Client, httpx.Client]) -> Client:
    return talk[0]


@pytest.fixture
def http(talk: tuple[Client, httpx.Client]) -> httpx.Client:
    return talk[1]
