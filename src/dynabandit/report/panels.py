"""Panels of figures, reduced to the numbers that are drawn by both Matplotlib and Plotly."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynabandit.report.style import ARM_STYLES, Style
from dynabandit.results import SamplePath
from dynabandit.results.runs import RecordedRegret
from dynabandit.stats import intervals
from dynabandit.stats.intervals import Estimate

MOST_POINTS = 200  # of a curve
MOST_OUTLIERS = 25  # of a box
MOST_CURVES = 6  # that are shown together; a panel with more of them has groups
SMOOTHING = 50  # steps over which a share of correct selections is averaged


@dataclass(frozen=True)
class Series:
    """A run with its name and style in a figure."""

    run: RecordedRegret
    name: str
    style: Style
    short: str = ""
    """A short name for an axis."""


@dataclass(frozen=True)
class Line:
    """A curve, with a band where low and high are given."""

    name: str
    style: Style
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    steps: bool = False
    """Whether to draw steps between values."""


@dataclass(frozen=True)
class CurveGroup:
    """Curves of a panel that are shown together."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Lines:
    """A panel of curves."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    bounded: bool = False
    """Whether y goes from 0 to 1."""
    percent: bool = False
    """Whether y is a share, shown in percent."""
    level: float | None = None
    """A horizontal reference line."""
    changes: tuple[float, ...] = ()
    """Vertical lines at changes of the environment."""
    markers: bool = True
    groups: tuple[CurveGroup, ...] = ()
    """Which curves are shown together; without groups all are."""

    @property
    def by_group(self) -> list["Lines"]:
        """One panel for each group, or this panel if it has no groups."""
        panels = []
        for group in self.groups:
            lines = tuple(line for line in self.lines if line.name in group.names)
            panels.append(replace(self, title=f"{self.title}: {group.title}", lines=lines, groups=()))
        return panels or [self]


@dataclass(frozen=True)
class Box:
    """The five numbers of a box, the mean and some of the points beyond the whiskers."""

    name: str
    short: str
    style: Style
    low: float
    first: float
    median: float
    third: float
    high: float
    mean: float
    outliers: np.ndarray


@dataclass(frozen=True)
class Boxes:
    """A panel of boxes."""

    title: str
    x: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Row:
    """One row of a panel of intervals."""

    name: str
    style: Style
    estimate: Estimate


@dataclass(frozen=True)
class Intervals:
    """A panel of intervals on a logarithmic axis of ratios."""

    title: str
    x: str
    rows: tuple[Row, ...]


Panel = Lines | Boxes | Intervals


def mean_total(series: Series) -> float:
    """Return the mean total regret."""
    return float(series.run.total_regret.mean())


def by_rank(series: Sequence[Series]) -> tuple[CurveGroup, ...]:
    """Return groups of few curves, those with the least mean total regret first; none if there are few curves."""
    if len(series) <= MOST_CURVES:
        return ()
    ranked = [curve.name for curve in sorted(series, key=mean_total)]
    groups = []
    for start in range(0, len(ranked), MOST_CURVES):
        names = ranked[start : start + MOST_CURVES]
        title = f"Ranks {start + 1} to {start + len(names)}" if len(names) > 1 else f"Rank {start + 1}"
        groups.append(CurveGroup(title if start else f"Best {MOST_CURVES}", tuple(names)))
    return tuple(groups)


def regret(title: str, series: Sequence[Series], groups: tuple[CurveGroup, ...] = ()) -> Lines:
    """Return the mean cumulative regret with a 95 % band."""
    lines = []
    for curve in series:
        kept = thinned(len(curve.run.times))
        mean, low, high = intervals.student_band(curve.run.regret[:, kept])
        known = curve.run.replications > 1
        lines.append(
            Line(curve.name, curve.style, curve.run.times[kept], mean, low if known else None, high if known else None)
        )
    return Lines(title, "step", "cumulative regret", tuple(lines), groups=groups)


def totals(title: str, series: Sequence[Series]) -> Boxes:
    """Return boxes of total regret."""
    return Boxes(title, "total regret", tuple(box(curve) for curve in series))


def box(curve: Series) -> Box:
    """Return the box of total regret; whiskers end at the last point within 1.5 quartile ranges."""
    total = curve.run.total_regret
    first, median, third = np.percentile(total, [25, 50, 75])
    reach = 1.5 * (third - first)
    inside = total[(total >= first - reach) & (total <= third + reach)]
    beyond = np.sort(total[(total < first - reach) | (total > third + reach)])
    kept = beyond[thinned(len(beyond), MOST_OUTLIERS)]
    return Box(
        curve.name, curve.short or curve.name, curve.style, inside.min(), first, median, third, inside.max(),
        total.mean(), kept,
    )  # fmt: skip


def shares(
    title: str,
    series: Sequence[Series],
    groups: tuple[CurveGroup, ...] = (),
    changes: tuple[float, ...] = (),
    most_points: int = MOST_POINTS,
) -> Lines:
    """Return the share of correct selections, averaged over windows, with a 95 % band where replications are kept."""
    lines = []
    for curve in series:
        times, kept = curve.run.times, curve.run.correct_by_replication
        spacing = max(1, int(times[0]))
        width = max(1, SMOOTHING // spacing, -(-len(times) // most_points))
        cuts = np.arange(0, len(times), width)
        counts = np.diff(np.append(cuts, len(times)))
        low = high = None
        if kept is None or len(kept) < 2:
            share = np.add.reduceat(curve.run.correct, cuts) / counts
        else:
            windows = np.add.reduceat(kept.astype(float), cuts, axis=1) / counts
            share, low, high = (np.clip(line, 0.0, 1.0) for line in intervals.student_band(windows))
        lines.append(Line(curve.name, curve.style, times[np.minimum(cuts + width, len(times)) - 1], share, low, high))
    return Lines(
        title, "step", "share of correct selections", tuple(lines), bounded=True, percent=True, changes=changes,
        groups=groups,
    )  # fmt: skip


def paths(title: str, path: SamplePath, *, steps: bool) -> Lines:
    """Return the mean reward of each arm on a path."""
    lines = tuple(
        Line(f"Arm {arm + 1}", ARM_STYLES[arm % len(ARM_STYLES)], path.times, path.means[:, arm], steps=steps)
        for arm in range(path.arms)
    )
    return Lines(title, "step", "mean reward", lines, bounded=True, markers=False)


def thinned(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """Return at most `most` evenly spaced indices, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
