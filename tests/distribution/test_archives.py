"""The archives that are published: built for real, and looked into."""

import shutil
import zipfile

import pytest

from distribution.archives import LARGEST, build, found, main, problems_of_sources, problems_of_wheel, wanted


def copied(wheel, folder, leave_out=(), add=()):
    """Return a wheel that differs from another one."""
    changed = folder / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            if not name.endswith(tuple(leave_out) or "\0"):
                target.writestr(name, source.read(name))
        for name, content in add:
            target.writestr(name, content)
    return changed


def test_the_archives_hold_the_package_and_nothing_else(dist):
    wheel, sources = found(dist)
    assert problems_of_wheel(wheel) == []
    assert problems_of_sources(sources) == []
    main(dist)


def test_what_pages_and_reports_are_made_of_counts_as_the_package():
    kinds = {name.rpartition(".")[2] for name in wanted()}
    assert {"py", "html", "css", "js", "svg", "json", "toml", "typed"} <= kinds


def test_the_wheel_from_the_source_archive_is_the_wheel_from_the_tree(dist, tmp_path):
    build(tmp_path, "--wheel")
    wheel, _ = found(dist)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("name", ["report.css", "playground.js", "reference.json", "memory.toml", "licenses/LICENSE"])
def test_a_wheel_that_lacks_a_file_is_refused(dist, tmp_path, name):
    (problem,) = problems_of_wheel(copied(found(dist)[0], tmp_path, leave_out=[name]))
    assert name in problem or "LICENSE" in problem


def test_a_wheel_with_tests_in_it_is_refused(dist, tmp_path):
    wheel = copied(found(dist)[0], tmp_path, add=[("tests/test_a.py", "")])
    assert problems_of_wheel(wheel) == [f"{wheel.name} holds tests/test_a.py, which is no part of the package"]


def test_a_wheel_that_is_too_large_is_refused_by_make(dist, tmp_path):
    wheel, sources = found(dist)
    copied(wheel, tmp_path, add=[("dynabandit/py.typed~", bytes(LARGEST))])
    shutil.copy(sources, tmp_path)
    with pytest.raises(SystemExit, match=r"bytes, and must have less than 3,000,000"):
        main(tmp_path)
