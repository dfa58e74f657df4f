"""Attacks by a holder of a key with the role `page`, which everybody can read in a web page."""

import contextlib
import hashlib
import hmac
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from typer.testing import CliRunner

import dynabandit as db
from dynabandit.client import Client
from dynabandit.service.command_line import app
from dynabandit.service.domain.decision_ids import DecisionIds
from dynabandit.service.keys import Keyring, new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key, api_keys
from tools.harness import ARMS, Running, failed_command, running, talking
from tools.waiting import wait_for

DECIDE = "/v1/bandits/b/decisions"
PATHS = ("/v1/", "/v1/bandits/b/")  # of rewards, without and with the bandit


class Site(NamedTuple):
    """A service, the site's own client, and what an attacker has: HTTP with the key of the site's pages."""

    server: Running
    client: Client
    http: httpx.Client
    key_id: str
    admin: str  # the site's own key
    secret: str  # of its server
    store_url: str

    def allow(self, *options: str) -> None:
        """Set what the pages may send, and wait until the service has read it."""
        run_command("keys", "allow", self.key_id, *options, "--store", self.store_url)
        with contextlib.closing(open_store(self.store_url)) as store:
            now = api_keys(store)
        wait_for(lambda: set(self.server.service.keyring._rows.values()) == set(now))


