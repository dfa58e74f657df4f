"""A folder of figures is drawn once, and again only where something changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dynabandit.report import matplotlib_figures
from dynabandit.report.figure_folder import RECORD, draw_all
from dynabandit.report.figures import Figure, make_figures
from dynabandit.results import Results
from tools.fakes import fake_run

BOTH = ["01-first", "02-second"]


def make(last: float = 4.0) -> list[Figure]:
    runs = [fake_run("first", "ucb", [1.0, 2.0, 4.0]), fake_run("second", "ucb", [1.0, 2.0, last])]
    return make_figures(Results(runs))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stems of the figures that are drawn; instead of pictures, their titles are written."""
    stems = []

    def draw(figure: Figure, folder: Path) -> tuple[Path, Path]:
        stems.append(figure.stem)
        svg, png = (folder / f"{figure.stem}.{kind}" for kind in ("svg", "png"))
        for path in (svg, png):
            path.write_text(f"{path.name}: {figure.title}", encoding="utf-8")
        return svg, png

    monkeypatch.setattr(matplotlib_figures, "draw", draw)
    return stems


@pytest.fixture
def folder(drawn: list[str], tmp_path: Path) -> Path:
    """A folder with both figures."""
    draw_all(make(), tmp_path)
    assert drawn == BOTH
    drawn.clear()
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_call_draws_nothing_and_changes_nothing(folder: Path, drawn: list[str]) -> None:
    before = content(folder)
    assert draw_all(make(), folder) == {stem: folder / f"{stem}.png" for stem in BOTH}
    assert drawn == []
    assert content(folder) == before


def test_only_figures_whose_numbers_or_titles_changed_are_drawn(folder: Path, drawn: list[str]) -> None:
    first, second = make(last=4.5)
    draw_all([first, second], folder)
    assert drawn == ["02-second"]
    draw_all([replace(first, title="Another"), second], folder)
    assert drawn == ["02-second", "01-first"]


def test_other_drawing_code_draws_all(folder: Path, drawn: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matplotlib_figures, "__file__", __file__)
    draw_all(make(), folder)
    assert drawn == BOTH


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"cut short")])
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_file_that_is_missing_or_changed_is_drawn_again(
    folder: Path, drawn: list[str], suffix: str, change: Callable[[Path], object]
) -> None:
    before = content(folder)
    change(folder / f"02-second.{suffix}")
    draw_all(make(), folder)
    assert drawn == ["02-second"]
    assert content(folder) == before


@pytest.mark.parametrize("record", ["", "[]", "{"])
def test_an_unreadable_record_is_ignored(folder: Path, drawn: list[str], record: str) -> None:
    (folder / RECORD).write_text(record, encoding="utf-8")
    draw_all(make(), folder)
    assert drawn == BOTH


def test_figures_that_are_no_longer_wanted_are_removed_and_other_files_kept(folder: Path, drawn: list[str]) -> None:
    (folder / "mine.png").write_bytes(b"mine")
    draw_all(make()[1:], folder)
    assert sorted(content(folder)) == ["02-second.png", "02-second.svg", RECORD, "mine.png"]
