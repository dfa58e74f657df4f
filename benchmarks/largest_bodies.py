"""Measure for how long the largest requests that callers may send keep others waiting.

python benchmarks/largest_bodies.py           print a table: milliseconds of processor time per request
python benchmarks/largest_bodies.py personal  only the rows whose name contains this text

Each row is one request to a service in this process, refused or not. "loop" and "writer" are the longest turns of the
event loop and of the writer; "held" is the longest time for which other threads had to wait for the interpreter. None
should be more than 100 ms. All are times of the processor, of the shortest of three tries, so it matters little what
else the machine does. "all" is what the request took of all threads.
"""

import argparse
import asyncio
import gc
import http.client
import json
import logging
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import structlog

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dynabandit.service.command_line import COLLECTED_OBJECTS, SWITCH_SECONDS
from dynabandit.service.http.limits import LARGE_BODY, SMALL_BODY
from dynabandit.service.stores import open_store
from tools.harness import Running, running

Row = tuple[str, str, str, Callable[[], str]]  # what it is, method, path, body
WIDE = {f"f{number}": {"kind": "hashed", "columns": 3, "required": True} for number in range(256)}
TRIES = 3
TICK = 0.001  # seconds between two looks at the event loop, and at the interpreter
ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def filled(start: str, items: Iterator[str], end: str, most: int = SMALL_BODY) -> str:
    """Return a body with as many items as fit."""
    parts, size = list[str](), len(start) + len(end)
    for item in items:
        size += len(item.encode()) + 1
        if size > most:
            break
        parts.append(item)
    return f"{start}{','.join(parts)}{end}"


def short_names() -> Iterator[str]:
    """Yield different short names."""
    yield from ALPHABET
    for length in (2, 3, 4):
        for number in range(len(ALPHABET) ** length):
            name = ""
            for _ in range(length):
                number, place = divmod(number, len(ALPHABET))
                name += ALPHABET[place]
            yield name


def endless(text: str) -> Iterator[str]:
    while True:
        yield text


def fields(value: str) -> Iterator[str]:
    return (f'"{name}":{value}' for name in short_names())


def twice(value: str) -> Iterator[str]:
    yield f'"zzzz":{value}'
    yield f'"zzzz":{value}'
    yield from fields(value)


def decisions(ids: list[str]) -> Iterator[str]:
    return (f'{{"decision":"{one}","reward":1}}' for one in ids)


