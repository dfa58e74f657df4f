import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dynabandit as db

SOURCES = Path(db.__file__).parents[1]
# Modules that `import dynabandit` must not load
OPTIONAL = [
    "fastapi", "gymnasium", "httpx", "hypothesis", "jinja2", "mabwiser", "matplotlib", "msgspec", "pandas",
    "playwright", "plotly", "polars", "psutil", "pyarrow", "pytest", "rich", "river", "scipy", "sqlalchemy",
    "starlette", "typer", "uvicorn", "xarray",
]  # fmt: skip

IMPORT = """
import json, sys
from numba.core import event

compiled = []
class Recorder(event.Listener):
    def on_start(self, event):
        compiled.append(repr(event))
    def on_end(self, event):
        pass

event.register("numba:compile", Recorder())
event.register("numba:compiler_lock", Recorder())
before = set(sys.modules)  # Numba loads a part of SciPy where there is one
import dynabandit
for name in dynabandit.__all__:
    if name not in ("AsyncClient", "Client", "LocalDecider", "ServiceError", "sign_unit"):  # these need `serve`
        getattr(dynabandit, name)
if len(sys.argv) > 1:
    from dynabandit.core import compilation, special_functions
    compilation.compiled(special_functions.exp_negative)(-1.0)
modules = sorted({name.split(".")[0] for name in set(sys.modules) - before})
print(json.dumps({"compiled": compiled, "modules": modules}))
"""


def imported(cache: Path, *arguments: str) -> dict[str, Any]:
    """Import the package in a new process and list what Numba compiles and which modules are loaded."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(SOURCES)}
    settings.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, "-c", IMPORT, *arguments]
    output = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def test_importing_compiles_nothing_and_loads_no_extra(tmp_path: Path) -> None:
    seen = imported(tmp_path / "cache")
    assert seen["compiled"] == []
    assert not (tmp_path / "cache").exists()
    assert "dynabandit" in seen["modules"]
    assert set(OPTIONAL) & set(seen["modules"]) == set()


def test_the_client_loads_no_numerical_package() -> None:
    lines = (
        "import sys, dynabandit; before = set(sys.modules)",
        "assert 'httpx' not in before",
        "from dynabandit import AsyncClient, Client",
        "loaded = {name.split('.')[0] for name in set(sys.modules) - before}",
        "assert 'httpx' in loaded and not loaded & {'numba', 'llvmlite', 'numpy', 'scipy', 'uvicorn'}, loaded",
    )
    settings = {**os.environ, "PYTHONPATH": str(SOURCES)}
    subprocess.run([sys.executable, "-c", "; ".join(lines)], env=settings, check=True)


def test_the_listener_of_this_test_sees_a_compilation(tmp_path: Path) -> None:
    assert imported(tmp_path / "cache", "compile")["compiled"] != []
    assert (tmp_path / "cache").exists()


def test_the_version_is_one_of_numbers() -> None:
    assert all(part.isdigit() for part in db.__version__.split("."))
