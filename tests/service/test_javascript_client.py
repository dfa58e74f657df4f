"""The JavaScript client, in Node and in Chromium, against the real service."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright._impl._driver import compute_driver_executable

import dynabandit as db
from dynabandit.client import Client
from dynabandit.service import api_types, monitoring_types
from dynabandit.service.domain.signed_units import read_signed_unit
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.stores.key_tables import add_key
from service.test_client import LosingRelay
from tools.browser import OpenPage
from tools.harness import ARMS, Running, running, status_of, talking
from tools.waiting import PATIENCE, wait_for

FOLDER = Path(str(files("dynabandit.service.web"))) / "javascript_client"
SCRIPT, TYPES = ((FOLDER / name).read_text(encoding="utf-8") for name in ("dynabandit.js", "dynabandit.d.ts"))
NODE = compute_driver_executable()[0]  # a Node that Playwright brings along
MAX_BYTES = 10_000
PAGE = (Path(__file__).parents[2] / "docs" / "javascript.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"
STORAGE = """
class MemoryStorage {
  entries = new Map();
  get length() { return this.entries.size; }
  key(index) { return [...this.entries.keys()][index]; }
  getItem(name) { return this.entries.get(name) ?? null; }
  setItem(name, value) { this.entries.set(name, value); }
  removeItem(name) { this.entries.delete(name); }
}
"""

# A client that does not give up on a busy machine
PATIENT = f"""
class Client extends UsualClient {{
  constructor(url, options) {{ super(url, {{ timeout: {PATIENCE}, ...options }}); }}
}}
"""


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


def run_node(code: str, **values: Any) -> Any:
    """Run a program in Node with the client and some constants, and return the JSON that it prints."""
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    address = json.dumps((FOLDER / "dynabandit.js").as_uri())
    program = f"import {{ Client as UsualClient, ServiceError }} from {address};\n{constants}{STORAGE}{PATIENT}{code}"
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# The files


def test_the_client_is_small_and_needs_nothing_else() -> None:
    assert len(SCRIPT.encode()) < MAX_BYTES
    assert not re.search(r"\bimport\b|\brequire\b", SCRIPT)


def test_the_package_has_the_version_of_the_library() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == db.__version__
    assert {FOLDER / name for name in [*package["files"], "package.json"]} == set(FOLDER.iterdir())


def test_the_types_declare_every_method() -> None:
    implemented = set(re.findall(r"^  (?:async )?([a-z]\w+)\(.*\) {$", SCRIPT, re.MULTILINE)) - {"constructor"}
    declared = set(re.findall(r"^  ([a-z]\w+)\(", TYPES.partition("export class Client")[2], re.MULTILINE))
    assert declared == implemented | {"constructor"}


@pytest.mark.parametrize(
    "answer",
    [api_types.Decision, api_types.RankedArm, api_types.Rewarded, api_types.GivenReward, api_types.RewardResult,
     monitoring_types.CountedMetrics],
)  # fmt: skip
def test_the_types_have_the_fields_of_the_api(answer: type[msgspec.Struct]) -> None:
    [body] = re.findall(rf"export interface {answer.__name__} {{\n(.*?)\n}}", TYPES, re.DOTALL)
    assert tuple(re.findall(r"^  (\w+)\??:", body, re.MULTILINE)) == answer.__struct_fields__


def block(kind: str) -> str:
    """Return the block of the documentation in this language."""
    [code] = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert isinstance(code, str)
    return code


@pytest.mark.promise(267)
def test_the_recipes_for_servers_sign_a_unit() -> None:
    secret = "0123456789abcdef" * 4
    given: dict[str, Any] = {"unit": "us\xe9r.17", "secret": secret}
    exec(compile(block("python"), "javascript.md", "exec"), given)
    found = run_node(
        f"{block('javascript')}\nconsole.log(JSON.stringify(signedUnit));", unit="us\xe9r.17", secret=secret
    )
    for signed in (given["signed_unit"], found):
        assert read_signed_unit(signed, secret) == "us\xe9r.17"
        assert 0 < int(signed.partition(".")[0]) - time.time() <= 86400


def test_the_documentation_names_every_method() -> None:
    for name in re.findall(r"^  ([a-z]\w+)\(", TYPES.partition("export class Client")[2], re.MULTILINE):
        assert name == "constructor" or f"| `{name}(" in PAGE, name


@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_the_client_can_be_installed_from_the_python_package(tmp_path: Path) -> None:
    script = block("sh").replace("python ", f"{sys.executable} ")
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    program = 'import { Client } from "dynabandit"; console.log(Client.name);'
    printed = subprocess.check_output([NODE, "--input-type=module", "--eval", program], cwd=tmp_path, text=True)
    assert printed == "Client\n"


# Node


def test_the_example_for_node_runs(server: Running) -> None:
    with talking(server.url) as (python, _):
        python.create("banner", ARMS)
        code = block("js").replace('import { Client } from "dynabandit";', "").replace(ADDRESS, server.url)
        run_node(code.replace("console.log(", "console.error(") + "console.log(1);")
        assert [event.kind for event in python.events("banner")] == ["create", "decision", "reward"]


def test_decisions_counts_contexts_units_rankings_rewards_and_metrics(server: Running) -> None:
    with talking(server.url) as (python, _):
        features = {"hour": "number", "country": "category"}
        guardrails = {"latency": {"bound": 0.5, "direction": "max"}}
        settings: dict[str, Any] = {
            "policy": "lin-ucb",
            "features": features,
            "sticky_for": 3600,
            "guardrails": guardrails,
        }
        python.create("shop/offer 1", ARMS, **settings)
        result = run_node(
            """
            const client = new Client(url + "/");
            const name = "shop/offer 1";
            const context = { hour: 14, country: "NO" };
            const first = await client.decide(name, { context, unit: "user-17", rank: 2, among: ["green", "blue"] });
            const again = await client.decide(name, { context, unit: "user-17", rank: 2, among: ["green", "blue"] });
            const many = await client.decideMany(name, 3, { context, key: "k" });
            const same = await client.decideMany(name, 3, { context, key: "k" });
            const taken = await client.reward(first.decision, true, { arm: first.ranking[1].arm });
            const named = await client.reward(many[0].decision, 0.5, { name });
            const rewards = many.slice(1).map((one) => ({ decision: one.decision, reward: 0 }));
            const statuses = await client.rewardMany([...rewards, { decision: "nobody", reward: 1 }], { name });
            const counted = await client.metrics(first.decision, { latency: 0.25 });
            console.log(JSON.stringify({ first, again, many, same, taken, named, statuses, counted }));
            """,
            url=server.url,
        )
        events = list(python.events("shop/offer 1"))
    first = msgspec.convert(result["first"], api_types.Decision)
    many = msgspec.convert(result["many"], list[api_types.Decision])
    assert first.ranking is not None
    assert {one.arm for one in first.ranking} == {"green", "blue"}
    assert (result["again"]["decision"], result["again"]["repeated"]) == (first.decision, True)
    assert result["same"] == result["many"]
    assert result["taken"] == {"decision": first.decision, "reward": 1.0, "arm": first.ranking[1].arm}
    assert result["named"] == {"decision": many[0].decision, "reward": 0.5}
    assert [one["status"] for one in result["statuses"]] == [200, 200, 404]
    assert result["counted"] == {"decision": first.decision, "metrics": {"latency": 0.25}}
    assert [one.unit for one in events if one.kind == "decision"] == ["user-17", None, None, None]
    assert {one.kind for one in events} >= {"reward", "metric"}


@pytest.mark.promise(262)
def test_lost_answers_are_asked_for_again_and_nothing_happens_twice(server: Running) -> None:
    relay = LosingRelay(server.url, losses=0)
    with talking(server.url) as (python, _):
        python.create("b", ARMS)
        relay.losses = 3
        run = 'console.log(JSON.stringify(await new Client(url).decide("b")));'
        decision = run_node(run, url=relay.url)
        assert (relay.losses, python.state("b").step, decision["step"]) == (0, 1, 1)
        relay.losses = 3
        run_node("console.log(JSON.stringify(await new Client(url).reward(id, 1)));", url=relay.url,
                 id=decision["decision"])  # fmt: skip
        assert [event.kind for event in python.events("b")] == ["create", "decision", "reward"]
    relay.listener.close()


def test_errors_have_the_status_and_the_message_of_the_service(server: Running) -> None:
    with talking(server.url) as (python, _):
        python.create("b", ARMS)
        decision = python.decide("b").decision
        python.reward(decision, 1)
        caught = run_node(
            """
            const client = new Client(url);
            const calls = [() => client.decide("nobody"), () => client.decideMany("b", 0), () => client.reward(id, 0),
                           () => client.metrics(id, { latency: 1 })];
            const caught = [];
            for (const call of calls) {
              await call().catch((error) => caught.push([error instanceof ServiceError, error.status, error.message]));
            }
            console.log(JSON.stringify(caught));
            """,
            url=server.url,
            id=decision,
        )
        calls: list[Callable[[], object]] = [
            lambda: python.decide("nobody"), lambda: python.decide_many("b", 0),
            lambda: python.reward(decision, 0), lambda: python.metrics(decision, {"latency": 1}),
        ]  # fmt: skip
        for call, (is_service_error, status, message) in zip(calls, caught, strict=True):
            with pytest.raises(db.ServiceError) as raised:
                call()
            assert (is_service_error, status, message) == (True, raised.value.status, str(raised.value))


class Scripted(BaseHTTPRequestHandler):
    """Answers with one status after the other; None closes the connection, and -1 leaves the caller waiting."""

    refusal = '{"problem": "not now"}'
    statuses: list[int | None]
    attempts: list[str]  # their paths
    release: threading.Event

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.statuses[min(len(self.attempts), len(self.statuses) - 1)]
        self.attempts.append(self.path)
        if status == -1:
            self.release.wait(PATIENCE)
        if status is None or status == -1:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Retry-After", "0.01")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"decision": "d", "reward": 1}' if status == 200 else self.refusal.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[Callable[..., tuple[str, type[Scripted]]]]:
    """Starts servers that answer as they are told."""
    started: list[tuple[HTTPServer, type[Scripted]]] = []

    def start(*statuses: int | None) -> tuple[str, type[Scripted]]:
        script = type("One", (Scripted,), {"statuses": statuses, "attempts": [], "release": threading.Event()})
        server = ThreadingHTTPServer(("127.0.0.1", 0), script)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append((server, script))
        return f"http://127.0.0.1:{server.server_port}", script

    yield start
    for server, script in started:
        script.release.set()
        server.shutdown()
        server.server_close()


REWARD_ONCE = """
const storage = new MemoryStorage();
const client = new Client(url, { storage, tries: 4, timeout });
const result = await client.reward("d", 1).catch((error) => [error.status, error.message]);
console.log(JSON.stringify([result, storage.length]));
"""


@pytest.mark.promise(262)
@pytest.mark.parametrize("statuses", [(429, 503, 200), (502, 504, 200), (None, 408, 200)])
def test_a_busy_service_is_asked_again(scripted: Any, statuses: tuple[int | None, ...]) -> None:
    url, script = scripted(*statuses)
    assert run_node(REWARD_ONCE, url=url, timeout=PATIENCE) == [{"decision": "d", "reward": 1}, 0]
    assert len(script.attempts) == 3


@pytest.mark.parametrize(
    ("status", "attempts", "message", "stored"),
    [
        (503, 4, "503: not now (in 4 tries)", 1),
        (409, 1, "409: not now", 0),
        (410, 1, "410: not now", 0),
        (401, 1, "401: not now", 1),
        (500, 1, "500: not now", 1),
    ],
)
def test_a_reward_is_stored_until_it_is_counted_or_refused_for_good(
    scripted: Any, status: int, attempts: int, message: str, stored: int
) -> None:
    url, script = scripted(status)
    assert run_node(REWARD_ONCE, url=url, timeout=PATIENCE) == [[status, message], stored]
    assert len(script.attempts) == attempts


@pytest.mark.promise(262)
@pytest.mark.parametrize("answer", ["<html>nothing here</html>", '{"message": "nothing here"}', "404", ""])
def test_a_proxy_does_not_refuse_a_reward_for_good(scripted: Any, answer: str) -> None:
    url, script = scripted(404)
    script.refusal = answer
    assert run_node(REWARD_ONCE, url=url, timeout=PATIENCE) == [[404, f"404: {answer}"], 1]


def test_without_an_answer_a_call_ends_after_the_timeout_of_its_last_try(scripted: Any) -> None:
    url, _ = scripted(-1)
    (status, problem), stored = run_node(REWARD_ONCE, url=url, timeout=0.1)
    assert (status, stored) == (0, 1)
    said = f"no answer to PUT /v1/decisions/d/reward from {url} in 4 tries: "
    assert problem.startswith(said)
    assert "timeout" in problem


@pytest.mark.promise(262)
def test_stored_rewards_are_sent_when_the_service_is_back_and_count_once(server: Running) -> None:
    with talking(server.url) as (python, _):
        python.create("b", ARMS)
        made = [one.decision for one in python.decide_many("b", 3)]
        result = run_node(
            """
            const storage = new MemoryStorage();
            const isDown = { fetch: () => Promise.reject(new TypeError("fetch failed")) };
            const { fetch } = globalThis;
            globalThis.fetch = isDown.fetch;
            const client = new Client(url, { storage, tries: 1 });
            const failed = await Promise.allSettled([client.reward(ids[0], 1), client.rewardMany([
              { decision: ids[1], reward: 0 }, { decision: ids[2], reward: 1 }])]);
            const before = [await client.flush(), storage.length];
            storage.setItem(`dynabandit ${url} damaged`, "{");
            storage.setItem("of something else", "{");
            globalThis.fetch = fetch;
            const left = await new Client(url, { storage }).flush();
            console.log(JSON.stringify([failed.map((one) => one.reason.status), before, left, storage.length]));
            """,
            url=server.url,
            ids=made,
        )
        assert result == [[0, 0], [2, 2], 0, 1]
        assert [event.reward for event in python.events("b", kind="reward")] == [1.0, 0.0, 1.0]


@pytest.mark.promise(262)
def test_stored_rewards_wait_behind_one_that_fails_and_are_not_kept_for_ever(scripted: Any) -> None:
    url, script = scripted(401)
    result = run_node(
        """
        const storage = new MemoryStorage();
        const put = (name, time, key) => storage.setItem(`dynabandit ${url} ${name}`, JSON.stringify(
          { method: "PUT", path: `/v1/decisions/${name}/reward`, body: '{"reward": 1}', time, key }));
        const days = 24 * 3600_000;
        const now = Date.now();
        put("old", now - 31 * days);
        put("late", now - 29 * days);
        for (let at = 0; at < 1000; at++) put(`d${at}`, now - at);
        const client = new Client(url, { storage, key: "dyna_0123_secret" });
        const left = [await client.flush()];
        const has = (name) => storage.getItem(`dynabandit ${url} ${name}`) !== null;
        const kept = ["old", "late", "d999", "d998", "d0"].map(has);
        await client.reward("another", 1).catch(() => {});
        left.push(storage.length, has("d999"));
        console.log(JSON.stringify([kept, left]));
        """,
        url=url,
    )
    assert result == [[False, False, True, True, True], [1000, 1000, False]]
    assert len(script.attempts) == 2, "of all stored rewards one was sent, and then the new one"


@pytest.mark.promise(262)
def test_rewards_of_another_key_come_last(scripted: Any) -> None:
    url, script = scripted(200, 404, 200)
    assert run_node(
        """
        const storage = new MemoryStorage();
        const body = '{"reward": 1}';
        for (const [time, key] of [[1, "other"], [2, "0123"], [3, "other"]]) {
          storage.setItem(`dynabandit ${url} ${time}`, JSON.stringify(
            { method: "PUT", path: `/v1/decisions/${time}/reward`, body, time: Date.now() + time, key }));
        }
        console.log(await new Client(url, { storage, key: "dyna_0123_secret" }).flush());
        """,
        url=url,
    ) == 2  # fmt: skip
    assert script.attempts == ["/v1/decisions/2/reward", "/v1/decisions/1/reward"]


@pytest.mark.promise(262)
def test_what_a_key_may_not_send_is_not_kept_and_holds_nothing_back(scripted: Any) -> None:
    url, script = scripted(403, 200, 403)
    left = run_node(
        """
        const storage = new MemoryStorage();
        const body = '{"reward": 1}';
        for (const [time, key] of [[1, "0123"], [2, "0123"], [3, "other"]]) {
          storage.setItem(`dynabandit ${url} ${time}`, JSON.stringify(
            { method: "PUT", path: `/v1/decisions/${time}/reward`, body, time: Date.now() + time, key }));
        }
        console.log(await new Client(url, { storage, key: "dyna_0123_secret" }).flush());
        """,
        url=url,
    )
    assert (left, script.attempts) == (1, [f"/v1/decisions/{time}/reward" for time in (1, 2, 3)]), "one is of another"


@pytest.mark.promise(262)
def test_of_several_rewards_those_are_kept_that_may_still_be_counted() -> None:
    sent, statuses, stored = run_node(
        """
        const sent = [];
        let statuses = [200, 500, 409, 503];
        globalThis.fetch = async (_, { body }) => {
          const { rewards } = JSON.parse(body);
          sent.push(rewards.map((one) => one.decision));
          return Response.json({ results: rewards.map(({ decision }, at) => ({ decision, status: statuses[at] })) });
        };
        const storage = new MemoryStorage();
        const client = new Client(url, { storage });
        const results = await client.rewardMany(["a", "b", "c", "d"].map((decision) => ({ decision, reward: 1 })));
        const stored = [storage.length];
        statuses = [500, 200];
        stored.push(await client.flush());
        statuses = [404];
        stored.push(await client.flush());
        console.log(JSON.stringify([sent, results.map((one) => one.status), stored]));
        """,
        url="http://127.0.0.1:9",
    )
    assert sent == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
    assert (statuses, stored) == ([200, 500, 409, 503], [1, 1, 0])


@pytest.mark.promise(262)
def test_clients_with_other_keys_leave_rewards_that_they_may_not_send(store: "Store") -> None:
    (other, other_row), (newer, newer_row) = new_key("page", namespace="other"), new_key("page")
    add_key(store.server.service.store, other_row)
    add_key(store.server.service.store, newer_row)
    store.admin.create("shop/b", ARMS)
    made = [one.decision for one in store.admin.decide_many("shop/b", 2)]
    with talking(store.server.url, newer) as (python, _):
        wait_for(lambda: status_of(python.reward, "nobody", 1) == 404)
    result = run_node(
        """
        const storage = new MemoryStorage();
        const { fetch } = globalThis;
        globalThis.fetch = () => Promise.reject(new TypeError("fetch failed"));
        const client = new Client(url, { storage, key, tries: 1 });
        await client.reward(ids[0], 1).catch(() => {});
        await client.reward("nobody", 1).catch(() => {});
        globalThis.fetch = fetch;
        const left = [];
        left.push(await new Client(url, { storage, key: other }).flush());
        left.push(await new Client(url, { storage, key: newer }).flush());
        left.push(await new Client(url, { storage, key }).flush());
        storage.setItem(`dynabandit ${url} earlier`, JSON.stringify(
          { method: "PUT", path: `/v1/decisions/${ids[1]}/reward`, body: '{"reward": 0}' }));
        left.push(await new Client(url, { storage, key }).flush());
        console.log(JSON.stringify(left));
        """,
        url=store.server.url, key=store.key, other=other, newer=newer, ids=made,
    )  # fmt: skip
    assert result == [2, 1, 0, 0], "another namespace, another key of the same one, the same key; an earlier release"
    assert [event.reward for event in store.admin.events("shop/b", kind="reward")] == [1.0, 0.0]
    store.admin.delete("shop/b", erase=True)


@pytest.mark.parametrize("answer", ["<html>", "{}", "true"])
def test_something_that_is_not_the_service_is_an_error(answer: str) -> None:
    problem, stored = run_node(
        """
        globalThis.fetch = async () => new Response(answer);
        const storage = new MemoryStorage();
        const problem = await new Client(url, { storage }).reward("d", 1).catch((error) => error.message);
        console.log(JSON.stringify([problem, storage.length]));
        """,
        url="http://127.0.0.1:9",
        answer=answer,
    )
    assert problem == f"200: the answer to PUT /v1/decisions/d/reward is not dynabandit's: {answer}"
    assert stored == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('new Client("localhost:8000")', "url must be like https://decisions.example.com, got localhost:8000"),
        ('new Client("/decisions")', "url must be like https://decisions.example.com, got /decisions"),
        ("new Client(url, { tries: 0 })", "tries must be a whole number of at least 1, got 0"),
        ("new Client(url, { timeout: -1 })", "timeout must be above 0 seconds, got -1"),
        ('await new Client(url).reward("d", NaN)', "reward must be a number, got NaN"),
        ('await new Client(url).reward("d", "1")', "reward must be a number, got 1"),
        ('await new Client(url).metrics("d", { latency: null })', "latency must be a number, got null"),
        ("await new Client(url).decide()", "name must be the name of a bandit, got undefined"),
        ('await new Client(url).decideMany("", 2)', "name must be the name of a bandit, got "),
        ('await new Client(url).reward("d", 1, { name: null })', "name must be the name of a bandit, got null"),
        ('new Client(url, { key: "dyna_\u2026" })', "key must have 1 to 255 printable ASCII characters"),
        ('new Client(url, { key: "dyna_1\\n_2" })', "key must have 1 to 255 printable ASCII characters"),
        ('await new Client(url).decide("b", { key: "\u00fc" })', "key must have 1 to 255 printable ASCII characters"),
        ("await new Client(url).reward({}, 1)", "decision must be the id of a decision, its field `decision`"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(code: str, message: str) -> None:
    program = f"try {{ {code} }} catch (error) {{ console.log(JSON.stringify([error.name, error.message])) }}"
    program = f"globalThis.fetch = () => process.exit(1); {program}"
    assert run_node(program, url="http://127.0.0.1:9") == ["TypeError", message]


# Chromium


class Shop(BaseHTTPRequestHandler):
    """Another web server, with a single page."""

    page = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, *_: Any) -> None:
        pass


class Store:
    """A service with keys, the pages of a shop that may call it, and those of another site that may not."""

    def __init__(self, server: Running, key: str, admin: Client, port: int) -> None:
        self.server, self.key, self.admin = server, key, admin
        self.page, self.other_page = f"http://127.0.0.1:{port}/", f"http://localhost:{port}/"

    @property
    def secret(self) -> str:
        """With which the server of the shop signs units."""
        return self.server.service.store.decision_ids().unit_secret(self.key.split("_")[1])

    def script(self, code: str) -> str:
        """Return code that makes a client in a page, loaded from the service."""
        return f"""async () => {{
          const {{ Client, ServiceError }} = await import("{self.server.url}/client/dynabandit.js");
          const key = "{self.key}";
          const connect = (options) => new Client("{self.server.url}", {{ key, timeout: {PATIENCE}, ...options }});
          {code}
        }}"""

    def rewards(self) -> list[float | None]:
        return [event.reward for event in self.admin.events("b", kind="reward")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    opened = open_store(f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db")
    opened.prepare()
    (key, row), (admin, admin_row) = new_key("page"), new_key("admin")
    add_key(opened, row)
    add_key(opened, admin_row)
    origin = f"http://127.0.0.1:{shop.server_port}"
    with (
        running(opened, needs_keys=True, allowed_origins=[origin]) as server,
        talking(server.url, admin) as (client, _),
    ):
        yield Store(server, key, client, shop.server_port)
    shop.shutdown()
    shop.server_close()


@pytest.fixture
def bandit(store: Store) -> Iterator[Store]:
    store.admin.create("b", ARMS)
    yield store
    store.admin.delete("b", erase=True)


@pytest.mark.promise(260)
def test_a_page_of_another_origin_decides_and_rewards(bandit: Store, open_page: OpenPage) -> None:
    visit = open_page(bandit.page)
    found = visit.page.evaluate(
        bandit.script("""
          const client = connect({ key: `${key}\\n` }); // as a file ends, which `fetch` accepts
          const decision = await client.decide("b");
          await client.reward(decision.decision, 1);
          const problem = await client.decide("nobody").catch((error) => error.message);
          return [decision, problem, localStorage.length];
        """)
    )
    assert found[0]["arm"] in ARMS
    assert found[1:] == ["404: there is no bandit 'nobody'", 0]
    assert bandit.rewards() == [1.0]
    assert [text for text in visit.errors if "404" not in text] == []


def test_the_example_for_pages_runs(bandit: Store, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit.admin.create("banner", ARMS)
    signed = db.sign_unit("6f1d0c2e9ab4", bandit.secret)
    text = block("html").replace(ADDRESS, bandit.server.url).replace("dyna_...", bandit.key)
    text = text.replace("SIGNED_UNIT", signed)
    monkeypatch.setattr(Shop, "page", text)
    page = open_page(bandit.page).page
    page.wait_for_function("() => document.getElementById('offer').onclick")
    page.click("#offer")
    wait_for(lambda: len(list(bandit.admin.events("banner", kind="reward"))) == 1)
    [decision] = bandit.admin.events("banner", kind="decision")
    assert (decision.unit, decision.arm) == ("6f1d0c2e9ab4", page.text_content("#offer"))


@pytest.mark.promise(261)
def test_a_page_of_an_origin_that_is_not_allowed_cannot(bandit: Store, open_page: OpenPage) -> None:
    visit = open_page(bandit.other_page)
    calls = f"""async () => {{
      const loaded = await import("{bandit.server.url}/client/dynabandit.js").then(() => true, () => false);
      const headers = {{ "Content-Type": "application/json", Authorization: "Bearer {bandit.key}" }};
      const call = fetch("{bandit.server.url}/v1/bandits/b/decisions", {{ method: "POST", body: "{{}}", headers }});
      return [loaded, await call.then(() => true, () => false)];
    }}"""
    assert visit.page.evaluate(calls) == [False, False]
    assert bandit.admin.state("b").step == 0


@pytest.mark.promise(263)
def test_a_reward_arrives_although_its_page_is_left_at_once(bandit: Store, open_page: OpenPage) -> None:
    page = open_page(bandit.page).page
    page.evaluate(bandit.script('const c = connect(); window.c = c; window.d = await c.decide("b"); await c.flush();'))
    with page.expect_navigation(url="about:blank"):  # a context that closes meanwhile may never be closed
        page.evaluate('() => { void window.c.reward(window.d.decision, 1); location.href = "about:blank"; }')
    wait_for(lambda: bandit.rewards() == [1.0])


ONE_BUSY_ANSWER = """
  const { fetch } = window;
  window.tried = 0;
  window.fetch = (...call) => window.tried++ ? fetch(...call)
    : Promise.resolve(new Response("{}", { status: 503, headers: { "Retry-After": "1000" } }));
