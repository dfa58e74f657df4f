"""Measure local decisions: those of one process, and the messages of 1,000 deciders on one bandit.

The deciders are simulated on this machine by one process, which sends what a `LocalDecider` sends: every
`refresh_seconds` a batch with its decisions and their rewards, and a request for the state.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
import timeit
from pathlib import Path
from typing import NamedTuple

import psutil

import dynabandit as db
from decision_service import ARMS, put, start, stop
from dynabandit.service.field_types import MAX_DECISIONS

DECIDERS = 1_000
LOADS = ((1, 1), (1, 5), (5, 10))  # seconds between two exchanges, and decisions per second, of each decider
POLICIES = ("auto", "ucb", "ts")


class Answers(NamedTuple):
    """What the deciders got."""

    batches: list[float]  # seconds of each stored batch
    states: list[float]  # seconds of each state
    sizes: list[int]  # bytes of each state
    refused: list[int]  # statuses of the others


class Connection:
    """A connection that is opened again if the service has closed it, as it does to reject calls quickly."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes, float]:
        """Return the status of a request, 0 without an answer, the body of the answer, and the seconds that it took."""
        begin = time.perf_counter()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(answer.split(b" ", 2)[1]), await reader.readexactly(length), time.perf_counter() - begin
        except (OSError, asyncio.IncompleteReadError):
            self._streams = None
            return 0, b"", time.perf_counter() - begin

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def simulate_decider(port: int, bandit: str, load: tuple[int, int], until: float, answers: Answers) -> None:
    """Send a batch and ask for the state now and then; the decisions of a refused batch are in the next one."""
    decider, sent, waiting, base, identity = f"{random.getrandbits(64):016x}", 0, 0, 0, ""
    connection, (seconds_between, rate) = Connection(port), load
    await asyncio.sleep(random.random() * seconds_between)
    while (begin := time.perf_counter()) < until:
        if identity:
            waiting = min(waiting + seconds_between * rate, MAX_DECISIONS)
            body = batch_of(identity, decider, range(sent + 1, sent + waiting + 1), base)
            status, _, seconds = await connection.ask("POST", f"/v1/bandits/{bandit}/local-decisions", body)
            if status == 200:
                sent, waiting = sent + waiting, 0
                answers.batches.append(seconds)
            else:
                answers.refused.append(status)
        path = f"/v1/bandits/{bandit}/local-state?after={base}&decider={decider}&waiting={waiting}"
        status, content, seconds = await connection.ask("GET", path)
        if status == 200:
            answers.states.append(seconds)
            answers.sizes.append(len(content))
            state = json.loads(content)
            identity, base = state["id"], state["sequence"]
        else:
            answers.refused.append(status)
        await asyncio.sleep(max(0.0, begin + seconds_between * random.uniform(0.8, 1.0) - time.perf_counter()))
    connection.close()


def batch_of(identity: str, decider: str, steps: range, base: int) -> bytes:
    decisions = [{"arm": random.randrange(len(ARMS))} for _ in steps]
    rewards = [{"decider": decider, "step": step, "reward": step % 2} for step in steps]
    batch = {"id": identity, "decider": decider, "first": steps.start, "base": base}
    return json.dumps({**batch, "decisions": decisions, "rewards": rewards}).encode()


async def run_deciders(port: int, bandit: str, load: tuple[int, int], seconds: float) -> Answers:
    answers, until = Answers([], [], [], []), time.perf_counter() + seconds
    await asyncio.gather(*(simulate_decider(port, bandit, load, until, answers) for _ in range(DECIDERS)))
    return answers


def quantiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return " | ".join(f"{ordered[int(len(ordered) * part)] * 1e3:.0f}" for part in (0.5, 0.99))


def measure_deciders(seconds: float, folder_of_store: str | None) -> None:
    print(f"\n{DECIDERS} deciders on one bandit\n")
    print(
        "| seconds between exchanges | decisions/s of each | decisions and rewards stored/s | requests/s |"
        " batch p50, ms | p99 | state p50, ms | p99 | state, bytes | refused | CPU | CPU, us per request |"
    )
    print(f"|{'--:|' * 12}")
    with tempfile.TemporaryDirectory(dir=folder_of_store) as folder:
        options = ("--most-connections", "3000", "--most-per-address", "2500")
        store = f"sqlite:///{folder}/bench.db"
        process, port = start("-m", "dynabandit.service", "serve", "--port", "0", "--store", store, *options)
        try:
            for load in LOADS:
                bandit = f"b{load[0]}-{load[1]}"
                put(port, "PUT", f"/v1/bandits/{bandit}", {"arms": ARMS, "seed": 1})
                before, begin = sum(psutil.Process(process.pid).cpu_times()[:2]), time.perf_counter()
                answers = asyncio.run(run_deciders(port, bandit, load, seconds))
                took = time.perf_counter() - begin
                cpu = (sum(psutil.Process(process.pid).cpu_times()[:2]) - before) / took
                requests = len(answers.batches) + len(answers.states) + len(answers.refused)
                stored = 2 * stored_steps(port, bandit)
                rates = f"{stored / took:,.0f} | {requests / took:,.0f}"
                times = f"{quantiles(answers.batches)} | {quantiles(answers.states)}"
                cost = f"{len(answers.refused)} | {cpu:.0%} | {cpu * took / requests * 1e6:.0f}"
                print(f"| {load[0]} | {load[1]} | {rates} | {times} | {max(answers.sizes):,} | {cost} |", flush=True)
        finally:
            stop(process)


def stored_steps(port: int, bandit: str) -> int:
    with db.Client(f"http://127.0.0.1:{port}") as client:
        return client.state(bandit).step


def measure_decisions() -> None:
    print("| policy | local decisions/s |\n|---|--:|")
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/bench.db"
        process, port = start("-m", "dynabandit.service", "serve", "--port", "0", "--store", store)
        url = f"http://127.0.0.1:{port}"
        try:
            for policy in POLICIES:
                with db.Client(url) as client:
                    client.create(policy, ARMS, policy, seed=1)
                    for made in client.decide_many(policy, 200):
                        client.reward(made.decision, made.arm == "c")
                with db.LocalDecider(url, policy, Path(folder) / policy) as decider:
                    best = min(timeit.repeat(decider.decide, number=50_000, repeat=5))
                print(f"| {policy} | {50_000 / best:,.0f} |", flush=True)
        finally:
            stop(process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--folder", help="folder of the store; the temporary directory by default")
    options = parser.parse_args()
    measure_decisions()
    measure_deciders(options.seconds, options.folder)


if __name__ == "__main__":
    sys.exit(main())
