"""Figures of any experiment."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dynabandit.report import panels
from dynabandit.report.figures import Figure, make_figures
from dynabandit.report.matplotlib_figures import draw
from dynabandit.report.panels import Box, Boxes, Line, Lines, Series
from dynabandit.report.style import STYLES, other_style, style
from dynabandit.results import Coverage, Results, SamplePath
from tools.fakes import ADAPTIVE, fake_run


def drawn(figure: Figure) -> Iterator[Line | Box]:
    for panel in (panel for block in figure.blocks for panel in block.panels):
        if isinstance(panel, Lines):
            yield from panel.lines
        elif isinstance(panel, Boxes):
            yield from panel.boxes


def test_every_policy_has_its_own_style_and_unknown_ones_have_one_too() -> None:
    assert len({style(policy) for policy in STYLES}) == len(STYLES)
    assert style("my-policy") == style("my-policy")


def test_settings_of_a_policy_differ_in_colour_dash_and_marker() -> None:
    looks = [other_style(index) for index in range(4)]
    for aspect in range(3):
        assert len({look[aspect] for look in looks}) == 4
    assert len({other_style(index) for index in range(16)}) == 16


def test_more_than_six_runs_are_shown_in_groups_by_their_rank(tmp_path: Path) -> None:
    runs = [fake_run("mine", f"policy-{mean}", [mean - 1.0, mean + 1.0]) for mean in (9, 3, 8, 1, 7, 2, 6)]
    (figure,) = make_figures(Results(runs))
    for panel in (panel for block in figure.blocks for panel in block.panels if isinstance(panel, Lines)):
        assert [(group.title, group.names) for group in panel.groups] == [
            ("Best 6", tuple(f"policy-{mean}" for mean in (1, 2, 3, 6, 7, 8))), ("Rank 7", ("policy-9",)),
        ]  # fmt: skip
        assert len({line.style for line in panel.lines}) == 7
    assert [len(row) for row in figure.printed] == [3, 2]  # two groups and boxes, two groups
    for path in draw(figure, tmp_path):
        assert path.exists()


def test_one_replication_has_no_band_and_can_be_drawn(tmp_path: Path) -> None:
    (figure,) = make_figures(Results([fake_run("mine", "ucb", [3.0])]))
    assert all(line.low is None for line in drawn(figure) if isinstance(line, Line))
    for path in draw(figure, tmp_path):
        assert path.exists()


def test_curves_and_boxes_are_thinned() -> None:
    rng = np.random.default_rng(0)
    run = fake_run("x", "ucb", rng.standard_cauchy(5000) ** 2, times=1000)
    series = [Series(run, "UCB", style("ucb"))]
    (line,) = panels.regret("", series).lines
    assert len(line.x) == 200
    assert line.x[-1] == run.horizon
    (box,) = panels.totals("", series).boxes
    assert len(box.outliers) == 25
    assert box.outliers.max() == run.total_regret.max()
    (share,) = panels.shares("", series).lines
    assert len(share.x) == 200
    assert share.x[-1] == run.horizon


def test_a_box_has_quartiles_and_whiskers_within_reach() -> None:
    run = fake_run("x", "ucb", [*np.arange(1.0, 10.0), 100.0])
    (box,) = panels.totals("", [Series(run, "UCB", style("ucb"))]).boxes
    assert (box.first, box.median, box.third) == (3.25, 5.5, 7.75)
    assert (box.low, box.high) == (1.0, 9.0)
    assert box.outliers.tolist() == [100.0]
    assert box.mean == 14.5


def test_shares_are_averaged_over_windows_in_each_replication() -> None:
    played = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0]], dtype=bool)
    run = fake_run("x", "ucb", [1.0] * 4, times=4)
    object.__setattr__(run, "times", np.array([25, 50, 75, 100]))
    object.__setattr__(run, "correct", played.mean(axis=0))
    object.__setattr__(run, "correct_by_replication", played)
    (line,) = panels.shares("", [Series(run, "UCB", style("ucb"))]).lines
    assert line.x.tolist() == [50, 100]
    assert line.y.tolist() == [0.75, 0.25]
    assert line.high is not None
    assert line.low is not None
    assert line.high[0] == 1.0  # 0.75 + 3.18 * 0.14, cut at 1
    assert 0.29 < line.low[0] < 0.30


def test_any_experiment_gets_a_figure_with_all_its_runs() -> None:
    runs = [fake_run("mine", "eps-greedy", [1.0, 2.0], parameters={"epsilon": e}) for e in (0.1, 0.2)]
    runs += [fake_run("mine", policy, [1.0, 2.0]) for policy in ADAPTIVE]
    runs += [fake_run("mine", "ucb", [1.0, 2.0], arms=3)]
    few, many = make_figures(Results(runs))
    assert few.title == "mine: mine, 2 arms"
    assert many.title == "mine: mine, 3 arms"
    assert len({one.style for one in drawn(few)}) == 7


def test_sample_paths_have_a_figure_for_each_environment() -> None:
    times, means = np.arange(1, 5), np.full((4, 2), 0.5)
    asked = [("fixed", 0), ("fixed", 1), ("fixed", 0), ("case-3", 0)]
    paths = [SamplePath(name, 2, replication, times, means) for name, replication in asked]
    figures = make_figures(Results([], paths=paths))
    assert [len(one.blocks) for one in figures] == [2, 1, 1]
    assert [one.stem for one in figures] == [
        "01-sample-paths-1-fixed", "02-sample-paths-2-fixed", "03-sample-paths-3-case-3",
    ]  # fmt: skip


def test_coverage_has_a_figure() -> None:
    (figure,) = make_figures(Results([], coverage=[Coverage(0.5, 0.001, 100, 1000, 40)]))
    assert figure.stem == "01-bounds"


def test_files_are_named_by_the_experiment_and_figures_by_its_title() -> None:
    spec = {"experiments": [{"id": "mine", "title": "Five offers"}, {"id": "yours", "title": "yours"}]}
    runs = [fake_run("mine", "ucb", [1.0, 2.0]), fake_run("yours", "ucb", [1.0, 2.0])]
    mine, yours = make_figures(Results(runs, {"spec": spec}))
    assert (mine.stem, mine.title) == ("01-mine", "Five offers")
    assert (yours.stem, yours.title) == ("02-yours", "yours: yours, 2 arms")
