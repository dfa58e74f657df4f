"""The page about the service cannot drift from it."""

import inspect
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dynabandit import Client
from dynabandit.service import admission, export, field_types, writer
from dynabandit.service.command_line import app
from dynabandit.service.domain import decision_details, decisions, names, open_decisions, unit_of_work, warm_start
from dynabandit.service.http import connections, limits, server
from dynabandit.service.http.routes import ENDPOINTS
from dynabandit.service.keys import ROLES
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.service import Service
from dynabandit.service.stores import open_store
from tools.harness import running, talking, wait_longer

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()


def test_the_page_names_every_call_with_its_role() -> None:
    for endpoint in ENDPOINTS:
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{endpoint.id}` |"))
        assert line.endswith(f"| {endpoint.permission or 'none'} |"), line
        for query in endpoint.query:
            assert f"`{query.name}" in line, query.name


def test_the_page_names_every_command_option_role_and_metric() -> None:
    command: Any = typer.main.get_command(app)
    for name, sub in command.commands.items():
        for inner in getattr(sub, "commands", {"": sub}):
            assert f"dynabandit {name} {inner}".strip() in PAGE
    for option in command.commands["serve"].params:
        assert f"`{option.opts[0]}`" in PAGE
    for role in ROLES:
        assert f"`{role}`" in PAGE
    for family in ServiceMetrics().registry.collect():
        suffix = "_total" if family.type == "counter" else ""
        assert f"`{family.name}{suffix}`" in PAGE


def test_the_page_states_the_limits() -> None:
    for limit in (field_types.MAX_ARMS, field_types.MAX_DECISIONS, field_types.MAX_REWARDS, names.MAX_NAME,
                  unit_of_work.SNAPSHOT_EVERY, decisions.MAX_DRAWS, decisions.MAX_CONTEXTS, export.MAX_DRAWS,
                  warm_start.MAX_STATE, open_decisions.MAX_OPEN, decision_details.MAX_CONTEXT, admission.MAX_WAITING,
                  admission.ALWAYS_ADMITTED, admission.MAX_EVENTS_WAITING, limits.MAX_CONNECTIONS):  # fmt: skip
        assert f"{limit:,}" in PAGE


@pytest.mark.promise(59, 60, 66, 91)
def test_the_page_states_the_limits_of_connections_and_commits(sqlite_url: str) -> None:
    waits = connections.USUAL_LIMITS
    limits_of_connections = (
        f"closed after {waits.keep_alive} seconds",
        f"within {waits.request:g} seconds (otherwise 408)",
        f"at most {connections.MAX_HEAD >> 10} KiB (otherwise 431)",
        f"at most {connections.MAX_PIPELINED} requests",
        f"takes no byte of an answer for {waits.write:g} seconds",
        f"and {server.OTHER_FILES} more",
        f"up to {writer.MAX_REQUESTS} calls per commit",
    )
    words = " ".join(PAGE.split())
    assert [text for text in limits_of_connections if text not in words] == []
    config = server.make_server(Service(open_store(sqlite_url))).config
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (waits.keep_alive, waits.shutdown)
    snapshots = inspect.signature(Service).parameters["snapshot_seconds"].default
    assert (waits.shutdown, waits.stop_request, snapshots, waits.stop) == (7, 1, 2, 10)
    assert "Calls in progress are answered, for at most seven seconds" in words
    assert "at the latest ten seconds after it. A request of which a part is missing is given one second" in words


def test_every_promise_has_a_test_and_every_such_test_names_a_promise() -> None:
    promised = [int(number) for number in re.findall(r"\*\*P(\d+)\b", PAGE)]
    assert sorted(promised) == sorted(set(promised)), "a number is used twice"
    named = set[int]()
    for path in Path(__file__).parents[1].rglob("test_*.py"):
        for numbers in re.findall(r"^@pytest\.mark\.promise\((.*)\)$", path.read_text(), re.MULTILINE):
            named.update(int(number) for number in numbers.split(","))
    assert named == set(promised)


def test_the_examples_run(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_longer(monkeypatch)
    monkeypatch.chdir(tmp_path)  # for the files of a local decider
    monkeypatch.setattr("dynabandit.service.domain.local_bandit.MAX_BLOCK", 1)  # blocks take long to compile
    with running(open_store(sqlite_url)) as server:
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(compile(block.replace("http://127.0.0.1:8000", server.url), "docs/service.md", "exec"), {})
        with talking(server.url) as (_, http):
            for place, block in enumerate(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)):
                assert http.put(f"/v1/bandits/documented-{place}", content=block, headers={
                    "Content-Type": "application/json"}).status_code == 201  # fmt: skip
    assert re.search(r"^show (red|green|blue)$", capsys.readouterr().out, re.MULTILINE)


def test_the_page_about_the_lift_has_the_measured_numbers() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page, measured = (docs / "lift.md").read_text(), json.loads((docs / "measured" / "lift-coverage.json").read_text())
    rows = [
        *(f"| {name} | {100 * one['missed']:.1f} % | {one['width_relative_to_one_look']:.1f} |"
          for name, one in measured["lift"].items()),
        *(f"| {name} | {100 * one['false_alarms']:.1f} % | {one['median_delay']:,.0f} |"
          for name, one in measured["guardrails"].items()),
        *(f"| {name} | {100 * one['false_alarms']:.1f} ± {100 * one['error']:.1f} % |"
          for name, one in measured["unranged"].items()),
        *(f"| {name} | {one['median_at_start']:,.0f} | {one['median_late']:,.0f} |"
          for name, one in measured["unranged"].items() if " x " not in name),
        *(f"| {name} | {100 * rate:.1f} % |" for name, rate in measured["sample_ratio"].items()),
    ]  # fmt: skip
    assert [row for row in rows if row not in page] == []
    assert all(one["missed"] <= 0.05 for one in measured["lift"].values())
    assert all(one["false_alarms"] <= 0.05 for kind in ("guardrails", "unranged") for one in measured[kind].values())


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_calls_from_a_shell_decide_and_reward(sqlite_url: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    with running(open_store(sqlite_url)) as server:
        script = block.replace("http://127.0.0.1:8000", server.url)
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, check=True)
        with talking(server.url) as (client, _):
            state = client.state("shelf")
            rewards = list(client.events("shelf", kind="reward"))
    assert state.step == 1
    assert [arm.arm for arm in state.arms if arm.plays] == [event.arm for event in rewards]
    assert (state.held, [event.reward for event in rewards]) == (1, [1.0])


def test_the_page_names_every_method_of_a_client() -> None:
    for name in vars(Client):
        assert name.startswith("_") or name == "close" or f"`{name}(" in PAGE, name
