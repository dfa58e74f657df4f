"""Measure what a service still does for callers that give up and connect again at once: look for the knee.

python benchmarks/impatient_callers.py              print a table with 64 to 2,000 callers
python benchmarks/impatient_callers.py 900 1100     the same with these numbers of callers

Each caller asks for its next decision as soon as it has an answer. After an answer other than 200, a lost connection or
`--patience` seconds it closes the connection and opens another one without a pause. "answered" counts the decisions
that came in time, per second and per second of the processor that the service used: the latter depends little on what
else the machine does. "connects" and "refused" are per answered decision.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import tempfile
import time
from collections import Counter
from typing import NamedTuple

import psutil

from decision_service import put, start, stop

CALLERS = (64, 256, 512, 768, 900, 1024, 1500, 2000)
BODY = json.dumps({"count": 1}).encode()
REQUEST = (
    b"POST /v1/bandits/bench/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


class Load(NamedTuple):
    """What all callers share."""

    port: int
    until: float
    patience: float
    counts: Counter[str]


class Caller(asyncio.Protocol):
    """A connection; `closed` is set when its caller should open another one."""

    def __init__(self, load: Load) -> None:
        self._load, self._buffer, self.closed = load, b"", asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set()

    def _ask(self) -> None:
        self._transport.write(REQUEST)
        self._patience = asyncio.get_running_loop().call_later(self._load.patience, self._give_up)

    def _give_up(self) -> None:
        self._load.counts["gave up"] += 1
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        self._patience.cancel()
        self._buffer = b""
        is_answered = head.startswith(b"HTTP/1.1 200")
        self._load.counts["answered" if is_answered else "refused"] += 1
        if is_answered and time.perf_counter() < self._load.until:
            self._ask()
        else:
            self._transport.abort()

    def leave(self) -> None:
        self._patience.cancel()
        self._transport.abort()


async def call(load: Load) -> None:
    """Be one caller until the time is over."""
    loop = asyncio.get_running_loop()
    while (left := load.until - time.perf_counter()) > 0:
        load.counts["connects"] += 1
        with contextlib.suppress(OSError):
            _, caller = await loop.create_connection(lambda: Caller(load), "127.0.0.1", load.port)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(caller.closed.wait(), left)
            caller.leave()


async def measure(service: subprocess.Popen[str], port: int, callers: int, seconds: float, patience: float) -> str:
    """Return a row of the table."""
    process, counts = psutil.Process(service.pid), Counter[str]()
    load = Load(port, time.perf_counter() + seconds, patience, counts)
    used = sum(process.cpu_times()[:2])
    await asyncio.gather(*(call(load) for _ in range(callers)))
    used = sum(process.cpu_times()[:2]) - used
    answered = max(1, counts["answered"])
    each = [f"{counts[what] / answered:.2f}" for what in ("connects", "refused", "gave up")]
    return f"| {callers:,} | {answered / seconds:,.0f} | {answered / used:,.0f} | {' | '.join(each)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("callers", nargs="*", type=int, default=CALLERS)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each row")
    parser.add_argument("--patience", type=float, default=1.0, help="seconds until a caller gives up")
    options = parser.parse_args()
    print("| callers | answered per second | answered per second of the processor | connects | refused | gave up |")
    print("|--:|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/bench.db"
        service, port = start("-m", "dynabandit.service", "serve", "--port", "0", "--store", store)
        try:
            put(port, "PUT", "/v1/bandits/bench", {"arms": ["red", "green", "blue"], "policy": "ucb", "seed": 1})
            for callers in options.callers:
                print(asyncio.run(measure(service, port, callers, options.seconds, options.patience)), flush=True)
        finally:
            stop(service)


if __name__ == "__main__":
    main()
