"""Measure how many decisions per second replicas make together, and where their time goes: part of `make bench-serve`.

Each of 16 connections per replica asks for its next decision after an answer. With several bandits, each connection
uses one, and all connections of a bandit go to the same replica, as behind a load balancer that routes by the bandit;
with a single bandit they go to the replicas in turn. All processes share this machine, and so does the one that sends
the requests.
"""

import argparse
import asyncio
import contextlib
import functools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import httpx
import psutil
from typer.main import get_command

from decision_service import ARMS, put, start, stop

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from tools.postgres_server import FOLDER_PREFIX, make_database, postgres

CALLERS = 16  # per replica
BATCH_CALLERS = 4  # the same, if each asks for many decisions at once
MANY = 8  # bandits
BATCH = 1_000  # decisions per call
SAMPLE_SECONDS = 0.002
# What the writer does, by the file of the innermost frame that matches
ACTIVITIES = {
    "waiting for calls": ("/request_queue.py",),
    "store": ("/service/stores/", "/psycopg/"),
    "policy and log": ("/dynabandit/bandit/", "/dynabandit/simulation/", "/service/domain/"),
}
WRITER = "dynabandit-writer"
# The threads of a replica, and what their processor time is spent on
THREADS = {"MainThread": "HTTP", WRITER: "writer", "dynabandit-log-follower": "pages"}


class Measured(NamedTuple):
    """The result of one load."""

    rate: float  # decisions per second
    p50: float  # ms
    p99: float  # ms
    per_commit: float  # decisions per commit
    cpu: str  # microseconds per decision of the replicas and, if there is one, of the database server


class Caller(asyncio.Protocol):
    """A connection that asks for decisions until the time is over."""

    def __init__(
        self, bandit: str, count: int, until: float, seconds: list[float], done: "asyncio.Future[None]"
    ) -> None:
        body = json.dumps({"count": count}).encode()
        head = f"POST /v1/bandits/{bandit}/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        self._until, self._seconds, self._done, self._buffer = until, seconds, done, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        now, self._buffer = time.perf_counter(), b""
        if head.startswith(b"HTTP/1.1 200"):
            self._seconds.append(now - self._asked)
        elif not head.startswith((b"HTTP/1.1 429", b"HTTP/1.1 503")):
            self._done.set_exception(RuntimeError(head.decode()))
            return
        if now < self._until:
            self._ask()
        else:
            self._transport.close()
            self._done.set_result(None)


async def load(ports: list[int], bandits: int, count: int, callers: int, seconds: float) -> tuple[list[float], float]:
    """Return the sorted seconds of all calls, and how long it took."""
    loop, waits, found, begin = asyncio.get_running_loop(), [], list[float](), time.perf_counter()
    for number in range(callers):
        bandit = number % bandits
        port = ports[(bandit if bandits > 1 else number) % len(ports)]
        waits.append(loop.create_future())
        make = functools.partial(Caller, f"b{bandit}", count, begin + seconds, found, waits[-1])
        await loop.create_connection(make, "127.0.0.1", port)
    await asyncio.gather(*waits)
    return sorted(found), time.perf_counter() - begin


def commits(ports: list[int]) -> float:
    """Return how many commits the replicas have made."""
    lines = [line for port in ports for line in httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()]
    return sum(float(line.split()[1]) for line in lines if line.startswith("dynabandit_commits_total "))


def cpu_seconds(replicas: list[subprocess.Popen[str]]) -> tuple[float, float]:
    """Return the processor time of the replicas and of the processes of the database server."""
    service = sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in replicas)
    store = 0.0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            if process.name() == "postgres" and FOLDER_PREFIX in process.cwd():
                store += sum(process.cpu_times()[:2])
    return service, store


@contextlib.contextmanager
def served(
    store: str, replicas: int, profile: Path | None = None
) -> Iterator[tuple[list[subprocess.Popen[str]], list[int]]]:
    """Start replicas that share a store and have the bandits; with `profile` the first one writes what it does."""
    profiled = (__file__, "--profiled", str(profile)) if profile else ("-m", "dynabandit.service")
    started = [
        start(*(profiled if number == 0 else ("-m", "dynabandit.service")), "serve", "--port", "0", "--store", store)
        for number in range(replicas)
    ]
    try:
        for number in range(MANY):
            put(started[0][1], "PUT", f"/v1/bandits/b{number}", {"arms": ARMS, "seed": number})
        yield [process for process, _ in started], [port for _, port in started]
    finally:
        for process, _ in started:
            stop(process)


def measure(
    replicas: list[subprocess.Popen[str]], ports: list[int], bandits: int, count: int, seconds: float
) -> Measured:
    callers = (CALLERS if count == 1 else BATCH_CALLERS) * len(ports)
    asyncio.run(load(ports, bandits, count, callers, 0.5))
    commits_before, cpu_before = commits(ports), cpu_seconds(replicas)
    latencies, took = asyncio.run(load(ports, bandits, count, callers, seconds))
    decisions = len(latencies) * count
    quantiles = [latencies[int(len(latencies) * part)] * 1e3 for part in (0.5, 0.99)]
    made = commits(ports) - commits_before
    spent = [after - before for after, before in zip(cpu_seconds(replicas), cpu_before, strict=True)]
    cpu = " + ".join(f"{seconds / decisions * 1e6:.0f}" for seconds in spent if seconds)
    return Measured(decisions / took, *quantiles, decisions / max(1.0, made), cpu)


