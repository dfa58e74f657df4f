"""Figures as Plotly data for the page."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dynabandit.report.figures import PanelBlock
from dynabandit.report.panels import Boxes, Intervals, Line, Lines, Panel

GREY = "rgba(128, 128, 128, 0.8)"
GRID = "rgba(128, 128, 128, 0.22)"
NOTHING = "rgba(0, 0, 0, 0)"
LINES_HEIGHT, PATHS_HEIGHT, ROW_HEIGHT, TALL_ROW, GAP = 300, 190, 24, 32, 64  # pixels
LONG = 20  # characters
MARGINS = {"l": 56, "r": 12, "t": 8, "b": 44}


def chart(block: PanelBlock) -> dict[str, Any]:
    """Return data, layout and height of a block, with what the page needs for its legend."""
    heights = [_height(panel) for panel in block.panels]
    inside = sum(heights) + GAP * (len(heights) - 1)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "margin": MARGINS,
        "paper_bgcolor": NOTHING,
        "plot_bgcolor": NOTHING,
        "hovermode": "closest",
        "showlegend": False,  # the page has its own
        "shapes": [],
    }
    top = inside
    for index, (panel, height) in enumerate(zip(block.panels, heights, strict=True), start=1):
        number = "" if index == 1 else str(index)
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        traces += [{**trace, **axes} for trace in _traces(panel)]
        layout[f"xaxis{number}"] = {**_axis(panel.x), **_x_axis(panel), "anchor": f"y{number}"}
        domain = [max(0.0, (top - height) / inside), top / inside]
        layout[f"yaxis{number}"] = {**_y_axis(panel), "anchor": f"x{number}", "domain": domain}
        layout["shapes"] += _shapes(panel, number)
        top -= height + GAP
    curves = [panel for panel in block.panels if isinstance(panel, Lines)]
    return {
        "data": traces,
        "layout": layout,
        "height": inside + MARGINS["t"] + MARGINS["b"],
        "entries": [{"name": line.name, **line.style._asdict()} for panel in curves for line in panel.lines],
        "groups": [{"title": group.title, "names": group.names} for panel in curves for group in panel.groups],
    }


def _height(panel: Panel) -> int:
    if isinstance(panel, Lines):
        return LINES_HEIGHT if panel.markers else PATHS_HEIGHT
    rows = _rows(panel)
    return (TALL_ROW if any("<br>" in _wrapped(row) for row in rows) else ROW_HEIGHT) * (1 + len(rows))


def _rows(panel: Boxes | Intervals) -> list[str]:
    return [box.short for box in panel.boxes] if isinstance(panel, Boxes) else [row.name for row in panel.rows]


def _traces(panel: Panel) -> Iterator[dict[str, Any]]:
    if isinstance(panel, Lines):
        # Bands first, so that they do not cover curves
        yield from (_band(line) for line in panel.lines if line.low is not None)
        yield from (_curve(line, panel) for line in panel.lines)
    elif isinstance(panel, Boxes):
        yield from _boxes(panel)
    else:
        yield _intervals(panel)


def _band(line: Line) -> dict[str, Any]:
    assert line.low is not None
    assert line.high is not None
    return {
        "type": "scatter",
        "x": _short([*line.x, *line.x[::-1]]),
        "y": _short([*line.high, *line.low[::-1]]),
        "fill": "toself",
        "fillcolor": _transparent(line.style.colour, 0.14),
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "legendgroup": line.name,
        "name": _plain(line.name),
    }


def _curve(line: Line, panel: Lines) -> dict[str, Any]:
    value = "%{y:.3~p}" if panel.percent else "%{y:,.4~g}"
    hover = f"{panel.x} %{{x:,}}<br>{panel.y} {value}"
    trace: dict[str, Any] = {
        "type": "scatter",
        "x": _short(line.x),
        "y": _short(line.y),
        "mode": "lines+markers" if panel.markers else "lines",
        "line": {"color": line.style.colour, "dash": line.style.dash, "width": 2},
        "name": _plain(line.name),
        "legendgroup": line.name,
    }
    if line.steps:
        trace["line"]["shape"] = "hv"
    if panel.markers:
        symbol = line.style.marker + ("" if line.style.filled else "-open")
        trace["marker"] = {"symbol": symbol, "size": 7, "maxdisplayed": 8}
    if line.low is not None and line.high is not None:
        trace["customdata"] = [list(pair) for pair in zip(_short(line.low), _short(line.high), strict=True)]
        form = ".3~p" if panel.percent else ",.4~g"
        hover += f"<br>95 %: %{{customdata[0]:{form}}} to %{{customdata[1]:{form}}}"
    trace["hovertemplate"] = hover + f"<extra>{_plain(line.name)}</extra>"
    return trace


def _boxes(panel: Boxes) -> Iterator[dict[str, Any]]:
    for box in panel.boxes:
        colour = box.style.colour
        numbers = {
            "lowerfence": box.low,
            "q1": box.first,
            "median": box.median,
            "q3": box.third,
            "upperfence": box.high,
        }
        numbers["mean"] = box.mean
        common = {"legendgroup": box.name, "name": _plain(box.short)}
        yield {
            "type": "box",
            "orientation": "h",
            "y": [box.short],
            **{name: _short([value]) for name, value in numbers.items()},
            "boxmean": True,
            "fillcolor": _transparent(colour, 0.35) if box.style.filled else NOTHING,
            "line": {"color": colour, "width": 1.6},
            "width": 0.62,
            **common,
        }
        if len(box.outliers):
            yield {
                "type": "scatter",
                "mode": "markers",
                "x": _short(box.outliers),
                "y": [box.short] * len(box.outliers),
                "marker": {"color": colour, "size": 4, "opacity": 0.6},
                "hovertemplate": f"{panel.x} %{{x:,}}<extra>{_plain(box.name)}</extra>",
                **common,
            }


def _intervals(panel: Intervals) -> dict[str, Any]:
    estimates = [row.estimate for row in panel.rows]
    style = panel.rows[0].style
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _short([estimate.value for estimate in estimates]),
        "y": [row.name for row in panel.rows],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": _short([estimate.high - estimate.value for estimate in estimates]),
            "arrayminus": _short([estimate.value - estimate.low for estimate in estimates]),
        },
        "marker": {"color": style.colour, "symbol": style.marker, "size": 9},
        "customdata": [[*_short([estimate.low, estimate.high])] for estimate in estimates],
        "hovertemplate": "%{y}: %{x:.3~g}<br>95 %: %{customdata[0]:.3~g} to %{customdata[1]:.3~g}<extra></extra>",
        "name": panel.title,
    }


def _axis(text: str) -> dict[str, Any]:
    return {"title": {"text": text, "standoff": 6}, "gridcolor": GRID, "zerolinecolor": GRID, "automargin": True}


def _x_axis(panel: Panel) -> dict[str, Any]:
    if isinstance(panel, Intervals):
        ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10]
        return {"type": "log", "tickvals": ticks, "ticktext": [str(tick) for tick in ticks]}
    reach = {"rangemode": "tozero"} if isinstance(panel, Boxes) else {}
    # Plotly would guess the type from the first trace, which may be hidden
    return {"type": "linear", "tickformat": ",~g", "nticks": 6, "tickangle": 0, **reach}


def _y_axis(panel: Panel) -> dict[str, Any]:
    if isinstance(panel, Lines):
        form = {"tickformat": "~p" if panel.percent else "" if panel.bounded else ","}
        reach = {"range": [-0.02, 1.02]} if panel.bounded else {"rangemode": "tozero"}
        return {**_axis(panel.y), **form, **reach}
    rows = _rows(panel)
    order = {"type": "category", "categoryorder": "array", "categoryarray": rows, "autorange": "reversed"}
    ticks = {"tickvals": rows, "ticktext": [_wrapped(row) for row in rows], "tickfont": {"size": 11}}
    return {**_axis(""), **order, **ticks, "showgrid": False}


def _shapes(panel: Panel, number: str) -> Iterator[dict[str, Any]]:
    line = {"color": GREY, "width": 1, "dash": "dash"}
    if isinstance(panel, Intervals):
        yield _vertical(1.0, number, line)
    if isinstance(panel, Lines):
        yield from (_vertical(change, number, line) for change in panel.changes)
        if panel.level is not None:
            ends = {"xref": f"x{number} domain", "x0": 0, "x1": 1}
            yield {"type": "line", "yref": f"y{number}", "y0": panel.level, "y1": panel.level, "line": line, **ends}


def _vertical(place: float, number: str, line: dict[str, Any]) -> dict[str, Any]:
    ends = {"yref": f"y{number} domain", "y0": 0, "y1": 1}
    return {"type": "line", "xref": f"x{number}", "x0": place, "x1": place, "line": line, **ends}


def _short(values: Iterable[Any]) -> list[float | None]:
    """Return numbers with five digits, enough for any screen."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]


def _transparent(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity})"


def _wrapped(text: str) -> str:
    """Break a long label before its parameters, to leave space for the plot on a phone."""
    name, bracket, rest = text.partition("(")
    return _plain(text) if len(text) < LONG or not bracket else f"{_plain(name)}<br>({_plain(rest)}"


def _plain(text: str) -> str:
    """Escape markup, which Plotly would interpret."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
