"""The tests that mutants meet, and how they are run: without compiled code, in a process that has imported it all."""

import importlib
import os
import sys
from pathlib import Path

__all__ = ["OPTIONS", "ROOT", "TESTS", "prepare", "quiet"]

ROOT = Path(__file__).resolve().parent.parent
TESTS = (  # what `make interpreted` runs, and the examples in docstrings that run as fast
    "tests/core", "tests/estimators", "tests/policies", "tests/environments", "tests/simulation/test_trace.py",
    "tests/bandit/test_bandit.py", "tests/bandit/test_changes.py", "src/dynabandit/core", "src/dynabandit/estimators",
)  # fmt: skip
OPTIONS = (
    "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider", "--assert=plain", "--tb=no", "--no-header", "-q",
    f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}",
)  # fmt: skip
SETTINGS = {
    "NUMBA_DISABLE_JIT": "1",
    "OPENBLAS_NUM_THREADS": "1",  # a process that forks must have one thread
    "OMP_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def prepare() -> None:
    """Import everything that tests need but the package itself, of which each child has its own version."""
    os.environ.update(SETTINGS)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    for name in ("dynabandit", "hypothesis.extra.numpy", "pytest", "scipy.stats"):
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.split(".")[0] == "dynabandit"]:
        del sys.modules[name]


def quiet() -> None:
    """Say nothing from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
