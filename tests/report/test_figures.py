"""Figures: complete, in order, the same look for the same policy, and drawable."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dynabandit.paper import figures as paper_figures, lookup
from dynabandit.paper.figures import IDS
from dynabandit.report import figures, panels
from dynabandit.report.charts import chart
from dynabandit.report.drawing import draw
from dynabandit.report.figures import Figure
from dynabandit.report.panels import Box, Boxes, Line, Lines, Series
from dynabandit.report.style import STYLES, Style, style, variant
from dynabandit.results import Coverage, Results, SamplePath
from fakes import ADAPTIVE, fake_run, only


def drawn(figure: Figure) -> Iterator[Line | Box]:
    for block in figure.blocks:
        for panel in block.panels:
            if isinstance(panel, Lines):
                yield from panel.lines
            elif isinstance(panel, Boxes):
                yield from panel.boxes


def test_all_figures_are_there_in_the_papers_order(results: Results) -> None:
    made = paper_figures.make_figures(results)
    assert [figure.id for figure in made] == list(IDS)
    assert [figure.stem for figure in made][:2] == ["01-small-changes", "02-sample-paths-case-1"]


def test_every_figure_is_written_as_svg_and_png(published: Path) -> None:
    names = {path.name for path in (published / "figures").iterdir() if path.suffix != ".json"}
    assert names == {f"{n:02d}-{name}.{kind}" for n, name in enumerate(IDS, start=1) for kind in ("svg", "png")}
    for path in (published / "figures").glob("*.png"):
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width > 800, path
        assert height > 300, path
    for path in (published / "figures").glob("*.svg"):
        assert "</svg>" in path.read_text(encoding="utf-8")


def test_a_figure_keeps_its_number_when_others_are_missing(results: Results) -> None:
    made = paper_figures.make_figures(only(results, "memory"))
    assert [figure.stem for figure in made] == ["16-memory"]


def test_a_policy_has_one_look_everywhere(results: Results) -> None:
    looks: dict[str, set[Style]] = {}
    names = {lookup.name(policy): style(policy) for policy in STYLES}
    for figure in paper_figures.make_figures(results):
        for one in drawn(figure):
            looks.setdefault(one.name, set()).add(one.style)
    for name, look in names.items():
        assert looks.get(name, {look}) == {look}, name


def test_policies_in_one_panel_can_be_told_apart_without_colour(results: Results) -> None:
    for figure in paper_figures.make_figures(results):
        for block in figure.blocks:
            for panel in block.panels:
                if isinstance(panel, Lines):
                    shapes = [line.style[:3] for line in panel.lines]
                    assert len(set(shapes)) == len(shapes), (figure.id, panel.title)


def test_adaptive_policies_have_the_hue_of_their_standard_policy() -> None:
    for adaptive, standard in lookup.ADAPTIVE.items():
        if adaptive != "aff-ucb2":  # UCB has two adaptive forms, and the second is a lighter blue
            assert style(adaptive).colour == style(standard).colour
        assert style(adaptive).dash == "solid"
        assert style(standard).dash == "dash"
    assert len({style(policy) for policy in STYLES}) == len(STYLES)


def test_settings_of_one_policy_differ_in_shade_dash_and_marker() -> None:
    looks = [variant("aff-ts", index, 4) for index in range(4)]
    for aspect in range(3):
        assert len({look[aspect] for look in looks}) == 4


def test_a_policy_of_ones_own_has_a_look_too() -> None:
    assert style("my-policy") == style("my-policy")


def test_eps_greedy_appears_once_and_the_legend_admits_hindsight(results: Results) -> None:
    for figure in paper_figures.make_figures(results):
        for block in figure.blocks:
            for panel in block.panels:
                if isinstance(panel, Lines):
                    greedy = [line.name for line in panel.lines if "ε-Greedy" in line.name]
                    assert greedy in ([], ["ε-Greedy (best ε = 0.1, by hindsight)"])
    assert any("hindsight" in one.name for one in drawn(paper_figures.make_figures(results)[0]))


def test_cumulative_regret_carries_a_band(results: Results) -> None:
    for figure in paper_figures.make_figures(results):
        for block in figure.blocks:
            for panel in block.panels:
                if isinstance(panel, Lines) and panel.y == "cumulative regret":
                    for line in panel.lines:
                        assert line.low is not None
                        assert line.high is not None
                        assert (line.low <= line.y).all()
                        assert (line.y <= line.high).all()


def test_one_replication_has_no_band_and_is_drawn_all_the_same(tmp_path: Path) -> None:
    (figure,) = figures.make_figures(Results([fake_run("mine", "ucb", [3.0])]))
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


def test_plotly_accepts_every_chart(results: Results) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for figure in paper_figures.make_figures(results):
        for block in figure.blocks:
            made = chart(block)
            graph_objects.Figure(data=made["data"], layout=made["layout"])  # raises for unknown properties


def test_hiding_a_policy_hides_curve_band_and_box(results: Results) -> None:
    made = chart(paper_figures.make_figures(results)[3].blocks[0])
    for name in ("UCB", "AFF-OTS", "ε-Greedy (best ε = 0.1, by hindsight)"):
        kinds = [trace["type"] for trace in made["data"] if trace["legendgroup"] == name]
        assert kinds.count("box") == 1
        assert kinds.count("scatter") >= 2


def test_the_same_results_draw_the_same_bytes(results: Results, published: Path, tmp_path: Path) -> None:
    figure = paper_figures.make_figures(results)[3]
    for path in draw(figure, tmp_path):
        assert path.read_bytes() == (published / "figures" / path.name).read_bytes()


def test_any_experiment_gets_a_figure_with_all_its_runs() -> None:
    runs = [fake_run("mine", "eps-greedy", [1.0, 2.0], parameters={"epsilon": e}) for e in (0.1, 0.2)]
    runs += [fake_run("mine", policy, [1.0, 2.0]) for policy in ADAPTIVE]
    runs += [fake_run("mine", "ucb", [1.0, 2.0], arms=3)]
    few, many = figures.make_figures(Results(runs))
    assert few.title == "mine: mine, 2 arms"
    assert many.title == "mine: mine, 3 arms"
    assert len({one.style for one in drawn(few)}) == 7


def test_paths_that_were_asked_for_have_a_figure_for_each_environment() -> None:
    times, means = np.arange(1, 5), np.full((4, 2), 0.5)
    asked = [("fixed", 0), ("fixed", 1), ("fixed", 0), ("case-3", 0)]
    paths = [SamplePath(world, 2, replication, times, means) for world, replication in asked]
    first, second, third = figures.make_figures(Results([], paths=paths))
    assert [len(one.blocks) for one in (first, second, third)] == [2, 1, 1]
    assert [one.stem for one in (first, second, third)] == [
        "01-sample-paths-1-fixed", "02-sample-paths-2-fixed", "03-sample-paths-3-case-3",
    ]  # fmt: skip


def test_the_bound_has_a_figure_where_its_coverage_was_asked_for() -> None:
    (figure,) = figures.make_figures(Results([], coverage=[Coverage(0.5, 0.001, 100, 1000, 40)]))
    assert figure.stem == "01-bounds"


def test_files_are_named_by_the_experiment_and_figures_by_its_title() -> None:
    spec = {"experiments": [{"id": "mine", "title": "Five offers"}, {"id": "yours", "title": "yours"}]}
    runs = [fake_run("mine", "ucb", [1.0, 2.0]), fake_run("yours", "ucb", [1.0, 2.0])]
    mine, yours = figures.make_figures(Results(runs, {"spec": spec}))
    assert (mine.stem, mine.title) == ("01-mine", "Five offers")
    assert (yours.stem, yours.title) == ("02-yours", "yours: yours, 2 arms")
