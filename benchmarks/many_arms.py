"""Measure how a bandit with 100,000 arms delays the decisions of a small bandit of the same service.

python benchmarks/many_arms.py              print the table of docs/capacity.md; part of `make bench-serve`
python benchmarks/many_arms.py --arms 1000  the same with fewer arms

One connection asks for the decisions of the small bandit, one after the other, while another connection uses the large
one in the way that the row names: it also rewards each of its decisions.
"""

import argparse
import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from decision_service import start, stop

SECONDS = 2.0  # of each measurement
PAUSE = 0.001  # between two calls for the small bandit


class Connection:
    """A connection to the service, which keeps the seconds of each call."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.seconds: list[float] = []

    def call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        text = None if body is None else json.dumps(body)
        began = time.perf_counter()
        self._http.request(method, path, text, {"Content-Type": "application/json"})
        response = self._http.getresponse()
        content = response.read()
        self.seconds.append(time.perf_counter() - began)
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {content[:200]!r}")
        return dict(json.loads(content)) if len(content) < 100_000 else {}

    def decide(self, name: str, **body: object) -> list[dict[str, str]]:
        return self.call("POST", f"/v1/bandits/{name}/decisions", body)["decisions"]  # type: ignore[return-value]


def beside(port: int, action: Callable[[Connection], object]) -> tuple[list[float], list[float]]:
    """Return the seconds of the calls of the small bandit, and of the calls of `action`, repeated at the same time."""
    done, calls, failures = threading.Event(), Connection(port), list[Exception]()

    def repeat() -> None:
        try:
            while not done.is_set():
                action(calls)
        except Exception as error:
            failures.append(error)

    thread, small, until = threading.Thread(target=repeat), Connection(port), time.perf_counter() + SECONDS
    thread.start()
    while time.perf_counter() < until:
        small.decide("small")
        time.sleep(PAUSE)
    done.set()
    thread.join()
    if failures:
        raise failures[0]
    return small.seconds, calls.seconds


def decide_and_reward(calls: Connection) -> None:
    [made] = calls.decide("large")
    calls.call("PUT", f"/v1/decisions/{made['decision']}/reward", {"reward": len(calls.seconds) % 4 // 2})


def actions(arms: list[str]) -> dict[str, Callable[[Connection], object]]:
    """Return what is done with the large bandit."""
    created = iter(range(1_000_000))
    paused = iter(arms)
    return {
        "nothing": lambda calls: time.sleep(0.05),
        "decisions and rewards": decide_and_reward,
        "100 decisions per call, with snapshots": lambda calls: calls.decide("large", count=100),
        "decisions among 100 arms": lambda calls: calls.decide("large", among=arms[:100]),
        "rankings of 3 arms": lambda calls: calls.decide("large", rank=3),
        "pausing arms": lambda calls: calls.call("PATCH", f"/v1/bandits/large/arms/{next(paused)}", {"paused": True}),
        "decisions and rewards, arms paused": decide_and_reward,
        "reading the state": lambda calls: calls.call("GET", "/v1/bandits/large"),
        "state for local deciders": lambda calls: calls.call("GET", "/v1/bandits/large/local-state?after=0"),
        "creating such bandits": lambda calls: calls.call("PUT", f"/v1/bandits/new-{next(created)}", {"arms": arms}),
    }


def quantile(values: list[float], share: float) -> float:
    return 1e3 * sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(policy: str, count: int, folder: Path) -> list[str]:
    """Return the rows of the table."""
    process, port = start("-m", "dynabandit", "serve", "--store", f"sqlite:///{folder}/many-arms.db", "--port", "0")
    try:
        # A pipe that nobody reads would be full some time
        threading.Thread(target=lambda: list(process.stdout or ()), daemon=True).start()
        setup, arms, rows = Connection(port), [f"arm-{number}" for number in range(count)], []
        setup.call("PUT", "/v1/bandits/small", {"arms": ["a", "b", "c"], "policy": policy})
        setup.call("PUT", "/v1/bandits/large", {"arms": arms, "policy": policy})
        decide_and_reward(setup)
        for name, action in actions(arms).items():
            small, large = beside(port, action)
            own = "" if not large else f"{statistics.median(large) * 1e3:.1f} | {1e3 * max(large):.0f}"
            rows.append(
                f"| {name} | {own or ' | '} | {quantile(small, 0.5):.1f} | {quantile(small, 0.99):.1f} | "
                f"{1e3 * max(small):.0f} |"
            )
            print(rows[-1], flush=True)
        return rows
    finally:
        stop(process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=100_000)
    parser.add_argument("--policy", default="auto")
    given = parser.parse_args()
    print("| calls of the large bandit | p50, ms | longest, ms | small bandit p50, ms | p99, ms | longest, ms |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        measure(given.policy, given.arms, Path(folder))


if __name__ == "__main__":
    main()
