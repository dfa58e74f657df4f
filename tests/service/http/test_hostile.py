"""What callers send by mistake or malice: malformed bodies, strange names, missing keys."""

import json
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import quote

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from starlette.datastructures import ImmutableMultiDict

import dynabandit as db
from dynabandit.client import Client
from dynabandit.features import ArmFeatures, FeatureEncoder
from dynabandit.service.domain import changes, decisions, warm_start
from dynabandit.service.domain.personalizer_features import MAX_PARTS, _Flattening, flat_features
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.http import request_bodies, routes
from dynabandit.service.http.limits import DECODED_AT_ONCE
from dynabandit.service.http.request_bodies import decode_body
from dynabandit.service.http.requests import query_values
from dynabandit.service.stores import open_store
from tools.harness import ARMS, Running, running, talking

JSON = {"Content-Type": "application/json"}
DEEP = b"[" * 100_000 + b"]" * 100_000
HUGE_NUMBER = b'{"reward": 1' + b"0" * 5000 + b"}"
MALFORMED = [
    b"", b"{", b"null", b"[]", b'"text"', b"\xff\xfe", b'{"reward": NaN}', b'{"reward": Infinity}',
    b'{"reward": -Infinity}', b'{"reward": 1e999}', b'{"reward": 1.0000001}', b'{"reward": -0.1}',
    b'{"reward": "1"}', b'{"reward": null}', b'{"reward": true}', b'{"reward": [1]}', b"{}",
    b'{"reward": 1, "other": 2}', b'{"reward": 1} {"reward": 1}', DEEP, b'{"reward": ' + DEEP + b"}", HUGE_NUMBER,
    b'{"count": 0}', b'{"count": 1e9}', b'{"count": -1}', b'{"count": 1.5}', b'{"count": 99999999999999999999}',
    b'{"rewards": []}', b'{"rewards": [{"decision": "x", "reward": NaN}]}', b'{"rewards": [' + DEEP + b"]}",
    b'{"arm": ""}', b'{"arm": "\\ud800"}', b'{"arm": 7}', b'{"paused": 1}', b'{"min_share": 2}',
    b'{"max_share": 0}', b'{"retired": false}', b'{"min_share": NaN}', b'{"policy": 1}', b'{"policy": "nonsense"}',
    b'{"policy": "aff-ots", "parameters": {"prior": ' + DEEP + b"}}",
    b'{"policy": "aff-ots", "parameters": {"step_size": -1}}',
    b'{"policy": "sw-ucb", "parameters": {"window": 1000000000000}}',
    b'{"policy": "best-arm"}', b'{"policy": "ots", "parameters": {"prior": [0, 1]}}',
    b'{"arms": ["a"]}', b'{"arms": ["a", "a"]}', b'{"arms": ["e\\u0301", "\\u00e9"]}', b'{"arms": "ab"}',
    b'{"arms": ["a", "b"], "seed": -1}', b'{"arms": ["a", "b"], "reward_window": 0}',
    b'{"arms": ["a", "b"], "reward_window": 1e300}', b'{"arms": ["a", "b"], "default_reward": 2}',
    b'{"arms": ["a", ""]}', b'{"arms": ["a", "' + b"b" * 300 + b'"]}',
]  # fmt: skip


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, httpx.Client, str]]:
    """One service that many bad requests go to."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/store.db")
    with running(store) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, seed=1)
        decision = client.decide("b").decision
        yield client, http, decision


def targets(decision: str) -> list[tuple[str, str]]:
    return [
        ("PUT", f"/v1/decisions/{decision}/reward"), ("POST", "/v1/bandits/b/decisions"), ("POST", "/v1/rewards"),
        ("PUT", "/v1/bandits/b"), ("PUT", "/v1/bandits/fresh"), ("POST", "/v1/bandits/b/arms"),
        ("PATCH", "/v1/bandits/b/arms/red"), ("PUT", "/v1/bandits/b/policy"),
        ("POST", "/v1/bandits/b/policy/preview"), ("PUT", "/v1/bandits/b/shadow"),
        ("POST", "/v1/bandits/b/shadow/promote"),
    ]  # fmt: skip


@pytest.mark.promise(20, 22)
def test_malformed_bodies_get_4xx_and_do_not_change_the_state(quiet: tuple[Client, httpx.Client, str]) -> None:
    client, http, decision = quiet
    before = client.state("b").state_hash
    good = {("POST", "/v1/bandits/b/decisions", b"{}"), ("PATCH", "/v1/bandits/b/arms/red", b"{}")}
    for method, path in targets(decision):
        for body in MALFORMED:
            if (method, path, body) in good:
                continue
            answer = http.request(method, path, content=body, headers=JSON)
            assert 400 <= answer.status_code < 500, (method, path, body[:80], answer.text)
            assert "Expected `" not in answer.json()["problem"], "not in the words of a library"
    assert client.state("b").state_hash == before
    assert [one.name for one in client.bandits()] == ["b"]


@pytest.mark.promise(115)
def test_a_policy_and_its_parameters_are_bounded_before_anything_is_done_with_them(tmp_path: Path) -> None:
    with running(open_store(f"sqlite:///{tmp_path}/store.db")) as server, talking(server.url) as (client, http):
        client.create("b", ARMS, policy="ucb")
        long: tuple[tuple[str, dict[str, Any], int], ...]
        long = ("p" * 101, {}, 100), ("ots", {"prior": "1" * 201}, 200), ("ots", {"prior": [1] * 1001}, 1000)
        for method, path in (
            ("PUT", "/v1/bandits/c"), ("PUT", "/v1/bandits/b/policy"), ("POST", "/v1/bandits/b/policy/preview"),
        ):  # fmt: skip
            for policy, parameters, most in (*long, ("ots", {"p" * 101: 1}, 100)):
                body = {"policy": policy, "parameters": parameters} | ({"arms": ARMS} if path.endswith("c") else {})
                answer = http.request(method, path, json=body)
                assert (answer.status_code, f"of at most {most} " in answer.text) == (422, True), answer.text
        assert http.put("/v1/bandits/c", json={"arms": ARMS, "policy": "ubc"}).status_code == 422
        assert server.service.compiled == {"ucb"}


TWICE = [
    ("PUT", "/v1/decisions/x/reward", b'{"reward": 1, "reward": 0}', "reward"),
    ("PUT", "/v1/decisions/x/reward", b'{"reward": 7, "reward": 0}', "reward"),
    ("PUT", "/v1/decisions/x/reward", b'{"reward": "a", "reward": 0}', "reward"),
    ("POST", "/v1/bandits/b/decisions", b'{"count": 1, "c\\u006funt": 2}', "count"),
    ("POST", "/v1/rewards", b'{"rewards": [{"decision": "a:", "reward": 1, "decision": "b"}]}', "decision"),
    ("POST", "/v1/rewards", b'{"rewards": [{"decision": "a\\u003a", "reward": 1, "reward": 0}]}', "reward"),
    ("PUT", "/v1/bandits/twice", b'{"arms": ["a", "b"], "parameters": {"x": 1, "x": 2}}', "x"),
    ("POST", "/v1/bandits/b/policy/preview", b'{"policy": "ucb", "policy": "ucb", "parameters": {"a": 1}}', "policy"),
    ("PATCH", "/v1/bandits/b/arms/red", b'{"paused": true, "paused": null}', "paused"),
]  # fmt: skip


def test_the_problems_of_many_rewards_are_short(server: Running) -> None:
    """Each may name the arms of a ranking: ten thousand were a response that was 57 times as large as its call."""
    with talking(server.url) as (client, http):
        client.create("ranked", [f"{number:x<200}" for number in range(30)], policy="ucb")
        wrong = {"decision": client.decide("ranked", rank=30).decision, "reward": 1, "arm": "red"}
        alone = http.post("/v1/rewards", json={"rewards": [wrong]}).json()["results"]
        answer = http.post("/v1/rewards", json={"rewards": [wrong] * 10_000})
    assert len(alone[0]["problem"]) == 1003
    assert len(answer.content) < 3_000_000
    assert {(one["status"], one["problem"]) for one in answer.json()["results"]} == {
        (422, f"{alone[0]['problem'][:200]}...")
    }


@pytest.mark.parametrize(("method", "path", "body", "name"), TWICE)
def test_a_body_that_names_a_field_twice_is_refused(
    quiet: tuple[Client, httpx.Client, str], method: str, path: str, body: bytes, name: str
) -> None:
    client, http, _ = quiet
    before = client.state("b").state_hash
    answer = http.request(method, path, content=body, headers=JSON)
    problem = f"the body must name every field once, got '{name}' 2 times"
    assert (answer.status_code, answer.json()["problem"]) == (422, problem)
    assert client.state("b").state_hash == before


def test_names_and_texts_may_contain_what_separates_fields(quiet: tuple[Client, httpx.Client, str]) -> None:
    client, http, _ = quiet
    body = b'{"arms": ["a:b", "\\u003a", "\\\\\\": "], "policy": "uniform", "seed": 1}'
    assert http.put("/v1/bandits/colons", content=body, headers=JSON).status_code == 201
    assert [arm.arm for arm in client.state("colons").arms] == ["a:b", ":", '\\": ']
    client.delete("colons", erase=True)


class CountedText(str):
    """Text that counts with how many others it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def of_parameters(names: list[CountedText]) -> object:
    request: Any = SimpleNamespace(query_params=ImmutableMultiDict([(name, "") for name in names]))
    return query_values(request)