def rows(ids: list[str]) -> list[Row]:
    """Return the requests."""
    decide, rank = "/v1/bandits/small/decisions", "/v1/bandits/personal/personalizer/v1.0/rank"
    many, reward = "/v1/bandits/many/decisions", f"/v1/decisions/{ids[0]}/reward"
    wide, models = "/v1/bandits/wide/decisions", "/v1/bandits/models/decisions"
    context = json.dumps({"context": {f"x{number}": number for number in range(21)}})
    deep = '{"a":' * 400 + "1" + "}" * 400
    long_name = "n" * 900
    local = '"id":"x","decider":"0123456789abcdef","first":1,"base":1'
    found: list[Row] = []
    for name, items in (
        ("different fields", fields("1")), ("a field twice", twice("1")), ("escaped fields", fields('"\\u0041"')),
        ("a field twice, escaped", twice('"\\u0041"')),
    ):  # fmt: skip
        for method, path in (("POST", decide), ("PUT", reward), ("POST", "/v1/rewards"), ("POST", rank),
                             ("PUT", "/v1/bandits/other"), ("POST", "/playground/check")):  # fmt: skip
            body = filled("{", items, "}")
            items = iter(twice("1") if "twice" in name else fields('"\\u0041"' if "esc" in name else "1"))
            found.append((f"{name}: {path[:40]}", method, path, lambda body=body: body))
    found += [
        ("rewards, largest", "POST", "/v1/rewards", lambda: filled('{"rewards":[', decisions(ids), "]}")),
        ("rewards, unknown", "POST", "/v1/rewards",
         lambda: filled('{"rewards":[', decisions([f"x{number}" for number in range(10_000)]), "]}")),
        ("rewards, last is wrong", "POST", "/v1/rewards",
         lambda: filled('{"rewards":[', decisions(ids[:9999]), ',{"decision":1,"reward":1}]}')),
        ("rewards, numbers", "POST", "/v1/rewards", lambda: filled('{"rewards":[', endless("1"), "]}")),
        ("rewards, objects", "POST", "/v1/rewards", lambda: filled('{"rewards":[', endless("{}"), "]}")),
        ("among, repeated", "POST", many,
         lambda: filled('{"among":[', (f'"{name}"' for name in [*list(map(str, range(999))), "998"]), "]}")),
        ("among, long names", "POST", many,
         lambda: filled('{"among":[', (f'"{number:x<200}"' for number in range(1000)), "]}")),
        ("among, composed names", "POST", many,
         lambda: filled('{"among":[', (f'"{chr(0x1FFF)}{number:\u0345<199}"' for number in range(1000)), "]}")),
        ("count=1000", "POST", decide, lambda: '{"count":1000}'),
        ("count=1000, 100 arms", "POST", many, lambda: '{"count":1000}'),
        ("rank=50, 1,000 arms", "POST", many, lambda: '{"rank":50}'),
        ("rank=20, 100 arms with models", "POST", models, lambda: context.replace("{", '{"rank":20,', 1)),
        ("count=200, 100 arms with models", "POST", models, lambda: context.replace("{", '{"count":200,', 1)),
        ("context, many numbers", "POST", wide,
         lambda: filled('{"context":{', (f'"f{n}":{inner(1000)}' for n in range(256)), "}}")),
        ("context, last is wrong", "POST", wide,
         lambda: filled('{"context":{', (f'"f{n}":{inner(1000)}' for n in range(200)), ',"g":{"a":[]}}}')),
        ("context of 16 KB, count=61", "POST", wide,
         lambda: filled('{"count":61,"context":{', (f'"f{n}":{inner(9)}' for n in range(256)), "}}", 16_000)),
        ("context, long texts", "POST", wide,
         lambda: filled('{"context":{', (f'"f{n}":{{"a":"{"x" * 1000}"}}' for n in range(256)), "}}")),
        ("local batch of another bandit", "POST", "/v1/bandits/small/local-decisions",
         lambda: filled(f'{{{local},"decisions":[', (f'{{"arm":1,"unit":"{number:0>200}"}}' for number in range(1000)),
                        "]}")),
        ("local batch with contexts", "POST", "/v1/bandits/wide/local-decisions",
         lambda: filled(f'{{{local},"decisions":[', (f'{{"arm":1,"context":{{"f1":{inner(100)}}}}}'
                                                     for _ in range(1000)), "]}")),
        ("metrics", "PUT", f"/v1/decisions/{ids[0]}/metrics", lambda: filled('{"metrics":{', fields("1"), "}}")),
        ("preview", "POST", "/v1/bandits/small/policy/preview",
         lambda: filled('{"policy":"ucb","context":{', (f'"f{n}":{inner(1000)}' for n in range(256)), "}}")),
        ("create, wrong arms", "PUT", "/v1/bandits/c1-{number}",
         lambda: filled('{"arms":[', (f'"{name}"' for name in short_names()), ",1]}", 1 << 20)),
        ("create, 100,000 arms", "PUT", "/v1/bandits/c2-{number}",
         lambda: json.dumps({"arms": [f"{number:x<20}" for number in range(100_000)], "policy": "ucb"})),
        ("create, 10,000 arms with features", "PUT", "/v1/bandits/c3-{number}",
         lambda: json.dumps({"arms": [str(number) for number in range(10_000)], "policy": "lin-ucb",
                             "arm_features": {str(number): {"x": number} for number in range(10_000)}})),
        ("create, features of 60,000 arms", "PUT", "/v1/bandits/c5-{number}",
         lambda: json.dumps({"arms": [str(number) for number in range(60_000)], "policy": "lin-ucb",
                             "arm_features": {str(number): dict.fromkeys("abc", number) for number in range(60_000)}})),
        ("create, long names of 50,000 arms", "PUT", "/v1/bandits/c6-{number}",
         lambda: json.dumps({"arms": [f"{number:\u00e9<100}" for number in range(50_000)], "policy": "ucb"},
                            ensure_ascii=False)),
        ("create, 10 MB of arms", "PUT", "/v1/bandits/c4-{number}",
         lambda: filled('{"arms":[', endless('"a"'), "]}", LARGE_BODY)),
    ]  # fmt: skip
    for bandit, arms in (("c2-0", "100,000 arms"), ("c3-0", "10,000 arms with features")):
        found.append((f"state, {arms}", "GET", f"/v1/bandits/{bandit}", lambda: ""))
        found.append((f"local state, {arms}", "GET", f"/v1/bandits/{bandit}/local-state", lambda: ""))
    for what, rest in (
        ("events, 10,000", "small/events?limit=10000"), ("all events", "small/events?format=ndjson"),
        ("export", "small/export"), ("export, most draws", "ts/export?draws=100000"),
        ("export, Parquet", "small/export?format=parquet"),
    ):  # fmt: skip
        found.append((what, "GET", f"/v1/bandits/{rest}", lambda: ""))
    action = '{{"id":"{}","features":{}}}'
    listed = ",".join(f'"{number}":[1]' for number in range(900))
    empty = ",".join(f'"{number}":{{}}' for number in range(4000))
    long_empty = f'{{"{"n" * 20_000}":{{"{"m" * 1000}":{{{empty}}}}}}}'
    deep_lists = f'{{"a":{"[" * 300}{"]" * 300}}}'
    for name, objects in (
        ("joined names", f'[{{"{long_name}":{{{listed}}}}}]'),
        ("deep long names", "[" + f'{{"{long_name}":' * 400 + "1" + "}" * 400 + "]"),
        ("deep", f"[{deep}]"),
        ("nulls", f'[{{"a":[{",".join(["null"] * 200_000)}]}}]'),
        ("empty objects", f'[{{"a":[{",".join(["{}"] * 330_000)}]}}]'),
        ("fewer empty objects", f'[{{"a":[{",".join(["{}"] * 49_000)}]}}]'),
        ("texts", filled('[{"a":[', (f'"{one}"' for one in short_names()), "]}]", 1_000_000)),
        ("numbers", f'[{{"a":[{",".join(["1"] * 500_000)}]}}]'),
        ("a field twice", filled("[{", twice("1"), "}]", 1_000_000)),
        ("deep lists", "[" + filled("", endless(deep_lists), "]", 1_000_000)),
        ("long names of nothing", "[" + filled("", endless(long_empty), "]", 1_000_000)),
    ):  # fmt: skip
        actions = ",".join(action.format(one, "[]") for one in ("a", "b"))
        found.append(
            (
                f"personalizer context, {name}",
                "POST",
                rank,
                lambda objects=objects, actions=actions: f'{{"actions":[{actions}],"contextFeatures":{objects}}}',
            )
        )
    flat = "[{" + filled("", (f'"n{number:0>14}":1' for number in range(1000)), "}]", 19_800)
    found.append(
        (
            "personalizer, 50 new actions",
            "POST",
            rank,
            lambda: (
                '{"actions":['
                + ",".join(action.format(f"{time.monotonic_ns()}-{n}", flat) for n in range(49))
                + f'],"contextFeatures":{flat}}}'
            ),
        )
    )
    sw = ";".join(f"sw-lin-ucb:window={1000 + n}" for n in range(6))
    link = f"v=1&environment=logistic-drift&arms=100&policies={sw}&horizon=1000&replications=1&seed=1"
    large = ";".join(f"sw-lin-ucb:window={100_000 + n}" for n in range(6))
    for name, path, text in (
        ("six policies", "check", link), ("six large policies", "check", link.replace(sw, large)),
        ("run of six large policies", "run", link.replace(sw, large)),
        ("many fields", "check", "&".join(f"{name}=" for name, _ in zip(short_names(), range(4000), strict=False))),
        ("nested parameters", "check", f"v=1&policies=ts:prior={'[' * 8000}"),
    ):  # fmt: skip
        found.append((f"link, {name}", "POST", f"/playground/{path}", lambda text=text: json.dumps({"link": text})))
    return found


