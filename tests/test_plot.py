"""Figures for publications."""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import dynabandit as db
from dynabandit.plot import SETTINGS, WIDTHS
from dynabandit.report.style import OTHERS, STYLES, distinct_styles
from dynabandit.simulation import trace
from dynabandit.stats import intervals
from tools.fakes import fake_run
from tools.interpreted import interpreted

# Answers like LaTeX, which measures texts for PGF files
FAKE_LATEX = f"""#!{sys.executable}
import sys
for line in sys.stdin:
    if "pgf_backend_query_start" in line:
        print("*pgf_backend_query_start\\n*", end="", flush=True)
    elif "@@end" in line:
        break
    elif "typeout" in line:
        print("30.0pt,7.0pt,2.0pt\\n\\n*", end="", flush=True)
"""


@pytest.fixture(scope="module")
def runs() -> dict[str, db.Simulation]:
    policies = {"first": "uniform", "second": "ts", "second again": db.policy("ts", prior=(1, 1))}
    environment = db.environment("piecewise", starts=(1, 60), means=((0.2, 0.8), (0.8, 0.2)))
    with interpreted():
        return db.compare(policies, environment, horizon=120, replications=4, seed=2, keep=("arms", "rewards"))


def labels(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_regret_is_the_mean_with_its_interval(runs: dict[str, db.Simulation]) -> None:
    figure = db.plot.regret(runs, title="Regret")
    (axes,) = figure.axes
    assert labels(figure) == list(runs)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "cumulative regret")
    assert axes.get_title(loc="left") == "Regret"
    for run, line, band in zip(runs.values(), axes.lines, axes.collections, strict=True):
        mean, low, high = intervals.student_band(run.regret)
        assert np.array_equal(np.asarray(line.get_ydata()), mean)
        (outline,) = band.get_paths()
        corners = {tuple(corner) for corner in np.asarray(outline.vertices).tolist()}
        for end in (low, high):
            assert set(zip(run.times.tolist(), end.tolist(), strict=True)) <= corners


def test_one_replication_has_no_interval(runs: dict[str, db.Simulation]) -> None:
    alone = fake_run("mine", "ucb", [3.0])
    figure = db.plot.regret(alone)
    assert len(figure.axes[0].collections) == 0
    assert labels(figure) == [alone.label]


def test_boxes_show_the_total_regret(runs: dict[str, db.Simulation]) -> None:
    figure = db.plot.boxes(runs)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(runs)
    medians = [np.median(run.total_regret) for run in runs.values()]
    drawn = [np.asarray(line.get_xdata()) for line in axes.lines]
    assert all(any(np.allclose(line, median) for line in drawn if len(line)) for median in medians)
    assert figure.get_size_inches()[1] < db.plot.boxes({str(i): runs["first"] for i in range(9)}).get_size_inches()[1]


def test_shares_of_correct_selections_are_in_percent(runs: dict[str, db.Simulation]) -> None:
    (axes,) = db.plot.correct(runs).axes
    assert axes.yaxis.get_major_formatter()(0.5) == "50 %"
    assert np.asarray(axes.lines[0].get_xdata())[-1] == 120
    assert len(axes.collections) == 3


def test_paths_are_those_of_the_simulation() -> None:
    with interpreted():
        run = db.simulate("uniform", "case-3", horizon=60, replications=2, seed=2, first_replication=3)
    (axes,) = db.plot.paths(run, replication=1).axes
    path = run.environment.path(60, seed=2, replication=4)
    assert [np.array_equal(np.asarray(line.get_ydata()), path[:, arm]) for arm, line in enumerate(axes.lines)] == [
        True
    ] * 2
    many = db.environment("fixed", means=np.linspace(0.1, 0.9, 9).tolist(), rewards="normal")
    figure = db.plot.paths(many, horizon=10)
    assert figure.legends == []  # too many arms
    assert figure.axes[0].get_ylim() != (-0.02, 1.02)  # rewards may be beyond 1