def of_features_of_arms(names: list[CountedText]) -> object:
    """Every arm is looked up among those that exist."""
    arms = [CountedText(name) for name in names[:-1]]
    features = ArmFeatures.of(arms, {name: {"x": 1} for name in names[:-1]})
    features.for_arms(names[-2::-1], constant=True)
    raise ValueError("got '999' twice")


@pytest.mark.promise(290)
@pytest.mark.parametrize(
    "search",
    [
        of_parameters,
        of_features_of_arms,
        FeatureEncoder,
        lambda names: request_bodies._check_object([(name, 1) for name in names]),
        lambda names: decisions._columns_among(mock.Mock(), names),
    ],
)
def test_a_name_that_is_given_twice_is_found_without_comparing_it_with_all_others(
    search: Callable[[list[CountedText]], object],
) -> None:
    names = [*map(CountedText, range(1000)), CountedText(999)]
    before = CountedText.comparisons
    with pytest.raises((InvalidValueError, ValueError), match=r"got '999' (2 times|twice)"):
        search(names)
    assert CountedText.comparisons - before < 10_000


def items(count: int, item: bytes = b"1") -> bytes:
    return b",".join([item] * count)


@pytest.mark.promise(290)
def test_a_body_of_too_many_parts_is_refused_before_it_is_decoded(quiet: tuple[Client, httpx.Client, str]) -> None:
    _, http, _ = quiet
    deep = b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"
    body = b'{"actions": [], "contextFeatures": [' + items(1600, deep) + b"]}"
    with mock.patch.object(request_bodies, "_decode", wraps=request_bodies._decode) as decode:
        answer = http.post("/personalizer/v1.0/rank", content=body, headers=JSON)
        problem = answer.json()["error"]["message"]
        assert (answer.status_code, problem.startswith("the body must have at most 50000 lists and objects")) == (
            400,
            1,
        )
        arms = b'{"arms": [' + items(250_002, b'"a"') + b"]}"
        answer = http.put("/v1/bandits/many", content=arms, headers=JSON)
        problem = answer.json()["problem"]
        assert (answer.status_code, problem.startswith("the body must have at most 250000 values")) == (422, True)
    assert not decode.called
    inner = b"{" + b",".join(b'"%d":1' % number for number in range(1000)) + b"}"
    body = b'{"context": {' + b",".join(b'"f%d":%s' % (number, inner) for number in range(100)) + b', "g": [{}]}}'
    with mock.patch.object(request_bodies, "_check", wraps=request_bodies._check) as check:
        answer = http.post("/v1/bandits/b/decisions", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["problem"].startswith("the body is not valid at $.context")) == (
            422,
            True,
        )
    assert not check.called