def inner(count: int) -> str:
    """Return an object with so many numbers."""
    names = short_names()
    return "{" + ",".join(f'"{next(names)}":1' for _ in range(count)) + "}"


def prepare(server: Running) -> list[str]:
    """Create the bandits, and return the ids of decisions."""
    port = int(server.url.rpartition(":")[2])
    send(port, "PUT", "/v1/bandits/other", json.dumps({"arms": ["a", "b"], "policy": "ucb"}))
    send(port, "PUT", "/v1/bandits/small", json.dumps({"arms": ["a", "b", "c"], "policy": "ucb"}))
    send(port, "PUT", "/v1/bandits/many",
         json.dumps({"arms": [str(number) for number in range(1000)], "policy": "ucb"}))  # fmt: skip
    send(port, "PUT", "/v1/bandits/wide", json.dumps({"arms": ["a", "b"], "policy": "lin-ucb", "features": WIDE}))
    ids = list[str]()
    for _ in range(9):
        made = json.loads(send(port, "POST", "/v1/bandits/small/decisions", '{"count":1000}'))["decisions"]
        ids += [one["decision"] for one in made]
    features = {f"x{number}": "number" for number in range(21)}
    some_arms = [str(number) for number in range(100)]
    send(port, "PUT", "/v1/bandits/models", json.dumps({"arms": some_arms, "policy": "auto", "features": features}))
    send(port, "PUT", "/v1/bandits/ts", json.dumps({"arms": [str(number) for number in range(200)], "policy": "ts"}))
    send(port, "POST", "/v1/bandits/ts/decisions", '{"count":2}')
    rank = {"actions": [{"id": one, "features": []} for one in ("a", "b")], "contextFeatures": []}
    send(port, "POST", "/v1/bandits/personal/personalizer/v1.0/rank", json.dumps(rank))
    return ids + ids[:1000]