def test_beliefs_are_those_of_the_trace(runs: dict[str, db.Simulation]) -> None:
    run = runs["second"]
    figure = db.plot.beliefs(run, arms=[1], replication=2)
    (axes,) = figure.axes
    seen = trace(run, replication=2)
    belief, truth, _ = axes.lines
    assert np.array_equal(np.asarray(belief.get_ydata()), seen.mean[:, 1])
    assert np.array_equal(np.asarray(truth.get_ydata()), seen.truth[:, 1])
    assert labels(figure) == ["Arm 2", "true mean"]
    (band,) = axes.collections
    ends = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert 0.0 <= ends.min() < seen.mean[:, 1].min()
    assert seen.mean[:, 1].max() < ends.max() <= 1.0
    with pytest.raises(ValueError, match="arm must be a whole number of at least 0 and at most 1, got 2"):
        db.plot.beliefs(run, arms=[2])
    with pytest.raises(ValueError, match="arms must name at least one arm, got none"):
        db.plot.beliefs(run, arms=[])
    with pytest.raises(TypeError, match="run must be what simulate returned, got 'ts'"):
        db.plot.beliefs("ts")  # type: ignore[arg-type]
    many = db.simulate("uniform", db.environment("fixed", means=[0.5] * 10), horizon=20, keep=("arms", "rewards"))
    assert len(db.plot.beliefs(many, arms=range(10)).axes[0].lines) == 10 + 10 + 1  # beliefs, truths, legend


def test_the_width_is_that_of_a_column(runs: dict[str, db.Simulation]) -> None:
    widths: list[tuple[str | float, float]] = [*WIDTHS.items(), (5, 5.0)]
    for width, inches in widths:
        figure = db.plot.regret(runs, width=width, height=2)
        assert figure.get_size_inches().tolist() == [inches, 2.0]
    with pytest.raises(ValueError, match=r"unknown width 'triple'.* Known: double, single"):
        db.plot.regret(runs, width="triple")


def test_it_draws_into_given_axes_and_changes_no_setting(runs: dict[str, db.Simulation]) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    before = dict(mpl.rcParams)
    for function in (db.plot.regret, db.plot.boxes, db.plot.correct):
        assert function(runs, axes=right) is figure
    assert db.plot.paths(runs["first"], axes=left) is figure
    assert db.plot.beliefs(runs["first"], axes=left) is figure
    assert len(left.lines) > 0
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("given", ["a list", "results"])
def test_labels_are_those_of_the_policies(given: str, runs: dict[str, db.Simulation]) -> None:
    fake = db.Results([fake_run("mine", "ucb", [3.0, 4.0]), fake_run("mine", "ts", [3.0, 5.0])])
    found = list(runs.values()) if given == "a list" else fake
    expected = [run.policy.label for run in runs.values()] if given == "a list" else [run.label for run in fake]
    assert labels(db.plot.regret(found)) == expected


def test_runs_that_cannot_be_told_apart_are_an_error(runs: dict[str, db.Simulation]) -> None:
    with pytest.raises(ValueError, match="runs must have different labels, got 'uniform' twice"):
        db.plot.regret([runs["first"], runs["first"]])
    with pytest.raises(ValueError, match="runs must hold at least one run, got none"):
        db.plot.boxes([])
    with pytest.raises(TypeError, match=r"runs must be what compare or simulate returned, .* got 'first'"):
        db.plot.correct(["first"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"runs must be what compare or simulate returned, .* got 5"):
        db.plot.regret(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"horizon must be .* got 0"):
        db.plot.paths("case-1", horizon=0)


def test_files_have_fonts_that_journals_accept(
    runs: dict[str, db.Simulation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = db.plot.regret(runs)
    for suffix in ("pdf", "svg", "png"):
        figure.savefig(tmp_path / f"regret.{suffix}")
    pdf = (tmp_path / "regret.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"STIXGeneral" in pdf
    assert "<svg" in (tmp_path / "regret.svg").read_text(encoding="utf-8")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    latex = tmp_path / SETTINGS["pgf.texsystem"]
    latex.write_text(FAKE_LATEX, encoding="utf-8")
    latex.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    figure.savefig(tmp_path / "regret.pgf")
    pgf = (tmp_path / "regret.pgf").read_text(encoding="utf-8")
    assert r"\begin{pgfpicture}" in pgf
    assert "cumulative regret" in pgf


def test_policies_differ_in_dash_or_marker_so_that_grey_is_enough() -> None:
    looks = {(one.dash, one.marker, one.filled) for one in STYLES.values()}
    assert len(looks) == len(STYLES)
    names = ["abc", "acb", "bac", "bca", "cab", "cba", "aad", "ada"]  # `style` chooses one by the sum of the letters
    assert len(names) == len(OTHERS)
    found = distinct_styles([*names, "ucb", "ts", "ts"])
    assert len({(one.dash, one.marker, one.filled) for one in found[: len(names)]}) == len(OTHERS)
    assert len(set(found)) == len(found)
    assert found[len(names)] == STYLES["ucb"]


def test_without_matplotlib_the_error_says_what_to_install(
    runs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"this needs matplotlib.*pip install 'dynabandit\[lab\]'"):
        db.plot.regret(runs)