def run_command(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.output.strip()


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
            secret = run_command("keys", "unit-secret", page_row.id, "--store", sqlite_url)
            yield Site(server, client, http, page_row.id, admin, secret, sqlite_url)


@pytest.mark.promise(264, 267)
def test_a_page_does_not_get_the_decisions_of_other_visitors(site: Site) -> None:
    theirs = {f"user-{number}": site.client.decide("b", unit=f"user-{number}") for number in range(20)}
    mine = db.sign_unit("attacker", site.secret)
    expires, signature, _ = mine.split(".")
    late = f"{int(expires) + 1}.{signature}.attacker"
    other_key, _ = new_key("page")
    foreign = db.sign_unit("user-0", site.server.service.store.decision_ids().unit_secret(other_key.split("_")[1]))
    past = int(time.time()) - 1
    over = f"{past}.{signature_of(f'{past}.user-0', site.secret)}.user-0"
    wrong = [f"{expires}.{signature}.{unit}" for unit in theirs] + [late, foreign, over, "user-0", "..user-0"]
    answers = [site.http.post(DECIDE, json={"unit": unit}) for unit in theirs]
    answers += [site.http.post(DECIDE, json={"signed_unit": signed}) for signed in wrong]
    assert {one.status_code for one in answers} == {403}
    assert all("dynabandit.sign_unit" in one.json()["problem"] for one in answers)
    assert all(f"keys unit-secret {site.key_id}" in one.json()["problem"] for one in answers)
    assert not any(one.decision in answer.text for one in theirs.values() for answer in answers)
    assert site.client.state("b").step == 20, "nothing was decided for them"


def signature_of(content: str, secret: str) -> str:
    return hmac.new(secret.encode(), content.encode(), hashlib.sha256).hexdigest()


@pytest.mark.promise(267)
def test_a_page_gets_the_decision_of_a_unit_that_the_site_has_signed(site: Site) -> None:
    for unit in ("user-17", "a.b 1", "cafe\u0301 \U0001f600", "x" * 200):
        theirs = site.client.decide("b", unit=unit)
        for valid_for in (60, 3600):  # another signature of the same unit
            signed = db.sign_unit(unit, site.secret, valid_for=valid_for)
            [made] = site.http.post(DECIDE, json={"signed_unit": signed}).json()["decisions"]
            assert (made["decision"], made["repeated"]) == (theirs.decision, True)
    unit = "cafe\u0301"  # not in the normal form, as other languages may send it
    with_own_recipe = f"9999999999.{signature_of(f'9999999999.{unit}', site.secret)}.{unit}"
    [made] = site.http.post(DECIDE, json={"signed_unit": with_own_recipe}).json()["decisions"]
    assert site.client.decide("b", unit="caf\xe9").decision == made["decision"]
    [new] = site.http.post(DECIDE, json={}).json()["decisions"]
    assert not new["repeated"]


def test_signed_units_are_for_other_callers_what_units_are(site: Site) -> None:
    """So a page can be tried with any key, and without keys."""
    headers = {"Authorization": f"Bearer {site.admin}"}
    bodies = [{"signed_unit": db.sign_unit("user-17", "0" * 64)}, {"unit": "user-17"}]
    made = [site.http.post(DECIDE, json=body, headers=headers).json()["decisions"][0]["decision"] for body in bodies]
    assert made[0] == made[1]
    for body in ({"signed_unit": "user-17"}, {**bodies[0], **bodies[1]}, {"signed_unit": ""}):
        assert site.http.post(DECIDE, json=body, headers=headers).status_code == 422


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(("", "0" * 64), "unit must have 1 to 200 characters"), (("a", "dyna_1_2"), "secret must be the 64 characters"),
     (("a", "0" * 64, 0), "valid_for must be"), (("a", "0" * 64, float("inf")), "valid_for must be"),
     (("\ud800", "0" * 64), "unit must be text that UTF-8 can hold")],
)  # fmt: skip
def test_what_cannot_be_signed_is_an_error(arguments: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as raised:
        db.sign_unit(*arguments)
    assert "dyna_" not in str(raised.value)


@pytest.mark.promise(268)
def test_a_page_cannot_pause_an_arm_unless_its_key_allows_the_metric(site: Site) -> None:
    def send(metrics: dict[str, float]) -> set[int]:
        made = [site.http.post(DECIDE, json={}).json()["decisions"][0]["decision"] for _ in range(60)]
        return {site.http.put(f"/v1/decisions/{one}/metrics", json={"metrics": metrics}).status_code for one in made}

    assert send({"latency": 1}) == {403}
    site.allow("--metric", "errors")
    assert send({"latency": 1}) == {403}
    assert send({"errors": 0, "latency": 1}) == {403}
    assert not any(arm.paused for arm in site.client.state("b").arms)
    site.allow("--metric", "errors", "--metric", "latency")
    assert 200 in send({"latency": 1})
    assert any(arm.paused for arm in site.client.state("b").arms)


@pytest.mark.promise(268)
def test_the_rewards_of_a_site_can_be_left_to_its_server(site: Site) -> None:
    theirs = site.client.decide("b", unit="user-17").decision
    signed = {"signed_unit": db.sign_unit("user-17", site.secret)}
    [made] = site.http.post(DECIDE, json=signed).json()["decisions"]
    site.allow("--no-rewards")
    several = {"rewards": [{"decision": made["decision"], "reward": 0}]}
    answers = [site.http.put(f"{path}decisions/{theirs}/reward", json={"reward": 0}) for path in PATHS]
    answers += [site.http.post(f"{path}rewards", json=several) for path in PATHS]
    assert {one.status_code for one in answers} == {403}
    assert site.client.reward(theirs, 1).reward == 1
    site.allow()
    assert site.http.put(f"/v1/decisions/{theirs}/reward", json={"reward": 1}).status_code == 200


@pytest.mark.promise(264)
def test_an_idempotency_key_of_another_caller_gives_a_page_nothing(site: Site) -> None:
    keys = ("order-17", "6f1d0c2e-9ab4-4f6e-8a52-0d2f6c1b9e77")
    theirs = [site.client.decide("b", key=key).decision for key in keys]
    visitor, attacker = ({"signed_unit": db.sign_unit(unit, site.secret)} for unit in ("visitor", "attacker"))

    def decide(body: dict[str, str], key: str) -> httpx.Response:
        return site.http.post(DECIDE, json=body, headers={"Idempotency-Key": key})

    for key in keys:
        made = [decide(body, key).json()["decisions"][0]["decision"] for body in (visitor, attacker, visitor)]
        assert made[0] == made[2] != made[1]
        theirs += made[:2]
    assert len(set(theirs)) == 4, "the two visitors keep their decisions, because the bandit is sticky"
    refused, new, again = decide({}, keys[0]), decide({}, keys[1]), decide({}, keys[1])
    assert (refused.status_code, new.status_code) == (422, 200)
    assert "Idempotency-Key must be random" in refused.json()["problem"]
    assert new.json() == again.json(), "a request that is sent again"
    assert not any(one in answer.text for one in theirs for answer in (refused, new))


@pytest.mark.promise(264)
def test_a_page_cannot_reward_a_decision_of_an_earlier_release_whose_id_it_guesses(site: Site) -> None:
    bandit, step, _ = site.client.decide("b").decision.split("-")
    ids = site.server.service.store.decision_ids()
    guessed = f"{bandit}-{step}"
    unsigned = DecisionIds(ids._secret, {ids.read(site.client.decide("b").decision)[0]: int(step)})  # type: ignore[index]
    site.server.service.writer.decision_ids = unsigned
    answers = [site.http.put(f"{path}decisions/{guessed}/reward", json={"reward": 1}).status_code for path in PATHS]
    answers.append(site.http.put(f"/v1/decisions/{guessed}/metrics", json={"metrics": {"latency": 1}}).status_code)
    several = {"rewards": [{"decision": guessed, "reward": 1}]}
    answers += [site.http.post(f"{path}rewards", json=several).json()["results"][0]["status"] for path in PATHS]
    assert answers == [404, 404, 403, 404, 404]
    assert site.client.reward(guessed, 1).reward == 1, "programs of the site got it from the earlier release"


@pytest.mark.promise(87, 268)
def test_the_rights_of_a_page_key_are_stored_and_listed(store_url: str) -> None:
    create = ["keys", "create", "--store", store_url, "--role"]
    keys = [
        run_command(*create, "page", *options)
        for options in ([], ["--no-rewards", "--metric", "a b", "--metric", "c"], ["--metric", "caf\xe9"])
    ]
    listed = run_command("keys", "list", "--store", store_url).splitlines()
    assert [line.partition("''")[2] for line in listed] == [
        "",
        "  no rewards  metrics 'a b', 'c'",
        "  metrics 'caf\xe9'",
    ]
    assert [line.split()[1] for line in listed] == ["page"] * 3
    secrets = {run_command("keys", "unit-secret", key.split("_")[1], "--store", store_url) for key in [*keys, keys[0]]}
    assert len(secrets) == 3, "each key has its own"
    run_command("keys", "allow", keys[1].split("_")[1], "--store", store_url)
    assert run_command("keys", "list", "--store", store_url).splitlines()[1].endswith("''")
    decide = run_command(*create, "decide").split("_")[1]
    for arguments, problem in (
        ([*create, "decide", "--metric", "a"], "only for the role page"),
        ([*create, "admin", "--no-rewards"], "only for the role page"),
        (["keys", "allow", decide, "--no-rewards"], "only for the role page"),
        (
            ["keys", "unit-secret", decide],
            "only keys with the role page need signed units, got one with the role decide",
        ),
        ([*create, "page", "--metric", "x" * 101], "a metric must have 1 to 100 characters, got 101"),
        ([*create, "page", "--metric", "a\nb"], "a metric must have printable characters"),
        (["keys", "allow", "nobody"], "there is no key 'nobody'"),
        (["keys", "unit-secret", "nobody"], "there is no key 'nobody'"),
    ):
        options = [] if "--store" in arguments else ["--store", store_url]
        assert problem in failed_command(*arguments, *options, code=2)


@pytest.mark.parametrize("text", ["page ", "page {}", 'page {"rewards":1,"metrics":[]}', "page [", "page\n{}"])
def test_a_key_whose_rights_are_damaged_is_not_valid(sqlite_url: str, text: str) -> None:
    key, row = new_key("page", metrics=["latency"])
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.create_tables()
        add_key(store, row)
        assert Keyring(api_keys(store)).find(f"Bearer {key}") == row
        store.write([("UPDATE keys SET role = ?", (text,))])
        assert Keyring(api_keys(store)).find(f"Bearer {key}") is None
