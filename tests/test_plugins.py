"""Policies and environments of other packages: installed with entry points, or given as module:Class."""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import dynabandit as db
from dynabandit import plugins
from dynabandit.experiments import dumps, loads
from dynabandit.policies import MEMORIES, POLICIES, register, registered_name, use_plugin, used_plugins
from dynabandit.service.stores import open_store
from dynabandit.service.web import playground_workers
from tools.command_line import invoke
from tools.harness import assert_replay_agrees, running

SOURCES = Path(db.__file__).parents[1]
POLICY = '''
import dynabandit as db


class Latest(db.PythonPolicy):
    """Play the arm whose exponentially weighted mean is largest.

    Parameters
    ----------
    rate
        The weight of the newest reward.
    """

    name = "latest"
    slots = ("mean",)

    burn_in: int = 1
    rate: float = 0.1

    def choose(self, arms, step):
        return step.argmax(arms.mean)

    def update(self, arms, arm, reward):
        arms.mean[arm] += self.rate * (reward - arms.mean[arm])


class Unlisted(Latest):
    name = "unlisted"
'''
ENVIRONMENT = '''
from dataclasses import dataclass

from dynabandit.core.compilation import kernel
from dynabandit.environments import Environment, EnvironmentFunctions


@kernel
def start(state, arm, step, params):
    state[0, arm] = 0.0


@kernel
def advance(state, arm, step, params):
    return 0.2 if (step.number // 10 + arm) % 2 == 0 else 0.8


@dataclass(frozen=True, kw_only=True)
class Turns(Environment):
    """Two levels that change places every ten steps."""

    name = "turns"
    slots = ("unused",)
    functions = EnvironmentFunctions(start, advance)
'''
ENTRY_POINTS = """
[dynabandit.policies]
latest = own_bandits.policies:Latest
renamed = own_bandits.policies:Latest
broken = own_bandits.missing:Latest
number = math:pi

[dynabandit.environments]
turns = own_bandits.worlds:Turns
"""