@pytest.mark.promise(290)
def test_large_bodies_are_not_decoded_in_the_event_loop(quiet: tuple[Client, httpx.Client, str]) -> None:
    _, http, _ = quiet
    threads: dict[int, str] = {}

    def decode(decoder: Any, content: bytes, *most: int) -> object:
        threads[len(content)] = threading.current_thread().name
        return decode_body(decoder, content, *most)

    one = b'{"decision":"x","reward":1}'
    large, dense, small = (b'{"rewards": [' + items(count, one) + b"]}" for count in (9000, 2100, 1))
    assert len(dense) <= DECODED_AT_ONCE, "one that is refused takes time for each value, not for each byte"
    with mock.patch.object(routes, "decode_body", decode):
        for body in (large, dense, small):
            assert http.post("/v1/rewards", content=body, headers=JSON).status_code == 200
    assert threads[len(large)].startswith("dynabandit-body")
    assert threads[len(dense)].startswith("dynabandit-body")
    assert not threads[len(small)].startswith("dynabandit-body")


@pytest.mark.promise(232)
def test_a_context_that_is_too_large_is_not_kept_until_its_bandit_can_be_used(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ["a", "b"], "ucb", features={"text": "category"})
        with mock.patch.object(server.service.writer, "submit") as submit:
            answer = http.post("/v1/bandits/b/decisions", json={"context": {f"{i}": [0] * 1000 for i in range(20)}})
    assert answer.status_code == 422
    assert answer.json()["problem"].startswith("context must have at most 16384 bytes as JSON, got 80131")
    assert not submit.called


