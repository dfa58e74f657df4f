"""The paper's figures are complete, in order, and show a policy in the same style everywhere."""

import itertools
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynabandit.paper import lookup
from dynabandit.paper.figures import FIGURES, make_figures
from dynabandit.report.figures import Figure
from dynabandit.report.matplotlib_figures import draw
from dynabandit.report.panels import Box, Boxes, Line, Lines
from dynabandit.report.plotly_charts import chart
from dynabandit.report.style import STYLES, Style, style
from dynabandit.results import Results
from tools.fakes import only


@pytest.fixture(scope="module")
def figures(results: Results) -> list[Figure]:
    return make_figures(results)


def line_panels(figures: list[Figure]) -> Iterator[Lines]:
    for figure in figures:
        for block in figure.blocks:
            yield from (panel for panel in block.panels if isinstance(panel, Lines))


def drawn(figures: list[Figure]) -> Iterator[Line | Box]:
    for figure in figures:
        for panel in (panel for block in figure.blocks for panel in block.panels):
            if isinstance(panel, Lines):
                yield from panel.lines
            elif isinstance(panel, Boxes):
                yield from panel.boxes


def test_all_19_figures_are_there_and_those_of_the_paper_are_in_its_order(figures: list[Figure]) -> None:
    assert [figure.id for figure in figures] == list(FIGURES)
    assert len(FIGURES) == 19
    assert [figure.stem for figure in figures][:4] == [
        "01-aff-ucb2-growing", "02-aff-ucb1-floor", "03-small-changes", "04-sample-paths-case-1",
    ]  # fmt: skip


def test_a_figure_keeps_its_number_when_others_are_missing(results: Results) -> None:
    assert [figure.stem for figure in make_figures(only(results, "memory"))] == ["18-memory"]


def test_figures_are_written_as_svg_and_png(published: Path) -> None:
    written = {path.name for path in (published / "figures").iterdir() if path.suffix != ".json"}
    stems = ["01-aff-ucb2-growing", "02-aff-ucb1-floor", "03-small-changes", "04-sample-paths-case-1"]
    stems += ["06-two-arms-abrupt", "18-memory", "19-bounds"]
    assert written == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    for path in (published / "figures").glob("*.png"):
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width > 800, path
        assert height > 300, path
    for path in (published / "figures").glob("*.svg"):
        assert "</svg>" in path.read_text(encoding="utf-8")


def test_the_same_results_draw_the_same_bytes(figures: list[Figure], published: Path, tmp_path: Path) -> None:
    for path in draw(figures[17], tmp_path):
        assert path.read_bytes() == (published / "figures" / path.name).read_bytes()


def test_a_policy_has_one_style_everywhere(figures: list[Figure]) -> None:
    found: dict[str, set[Style]] = {}
    for one in drawn(figures):
        found.setdefault(one.name, set()).add(one.style)
    for policy in STYLES:
        name = lookup.policy_name(policy)
        assert found.get(name, {style(policy)}) == {style(policy)}, name


def test_lines_of_one_panel_can_be_told_apart_without_colour(figures: list[Figure]) -> None:
    for panel in line_panels(figures):
        shapes = [line.style[:3] for line in panel.lines]
        assert len(set(shapes)) == len(shapes), panel.title


def test_at_most_six_curves_are_shown_together_and_their_colours_differ(figures: list[Figure]) -> None:
    grouped = 0
    for panel in line_panels(figures):
        for part in panel.by_group:
            assert len(part.lines) <= 6, part.title
            colours = [line.style.colour for line in part.lines]
            assert min(distances(colours), default=100.0) > 60.0, part.title
        grouped += bool(panel.groups)
        assert sum(len(part.lines) for part in panel.by_group) == len(panel.lines)
    assert grouped == 14  # 13 experiments with eleven policies, and the shares of correct selections of one


def distances(colours: list[str]) -> Iterator[float]:
    """Yield the distance between the red, green and blue parts, from 0 to 255, of each pair of colours."""
    parts = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in colours]
    yield from (math.dist(one, two) for one, two in itertools.combinations(parts, 2))


def test_standard_policies_are_dashed_and_adaptive_ones_solid() -> None:
    for adaptive, standard in lookup.ADAPTIVE.items():
        assert style(adaptive).dash == "solid"
        assert style(standard).dash == "dash"


def test_eps_greedy_appears_once_and_the_legend_says_that_its_epsilon_was_chosen_in_hindsight(
    figures: list[Figure],
) -> None:
    expected = ["ε-Greedy (best ε = 0.1, in hindsight)"]
    found = [[line.name for line in panel.lines if "ε-Greedy" in line.name] for panel in line_panels(figures)]
    assert all(names in ([], expected) for names in found)
    assert expected in found


@pytest.mark.parametrize("y", ["cumulative regret", "share of correct selections"])
def test_means_over_replications_have_a_band(figures: list[Figure], y: str) -> None:
    lines = [line for panel in line_panels(figures) if panel.y == y for line in panel.lines]
    assert lines
    for line in lines:
        assert line.low is not None
        assert line.high is not None
        assert (line.low <= line.y).all()
        assert (line.y <= line.high).all()


def test_plotly_accepts_every_chart(figures: list[Figure]) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for figure in figures:
        for block in figure.blocks:
            made = chart(block)
            graph_objects.Figure(data=made["data"], layout=made["layout"])  # raises for unknown properties


def test_hiding_a_policy_hides_curve_band_and_box(figures: list[Figure]) -> None:
    made = chart(figures[5].blocks[0])
    for name in ("UCB", "AFF-OTS", "ε-Greedy (best ε = 0.1, in hindsight)"):
        kinds = [trace["type"] for trace in made["data"] if trace["legendgroup"] == name]
        assert kinds.count("box") == 1
        assert kinds.count("scatter") >= 2