def make_wheel(folder: Path, name: str, entry_points: str) -> Path:
    """Return a wheel with the modules above."""
    information = f"{name}-1.5.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{name}/policies.py": POLICY,
        f"{name}/worlds.py": ENVIRONMENT,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.5\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": entry_points,
    }
    path = folder / f"{name}-1.5-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        record = "".join(f"{file},,\n" for file in [*files, f"{information}/RECORD"])
        archive.writestr(f"{information}/RECORD", record)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    folder = tmp_path_factory.mktemp("plugins")
    wheel = make_wheel(folder, "own_bandits", ENTRY_POINTS)
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet", "--no-cache-dir"]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        with zipfile.ZipFile(wheel) as archive:  # an environment without pip; it would unpack the wheel, too
            archive.extractall(folder / "site")
    else:
        subprocess.run([*command, "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()
    for name in [one for one in sys.modules if one.startswith("own_bandits")]:
        del sys.modules[name]
    POLICIES.pop("latest", None)


def run(site: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that sees the package."""
    path = os.pathsep.join([str(SOURCES), str(site)])
    settings = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "COLUMNS": "200", "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "dynabandit", *arguments]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.usefixtures("installed")
def test_an_installed_policy_and_environment_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    before = set(sys.path)
    policy, environment = db.policy("latest", rate=0.3), db.environment("turns", arms=3)
    assert (policy.label, environment.arms) == ("latest(rate=0.3)", 3)
    assert db.simulate("latest", environment, horizon=40, seed=1).horizon == 40
    bandit = db.Bandit("latest", arms=["a", "b"], seed=1, rate=0.2)
    assert db.Bandit.from_json(bandit.to_json()).policy == db.policy("latest", rate=0.2)
    assert set(sys.path) == before, "the current folder is not trusted because of a name"
    with pytest.raises(TypeError, match=r"policy 'latest' has no parameter 'rat'. Did you mean 'rate'\?"):
        db.policy("latest", rat=0.3)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("broken", r"plug-in 'broken' of own-bandits 1.5: there is no module 'own_bandits.missing'$"),
        ("renamed", r"plug-in 'renamed' of own-bandits 1.5: Latest.name must be 'renamed', got 'latest'"),
        ("number", r"plug-in 'number' of own-bandits 1.5 must be a class derived from Policy, got 3.14"),
        ("lates", r"unknown policy 'lates'. Did you mean 'latest'\?"),
        ("own_bandits.policies:Latest", "unknown policy 'own_bandits.policies:Latest'"),  # text may come from anywhere
    ],
)
def test_a_plug_in_that_cannot_be_used_says_why(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        db.policy(name)


@pytest.mark.usefixtures("installed")
def test_a_name_of_two_packages_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(make_wheel(tmp_path, "other_bandits", ENTRY_POINTS)) as archive:
        archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.installed.cache_clear()
    with pytest.raises(ValueError, match=r"'latest' is provided by several packages: other-bandits 1.5, own-bandits"):
        db.policy("latest")


@pytest.mark.usefixtures("installed")
def test_specs_name_classes_of_other_packages_so_that_they_can_be_read_again() -> None:
    policies = '"latest", "own_bandits.policies:Unlisted:rate=0.5"'
    spec = loads(f'[[experiments]]\nid = "one"\nenvironment = "own_bandits.worlds:Turns"\npolicies = [{policies}]\n')
    assert [one.label for one in spec.experiments[0].policies] == ["latest", "unlisted(rate=0.5)"]
    assert loads(dumps(spec)).experiments == spec.experiments
    tables = spec.as_dict()["experiments"][0]
    assert [one["name"] for one in tables["policies"]] == ["latest", "own_bandits.policies:Unlisted"]
    assert tables["environment"]["name"] == "turns"


def test_a_registered_class_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(db.PythonPolicy):
        name = "mine"

    class UCB(db.PythonPolicy):
        name = "ucb"

    monkeypatch.setattr(db.policies, "POLICIES", dict(POLICIES))
    assert register(Mine) is Mine
    assert isinstance(db.policy("mine", burn_in=2), Mine)
    assert registered_name("mine") == "mine"
    with pytest.raises(ValueError, match=r"UCB.name must not be that of another policy, got 'ucb'"):
        register(UCB)


def test_the_command_line_uses_an_installed_package_and_a_file_in_the_current_folder(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(POLICY, encoding="utf-8")
    options = ["--env", "turns", "--horizon", "40", "--replications", "2"]
    done = run(site, "compare", *options, "latest", "mine:Unlisted:rate=0.5", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "latest" in done.stdout
    assert "unlisted(rate=0.5)" in done.stdout


@pytest.mark.usefixtures("installed")
def test_the_command_line_lists_what_is_installed() -> None:
    listed = invoke("list")
    assert "Policies of other packages\n  latest  Play the arm whose exponentially weighted mean" in listed.stdout
    assert "rate = 0.1: The weight of the newest reward" in listed.stdout
    assert "Environments of other packages\n  turns  Two levels" in listed.stdout
    assert "plug-in 'broken' of own-bandits 1.5: there is no module" in listed.stderr


@pytest.mark.usefixtures("installed")
def test_a_class_that_does_not_exist_is_a_mistake_in_one_line() -> None:
    wrong = invoke("compare", "--env", "case-1", "own_bandits.policies:Latst")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("module 'own_bandits.policies' has no attribute 'Latst'\n")
    assert wrong.stderr.count("\n") == 1


@pytest.mark.usefixtures("installed")
def test_a_service_uses_only_the_plug_ins_that_were_allowed(tmp_path: Path) -> None:
    with plugins.disabled(), running(open_store(f"sqlite:///{tmp_path}/own.db")) as server:
        with db.Client(server.url) as client:
            with pytest.raises(db.ServiceError, match="'latest' is a plug-in, which this service does not use"):
                client.create("banner", arms=["a", "b"], policy="latest")
            with pytest.raises(db.ServiceError, match=r"unknown policy 'own_bandits.policies:Latest'"):
                client.create("banner", arms=["a", "b"], policy="own_bandits.policies:Latest")
            assert "own_bandits.policies" not in sys.modules
            register(plugins.load("own_bandits.policies:Latest", db.Policy))
            client.create("banner", arms=["a", "b"], policy="latest", parameters={"rate": 0.5})
            client.reward(client.decide("banner").decision, 1)
            assert client.state("banner").parameters["rate"] == 0.5
    assert db.policy("latest").label == "latest"  # enabled again


def test_classes_of_parts_can_be_named_on_the_command_line_and_in_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "tutorials" / "algorithm.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(# my_memory.py\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "my_memory.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        arguments = ("--env", "case-1", "--horizon", "50", "--replications", "1")
        done = invoke("compare", *arguments, "ots + my_memory:Recent:rate=0.1", "ts")
        assert done.exit_code == 0, done.output
        assert "ots + recent(rate=0.1)" in done.stdout
        assert used_plugins() == ["my_memory:Recent"]  # what previews and the playground start their processes with
    finally:
        MEMORIES.pop("recent", None)
        sys.modules.pop("my_memory", None)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_service_composes_policies_only_if_its_operator_allows_it(tmp_path: Path, allowed: bool) -> None:
    store = f"sqlite:///{tmp_path}/own.db"
    with plugins.disabled(compositions=allowed), running(open_store(store)) as server, db.Client(server.url) as client:
        client.create("named", arms=["a", "b"], policy="kl-ucb + sample-mean")  # this is "kl-ucb"
        assert client.state("named").policy == "kl-ucb"
        menus = httpx.get(f"{server.url}/pages/policies").raise_for_status().json()["parts"]
        described = httpx.get(f"{server.url}/pages/policy?name=hoeffding+%2B+window").raise_for_status().json()
        assert (menus is not None, "policy" in described) == (allowed, allowed)
        in_playground = httpx.get(f"{server.url}/playground/policy?name=hoeffding+%2B+window").raise_for_status()
        assert in_playground.json()["policy"]["parts"] == {"memory": "window", "rule": "hoeffding", "detector": ""}
        if not allowed:
            with pytest.raises(db.ServiceError, match="start it with --allow-compositions"):
                client.create("banner", arms=["a", "b"], policy="hoeffding + window", parameters={"window": 5})
            return
        client.create("banner", arms=["a", "b"], policy="hoeffding + window", parameters={"window": 5})
        for _ in range(20):
            client.reward(client.decide("banner").decision, 1)
        assert (client.state("banner").policy, client.state("banner").parameters["window"]) == ("hoeffding + window", 5)
    assert_replay_agrees(store)


@pytest.mark.usefixtures("installed")
def test_a_service_without_the_plug_in_of_a_bandit_says_so(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/own.db"
    use_plugin("own_bandits.policies:Unlisted")
    with running(open_store(store)) as server, db.Client(server.url) as client:
        client.create("banner", arms=["a", "b"], policy="unlisted")
        client.decide("banner")
    del POLICIES["unlisted"]
    missing = "policy 'unlisted' is not known here; if another package provides it, name it with --plugin"
    for snapshots in (True, False):
        if not snapshots:
            with sqlite3.connect(tmp_path / "own.db") as database:
                assert database.execute("DELETE FROM snapshots").rowcount
        with running(open_store(store)) as server, db.Client(server.url) as client:
            with pytest.raises(db.ServiceError, match=missing):
                client.decide("banner")
    done = invoke("verify", "--store", store)
    assert done.exit_code == 1
    assert missing in done.output
    done = invoke("verify", "--store", store, "--plugin", "own_bandits.policies:Unlisted")
    assert done.exit_code == 0, done.output
    del POLICIES["unlisted"]


def test_the_playground_runs_the_plug_ins_of_its_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file_policy.py").write_text(POLICY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the folder is added to it
    monkeypatch.setattr("dynabandit.policies.POLICIES", dict(POLICIES))
    use_plugin("file_policy:Latest")
    assert used_plugins() == ["file_policy:Latest"]
    # One that was registered in the service and cannot be found by its process, such as a class of the main program
    monkeypatch.setattr(playground_workers, "used_plugins", lambda: ["nowhere:Policy", *used_plugins()])
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")

    async def run_it() -> list[bytes]:
        pool = playground_workers.WorkerPool()
        async with pool.worker() as process:
            link = "v=1&policies=latest;uniform&horizon=60&replications=1"
            return [line async for line in pool.messages(process, link)]

    assert asyncio.run(run_it())[-1].startswith(b'{"kind":"end"')


def test_the_commands_of_the_service_refuse_a_plug_in_that_does_not_exist(tmp_path: Path) -> None:
    done = run(tmp_path, "serve", "--plugin", "nowhere:Policy", "--port", "0", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dynabandit: --plugin: 'nowhere:Policy': there is no module 'nowhere'")
    assert not (tmp_path / "dynabandit.db").exists()
