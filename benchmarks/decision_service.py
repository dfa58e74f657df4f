"""Measure the decision service relative to a minimal HTTP server in the same run: `make bench-serve`.

The reference ("floor") is the same stack (Starlette, msgspec, uvicorn) without bandits and without a store. Servers run
in separate processes on loopback addresses; each of 32 connections sends its next request after an answer.
"""

import argparse
import asyncio
import functools
import json
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.changes import create
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import reward
from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY, UnitOfWork
from dynabandit.service.stores import SqliteStore

CONNECTIONS = 32
FEW = 8  # callers whose latency is measured during an overload caused by others
ARMS = ["a", "b", "c", "d", "e"]


def floor_app() -> Starlette:
    """Return a server with the same requests and answers that does nothing else."""
    decide, reward = msgspec.json.Decoder(api_types.Decide), msgspec.json.Decoder(api_types.Reward)
    encode = msgspec.json.Encoder().encode

    async def decisions(request: Request) -> Response:
        decide.decode(await request.body())
        answer = api_types.Decisions([api_types.Decision("000000000000-1", "a", 1)])
        return Response(encode(answer), media_type="application/json")

    async def rewards(request: Request) -> Response:
        value = reward.decode(await request.body()).reward
        answer = api_types.Rewarded(request.path_params["id"], value)
        return Response(encode(answer), media_type="application/json")

    return Starlette(
        routes=[
            Route("/v1/decisions/{id}/reward", rewards, methods=["PUT"]),
            Route("/v1/bandits/{name}/decisions", decisions, methods=["POST"]),
        ]
    )


class Caller(asyncio.Protocol):
    """One connection that alternately requests a decision and sends its reward until the time is over."""

    def __init__(self, until: float, latencies: list[float], refused: list[int], done: "asyncio.Future[None]") -> None:
        self.until, self.latencies, self.refused, self.done = until, latencies, refused, done
        self.buffer = b""
        self.decide = _request("POST", "/v1/bandits/bench/decisions", b'{"count":1}')

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.send(self.decide)

    def send(self, request: bytes) -> None:
        self.asked = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < size:
            return
        now = time.perf_counter()
        self.buffer = b""
        if head.startswith(b"HTTP/1.1 200"):
            self.latencies.append(now - self.asked)
        elif head.startswith((b"HTTP/1.1 429", b"HTTP/1.1 503")):
            self.refused.append(1)
        else:
            raise RuntimeError(head.decode())
        if now >= self.until:
            self.transport.close()
            self.done.set_result(None)
        elif body.startswith(b'{"decisions"'):
            decision = body.split(b'"', 6)[5].decode()
            self.send(_request("PUT", f"/v1/decisions/{decision}/reward", b'{"reward":1}'))
        else:
            self.send(self.decide)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Load(NamedTuple):
    """Accepted requests per second, their latencies, and the number of rejected requests.

    A latency is the time from writing a request to having read its answer, as the client sees it.
    """

    rate: float
    latencies: list[float]
    refused: int


async def load(port: int, seconds: float, connections: int = CONNECTIONS) -> Load:
    """Send requests from several connections, each after the answer to its previous one."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    refused: list[int] = []
    start = time.perf_counter()
    waits = []
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        waits.append(done)
        make = functools.partial(Caller, start + seconds, latencies, refused, done)
        await loop.create_connection(make, "127.0.0.1", port)
    await asyncio.gather(*waits)
    return Load(len(latencies) / (time.perf_counter() - start), sorted(latencies), len(refused))


def commit_seconds(folder: Path, commits: int = 200) -> float:
    """Return the duration of the smallest durable commit on this disk, a lower bound for any store."""
    connection = sqlite3.connect(folder / "disk.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (n INTEGER)")
    begin = time.perf_counter()
    for number in range(commits):
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    taken = time.perf_counter() - begin
    connection.close()
    return taken / commits


def start(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Start a server and return its process and port."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline().rsplit(":", 1)[1])


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(30)


class FloorServer(uvicorn.Server):
    """A server that prints its address."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)


def serve_floor() -> None:
    FloorServer(uvicorn.Config(floor_app(), port=0, log_config=None, access_log=False)).run()


def put(port: int, method: str, path: str, body: object) -> dict[str, object]:
    import httpx

    answer = httpx.request(method, f"http://127.0.0.1:{port}{path}", json=body, timeout=60)
    answer.raise_for_status()
    return answer.json()