"""


@pytest.mark.promise(263)
def test_a_reward_that_waits_for_its_next_try_is_sent_when_the_page_is_left(bandit: Store, open_page: OpenPage) -> None:
    page = open_page(bandit.page).page
    decide = f'const client = connect(); const made = await client.decide("b"); {ONE_BUSY_ANSWER}'
    page.evaluate(bandit.script(f"{decide} void client.reward(made.decision, 1);"))
    page.wait_for_function("() => window.tried === 1")
    assert bandit.rewards() == []
    page.goto("about:blank")
    wait_for(lambda: bandit.rewards() == [1.0])


@pytest.mark.promise(263)
def test_the_next_page_sends_what_the_last_one_could_not(bandit: Store, open_page: OpenPage) -> None:
    page = open_page(bandit.page).page
    lose = 'window.fetch = () => Promise.reject(new TypeError("no network"));'
    reward = 'const status = await client.reward(made.decision, 1, { name: "b" }).catch((error) => error.status);'
    found = page.evaluate(
        bandit.script(
            f'const client = connect({{ tries: 1 }}); const made = await client.decide("b"); {lose} {reward}'
            "return [status, localStorage.length, Object.values(localStorage).join().includes('dyna_')];"
        )
    )
    assert found == [0, 1, False]  # the key is not stored
    page.reload()
    page.evaluate(bandit.script("connect();"))
    page.wait_for_function("() => localStorage.length === 0")
    assert bandit.rewards() == [1.0]
