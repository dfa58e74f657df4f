"""The contents of the archives that `make dist` builds."""

import shutil
import zipfile
from pathlib import Path

import pytest

from distribution.archives import MAX_WHEEL_BYTES, build, found, main, package_files, source_problems, wheel_problems


def changed_copy(
    wheel: Path, folder: Path, leave_out: tuple[str, ...] = (), add: tuple[tuple[str, bytes], ...] = ()
) -> Path:
    """Return a copy of a wheel without some files and with some others."""
    changed = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(changed, "w") as target:
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
    changed_copy(wheel, tmp_path, add=(("dynabandit/py.typed~", bytes(MAX_WHEEL_BYTES)),))
    shutil.copy(sources, tmp_path)
    with pytest.raises(SystemExit, match=r"bytes and must have fewer than 3,000,000"):
        main(tmp_path)
