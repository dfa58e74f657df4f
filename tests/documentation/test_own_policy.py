"""The template policy of docs/adding-an-algorithm.md: one file and one registry entry make it available everywhere."""

import doctest
import importlib
import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import dynabandit as db
from cudasim import cudasim
from dynabandit.cli.commands import app
from dynabandit.service.stores import open_store
from service.harness import running

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-algorithm.md").read_text(encoding="utf-8")
TEMPLATE, USE, IMPORT, ENVIRONMENT = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
(ENTRY,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
GPU = """
import dynabandit as db, my_policy
db.policies.POLICIES["ewma-ucb"] = my_policy.EwmaUCB
common = dict(horizon=8, seed=1, keep=("arms",))
cpu, gpu = (db.simulate("ewma-ucb", "case-3", backend=one, **common) for one in ("cpu", "cuda"))
assert (cpu.arms == gpu.arms).all()
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The template as a module in the user's folder."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_policy.py").write_text(TEMPLATE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        return importlib.import_module("my_policy")


@pytest.fixture
def registered(template: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with the entry of the page."""
    assert IMPORT == "from dynabandit.policies.my_policy import EwmaUCB\n"
    for name, policy in eval(f"{{{ENTRY}}}", {"EwmaUCB": template.EwmaUCB}).items():
        monkeypatch.setitem(db.policies.POLICIES, name, policy)


def test_in_the_users_folder_it_passes_the_checks_and_runs(
    template: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(USE, "use.py", "exec"), {})
    assert re.fullmatch(r"\{'ewma-ucb\(rate=0\.02\)': \d+, 'ucb': \d+\}\n[ab]\n", capsys.readouterr().out)


def test_its_docstring_example_runs(template: ModuleType) -> None:
    assert doctest.testmod(template) == doctest.TestResults(failed=0, attempted=1)


@pytest.mark.usefixtures("registered")
def test_once_registered_it_is_on_the_leaderboard(tmp_path: Path) -> None:
    command = "leaderboard --policy ewma-ucb --policy ts --environment pb-1 --replications 2 --horizon 60 --no-timing"
    done = CliRunner().invoke(app, [*command.split(), "--jobs", "1", "--out", str(tmp_path)], prog_name="dynabandit")
    assert done.exit_code == 0, done.output
    assert "ewma-ucb" in done.stdout
    assert "| `ewma-ucb` |" in (tmp_path / "leaderboard.md").read_text(encoding="utf-8")


def test_once_registered_it_runs_on_the_gpu(template: ModuleType) -> None:
    assert template.__file__ is not None
    path = f"{Path(template.__file__).parent}:{ROOT / 'src'}"
    done = cudasim("-W", "error", "-c", GPU, PYTHONPATH=path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("registered")
def test_once_registered_it_is_in_the_service(tmp_path: Path) -> None:
    with running(open_store(f"sqlite:///{tmp_path}/own.db")) as server, db.Client(server.url) as client:
        client.create("mine", arms=["a", "b"], policy="ewma-ucb", parameters={"rate": 0.1})
        decision = client.decide("mine")
        client.reward(decision.decision, 1)
        state = client.state("mine")
    assert (state.policy, state.parameters["rate"]) == ("ewma-ucb", 0.1)
    assert {arm.arm: arm.mean for arm in state.arms}[decision.arm] == 1.0


def test_the_environment_of_the_page_passes_its_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "seasons.py").write_text(ENVIRONMENT, encoding="utf-8")
    runpy.run_path(str(tmp_path / "seasons.py"))
    assert "seasons" in capsys.readouterr().out
