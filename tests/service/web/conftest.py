from collections.abc import Iterator

import pytest

from dynabandit.client import Client
from dynabandit.service.keys import new_key
from dynabandit.service.projections import log_follower
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from dynabandit.service.web import playground_workers, rendering
from tools.harness import Running, running, talking
from tools.page_helpers import ProtectedSite
from tools.waiting import PATIENCE


@pytest.fixture(scope="module", autouse=True)
def quick_follower() -> Iterator[None]:
    """Let open pages get new events sooner than people need them, and never a part of a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_follower, "OPEN_PAGE_SECONDS", 0.05)
        patch.setattr(log_follower, "TURN_SECONDS", PATIENCE)
        yield


@pytest.fixture(scope="module", autouse=True)
def patient_pages() -> Iterator[None]:
    """Let no page give up because the machine is busy, nor for the run of an earlier page that has not ended yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "SILENCE_SECONDS", PATIENCE)
        patch.setattr(playground_workers, "RUN_SECONDS", PATIENCE)
        patch.setattr(playground_workers, "MAX_RUNS", 100)
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests of a file; each test has its own bandits."""
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('site')}/store.db")) as server:
        yield server


@pytest.fixture
def client(site: Running) -> Iterator[Client]:
    with talking(site.url, tries=6) as (one, _):
        yield one


@pytest.fixture(scope="module")
def protected_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedSite]:
    """A service that requires keys."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('protected')}/store.db")
    store.prepare()
    keys = {}
    for role in ("admin", "read", "decide"):
        keys[role], row = new_key(role)
        add_key(store, row)
    with running(store, needs_keys=True) as server:
        yield ProtectedSite(server, keys)
