"""What tests of the live page share: a service, a client of it, and a page whose charts are drawn."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser import Visit
from dynabandit.client import Client
from dynabandit.service.stores import open_store
from service.harness import Running, running, talking

expect.set_options(timeout=120_000)  # of waiting for what must come; nothing sleeps that long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests of a file, which leave each other's bandits alone."""
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('watched')}/store.db")) as server:
        yield server


@pytest.fixture
def client(site: Running) -> Iterator[Client]:
    with talking(site.url, tries=6) as (one, _):
        yield one


def ready(visit: Visit) -> Page:
    """Wait until all charts of a bandit's page are drawn."""
    expect(visit.page.locator(".canvas[data-drawn]")).to_have_count(4)
    return visit.page