def send(port: int, method: str, path: str, body: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, body.encode(), {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status < 500, content
    return b"%d %s" % (answer.status, content[:90]) if answer.status >= 300 else content


class Turns:
    """The longest turns of the event loop and of the writer, and the longest wait for the interpreter."""

    def __init__(self, service: Running) -> None:
        self._take, self._ended = service.service.writer.requests.take, False
        self._writer_at = math.inf
        self._longest = dict.fromkeys(("loop", "writer", "held"), 0.0)
        service.service.writer.requests.take = self._take_and_measure  # type: ignore[method-assign]
        loop = service.service.writer.requests.loop
        assert loop is not None
        loop.call_soon_threadsafe(self._turn, loop, math.inf)
        threading.Thread(target=self._wait_for_the_interpreter, daemon=True).start()

    def longest(self) -> dict[str, float]:
        """Return the longest times, in seconds of the processor, since this was asked before."""
        found, self._longest = self._longest, dict.fromkeys(self._longest, 0.0)
        return found

    def end(self) -> None:
        self._ended = True

    def _note(self, what: str, seconds: float) -> None:
        self._longest[what] = max(self._longest[what], seconds)

    def _turn(self, loop: asyncio.AbstractEventLoop, before: float) -> None:
        now = time.thread_time()
        self._note("loop", now - before)
        if not self._ended:
            loop.call_later(TICK, self._turn, loop, now)

    def _take_and_measure(self, most: int, wait: bool) -> Any:
        self._note("writer", time.thread_time() - self._writer_at)
        try:
            return self._take(most, wait)
        finally:
            self._writer_at = time.thread_time()

    def _wait_for_the_interpreter(self) -> None:
        while not self._ended:
            before = time.process_time()
            time.sleep(TICK)
            self._note("held", time.process_time() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="?", default="")
    only = parser.parse_args().only
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.setswitchinterval(SWITCH_SECONDS)  # as the command serve does, and the collector
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS)
    print(f"{'request':44} {'bytes':>9} {'loop':>6} {'writer':>6} {'held':>6} {'all':>6}  answer")
    with tempfile.TemporaryDirectory() as folder, running(open_store(f"sqlite:///{folder}/store.db")) as server:
        ids, port = prepare(server), int(server.url.rpartition(":")[2])
        turns = Turns(server)
        for name, method, path, make in rows(ids):
            if only not in name:
                continue
            tries = list[dict[str, float]]()
            for number in range(TRIES):
                body = make()
                time.sleep(5 * TICK)
                turns.longest()
                before = time.process_time() - time.thread_time()
                answer = send(port, method, path.format(number=number), body)
                taken = time.process_time() - time.thread_time() - before
                tries.append({**turns.longest(), "all": taken})
            shown = "".join(f" {1000 * min(one[what] for one in tries):6.0f}" for what in tries[0])
            print(f"{name[:44]:44} {len(body):9}{shown}  {answer[:70]!r}", flush=True)
        turns.end()


if __name__ == "__main__":
    main()
