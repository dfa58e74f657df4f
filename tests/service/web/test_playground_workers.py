"""Processes of the playground: their limits, their end and what callers are told, without a browser."""

import asyncio
import contextlib
import json
import signal

import httpx
import psutil
import pytest

from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.web import playground_workers as module
from dynabandit.service.web.playground import Watching
from dynabandit.service.web.playground_workers import Workers
from service.harness import process, run_apart, running, workers

SHORT = "v=1&policies=ucb&horizon=100&replications=2"
HEAVY = "v=1&environment=case-3&arms=50&policies=ucb&horizon=20000&replications=300&seed=3"


async def watched(pool, link, at_start=lambda process: None):
    """Ask for a trial as a server would, and return status and messages."""
    seen, messages = [], []

    async def receive():
        await asyncio.Event().wait()  # a reader who stays

    async def send(message):
        if message["type"] == "http.response.start":
            seen.append(message["status"])
            for process in pool.running:
                at_start(process)
        events = message.get("body", b"").split(b"\n\n")
        messages.extend(json.loads(event.removeprefix(b"data: ")) for event in events if event.startswith(b"data: "))

    await Watching(pool, link)({"type": "http", "method": "POST"}, receive, send)
    return seen[0], messages


def test_a_run_that_takes_too_long_is_ended_and_says_so():
    async def scenario():
        pool = Workers(seconds=0.2)
        started = []
        status, messages = await watched(pool, HEAVY, started.append)
        await started[0].wait()
        return status, messages, started[0].returncode

    status, messages, code = run_apart(scenario())
    assert status == 200
    assert messages[-1]["kind"] == "failed"
    assert "stopped after 0.2 seconds" in messages[-1]["text"]
    assert code == -signal.SIGKILL


def test_a_process_that_dies_is_told_of():
    status, messages = run_apart(watched(Workers(), HEAVY, lambda process: process.kill()))
    assert (status, messages[-1]["kind"]) == (200, "failed")
    assert "the log of the service says why" in messages[-1]["text"]


def test_a_service_that_ends_ends_its_runs_and_says_so():
    async def scenario():
        pool = Workers()
        status, messages = await watched(pool, HEAVY, lambda process: pool.closing.set())
        pool.warm()
        assert pool._starting is None
        return status, messages

    status, messages = run_apart(scenario())
    assert (status, messages[-1]["kind"]) == (200, "failed")
    assert "is being stopped" in messages[-1]["text"]


def test_a_spare_is_used_once_and_one_that_died_is_replaced():
    async def scenario():
        pool = Workers()
        pool.warm()
        pool.warm()  # once is enough
        await pool._starting
        spare = pool._spare
        used = []
        assert (await watched(pool, SHORT, used.append))[1][-1]["kind"] == "end"
        assert used == [spare]
        assert pool._spare is None
        pool.warm()
        await pool._starting
        await module._end(pool._spare)
        assert (await watched(pool, SHORT))[1][-1]["kind"] == "end"

    run_apart(scenario())


def test_a_spare_that_nobody_needs_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "SPARE_SECONDS", 0.0)

    async def scenario():
        pool = Workers()
        pool.warm()
        await pool._starting
        spare = pool._spare
        assert await spare.wait() == -signal.SIGKILL
        await pool._ending
        assert pool._spare is None

    run_apart(scenario())


def test_a_reader_who_leaves_before_the_start_leaves_no_process():
    async def scenario():
        pool, sent = Workers(), []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await Watching(pool, HEAVY)({"type": "http", "method": "POST"}, receive, send)
        assert not pool.running
        assert pool._entered == 0

    run_apart(scenario())


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_runs_than_allowed(most):
    async def scenario():
        pool = Workers(most=most, seconds=60)
        begun = asyncio.Event()
        first = [asyncio.create_task(watched(pool, HEAVY, lambda _: begun.set())) for _ in range(most)]
        while len(pool.running) < most:
            await asyncio.wait_for(begun.wait(), 60)
            begun.clear()
        assert (await watched(pool, SHORT))[0] == 429
        for one in list(pool.running):
            one.kill()
        await asyncio.gather(*first, return_exceptions=True)
        assert (await watched(pool, SHORT))[0] == 200

    run_apart(scenario())


def test_a_run_ends_when_the_key_that_asked_for_it_is_revoked(tmp_path):
    key, row = new_key("read")
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    store.prepare()
    store.add_key(row)
    headers = {"Authorization": f"Bearer {key}"}
    with running(store, needs_keys=True) as server:
        asked = {"json": {"link": HEAVY}, "headers": headers, "timeout": 120}
        with httpx.stream("POST", f"{server.url}/lab/run", **asked) as answer:
            lines = (line for line in answer.iter_lines() if line)
            assert '"start"' in next(lines)
            with contextlib.closing(store.reader()) as other:
                assert other.revoke_key(row.id, row.created)
                server.service.keyring.replace(other.api_keys())  # as it does each second
            assert "needs a valid API key" in list(lines)[-1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with process(f"sqlite:///{tmp_path_factory.mktemp('lab')}/store.db") as server:
        yield server


def test_few_runs_at_once_and_each_ends_with_its_reader(site):
    with httpx.Client(base_url=site.url, timeout=120) as http:
        asked = {"link": HEAVY}
        with http.stream("POST", "/lab/run", json=asked) as one, http.stream("POST", "/lab/run", json=asked) as two:
            lines = one.iter_lines(), two.iter_lines()
            assert all(json.loads(next(more).removeprefix("data: "))["kind"] == "start" for more in lines)
            refused = http.post("/lab/run", json=asked)
            assert refused.status_code == 429
            assert "2 runs are under way" in refused.json()["problem"]
        refusals = 0
        while (answer := http.post("/lab/run", json={"link": SHORT})).status_code == 429:
            refusals += 1
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert json.loads(answer.text.split("\n\n")[-2].removeprefix("data: "))["kind"] == "end"


def test_a_service_that_is_stopped_takes_its_runs_along(tmp_path):
    with process(f"sqlite:///{tmp_path}/store.db") as server:
        with httpx.stream("POST", f"{server.url}/lab/run", json={"link": HEAVY}, timeout=120) as answer:
            lines = answer.iter_lines()
            assert '"start"' in next(lines)
            mine = workers(server)
            server.process.terminate()
            assert "is being stopped" in [line for line in lines if line][-1]
        assert "timeout graceful shutdown exceeded" not in server.process.communicate(timeout=60)[1]
    psutil.wait_procs(mine, timeout=60)
    assert mine
    assert not any(one.is_running() for one in mine)


def test_the_server_says_what_is_wrong_with_a_call(site):
    with httpx.Client(base_url=site.url) as http:
        wrong = http.post("/lab/run", json={"link": "v=1&policies=ubc"})
        assert (wrong.status_code, "Did you mean 'ucb'" in wrong.json()["problem"]) == (422, True)
        assert http.post("/lab/check", json={"links": ""}).status_code == 422
        assert http.post("/lab/check", content=b"v=1").status_code == 415
        assert http.post("/lab/check", json={"link": "x" * 20_000}).status_code == 413
        assert http.get("/lab/run").status_code == 405
        checked = http.post("/lab/check", json={"link": "v=1&policies=ucb;ucb"}).json()
        assert checked["problems"][0]["field"] == "policies.1"
        assert http.get("/lab", headers={"Host": "evil.example"}).status_code == 421
