"""Attacks by a holder of a key with the role `page`, which everybody can read in a web page."""

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from dynabandit.client import Client
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from tools.harness import ARMS, Running, running, talking

DECIDE = "/v1/bandits/b/decisions"


class Site(NamedTuple):
    """A service, the site's own client, and what an attacker has: HTTP with the key of the site's pages."""

    server: Running
    client: Client
    http: httpx.Client
    key_id: str


@pytest.fixture
def site(sqlite_url: str) -> Iterator[Site]:
    store = open_store(sqlite_url)
    store.prepare()
    (page, page_row), (admin, admin_row) = new_key("page"), new_key("admin")
    for row in (page_row, admin_row):
        add_key(store, row)
    with running(store, needs_keys=True) as server, talking(server.url, admin) as (client, _):
        guardrails = {"latency": {"bound": 0.5, "direction": "max", "range": [0, 1]}}
        client.create("b", ARMS, sticky_for=3600, guardrails=guardrails)
        with talking(server.url, page) as (_, http):
            yield Site(server, client, http, page_row.id)


def test_a_page_does_not_get_the_decisions_of_other_visitors(site: Site) -> None:
    theirs = {f"user-{number}": site.client.decide("b", unit=f"user-{number}") for number in range(20)}
    answers = [site.http.post(DECIDE, json={"unit": unit}) for unit in theirs]
    assert {one.status_code for one in answers} == {403}
    assert not any(one.decision in answer.text for one in theirs.values() for answer in answers)
    assert site.client.state("b").step == 20, "nothing was decided for them"


def test_a_page_cannot_pause_an_arm(site: Site) -> None:
    made = [site.http.post(DECIDE, json={}).json()["decisions"][0]["decision"] for _ in range(60)]
    answers = [site.http.put(f"/v1/decisions/{one}/metrics", json={"metrics": {"latency": 1}}) for one in made]
    assert not any(arm.paused for arm in site.client.state("b").arms)
    assert {one.status_code for one in answers} == {403}


def test_an_idempotency_key_of_another_caller_gives_a_page_nothing(site: Site) -> None:
    theirs = site.client.decide("b", key="order-17-of-the-site-1763")
    headers = {"Idempotency-Key": "order-17-of-the-site-1763"}
    answer = site.http.post(DECIDE, json={}, headers=headers)
    assert theirs.decision not in answer.text