def compare(folder: Path, seconds: float, rounds: int) -> dict[str, object]:
    """Alternate between the floor, the service and ten times the load, and report the best of each."""
    floor, floor_port = start(__file__, "--floor")
    service, port = start("-m", "dynabandit.service", "serve", "--port", "0", "--store", f"sqlite:///{folder}/bench.db")
    put(port, "PUT", "/v1/bandits/bench", {"arms": ARMS, "seed": 1})
    asyncio.run(load(port, 1.0))
    asyncio.run(load(floor_port, 1.0))
    before = psutil.Process(service.pid).memory_info().rss
    floors, normal, overloads = [], [], []
    for _ in range(rounds):
        floors.append(asyncio.run(load(floor_port, seconds)))
        normal.append(asyncio.run(load(port, seconds)))
        overloads.append(overload(port, seconds))
    batches = batch_rate(port)
    after = psutil.Process(service.pid).memory_info().rss
    stop(floor)
    stop(service)
    rate, base = max(one.rate for one in normal), max(one.rate for one in floors)
    calm = quantiles(normal)
    result: dict[str, object] = {
        "floor, requests/s": round(base),
        "durable decisions and rewards, requests/s": round(rate),
        "ratio (at least 0.60)": round(rate / base, 3),
        "p50, ms": calm[0],
        "p99, ms": calm[1],
        "p99 / p50 (under 10)": round(calm[1] / calm[0], 2),
        "rewards/s in batches of 100 (at least 20000)": round(batches),
        "smallest commit of this disk, ms": round(commit_seconds(folder) * 1e3, 2),
    }
    for who, place in (("all callers", 0), ("8 callers in a separate process", 1)):
        seen = [one[place] for one in overloads]
        p50, p99 = quantiles(seen)
        result |= {
            f"10 times the connections, {who}: accepted/s": round(max(one.rate for one in seen)),
            f"10 times the connections, {who}: rejected": sum(one.refused for one in seen),
            f"10 times the connections, {who}: p50 of accepted, ms": p50,
            f"10 times the connections, {who}: p99 of accepted, ms": p99,
            f"10 times the connections, {who}: p50 relative to 32 connections": round(p50 / calm[0], 2),
            f"10 times the connections, {who}: p99 relative to 32 connections": round(p99 / calm[1], 2),
        }
    result["requests served"] = sum(len(one.latencies) for one in normal)
    result["memory growth, MiB"] = round((after - before) / 2**20, 1)
    return result


def overload(port: int, seconds: float) -> tuple[Load, Load]:
    """Send ten times the load, most of it from a separate process; return the load of all and of a few callers.

    The many callers share one event loop, so their latencies include the time that loop needs to read an answer.
    """
    many = subprocess.Popen(
        [sys.executable, __file__, "--overload", str(port), "--seconds", str(2 * seconds)], stdout=subprocess.PIPE
    )
    assert many.stdout is not None
    many.stdout.readline()  # wait until it has started
    few = asyncio.run(load(port, seconds, FEW))
    rate, latencies, refused = json.loads(many.stdout.read())
    many.wait(30)
    return Load(rate + few.rate, sorted(latencies + few.latencies), refused + few.refused), few


def quantiles(loads: list[Load]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the latencies of accepted requests, in ms."""
    latencies = sorted(latency for one in loads for latency in one.latencies)
    return tuple(round(latencies[int(len(latencies) * part)] * 1e3, 2) for part in (0.5, 0.99))  # type: ignore[return-value]


def batch_rate(port: int, batches: int = 200) -> float:
    """Return rewards per second in batches of 100, over 4 connections."""
    ids = []
    for _ in range(batches * 100 // 1000):
        answer = put(port, "POST", "/v1/bandits/bench/decisions", {"count": 1000})
        ids += [one["decision"] for one in answer["decisions"]]
    requests = []
    for first in range(0, len(ids), 100):
        rewards = [{"decision": one, "reward": 1} for one in ids[first : first + 100]]
        requests.append(_request("POST", "/v1/rewards", json.dumps({"rewards": rewards}).encode()))

    async def send(mine: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in mine:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(send(requests[i::4]) for i in range(4)))

    begin = time.perf_counter()
    asyncio.run(all_of_them())
    return len(ids) / (time.perf_counter() - begin)


def recover(folder: Path, events: int) -> dict[str, object]:
    """Measure time and memory of recovering a long log."""
    store = SqliteStore(str(folder / "long.db"))
    store.prepare()
    work = UnitOfWork(store, Clock())
    state, _ = create(work, "bench", api_types.Create(arms=ARMS, seed=1))
    result: dict[str, object] = {}
    for part in (events // 10, events):
        grow(work, state, part - SNAPSHOT_EVERY)
        store.save_snapshot(state.bandit_number, work.snapshot(state.bandit_number))
        grow(work, state, part)  # the maximum number of events since the last snapshot
        result |= recovery(store, state, "a snapshot and the events since", 10)
        store.write([("DELETE FROM snapshots", ())])
        result |= recovery(store, state, "the log alone", 60)
    store.close()
    return result


def grow(work: UnitOfWork, state: LoggedState, events: int) -> None:
    while state.sequence < events:
        for decision in decide(work, "bench", api_types.Decide(min(500, events - state.sequence))):
            if state.sequence < events:
                reward(work, state.bandit_number, decision.step, float(decision.arm == "c"))
        work.store.commit(work.events, work.created)
        work.clear()


def recovery(store: SqliteStore, state: LoggedState, way: str, limit: int) -> dict[str, object]:
    fresh = UnitOfWork(store, Clock())
    before, begin = psutil.Process().memory_info().rss, time.perf_counter()
    assert fresh.state(state.bandit_number).state_hash() == state.state_hash()
    taken, grown = time.perf_counter() - begin, psutil.Process().memory_info().rss - before
    return {
        f"recovery of {state.sequence:,} events from {way}, s (under {limit})": round(taken, 2),
        f"memory of recovery of {state.sequence:,} events from {way}, MiB": round(grown / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--floor", action="store_true", help="run the reference server (used internally)")
    parser.add_argument("--overload", type=int, help="send the load to a port (used internally)")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--folder", help="folder of the stores; the temporary directory by default")
    options = parser.parse_args()
    if options.floor:
        serve_floor()
        return
    if options.overload:
        print("started", flush=True)
        print(json.dumps(asyncio.run(load(options.overload, options.seconds, 10 * CONNECTIONS - FEW))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = compare(Path(folder), options.seconds, options.rounds)
        results |= recover(Path(folder), options.events)
    for name, value in results.items():
        print(f"{name:<75} {value}")


if __name__ == "__main__":
    main()
