"""An installation with one extra names the missing extras, when only the requirements of that extra can be imported."""

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from distribution.archives import ROOT, found

SCRIPT = Path(__file__).with_name("try_installation.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

Seen = set[tuple[str, frozenset[str]]]


def add_requirements(requirement: str, extras: set[str], seen: Seen) -> None:
    """Add a requirement with all its direct and indirect requirements, as pairs of name and extras."""
    one = Requirement(requirement)
    if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in extras or {""}):
        return
    key = (one.name, frozenset(one.extras))
    if key in seen:
        return
    seen.add(key)
    if one.name == PROJECT["name"]:
        more = [inner for extra in one.extras for inner in PROJECT["optional-dependencies"][extra]]
        more += PROJECT["dependencies"]
    else:
        more = distribution(one.name).requires or []
    for inner in more:
        add_requirements(inner, one.extras, seen)


def link_packages(extra: str, wheel: Path, folder: Path) -> None:
    """Unpack the wheel into a folder, with links to the packages that the extra requires."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    seen: Seen = set()
    add_requirements(f"dynabandit[{extra}]" if extra != "none" else "dynabandit", set(), seen)
    for name in {name for name, _ in seen} - {PROJECT["name"]}:
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(package.locate_file(top))))


@pytest.mark.parametrize(("extra", "missing"), [("none", "lab"), ("lab", "serve"), ("serve", "lab")])
def test_messages_name_all_missing_extras(extra: str, missing: str, dist: Path, tmp_path: Path) -> None:
    packages, work = tmp_path / "packages", tmp_path / "work"
    work.mkdir()
    link_packages(extra, found(dist)[0], packages)
    environment = {**os.environ, "PYTHONPATH": str(packages), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-S", str(SCRIPT), extra, "--light"]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"lack_{missing}" in done.stdout
    assert f"lack_{extra}" not in done.stdout
