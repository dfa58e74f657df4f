from dataclasses import replace

import pytest

from dynabandit.report import drawing, gallery
from dynabandit.report.figures import make_figures
from dynabandit.report.gallery import RECORD, draw_all
from dynabandit.results import Results
from fakes import fake_run


def make(last=4.0):
    runs = [fake_run("first", "ucb", [1.0, 2.0, 4.0]), fake_run("second", "ucb", [1.0, 2.0, last])]
    return [replace(figure, id=run.experiment) for figure, run in zip(make_figures(Results(runs)), runs, strict=True)]


@pytest.fixture
def figures():
    return make()


@pytest.fixture
def drawn(monkeypatch):
    """The stems of the figures that are drawn, which they still are."""
    stems = []
    draw = drawing.draw

    def spy(figure, folder):
        stems.append(figure.stem)
        return draw(figure, folder)

    monkeypatch.setattr(drawing, "draw", spy)
    return stems


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_time_draws_nothing_and_changes_nothing(figures, drawn, tmp_path):
    pictures = draw_all(figures, tmp_path)
    assert drawn == ["01-first", "02-second"]
    assert pictures == {stem: tmp_path / f"{stem}.png" for stem in drawn}
    before = content(tmp_path)
    drawn.clear()
    assert draw_all(figures, tmp_path) == pictures
    assert drawn == []
    assert content(tmp_path) == before


def test_only_figures_whose_numbers_changed_are_drawn(figures, drawn, tmp_path):
    draw_all(figures, tmp_path)
    drawn.clear()
    draw_all(make(last=4.5), tmp_path)
    assert drawn == ["02-second"]


def test_another_title_is_another_figure(figures, drawn, tmp_path):
    draw_all(figures, tmp_path)
    drawn.clear()
    draw_all([replace(figures[0], title="Another"), figures[1]], tmp_path)
    assert drawn == ["01-first"]


def test_other_drawing_code_draws_all(figures, drawn, tmp_path, monkeypatch):
    draw_all(figures, tmp_path)
    drawn.clear()
    monkeypatch.setattr(drawing, "__file__", __file__)
    draw_all(figures, tmp_path)
    assert drawn == ["01-first", "02-second"]


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: path.write_bytes(b"cut short")])
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_file_that_is_gone_or_changed_is_drawn_again(figures, drawn, tmp_path, suffix, change):
    draw_all(figures, tmp_path)
    before = content(tmp_path)
    drawn.clear()
    change(tmp_path / f"02-second.{suffix}")
    draw_all(figures, tmp_path)
    assert drawn == ["02-second"]
    assert content(tmp_path) == before


@pytest.mark.parametrize("record", ["", "[]", "{"])
def test_a_record_that_cannot_be_read_counts_for_nothing(figures, drawn, tmp_path, record):
    draw_all(figures, tmp_path)
    drawn.clear()
    (tmp_path / RECORD).write_text(record, encoding="utf-8")
    draw_all(figures, tmp_path)
    assert drawn == ["01-first", "02-second"]


def test_figures_that_are_not_asked_for_any_more_go_and_files_of_others_stay(figures, drawn, tmp_path):
    draw_all(figures, tmp_path)
    (tmp_path / "mine.png").write_bytes(b"mine")
    draw_all(figures[1:], tmp_path)
    assert sorted(content(tmp_path)) == ["02-second.png", "02-second.svg", RECORD, "mine.png"]


def test_numbers_that_read_alike_are_told_apart():
    def digest(value):
        import hashlib

        found = hashlib.sha256()
        gallery._add(found, value)
        return found.hexdigest()

    values = [(1, 23), (12, 3), ((1,), 23), ("1", 23), (1.0, 23), (1, (23,)), None, "None"]
    assert len({digest(value) for value in values}) == len(values)