@pytest.mark.promise(290)
@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ([{"n" * 900: {str(number): [1] for number in range(200)}}], "at most 20000 characters"),
        ([{"n" * 900: {"m" * 100 + str(number): {} for number in range(200)}} for _ in range(1000)], "of at most 1000"),
        ([{"a": [None] * 200_000}], "at most 10000 values"),
        ([{"a": [{}] * 200_000}], "at most 10000 values"),
        ([{"a": [[]] * 200_000}], "at most 10000 values"),
    ],
)
def test_features_that_are_refused_are_not_looked_at_in_full(objects: list[dict[str, Any]], problem: str) -> None:
    add, added = _Flattening.add, 0

    def count(self: _Flattening, name: str, value: Any) -> None:
        nonlocal added
        added += 1
        add(self, name, value)

    with mock.patch.object(_Flattening, "add", count), pytest.raises(InvalidValueError, match=problem):
        flat_features("contextFeatures", objects)
    assert added <= MAX_PARTS + 1


@pytest.mark.promise(290)
def test_names_of_nested_features_are_joined_only_as_long_as_they_may_be() -> None:
    lengths = []

    def check(self: _Flattening, length: int) -> None:
        lengths.append(length)
        check_length(self, length)

    check_length, nested = _Flattening._check_length, {"n" * 300: 1}
    for _ in range(400):
        nested = {"n" * 300: nested}  # type: ignore[dict-item]
    with (
        mock.patch.object(_Flattening, "_check_length", check),
        pytest.raises(InvalidValueError, match="names and texts of at most 1000 characters"),
    ):
        flat_features("contextFeatures", [nested])
    assert lengths == [300, 601, 902, 1203]
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"": deep}
    with pytest.raises(InvalidValueError, match="contextFeatures must be nested less deeply"):
        flat_features("contextFeatures", [deep])


def test_large_requests_that_are_refused_are_not_looked_at_in_full(quiet: tuple[Client, httpx.Client, str]) -> None:
    _, http, _ = quiet
    query = "&".join(f"{number:x}" for number in range(13_000))
    answer = http.get(f"/v1/bandits?{query}&32c7")
    assert (answer.status_code, "'32c7' 2 times" in answer.text) == (422, True)
    with mock.patch.object(unicodedata, "normalize", wraps=unicodedata.normalize) as normalize:
        for path in ("/bandits/", "/v1/bandits/"):
            answer = http.get(path + "%CC%81" * 5_000 + "%CC%96" * 5_000)
            assert (answer.status_code, "name must have 1 to 200 characters, got 10000" in answer.text) == (422, True)
    assert normalize.call_count == 0, "it takes long for a long text"
    longest = "\N{GREEK SMALL LETTER ALPHA}\N{COMBINING COMMA ABOVE}\N{COMBINING GRAVE ACCENT}\u0345" * 200
    assert "there is no bandit" in http.get(f"/v1/bandits/{quote(longest)}").text
    content = b"[" + b"[]," * 1_000_000 + b"[]]"
    with mock.patch.object(msgspec.json, "decode", wraps=msgspec.json.decode) as decode:
        answer = http.put("/v1/bandits/large", content=content, headers=JSON)
    problem = "the body must have at most 1000000 lists and objects, got 1000002"
    assert (answer.status_code, answer.json()["problem"]) == (422, problem)
    assert mock.call(content) not in decode.call_args_list, "its values would take much memory"


