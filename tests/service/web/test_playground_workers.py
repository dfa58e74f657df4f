"""Worker processes of the playground: their limits, their end and the messages to clients.

Most tests replace the simulation by a small script that starts at once and either ends or waits.
"""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key, api_keys, revoke_key
from dynabandit.service.web import playground_workers
from dynabandit.service.web.playground_page import RunStream
from dynabandit.service.web.playground_workers import Process, WorkerPool
from tools.harness import Running, process, run_apart, running, workers
from tools.waiting import PATIENCE, wait_for

SHORT = "v=1&policies=ucb&horizon=100&replications=2"
LONG = "v=1&environment=case-3&arms=50&policies=ucb&horizon=20000&replications=300&seed=3"
SCRIPT = """
import sys
link = sys.stdin.readline()
print('{"kind":"start"}', flush=True)
if "replications=300" in link:
    sys.stdin.read()
else:
    print('{"kind":"end"}', flush=True)
"""

PLUGIN = """
import threading

import dynabandit
from dynabandit.service.web import playground_workers

playground_workers.RUN_SECONDS = 1e6  # in the process of the service


class Hesitant(dynabandit.PythonPolicy):
    name = "hesitant"

    def choose(self, arms, step):
        threading.Event().wait()
"""


@pytest.fixture
def quick_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that start at once; LONG runs until the process is killed."""
    monkeypatch.setattr(playground_workers, "COMMAND", (sys.executable, "-S", "-c", SCRIPT))


async def request(
    pool: WorkerPool, link: str, at_start: Callable[[Process], object] = lambda process: None
) -> tuple[int, list[dict[str, Any]]]:
    """Ask for a run as a server would, and return status and messages."""
    status: list[int] = []
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # a client that stays
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])
            for worker in pool.running:
                at_start(worker)
        events = message.get("body", b"").split(b"\n\n")
        messages.extend(json.loads(event.removeprefix(b"data: ")) for event in events if event.startswith(b"data: "))

    stream = RunStream(pool, link)
    stream.background = None  # starts no spare process
    await stream({"type": "http", "method": "POST"}, receive, send)
    return status[0], messages


@pytest.mark.usefixtures("quick_workers")
def test_a_run_that_takes_too_long_is_ended_and_reported() -> None:
    async def scenario() -> tuple[int, list[dict[str, Any]], int | None]:
        started: list[Process] = []
        status, messages = await request(WorkerPool(time_limit=0.2), LONG, started.append)
        await started[0].wait()
        return status, messages, started[0].returncode

    status, messages, code = run_apart(scenario())
    assert status == 200
    assert messages[-1]["kind"] == "failed"
    assert "stopped after 0.2 seconds" in messages[-1]["text"]
    assert code == -signal.SIGKILL


@pytest.mark.usefixtures("quick_workers")
def test_the_end_of_a_worker_process_is_reported() -> None:
    status, messages = run_apart(request(WorkerPool(), LONG, lambda worker: worker.kill()))
    assert (status, messages[-1]["kind"]) == (200, "failed")
    assert "see the service's log" in messages[-1]["text"]


@pytest.mark.usefixtures("quick_workers")
def test_a_service_that_is_being_stopped_ends_its_runs() -> None:
    async def scenario() -> tuple[int, list[dict[str, Any]]]:
        pool = WorkerPool()
        result = await request(pool, LONG, lambda worker: pool.closing.set())
        await pool.prepare()
        assert pool._starting is None
        return result

    status, messages = run_apart(scenario())
    assert (status, messages[-1]["kind"]) == (200, "failed")
    assert "is being stopped" in messages[-1]["text"]


async def spare_of(pool: WorkerPool) -> Process:
    """Wait until the pool has started its spare process."""
    await pool.prepare()
    await pool.prepare()  # starts only one
    if pool._starting is not None:
        await pool._starting
    assert pool._spare is not None
    return pool._spare


@pytest.mark.usefixtures("quick_workers")
def test_a_spare_process_is_used_once_and_replaced_when_it_has_died() -> None:
    async def scenario() -> None:
        pool = WorkerPool()
        spare = await spare_of(pool)
        used: list[Process] = []
        assert (await request(pool, SHORT, used.append))[1][-1]["kind"] == "end"
        assert used == [spare]
        spare = await spare_of(pool)
        await playground_workers._end(spare)
        used.clear()
        assert (await request(pool, SHORT, used.append))[1][-1]["kind"] == "end"
        assert used != [spare]
        await pool.stop()

    run_apart(scenario())


@pytest.mark.usefixtures("quick_workers")
def test_an_unused_spare_process_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playground_workers, "SPARE_SECONDS", 0.0)

    async def scenario() -> None:
        pool = WorkerPool()
        spare = await spare_of(pool)
        assert await spare.wait() == -signal.SIGKILL
        assert pool._ending is not None
        await pool._ending
        assert pool._spare is None

    run_apart(scenario())


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("leave_at_start", [True, False])
def test_a_client_that_disconnects_leaves_no_process(leave_at_start: bool) -> None:
    async def scenario() -> None:
        pool = WorkerPool()
        leaves = asyncio.Event()
        if leave_at_start:
            leaves.set()
        used: list[Process] = []

        async def receive() -> dict[str, Any]:
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            used.extend(pool.running)
            leaves.set()

        await RunStream(pool, LONG)({"type": "http", "method": "POST"}, receive, send)
        assert not pool.running
        assert pool._runs.running == 0
        assert leave_at_start or used[0].returncode == -signal.SIGKILL, "it was killed and waited for"
        await pool.stop()

    run_apart(scenario())


@pytest.mark.usefixtures("quick_workers")
@pytest.mark.parametrize("limit", [1, 2])
def test_the_number_of_simultaneous_runs_is_limited(limit: int) -> None:
    async def scenario() -> None:
        pool = WorkerPool(limit=limit)
        started = asyncio.Semaphore(0)
        runs = [asyncio.create_task(request(pool, LONG, lambda _: started.release())) for _ in range(limit)]
        while len(pool.running) < limit:
            await asyncio.wait_for(started.acquire(), PATIENCE)
        assert (await request(pool, SHORT))[0] == 429
        for worker in list(pool.running):
            worker.kill()
        await asyncio.gather(*runs)
        assert (await request(pool, SHORT))[0] == 200
        await pool.stop()

    run_apart(scenario())


@pytest.mark.usefixtures("quick_workers")
def test_a_run_ends_when_its_key_is_revoked(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'import sys, time\nsys.stdin.readline()\nwhile True: print(\'{"kind":"doing"}\', flush=True); time.sleep(0.01)'
    )
    monkeypatch.setattr(playground_workers, "COMMAND", (sys.executable, "-S", "-c", script))
    key, row = new_key("read")
    store = open_store(sqlite_url)
    store.prepare()
    add_key(store, row)
    headers = {"Authorization": f"Bearer {key}"}
    with running(store, needs_keys=True) as server:
        url = f"{server.url}/playground/run"
        with httpx.stream("POST", url, json={"link": LONG}, headers=headers, timeout=PATIENCE) as answer:
            lines = (line for line in answer.iter_lines() if line)
            assert '"doing"' in next(lines)
            with contextlib.closing(store.reader()) as other:
                assert revoke_key(other, row.id, row.created)
                server.service.keyring.replace(api_keys(other))  # as the service does every second
            assert "needs a valid API key" in list(lines)[-1]


@pytest.mark.usefixtures("quick_workers")
def test_the_service_limits_runs_and_ends_each_with_its_client(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playground_workers, "MAX_RUNS", 2)
    with running(open_store(sqlite_url)) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as http:
        with contextlib.ExitStack() as streams:
            asked = [http.stream("POST", "/playground/run", json={"link": LONG}) for _ in range(2)]
            lines = [streams.enter_context(stream).iter_lines() for stream in asked]  # closing one would end its run
            assert [json.loads(next(one).removeprefix("data: "))["kind"] for one in lines] == ["start", "start"]
            refused = http.post("/playground/run", json={"link": LONG})
            assert refused.status_code == 429
            assert "2 runs are in progress" in refused.json()["problem"]
        answers: list[httpx.Response] = []

        def is_accepted() -> bool:
            answers.append(http.post("/playground/run", json={"link": SHORT}))
            return answers[-1].status_code != 429

        wait_for(is_accepted)  # when the service has noticed that the clients have left
        answer = answers[-1]
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert json.loads(answer.text.split("\n\n")[-2].removeprefix("data: "))["kind"] == "end"


def test_stopping_the_service_ends_real_runs_also_of_plug_ins(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_policies.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    link = LONG.replace("policies=ucb", "policies=hesitant")
    with process(sqlite_url, "--plugin", "own_policies:Hesitant") as server:
        with httpx.stream("POST", f"{server.url}/playground/run", json={"link": link}, timeout=PATIENCE) as answer:
            lines: Iterator[str] = answer.iter_lines()
            assert '"start"' in next(lines)
            processes = workers(server)
            server.process.terminate()
            assert "is being stopped" in [line for line in lines if line][-1]
        assert "timeout graceful shutdown exceeded" not in server.process.communicate(timeout=PATIENCE)[1]
    psutil.wait_procs(processes, timeout=PATIENCE)
    assert processes
    assert not any(one.is_running() for one in processes)


def test_invalid_requests_are_refused_with_a_reason(site: Running) -> None:
    with httpx.Client(base_url=site.url, timeout=PATIENCE) as http:
        wrong = http.post("/playground/run", json={"link": "v=1&policies=ubc"})
        assert (wrong.status_code, "Did you mean 'ucb'" in wrong.json()["problem"]) == (422, True)
        assert http.post("/playground/check", json={"links": ""}).status_code == 422
        assert http.post("/playground/check", content=b"v=1").status_code == 415
        assert http.post("/playground/check", json={"link": "x" * 20_000}).status_code == 413
        assert http.get("/playground/run").status_code == 405
        checked = http.post("/playground/check", json={"link": "v=1&policies=ucb;ucb"}).json()
        assert checked["problems"][0]["field"] == "policies.1"
