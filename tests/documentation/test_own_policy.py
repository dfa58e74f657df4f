"""A policy of one's own, as docs/adding-an-algorithm.md says: one file, its name in the registry, and it is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dynabandit as db
from cudasim import cudasim

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-algorithm.md").read_text(encoding="utf-8")
SKELETON, USE, IMPORT, ENVIRONMENT = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
(ENTRY,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
GPU = """
import dynabandit as db
common = dict(horizon=20, replications=2, seed=1, keep=("arms",))
here, there = (db.simulate("ewma-ucb", "case-3", backend=one, **common) for one in ("cpu", "cuda"))
assert (here.arms == there.arms).all()
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the code with the policy in it, and nothing else changed."""
    source = tmp_path_factory.mktemp("checkout") / "src"
    shutil.copytree(Path(db.__file__).parent, source / "dynabandit", ignore=shutil.ignore_patterns("__pycache__"))
    policies = source / "dynabandit" / "policies"
    (policies / "my_policy.py").write_text(SKELETON, encoding="utf-8")
    registry = (policies / "__init__.py").read_text(encoding="utf-8")
    last_import, first_entry = "from dynabandit.policies.oracle_policies import", '    "eps-greedy":'
    assert registry.count(last_import) == registry.count(first_entry) == 1
    registry = registry.replace(last_import, IMPORT + last_import).replace(first_entry, ENTRY + first_entry)
    (policies / "__init__.py").write_text(registry, encoding="utf-8")
    return source


def python(source, *arguments, cwd, **environment):
    """Run Python on some code, interpreted unless told otherwise, and return what it prints."""
    variables = {**os.environ, "PYTHONPATH": str(source), "NUMBA_DISABLE_JIT": "1", **environment}
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, env=variables, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_in_a_folder_of_ones_own_it_passes_the_checks_and_runs(tmp_path):
    (tmp_path / "my_policy.py").write_text(SKELETON, encoding="utf-8")
    printed = python(Path(db.__file__).parents[1], "-c", USE, cwd=tmp_path, NUMBA_DISABLE_JIT="0")
    assert re.fullmatch(r"\{'ewma-ucb\(rate=0\.02\)': \d+, 'ucb': \d+\}\n[ab]\n", printed)


def test_the_example_of_the_skeleton_holds_once_it_is_in_the_package(checkout, tmp_path):
    path = checkout / "dynabandit" / "policies" / "my_policy.py"
    code = "import doctest, dynabandit.policies.my_policy as mine; print(doctest.testmod(mine))"
    assert path.exists()
    assert python(checkout, "-c", code, cwd=tmp_path) == "TestResults(failed=0, attempted=1)\n"


def test_two_lines_put_it_onto_the_leaderboard(checkout, tmp_path):
    command = "leaderboard --policy ewma-ucb --policy ts --environment pb-1 --replications 2 --horizon 60 --no-timing"
    printed = python(checkout, "-m", "dynabandit", *command.split(), cwd=tmp_path)
    assert "ewma-ucb" in printed
    assert "| `ewma-ucb` |" in (tmp_path / "out" / "leaderboard" / "leaderboard.md").read_text(encoding="utf-8")


def test_two_lines_put_it_onto_the_gpu(checkout):
    done = cudasim("-W", "error", "-c", GPU, PYTHONPATH=str(checkout))
    assert done.returncode == 0, done.stderr


def test_two_lines_put_it_into_the_service(checkout, tmp_path):
    variables = {**os.environ, "PYTHONPATH": str(checkout), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "dynabandit", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            with db.Client(address) as client:
                client.create("mine", arms=["a", "b"], policy="ewma-ucb", parameters={"rate": 0.1})
                decision = client.decide("mine")
                client.reward(decision.decision, 1)
                state = client.state("mine")
        finally:
            process.terminate()
    assert (state.policy, state.parameters["rate"]) == ("ewma-ucb", 0.1)
    assert {arm.arm: arm.mean for arm in state.arms}[decision.arm] == 1.0


def test_the_environment_of_the_page_passes_its_checks(tmp_path):
    (tmp_path / "seasons.py").write_text(ENVIRONMENT, encoding="utf-8")
    assert "seasons" in python(Path(db.__file__).parents[1], "seasons.py", cwd=tmp_path, NUMBA_DISABLE_JIT="0")
