"""The policies of docs/adding-an-algorithm.md, in plain Python and with kernels, are available everywhere."""

import doctest
import importlib
import re
import runpy
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.kernel_errors import KernelError
from dynabandit.policies import POLICIES
from dynabandit.service.stores import open_store
from tools.command_line import invoke
from tools.cudasim import cudasim
from tools.harness import running, talking
from tools.laws import INTERPRETED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-algorithm.md").read_text(encoding="utf-8")
PLAIN, USE_PLAIN, TEMPLATE, USE, ENVIRONMENT = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
(MESSAGE,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
GPU = """
import dynabandit as db, my_policy
common = dict(horizon=8, seed=1, keep=("arms",))
cpu, gpu = (db.simulate(my_policy.EwmaUCB(), "case-3", backend=one, **common) for one in ("cpu", "cuda"))
assert (cpu.arms == gpu.arms).all()
"""
USES = {"my_policy": USE, "plain_policy": USE_PLAIN}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's folder."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_policy.py").write_text(TEMPLATE, encoding="utf-8")
    (folder / "plain_policy.py").write_text(PLAIN, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def template(folder: Path) -> ModuleType:
    """The template with kernels as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        importlib.import_module("plain_policy")
        return importlib.import_module("my_policy")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that is restored after the test."""
    for module in ("dynabandit.policies", "dynabandit.leaderboard.run"):
        monkeypatch.setattr(f"{module}.POLICIES", dict(POLICIES))


@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")
@pytest.mark.usefixtures("template")
@pytest.mark.parametrize("name", USES)
def test_in_the_users_folder_it_passes_the_checks_and_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(USES[name], "use.py", "exec"), {})
    assert re.fullmatch(r"\{'ewma-ucb\(rate=0\.02\)': \d+, 'ucb': \d+\}\n[ab]\n", capsys.readouterr().out)


def test_in_plain_python_it_makes_the_same_choices(template: ModuleType) -> None:
    plain = importlib.import_module("plain_policy").EwmaUCB()
    both = {"plain": plain, "kernels": template.EwmaUCB()}
    runs = db.compare(both, "case-3", horizon=300, replications=2, seed=1, keep="arms")
    assert np.array_equal(np.asarray(runs["plain"].arms), np.asarray(runs["kernels"].arms))


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
def test_a_mistake_gives_the_message_of_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = TEMPLATE.replace("math.sqrt(", "maht.sqrt(")
    (folder / "wrong_policy.py").write_text(wrong, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    policy = importlib.import_module("wrong_policy").EwmaUCB()
    with pytest.raises(KernelError) as caught:
        db.simulate(policy, "case-3", horizon=5)
    shown = MESSAGE.removeprefix("dynabandit.core.kernel_errors.KernelError: ").rstrip()
    shown = shown.replace("/home/me/my_policy.py", str(folder / "wrong_policy.py"))
    assert str(caught.value) == shown
    options = ["--env", "case-3", "--horizon", 10, "--replications", 1, "--jobs", 1, "--out", folder / "out"]
    done = invoke("compare", *options, "wrong_policy:EwmaUCB")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith(f"dynabandit: {shown}\n")


def test_its_docstring_example_runs(template: ModuleType) -> None:
    assert doctest.testmod(template) == doctest.TestResults(failed=0, attempted=1)


@pytest.mark.usefixtures("registry", "template")
@pytest.mark.parametrize("module", USES)
def test_the_command_line_puts_it_on_the_leaderboard(module: str, tmp_path: Path) -> None:
    command = "--policy ts --environment pb-1 --replications 2 --horizon 60 --no-timing --jobs 1"
    done = invoke("leaderboard", "--policy", f"{module}:EwmaUCB", *command.split(), "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "ewma-ucb" in done.stdout
    assert "| `ewma-ucb` |" in (tmp_path / "leaderboard.md").read_text(encoding="utf-8")


def test_it_runs_on_the_gpu(folder: Path) -> None:
    done = cudasim("-c", GPU, PYTHONPATH=f"{folder}:{ROOT / 'src'}", NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="error")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("registry")
def test_once_registered_it_is_in_the_service(template: ModuleType, tmp_path: Path) -> None:
    db.policies.register(template.EwmaUCB)
    with running(open_store(f"sqlite:///{tmp_path}/own.db")) as server, talking(server.url) as (client, _):
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
