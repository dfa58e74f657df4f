"""The logs and the source of Open Bandit Pipeline, from its wheel, without installing it or its dependencies."""

import ast
import contextlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

WHEEL = "obp-0.4.1-py3-none-any.whl"


@pytest.fixture(scope="session")
def obp(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the unpacked wheel; it is downloaded once and kept in pytest's cache folder."""
    cache = request.config.cache
    assert cache is not None
    home = Path(cache.mkdir("obp"))
    if not (home / "unpacked").exists():
        with tempfile.TemporaryDirectory(dir=home) as folder:  # two workers may do this at the same time
            _download(Path(folder))
            with contextlib.suppress(OSError):
                (Path(folder) / "unpacked").rename(home / "unpacked")
    return home / "unpacked" / "obp"


def _download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "obp==0.4.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"obp 0.4.1 CANNOT BE DOWNLOADED, so nothing is tested against it: {done.stderr[-300:]}")
    with zipfile.ZipFile(folder / WHEEL) as archive:
        archive.extractall(folder / "unpacked")


def functions(file: Path, names: set[str], scope: dict[str, Any]) -> dict[str, Any]:
    """Define some functions and classes of a source file in `scope`, without running the rest of it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if getattr(node, "name", None) in names]
    assert {node.name for node in kept} == names  # type: ignore[attr-defined]
    exec(compile(ast.Module(kept, []), str(file), "exec"), scope)
    return scope
