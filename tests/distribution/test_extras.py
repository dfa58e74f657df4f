"""What an installation with one extra says of the others, where only what that extra requires can be imported."""

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

TRIAL = Path(__file__).with_name("trial.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(requirement, asked, seen):
    """Add the names of all distributions that a requirement brings, its own and theirs."""
    one = Requirement(requirement)
    if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in asked or [""]):
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
        required(inner, one.extras, seen)


def linked(extra, wheel, folder):
    """Fill a folder with the package, and with links to what an extra requires and no more."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    seen = set()
    required(f"dynabandit[{extra}]" if extra != "none" else "dynabandit", (), seen)
    for name in {name for name, _ in seen} - {PROJECT["name"]}:
        parts = distribution(name)
        for top in {file.parts[0] for file in parts.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(parts.locate_file(top))


@pytest.mark.parametrize("extra", ["none", "lab", "serve"])
def test_it_says_what_to_install_for_all_that_is_missing(extra, dist, tmp_path):
    packages, work = tmp_path / "packages", tmp_path / "work"
    work.mkdir()
    linked(extra, found(dist)[0], packages)
    environment = {**os.environ, "PYTHONPATH": str(packages), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-S", str(TRIAL), extra, "--light"]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    missing = {"none": "lab", "lab": "serve", "serve": "lab"}[extra]
    assert f"lack_{missing}" in done.stdout
    assert f"lack_{extra}" not in done.stdout
