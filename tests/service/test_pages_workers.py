"""Processes of the playground: a limit of time, a crash and a spare, without a browser."""

import asyncio
import json
import signal

import pytest

from dynabandit.service.pages import workers as module
from dynabandit.service.pages.lab import Watching
from dynabandit.service.pages.workers import Workers
from service.harness import run_apart

SHORT = "v=1&policies=ucb&horizon=100&replications=2"
HEAVY = "v=1&environment=case-3&arms=50&policies=ucb&horizon=20000&replications=300&seed=3"


async def watched(workers, link, at_start=lambda process: None):
    """Ask for a trial as a server would, and return status and messages."""
    seen, messages = [], []

    async def receive():
        await asyncio.Event().wait()  # a reader who stays

    async def send(message):
        if message["type"] == "http.response.start":
            seen.append(message["status"])
            for process in workers.running:
                at_start(process)
        events = message.get("body", b"").split(b"\n\n")
        messages.extend(json.loads(event.removeprefix(b"data: ")) for event in events if event.startswith(b"data: "))

    await Watching(workers, link)({"type": "http", "method": "POST"}, receive, send)
    return seen[0], messages


def test_a_run_that_takes_too_long_is_ended_and_says_so():
    async def scenario():
        workers = Workers(seconds=0.2)
        started = []
        status, messages = await watched(workers, HEAVY, started.append)
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
        workers = Workers()
        status, messages = await watched(workers, HEAVY, lambda process: workers.closing.set())
        workers.warm()
        assert workers._starting is None
        return status, messages

    status, messages = run_apart(scenario())
    assert (status, messages[-1]["kind"]) == (200, "failed")
    assert "is being stopped" in messages[-1]["text"]


def test_a_spare_is_used_once_and_one_that_died_is_replaced():
    async def scenario():
        workers = Workers()
        workers.warm()
        workers.warm()  # once is enough
        await workers._starting
        spare = workers._spare
        used = []
        assert (await watched(workers, SHORT, used.append))[1][-1]["kind"] == "end"
        assert used == [spare]
        assert workers._spare is None
        workers.warm()
        await workers._starting
        await module._end(workers._spare)
        assert (await watched(workers, SHORT))[1][-1]["kind"] == "end"

    run_apart(scenario())


def test_a_spare_that_nobody_needs_is_given_up(monkeypatch):
    monkeypatch.setattr(module, "SPARE_SECONDS", 0.0)

    async def scenario():
        workers = Workers()
        workers.warm()
        await workers._starting
        spare = workers._spare
        assert await spare.wait() == -signal.SIGKILL
        await workers._ending
        assert workers._spare is None

    run_apart(scenario())


def test_a_reader_who_leaves_before_the_start_leaves_no_process():
    async def scenario():
        workers, sent = Workers(), []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await Watching(workers, HEAVY)({"type": "http", "method": "POST"}, receive, send)
        assert not workers.running
        assert workers._entered == 0

    run_apart(scenario())


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_runs_than_allowed(most):
    async def scenario():
        workers = Workers(most=most, seconds=60)
        begun = asyncio.Event()
        first = [asyncio.create_task(watched(workers, HEAVY, lambda _: begun.set())) for _ in range(most)]
        while len(workers.running) < most:
            await asyncio.wait_for(begun.wait(), 60)
            begun.clear()
        assert (await watched(workers, SHORT))[0] == 429
        for process in list(workers.running):
            process.kill()
        await asyncio.gather(*first, return_exceptions=True)
        assert (await watched(workers, SHORT))[0] == 200

    run_apart(scenario())
