"""The code that is mutated, the tests that must notice, and how these run: interpreted, in a forked process."""

import importlib
import os
import sys
from pathlib import Path

__all__ = ["MUTATED", "OPTIONS", "ROOT", "SOURCE", "TESTS", "discard_output", "prepare"]

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dynabandit"
MUTATED = ("core/", "choosing/", "estimators/", "policies/", "environments/", "stats/settling_age.py")
TESTS = (  # what `make interpreted` runs but for the service, and the examples in docstrings
    "tests/core", "tests/estimators", "tests/policies", "tests/environments", "tests/stats/test_settling_age.py",
    "tests/offline/test_replay_oracle.py", "tests/simulation/test_traces.py", "tests/bandit",
    "tests/golden/test_paths.py", "tests/golden/test_saved_bandits.py", "src/dynabandit/core",
    "src/dynabandit/choosing", "src/dynabandit/estimators", "src/dynabandit/policies", "src/dynabandit/environments",
)  # fmt: skip
OPTIONS = (
    "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", "--no-header", "-q",
    f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}",
)  # fmt: skip
ENVIRONMENT = {
    "NUMBA_DISABLE_JIT": "1",
    "OPENBLAS_NUM_THREADS": "1",  # a process that forks must have one thread
    "OMP_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def prepare() -> None:
    """Import everything that the tests need except dynabandit, which each forked process imports with its mutant."""
    os.environ.update(ENVIRONMENT)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    for name in ("dynabandit.checks", "hypothesis.extra.numpy", "pytest", "scipy.stats"):
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.split(".")[0] == "dynabandit"]:
        del sys.modules[name]


def discard_output() -> None:
    """Redirect the output of this process to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
