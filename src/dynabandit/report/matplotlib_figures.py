"""Figures as SVG and PNG, with Matplotlib."""

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.report.figures import Figure
from dynabandit.report.panels import Boxes, Intervals, Lines, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES: dict[str, Any] = {
    "solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.2)), "dashdot": (0, (5, 1.5, 1, 1.5)),
    "longdash": (0, (9, 2)),
}  # fmt: skip
MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "triangle-down": "v", "diamond": "D", "x": "X",
    "pentagon": "p", "hexagon": "h", "star": "*", "cross": "P",
}  # fmt: skip
SETTINGS = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so figures are the same everywhere
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.fontsize": 8,
    "svg.hashsalt": "dynabandit",  # the same results give the same bytes
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
WIDTHS = {1: 6.9, 2: 9.2, 3: 11.0}  # inches, by the number of columns
PANEL_WIDTH = 3.6  # inches, with more columns
LINES_HEIGHT, BOX_HEIGHT, HEAD = 2.7, 0.21, 0.75  # inches
RESOLUTION = 130
MOST_MARKERS = 7
RATIO_TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


def draw(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Write a figure into a folder, and return the paths of the SVG and the PNG file."""
    matplotlib, artist = import_extra("matplotlib", "lab"), import_extra("matplotlib.figure", "lab")
    vector, raster = (import_extra(f"matplotlib.backends.backend_{kind}", "lab") for kind in ("svg", "agg"))
    rows = figure.printed
    panels = [panel for row in rows for panel in row]
    heights = [max((_height(panel) for panel in row if panel), default=1.0) for row in rows]
    columns = max(len(row) for row in rows)
    size = (WIDTHS.get(columns, PANEL_WIDTH * columns), sum(heights) + 0.5)
    svg, png = folder / f"{figure.stem}.svg", folder / f"{figure.stem}.png"
    with matplotlib.rc_context(SETTINGS):
        sheet = artist.Figure(figsize=size, dpi=RESOLUTION, layout="constrained")
        cells = sheet.subplot_mosaic(_mosaic(rows), height_ratios=heights, empty_sentinel=-1)
        for index, panel in enumerate(panels):
            if panel:
                draw_panel(cells[index], panel)
            if isinstance(panel, Lines) and not _shared(panel, figure):
                cells[index].legend(loc="upper right", frameon=False, ncols=len(panel.lines))
        shared = [cells[index] for index, panel in enumerate(panels) if _shared(panel, figure)]
        add_legend(sheet, shared, 4 if columns > 1 else 3)
        # One layout for both files; savefig would compute it twice per file
        sheet.draw_without_rendering()
        sheet.set_layout_engine("none")
        raster.FigureCanvasAgg(sheet).print_png(png)
        vector.FigureCanvasSVG(sheet).print_svg(svg, metadata={"Date": None, "Title": figure.title})
    return svg, png


def _mosaic(rows: "list[list[Panel | None]]") -> list[list[int]]:
    """Return the number of the panel in each cell of a grid, -1 for none; a row with fewer panels has wider ones."""
    width = math.lcm(*(len(row) for row in rows))
    numbers = itertools.count()
    grid = []
    for row in rows:
        numbered = [(next(numbers), panel) for panel in row]
        grid.append([number if panel else -1 for number, panel in numbered for _ in range(width // len(row))])
    return grid


def _height(panel: Panel) -> float:
    if isinstance(panel, Lines):
        return LINES_HEIGHT
    return HEAD + BOX_HEIGHT * (len(panel.boxes) if isinstance(panel, Boxes) else len(panel.rows))


def draw_panel(axes: "Axes", panel: Panel, scale: float = 1.0) -> None:
    """Draw a panel; `scale` multiplies the size of lines and markers."""
    axes.set_title(panel.title, loc="left", y=1.0)  # with a fixed y, Matplotlib does not search for a position
    axes.set_xlabel(panel.x)
    if isinstance(panel, Lines):
        _draw_lines(axes, panel, scale)
    elif isinstance(panel, Boxes):
        _draw_boxes(axes, panel, scale)
    else:
        _draw_intervals(axes, panel)


def _draw_lines(axes: "Axes", panel: Lines, scale: float) -> None:
    axes.set_ylabel(panel.y)
    for change in panel.changes:
        axes.axvline(change, color="0.5", linewidth=0.8, linestyle=":")
    if panel.level is not None:
        axes.axhline(panel.level, color="0.3", linewidth=1.0, linestyle="--")
    for index, line in enumerate(panel.lines):
        colour = line.style.colour
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.12, linewidth=0)
        # Markers start at different points, so that those of close curves do not overlap
        spacing = max(1, len(line.x) // MOST_MARKERS)
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=DASHES[line.style.dash],
            linewidth=1.3 * scale,
            drawstyle="steps-post" if line.steps else "default",
            marker=MARKERS[line.style.marker] if panel.markers else None,
            markersize=4.5 * scale,
            markerfacecolor=colour if line.style.filled else "white",
            markevery=(spacing * (index % 11 + 1) // 12, spacing) if len(line.x) > MOST_MARKERS else 1,
            label=line.name,
        )
    if panel.bounded:
        axes.set_ylim(-0.02, 1.02)
    else:
        axes.set_ylim(bottom=0)
    if panel.percent or not panel.bounded:
        axes.yaxis.set_major_formatter(_percent if panel.percent else _thousands)
    axes.xaxis.set_major_formatter(_thousands)


def _percent(value: float, _: object = None) -> str:
    return f"{100.0 * value:g} %"


def _thousands(value: float, _: object = None) -> str:
    return f"{value:,.0f}" if abs(value) >= 2.0 or value == 0.0 else f"{value:g}"


def _draw_boxes(axes: "Axes", panel: Boxes, scale: float) -> None:
    axes.grid(visible=False, axis="y")
    for row, box in enumerate(panel.boxes):
        colour = box.style.colour
        numbers = {
            "med": box.median, "q1": box.first, "q3": box.third, "whislo": box.low, "whishi": box.high,
            "mean": box.mean, "fliers": box.outliers, "label": box.short,
        }  # fmt: skip
        line = {"color": colour, "linewidth": 1.1 * scale}
        axes.bxp(
            [numbers],
            positions=[row],
            widths=0.62,
            orientation="horizontal",
            patch_artist=True,
            showmeans=True,
            boxprops={
                "facecolor": (colour, 0.35) if box.style.filled else "white",
                "edgecolor": colour,
                "linestyle": "-" if box.style.filled else (0, (4, 1.5)),
                "linewidth": 1.1 * scale,
            },
            medianprops={"color": colour, "linewidth": 2.0 * scale},
            whiskerprops=line,
            capprops=line,
            flierprops={"marker": "o", "markersize": 2.0 * scale, "markeredgecolor": colour, "alpha": 0.6},
            meanprops={
                "marker": "D",
                "markersize": 3.2 * scale,
                "markerfacecolor": "white",
                "markeredgecolor": colour,
            },
        )
    axes.set_yticks(range(len(panel.boxes)), [box.short for box in panel.boxes])
    axes.set_ylim(len(panel.boxes) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(_thousands)


def _draw_intervals(axes: "Axes", panel: Intervals) -> None:
    axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle="--")
    for index, row in enumerate(panel.rows):
        value, low, high = row.estimate
        ends = np.array([[value - low], [high - value]])
        axes.errorbar(
            [value],
            [index],
            xerr=np.where(np.isfinite(ends), ends, 0.0),
            fmt=MARKERS[row.style.marker],
            color=row.style.colour,
            capsize=3,
        )
    axes.set_yticks(range(len(panel.rows)), [row.name for row in panel.rows])
    axes.set_ylim(len(panel.rows) - 0.4, -0.6)
    axes.set_xscale("log")
    left, right = axes.get_xlim()
    axes.set_xticks([tick for tick in RATIO_TICKS if left <= tick <= right])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _shared(panel: Panel | None, figure: Figure) -> bool:
    """Return whether a panel is part of the common legend; panels of arms in a figure of policies are not."""
    return isinstance(panel, Lines) and (panel.markers or not figure.by_row)


def add_legend(sheet: Any, panels: "list[Axes]", columns: int) -> None:
    """Put one legend with at most so many columns under the figure."""
    known: dict[str, Any] = {}
    for axes in panels:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(text, handle)
    if known:
        rows = -(-len(known) // columns)
        ncols = -(-len(known) // rows)  # rows of about the same length
        sheet.legend(known.values(), known.keys(), loc="outside lower center", ncols=ncols, frameon=False)