def activity(frame: FrameType | None) -> str:
    """Return what the writer is doing, from its innermost frame outwards."""
    while frame is not None:
        for name, parts in ACTIVITIES.items():
            if any(part in frame.f_code.co_filename for part in parts):
                return name
        frame = frame.f_back
    return "rest"


def sample(target: Path) -> None:
    """Count what the writer does; write that and the processor time of each thread to a file now and then."""
    counts, process, saved = Counter[str](), psutil.Process(), time.monotonic()
    while True:
        time.sleep(SAMPLE_SECONDS)
        threads = {thread.name: thread for thread in threading.enumerate()}
        if WRITER in threads:
            counts[activity(sys._current_frames().get(threads[WRITER].ident or 0))] += 1
        if time.monotonic() - saved > 0.3:
            saved = time.monotonic()
            cpu = {one.id: one.user_time + one.system_time for one in process.threads()}
            spent = {use: cpu.get(threads[name].native_id, 0.0) for name, use in THREADS.items() if name in threads}
            other = target.with_suffix(".new")
            other.write_text(json.dumps({"samples": counts, "cpu": spent}))
            other.replace(target)


def serve_profiled(target: Path, arguments: list[str]) -> None:
    """Run `dynabandit.service` with a thread that samples what its threads do."""
    from dynabandit.service.command_line import app

    threading.Thread(target=sample, args=(target,), daemon=True).start()
    get_command(app)(arguments)


def where_the_time_goes(store: str, folder: Path, seconds: float) -> tuple[dict[str, float], dict[str, float]]:
    """Return the microseconds of the processor per decision by thread, and the shares of the writer's time."""
    profile = folder / f"profile-{time.monotonic_ns()}.json"
    with served(store, 1, profile) as (_, ports):
        asyncio.run(load(ports, MANY, 1, CALLERS, 0.8))
        before = json.loads(profile.read_text())
        decisions = len(asyncio.run(load(ports, MANY, 1, CALLERS, seconds))[0])
        time.sleep(0.4)
        after = json.loads(profile.read_text())
    cpu = {use: (after["cpu"][use] - before["cpu"].get(use, 0.0)) / decisions * 1e6 for use in THREADS.values()}
    samples = Counter(after["samples"]) - Counter(before["samples"])
    return cpu, {name: count / samples.total() for name, count in samples.most_common()}


def main() -> None:
    if sys.argv[1:2] == ["--profiled"]:
        serve_profiled(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--short", action="store_true", help="one second each, and at most two replicas")
    parser.add_argument("--folder", help="folder of the SQLite stores; the temporary directory by default")
    options = parser.parse_args()
    seconds = 1.0 if options.short else options.seconds
    print(f"{psutil.cpu_count()} cores, {CALLERS} callers per replica on the same machine, decisions only\n")
    print("| store | replicas | bandits | decisions/s | p50, ms | p99, ms | per commit | CPU, us per decision |"
          f" decisions/s with count={BATCH} | CPU, us per decision |\n|---|{'--:|' * 9}")  # fmt: skip
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, postgres() as server:
        runs = [("SQLite", 1)] + [("PostgreSQL", number) for number in ((1, 2) if options.short else (1, 2, 4))]
        for kind, replicas in runs:
            for bandits in (1, MANY):
                store = f"sqlite:///{folder}/bench{bandits}.db"
                if kind == "PostgreSQL":
                    store = make_database(server, f"bench_{replicas}_{bandits}")
                with served(store, replicas) as (processes, ports):
                    one = measure(processes, ports, bandits, 1, seconds)
                    many = measure(processes, ports, bandits, BATCH, seconds / 2)
                print(f"| {kind} | {replicas} | {bandits} | {one.rate:,.0f} | {one.p50:.1f} | {one.p99:.1f}"
                      f" | {one.per_commit:.1f} | {one.cpu} | {many.rate:,.0f} | {many.cpu} |", flush=True)  # fmt: skip
        print("\nWhere the time goes, one replica, eight bandits:\n")
        print("| store | processor time per decision, us | time of the writer |\n|---|---|---|")
        for kind in ("SQLite", "PostgreSQL"):
            store = f"sqlite:///{folder}/profile.db" if kind == "SQLite" else make_database(server, "profile")
            cpu, parts = where_the_time_goes(store, Path(folder), seconds)
            spent = ", ".join(f"{use} {value:.0f}" for use, value in cpu.items())
            print(
                f"| {kind} | {spent} | {', '.join(f'{name} {part:.0%}' for name, part in parts.items())} |", flush=True
            )


if __name__ == "__main__":
    main()