@pytest.mark.promise(83)
@pytest.mark.parametrize(
    ("policy", "parameters", "cause"),
    [("robust-ucb", {"window": 999_000}, "window"), ("sw-ucb", {"window": 4_000_000}, "window"),
     ("w-swa", {"capacity": 50_000}, "capacity"), ("r-ed-ucb", {"window": 50_000}, "window")],
)  # fmt: skip
def test_the_state_of_a_policy_is_bounded_before_it_is_made(
    quiet: tuple[Client, httpx.Client, str],
    policy: str,
    parameters: dict[str, Any],
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A window is kept for each arm, so what counts is their product."""
    client, http, _ = quiet
    arms = [str(number) for number in range(95)]
    client.create("many", arms, policy="uniform", seed=1)
    body = {"policy": policy, "parameters": parameters}
    made, reset = [], db.Bandit._reset

    def make_state(bandit: db.Bandit) -> None:
        made.append(bandit.policy.name)
        reset(bandit)

    monkeypatch.setattr(db.Bandit, "_reset", make_state)
    for method, path, more in (
        ("PUT", "/v1/bandits/large", {"arms": arms}), ("PUT", "/v1/bandits/many/policy", {}),
        ("POST", "/v1/bandits/many/policy/preview", {}),
    ):  # fmt: skip
        answer = http.request(method, path, json={**body, **more})
        problem = answer.json()["problem"]
        assert answer.status_code == 422
        assert problem.startswith(f"{cause} must be smaller: policy '{policy}' with 95 arms"), problem
        assert problem.endswith("numbers, but at most 4000000 are possible")
    assert policy not in made
    client.delete("many", erase=True)


@pytest.mark.promise(83)
def test_an_arm_that_makes_the_state_too_large_is_refused(
    quiet: tuple[Client, httpx.Client, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, http, _ = quiet
    client.create("full", ARMS, policy="uniform")
    size = warm_start.state_size(db.policy("uniform"), 3)
    monkeypatch.setattr(changes, "MAX_STATE", size)
    answer = http.post("/v1/bandits/full/arms", json={"arm": "more"})
    assert (answer.status_code, f"at most {size} numbers" in answer.text) == (409, True)
    client.delete("full", erase=True)


@pytest.mark.promise(43)
def test_names_that_browsers_remove_from_an_address_are_refused(
    quiet: tuple[Client, httpx.Client, str],
) -> None:
    client, http, _ = quiet
    before = client.state("b").state_hash
    for name in (".", ".."):
        written = name.replace(".", "%2E")
        asked = (
            ("PUT", f"/v1/bandits/{written}", {"arms": ARMS}), ("PUT", "/v1/bandits/dots", {"arms": ["a", name]}),
            ("POST", "/v1/bandits/b/arms", {"arm": name}),
        )  # fmt: skip
        for method, path, body in asked:
            answer = http.request(method, path, json=body)
            assert (answer.status_code, "must not be . or .." in answer.text) == (422, True), (path, answer.text)
    assert client.state("b").state_hash == before


def test_a_wrong_method_gets_the_allowed_ones_and_every_response_is_nosniff(
    quiet: tuple[Client, httpx.Client, str],
) -> None:
    _, http, _ = quiet
    for method, path, allowed in (
        ("GET", "/playground/run", "POST"), ("GET", "/playground/check", "POST"), ("POST", "/", "GET, HEAD"),
        ("PUT", "/playground", "GET, HEAD"), ("PATCH", "/v1/rewards", "POST"),
    ):  # fmt: skip
        answer = http.request(method, path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, allowed), path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in (
        "/v1/bandits", "/v1/bandits/b", "/v1/bandits/missing", "/v1/bandits/b/events?format=ndjson",
        "/v1/bandits/b/export", "/healthz", "/metrics", "/openapi.json", "/nothing", "/static/x/y", "/", "/playground",
    ):  # fmt: skip
        for method in ("GET", "HEAD"):
            assert http.request(method, path).headers["X-Content-Type-Options"] == "nosniff", path
    assert http.post("/v1/rewards", content=b"{", headers=JSON).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.promise(22)
def test_requests_that_conflict_with_the_state_do_not_change_it(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("b", ["red", "green"], seed=1)
        client.change_arm("b", "red", min_share=0.6)
        client.reward(client.decide("b", key="k").decision, 1)
        decision = client.decide("b").decision
        client.reward(decision, 1)
        before = client.state("b").state_hash
        refused = [
            ("PATCH", "/v1/bandits/b/arms/green", {"min_share": 0.5}),
            ("PATCH", "/v1/bandits/b/arms/red", {"max_share": 0.5}),
            ("PATCH", "/v1/bandits/b/arms/red", {"paused": True, "retired": True}),
            ("PATCH", "/v1/bandits/b/arms/none", {"paused": True}),
            ("PUT", "/v1/bandits/b/policy", {"policy": "ucb", "parameters": {"nonsense": 1}}),
            ("PUT", "/v1/bandits/b", {"arms": ["red", "blue"]}),
            ("PUT", f"/v1/decisions/{decision}/reward", {"reward": 0}),
            ("PUT", f"/v1/decisions/{decision}9/reward", {"reward": 0}),
            ("DELETE", "/v1/bandits/b?confirm=c", None),
        ]
        for method, path, body in refused:
            answer = http.request(method, path, json=body)
            assert 400 <= answer.status_code < 500, (method, path, answer.text)
        two = http.post("/v1/bandits/b/decisions", json={"count": 2}, headers={"Idempotency-Key": "k"})
        assert two.status_code == 409
        assert client.state("b").state_hash == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60) | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
@example(body='{"reward": 1e400}')
def test_random_bodies_never_give_500(quiet: tuple[Client, httpx.Client, str], body: Any) -> None:
    client, http, decision = quiet
    content = body if isinstance(body, bytes) else body.encode()
    before = client.state("b").state_hash
    for method, path in targets(decision):
        assert 400 <= http.request(method, path, content=content, headers=JSON).status_code < 500
    assert client.state("b").state_hash == before


@pytest.mark.promise(82)
def test_a_huge_body_is_refused_without_being_read_whole(quiet: tuple[Client, httpx.Client, str]) -> None:
    client, http, decision = quiet
    before = client.state("b").state_hash
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b'{"reward": 0.'
        for _ in range(4096):
            sent += 1 << 16
            yield b"1" * (1 << 16)

    try:
        answer = http.put(f"/v1/decisions/{decision}/reward", content=endless(), headers=JSON)
        assert answer.status_code == 413
    except httpx.TransportError:
        pass  # the service may hang up on what it does not want to read
    assert sent < 200 << 20
    assert client.state("b").state_hash == before


NAMES = [
    "a", "it's", '"; DROP TABLE events; --', "<script>alert(1)</script>", "line\nbreak\ttab\r", "../../etc/passwd",
    "a/b", "a%2Fb", "...", ".a", "?x=1#y", "%", "%00", "\x00", "\x7f", " ", "naïve", "日本語", "🎲", "\u202eabc",
    "{name}", "a\\b", "'", "\u2028", "null", "x" * 200, "é" * 200, "+", "&amp;", "a b", "ﬁ",
]  # fmt: skip


@pytest.mark.promise(43)
def test_any_text_is_a_valid_name_in_every_request(server: Running) -> None:
    with talking(server.url) as (client, http):
        for name in NAMES:
            check_name(client, name)
        assert {one.name for one in client.bandits()} == set(NAMES)
        assert http.get("/metrics").status_code == 200


def check_name(client: Client, name: str) -> None:
    other = name[:-1] + "~" if len(name) == 200 else name + "~"
    client.create(name, [name, other], seed=1)
    decision = client.decide(name, key="k")
    assert decision.arm in (name, other)
    client.reward(decision.decision, 1)
    client.change_arm(name, name, paused=True)
    assert client.decide(name).arm == other
    state = client.state(name)
    assert (state.name, [arm.arm for arm in state.arms]) == (name, [name, other])
    assert [event.kind for event in client.events(name)] == ["create", "decision", "reward", "arm", "decision"]
    assert (next(iter(client.events(name))).change or {})["name"] == name


@pytest.mark.promise(43, 80)
@settings(max_examples=30, deadline=None)
@given(name=st.text(min_size=1, max_size=40))
def test_any_unicode_text_is_a_name(quiet: tuple[Client, httpx.Client, str], name: str) -> None:
    import unicodedata

    client = quiet[0]
    clean = unicodedata.normalize("NFC", name)
    state = client.create(name, ["a", "b"], seed=1)
    assert state.name == clean
    assert client.state(clean).id == client.state(unicodedata.normalize("NFD", name)).id == state.id
    client.delete(name, erase=True)


@pytest.mark.promise(43)
def test_names_that_are_equal_after_normalisation_are_one_name(server: Running) -> None:
    with talking(server.url) as (client, http):
        client.create("cafe\u0301", ["a", "b"])
        assert client.state("caf\u00e9").name == "caf\u00e9"
        assert http.get("/v1/bandits/%ff%fe").status_code == 422, "not UTF-8"
        assert http.put("/v1/bandits/" + "x" * 201, json={"arms": ARMS}).status_code == 422
