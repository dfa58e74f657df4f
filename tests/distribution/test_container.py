"""The commands of the Containerfile, run in a scratch folder in place of an image: no registry is needed."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from distribution.archives import ROOT
from tools.waiting import PATIENCE

CONTAINERFILE = ROOT / "Containerfile"
FOLDERS = re.compile(r"(?<![\w/.])/(?=(?:opt|source|var)\b)")  # of the image that the build writes to
OFFLINE = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


class Instruction(NamedTuple):
    """A line of the Containerfile."""

    name: str
    text: str


def instructions() -> list[Instruction]:
    lines = CONTAINERFILE.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [Instruction(*line.split(" ", 1)) for line in lines if line.strip() and not line.startswith("#")]


class Image:
    """What a build would make: a folder in place of the root, the environment and the last commands."""

    def __init__(self, root: Path) -> None:
        self.root, self.work = root, root
        self.environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NUMBA_DISABLE_JIT": "1"}
        self.commands: dict[str, list[str]] = {}
        self.user = ""

    def within(self, text: str) -> str:
        """Return a text whose paths are inside of this folder."""
        return FOLDERS.sub(f"{self.root}/", text)

    def build(self) -> None:
        for name, text in instructions():
            match name:
                case "FROM" | "VOLUME" | "EXPOSE":
                    pass
                case "USER":
                    self.user = text
                case "COPY":
                    self.copy(text)
                case "RUN":
                    self.run(text)
                case "WORKDIR":
                    self.work = Path(self.within(text))
                case "ENV":
                    variable, _, value = text.partition("=")
                    self.environment[variable] = self.within(value)
                case "ENTRYPOINT" | "CMD":
                    self.commands[name] = json.loads(text)
                case "HEALTHCHECK":
                    self.commands[name] = json.loads(text.partition("CMD ")[2])
                case _:
                    pytest.fail(f"no test runs the instruction {name}")

    def copy(self, text: str) -> None:
        *sources, target = shlex.split(text)
        if sources[0].startswith("--from="):
            assert sources[1:] == [target], "both stages share this folder"
            return
        for source in sources:
            destination = Path(self.within(target))
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, destination, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                destination.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, destination)

    def run(self, text: str) -> None:
        if os.geteuid() != 0:  # only root may give a folder to another user
            text = re.sub(r" --(owner|group)=\d+", "", text)
        subprocess.run(["sh", "-euc", self.within(text)], check=True, env=self.environment | OFFLINE, cwd=self.root)
        for packages in self.root.glob("opt/*/lib/python*/site-packages"):  # without an index: those of the tests
            (packages / "tests.pth").write_text(str(Path(pytest.__file__).parents[1]) + "\n")

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start the entry point, as `podman run` would."""
        program = shutil.which(self.commands["ENTRYPOINT"][0], path=self.environment["PATH"])
        assert program is not None
        assert program.startswith(str(self.root)), "the program of the image, not that of the tests"
        return subprocess.Popen(
            [program, *arguments], env=self.environment, cwd=self.work, stdout=subprocess.PIPE, text=True
        )


def healthy(image: Image, port: int) -> list[str]:
    """Return the command that checks a service, for one that listens on this port and may be slow."""
    [command] = [part for part in image.commands["HEALTHCHECK"] if ":8000/" in part]
    assert "timeout=2)" in command
    changed = command.replace(":8000/", f":{port}/").replace("timeout=2)", f"timeout={PATIENCE})")
    return [changed if part == command else part for part in image.commands["HEALTHCHECK"]]


def test_the_image_serves_decisions(tmp_path: Path) -> None:
    image = Image(tmp_path)
    image.build()
    assert int(image.user.partition(":")[0]) > 0, "it does not run as root"
    created = image.start("keys", "create", "--role", "admin")
    key = created.communicate(timeout=PATIENCE)[0].strip()
    serving = image.start(*image.commands["CMD"], "--port", "0", "--patience", str(PATIENCE))
    try:
        assert serving.stdout is not None
        port = int(serving.stdout.readline().rpartition(":")[2])
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/bandits/b", method="PUT")
        request.add_header("Authorization", f"Bearer {key}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, b'{"arms": ["a", "b"]}') as answer:
            assert answer.status == 201
        subprocess.run(healthy(image, port), env=image.environment, check=True)
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE)
    assert serving.returncode == -15
    assert (tmp_path / "var/lib/dynabandit/dynabandit.db").exists()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nothing else listens on the port
        command = healthy(image, silent.getsockname()[1])
        assert subprocess.run(command, env=image.environment, capture_output=True, check=False).returncode != 0


def test_the_image_has_an_interpreter_and_files_of_the_project() -> None:
    pythons = {re.search(r"python:(\S+)-slim", text)[1] for name, text in instructions() if name == "FROM"}  # type: ignore[index]
    supported = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(pythons) == 1
    assert pythons <= set(supported)
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    copied = [shlex.split(text)[:-1] for name, text in instructions() if name == "COPY"]
    assert sent == {source for sources in copied for source in sources if not sources[0].startswith("--from=")}
