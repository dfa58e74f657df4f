"""What a refused call says: which value was wrong, and what would be valid."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynabandit.service.stores import open_store
from tools.harness import ManualClock, running, talking

NOBODY = f"{'0' * 12}-1"
PROBLEMS: list[tuple[str, str, Any, int, str]] = [
    ("GET", "/v1/bandits/none", None, 404, "there is no bandit 'none'"),
    ("GET", "/v1/bandits/b/events?id=x", None, 404, "there is no bandit 'b' with the id 'x'"),
    ("POST", "/v1/bandits/none/decisions", {}, 404, "there is no bandit 'none'"),
    ("PUT", "/v1/decisions/none/reward", {"reward": 1}, 404, "there is no decision 'none'"),
    ("PUT", f"/v1/decisions/{NOBODY}/reward", {"reward": 1}, 404, f"there is no decision '{NOBODY}'"),
    ("PATCH", "/v1/bandits/b/arms/pink", {"paused": True}, 404, "there is no arm 'pink'"),
    ("GET", "/v1/nothing", None, 404, "there is nothing at '/v1/nothing'"),
    ("POST", "/v1/bandits/b", {}, 405, "the method must be PUT or GET or DELETE here, got POST"),
    ("POST", "/", {}, 405, "the method must be GET or HEAD here, got POST"),
    ("PUT", "/v1/bandits/b", {"arms": ["red", "blue"], "seed": 2}, 409,
     "bandit 'b' is there already, created from another body: other arms, seed"),
    ("GET", "/v1/bandits?limit=x", None, 422, "limit must be a whole number from 1 to 1000, got 'x'"),
    ("GET", "/v1/bandits?limit=1&limit=2", None, 422, "every parameter must be given once, got 'limit' 2 times"),
    ("GET", "/v1/bandits?limits=1", None, 422, "unknown parameter 'limits'. Known: deleted, after, limit"),
    ("DELETE", "/v1/bandits/b?confirm=c", None, 422, "confirm must repeat the name of the bandit, 'b', got 'c'"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "policy": "ucv"}, 422, "unknown policy 'ucv'. Did you mean 'ucb'?"),
    ("PUT", "/v1/decisions/x/reward", {"reward": 1e101}, 422,
     "reward must be a number from -1e+100 to 1e+100, got 1e101"),
    ("PUT", "/v1/decisions/x/reward", {"reward": True}, 422,
     "reward must be a number from -1e+100 to 1e+100, got true"),
    ("PUT", "/v1/decisions/x/reward", {}, 422, "reward must be a number from -1e+100 to 1e+100, got nothing"),
    ("PUT", "/v1/decisions/x/reward", [], 422, "the body must be an object, got a list of 0 items"),
    ("POST", "/v1/rewards", {"rewards": [{"decision": "x", "reward": 1}, {"decision": "x", "rewards": 1}]}, 422,
     "rewards[1]: unknown field 'rewards'. Did you mean 'reward'? Known: arm, decision, reward"),
    ("PATCH", "/v1/bandits/b/arms/red", {"min_share": 1.5}, 422,
     "min_share must be a number from 0 to 1, or null, got 1.5"),
    ("PATCH", "/v1/bandits/b/arms/red", {"max_share": 0}, 422,
     "max_share must be a number above 0 and at most 1, or null, got 0"),
    ("PATCH", "/v1/bandits/b/arms/red", {"retired": False}, 422, "retired must be true, or null, got false"),
    ("PATCH", "/v1/bandits/b/arms/red", {"pause": True}, 422,
     "unknown field 'pause'. Did you mean 'paused'? Known: max_share, min_share, paused, retired"),
    ("PUT", "/v1/bandits/c", {"arms": ["a"]}, 422,
     "arms must be a list of 2 to 100000 items, each text of 1 to 200 characters, got a list of 1 item"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", 3]}, 422, "arms[1] must be text of 1 to 200 characters, got 3"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "reward_window": -1}, 422,
     "reward_window must be a number above 0 and at most 315360000, or null, got -1"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "seed": 1.5}, 422,
     "seed must be a whole number from 0 to 9223372036854775807, or null, got 1.5"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "parameters": {"prior": [1, "x"]}}, 422,
     "parameters.prior[1] must be a number, got 'x'"),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "parameters": {"prior": {}}}, 422,
     ("parameters.prior must be true or false, a whole number, a number, text of at most 200 characters or "
      "a list of at most 1000 items, each a number, or null, got an object")),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "parameters": {"p" * 101: 1}}, 422,
     f"a key of parameters must be text of at most 100 characters, got '{'p' * 100}'... of 101 characters"),
    ("POST", "/v1/bandits/b/decisions", {"context": {"hour": 10**30}}, 422,
     "context.hour must be true or false, a whole number from -9007199254740992 to 9007199254740992, "),
    ("PUT", "/v1/bandits/c", {"arms": ["a", "b"], "guardrails": {"m": {"bound": 0, "direction": "max",
     "range": [1, -1]}}}, 422, "guardrails.m.range must have the smaller value first, got [1, -1]"),
    ("POST", "/v1/bandits/b/local-decisions", {"id": "x", "decider": f"{'0' * 16}\n", "first": 1, "base": 1}, 422,
     "decider must be text of 16 to 16 characters, got '0000000000000000\\n'"),
    ("POST", "/playground/check", {"links": ""}, 422, "unknown field 'links'. Did you mean 'link'? Known: link"),
]  # fmt: skip


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('problems')}/store.db")
    with running(store) as server, talking(server.url) as (client, http):
        client.create("b", ["red", "green"], seed=1)
        yield http


@pytest.mark.promise(20, 114)
@pytest.mark.parametrize(("method", "path", "body", "status", "problem"), PROBLEMS)
def test_a_refused_call_names_what_was_wrong(
    http: httpx.Client, method: str, path: str, body: Any, status: int, problem: str
) -> None:
    answer = http.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.json()["problem"].startswith(problem)


RAW = [
    (b'{"reward": 1e200, "reward": 1}', 422, "the body must name every field once, got 'reward' 2 times"),
    (b'{"reward": 1e999}', 422, "the body must hold numbers of a usual size: "),
    (b'{"reward": 1, "arm": "\xff"}', 400, "the body must be JSON: text must be UTF-8"),
    (b'{"reward": true, "arm": "\xff"}', 400, "the body must be JSON: text must be UTF-8"),
    (b'{"reward": 2', 400, "the body must be JSON: "),
    (b'{"reward": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "the body must be JSON: "),
]


@pytest.mark.parametrize(("content", "status", "problem"), RAW, ids=range(len(RAW)))
def test_what_no_field_can_be_blamed_for_is_said_of_the_body(
    http: httpx.Client, content: bytes, status: int, problem: str
) -> None:
    answer = http.put("/v1/decisions/x/reward", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["problem"][: len(problem)]) == (status, problem)


@pytest.mark.promise(20)
def test_a_header_that_is_wrong_is_quoted(http: httpx.Client) -> None:
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    wrong: list[tuple[Any, int, str]] = [
        (twice, 422, "Idempotency-Key must be given at most once, got 2"),
        (
            {"Idempotency-Key": "é".encode()},
            422,
            "Idempotency-Key must have 1 to 255 printable ASCII characters, got 'Ã©'",
        ),
        ({"Host": "evil.example"}, 421, "without API keys, Host must be 127.0.0.1 or localhost, got 'evil.example'"),
        ({"Content-Type": "text/plain"}, 415, "Content-Type must be application/json, got 'text/plain'"),
    ]
    for headers, status, problem in wrong:
        answer = http.post("/v1/bandits/b/decisions", content=b"{}", headers=headers)
        if "Host" not in dict(headers) and "Content-Type" not in dict(headers):
            answer = http.post("/v1/bandits/b/decisions", json={}, headers=headers)
        assert (answer.status_code, answer.json()) == (status, {"problem": problem})


def test_what_a_decision_has_already_is_said_with_its_id(tmp_path: Path, clock: ManualClock) -> None:
    with (
        running(open_store(f"sqlite:///{tmp_path}/x.db"), clock=clock) as server,
        talking(server.url) as (client, http),
    ):
        client.create("b", ["red", "green"], reward_window=60)
        first, second = (one.decision for one in client.decide_many("b", 2, key="k"))
        client.reward(first, 1)
        again = http.put(f"/v1/decisions/{first}/reward", json={"reward": 0.5})
        assert again.json()["problem"] == f"decision '{first}' has the reward 1 already, got 0.5"
        fewer = http.post("/v1/bandits/b/decisions", json={"count": 3}, headers={"Idempotency-Key": "k"})
        assert fewer.json()["problem"] == "count must be 2, as when this Idempotency-Key came first, got 3"
        clock.seconds += 61
        late = http.put(f"/v1/decisions/{second}/reward", json={"reward": 1})
        assert late.status_code == 410
        assert (
            late.json()["problem"] == f"a reward of decision '{second}' must come within 60 seconds, and they are over"
        )
