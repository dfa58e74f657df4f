"""The contents of the archives that `make dist` builds."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dynabandit as db
from distribution.archives import (
    MAX_WHEEL_BYTES,
    ROOT,
    build,
    found,
    main,
    package_files,
    source_problems,
    wheel_problems,
)


def changed_copy(
    wheel: Path, folder: Path, leave_out: tuple[str, ...] = (), add: tuple[tuple[str, bytes], ...] = ()
) -> Path:
    """Return a copy of a wheel without some files and with some others."""
    changed = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if not name.endswith(leave_out or ("\0",)):
                target.writestr(name, source.read(name))
        for name, content in add:
            target.writestr(name, content)
    return changed


def test_the_archives_contain_the_package_and_nothing_else(dist: Path) -> None:
    wheel, sources = found(dist)
    assert wheel_problems(wheel) == []
    assert source_problems(sources) == []
    main(dist)


def test_the_description_on_a_package_index_has_no_paths_of_the_repository(dist: Path) -> None:
    wheel, sources = found(dist)
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", wheel, sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(name).decode()
    release = rf"dynabandit/dynabandit(?:/blob)?/v{re.escape(db.__version__)}/([^)#]+)"
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    for link in links:
        path = re.fullmatch(rf"https://(?:github|raw\.githubusercontent)\.com/{release}(?:#.*)?", link)
        assert path is None or (ROOT / path[1]).exists(), link
        assert path is not None or link.startswith(("https://", "#")), link


def test_templates_scripts_specs_and_data_are_files_of_the_package() -> None:
    kinds = {name.rpartition(".")[2] for name in package_files()}
    assert {"py", "html", "css", "js", "svg", "json", "toml", "typed"} <= kinds


def test_the_wheel_from_the_source_archive_is_the_wheel_from_the_tree(dist: Path, tmp_path: Path) -> None:
    build(tmp_path, "--wheel")
    wheel, _ = found(dist)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("name", ["report.css", "playground.js", "large_run.json", "memory.toml", "licenses/LICENSE"])
def test_a_missing_file_in_a_wheel_is_reported(dist: Path, tmp_path: Path, name: str) -> None:
    (problem,) = wheel_problems(changed_copy(found(dist)[0], tmp_path, leave_out=(name,)))
    assert name in problem or "LICENSE" in problem


def test_a_wheel_with_tests_is_reported(dist: Path, tmp_path: Path) -> None:
    wheel = changed_copy(found(dist)[0], tmp_path, add=(("tests/test_a.py", b""),))
    assert wheel_problems(wheel) == [f"{wheel.name} contains tests/test_a.py, which is not part of the package"]


def test_make_dist_fails_for_a_wheel_that_is_too_large(dist: Path, tmp_path: Path) -> None:
    wheel, sources = found(dist)
    changed_copy(wheel, tmp_path, add=(("dynabandit/py.typed~", os.urandom(MAX_WHEEL_BYTES)),))
    shutil.copy(sources, tmp_path)
    with pytest.raises(SystemExit, match=r"bytes and must have fewer than 3,000,000"):
        main(tmp_path)
