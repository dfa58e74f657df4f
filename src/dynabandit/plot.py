"""Figures for publications, with Matplotlib: ``db.plot.regret(runs).savefig("regret.pdf")``.

Every function returns a Matplotlib figure, of the width of one or two columns of a paper, that is saved as PDF, SVG,
PNG or PGF. With ``axes=...`` it draws into axes of your own, in your own style. Curves differ in colour, dash and
marker, so that they can be told apart in grey and by readers with colour vision deficiencies.
"""

import functools
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynabandit.environments import Environment, environment as make_environment
from dynabandit.extras import import_extra
from dynabandit.report import panels
from dynabandit.report.matplotlib_figures import SETTINGS as REPORT_SETTINGS, add_legend, draw_panel
from dynabandit.report.panels import Line, Lines, Panel, Series
from dynabandit.report.style import ARM_STYLES, distinct_styles
from dynabandit.results import Run, SamplePath, Simulation
from dynabandit.results.runs import RecordedRegret
from dynabandit.simulation import recorded_times, trace
from dynabandit.stats import intervals
from dynabandit.validation import integer, number, unknown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["beliefs", "boxes", "correct", "paths", "regret"]

Runs: TypeAlias = Mapping[str, RecordedRegret] | RecordedRegret | Iterable[RecordedRegret]

WIDTHS = {"single": 3.4, "double": 7.0}  # inches: one and two columns of a paper
SHORTEST, LONGEST = 1.0, 40.0  # inches
LINES_HEIGHT, BOX_HEIGHT, MARGIN = 2.3, 0.19, 0.55  # inches
LEGEND_LINE, LEGEND_CHARACTER = 0.5, 0.055  # inches of an entry of a legend
SCALE = 0.75  # of lines and markers, next to those of the report
MOST_ARMS = len(ARM_STYLES)  # with a legend
POINTS = 1000  # of a sample path
NOTEBOOK_DPI = 150
SHARES = 50  # points of a curve of correct selections
SETTINGS: dict[str, Any] = {
    **REPORT_SETTINGS,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "font.family": "STIXGeneral",  # like Times; comes with Matplotlib
    "font.size": 8,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "mathtext.fontset": "stix",
    "pdf.fonttype": 42,  # TrueType: many journals refuse the default, Type 3
    "pgf.rcfonts": False,  # the fonts of the document
    "pgf.texsystem": "pdflatex",
    "ps.fonttype": 42,
    "savefig.dpi": 300,
    "xtick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.labelsize": 7,
    "ytick.major.width": 0.6,
}


def regret(
    runs: Runs, *, axes: "Axes | None" = None, width: str | float = "single", height: float | None = None,
    title: str = "",
) -> "Figure":  # fmt: skip
    """Plot the mean cumulative regret, with a 95 % interval at each step.

    Parameters
    ----------
    runs
        What `compare` or `simulate` returned, a list of simulations, or the runs of one experiment of `Results`. The
        keys of a mapping are the labels.
    axes
        Matplotlib axes to draw into; by default those of a new figure.
    width
        ``"single"`` (3.4 inches), ``"double"`` (7 inches), or a number of inches; of a new figure only.
    height
        The height of a new figure in inches.
    title
        The title, none by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Intervals are Student's; there are none with a single replication.

    Examples
    --------
    >>> import dynabandit as db
    >>> runs = db.compare(["ts", "aff-ts"], "small-changes", horizon=100, replications=3, seed=1)
    >>> figure = db.plot.regret(runs)
    >>> figure.get_size_inches().tolist(), [line.get_label() for line in figure.axes[0].lines]
    ([3.4, 2.3], ['ts', 'aff-ts'])
    """
    return _figure(panels.regret(title, _series(runs)), axes, width, height)


def boxes(
    runs: Runs, *, axes: "Axes | None" = None, width: str | float = "single", height: float | None = None,
    title: str = "",
) -> "Figure":  # fmt: skip
    """Plot boxes of the total regret: quartiles, whiskers within 1.5 quartile ranges, and the mean (diamond).

    The arguments are those of `regret`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import dynabandit as db
    >>> runs = db.compare(["ts", "aff-ts"], "small-changes", horizon=100, replications=3, seed=1)
    >>> [label.get_text() for label in db.plot.boxes(runs).axes[0].get_yticklabels()]
    ['ts', 'aff-ts']
    """
    return _figure(panels.totals(title, _series(runs)), axes, width, height)


def correct(
    runs: Runs, *, axes: "Axes | None" = None, width: str | float = "single", height: float | None = None,
    title: str = "",
) -> "Figure":  # fmt: skip
    """Plot the share of steps at which a best arm was played, with a 95 % interval.

    The arguments are those of `regret`. Only the recorded steps count (``times=`` of `compare`); shares are averaged
    over windows of at least 50 steps and a fiftieth of the horizon.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import dynabandit as db
    >>> runs = db.compare(["ts", "aff-ts"], "small-changes", horizon=100, replications=3, seed=1)
    >>> db.plot.correct(runs).axes[0].get_ylabel()
    'share of correct selections'
    """
    return _figure(panels.shares(title, _series(runs), most_points=SHARES), axes, width, height)


def paths(
    source: Environment | Simulation | str, *, horizon: int = 10_000, seed: int = 1, replication: int = 0,
    axes: "Axes | None" = None, width: str | float = "single", height: float | None = None, title: str = "",
) -> "Figure":  # fmt: skip
    """Plot the mean reward of each arm at each step.

    Parameters
    ----------
    source
        An environment or its name, or a simulation, whose horizon and seed are then used.
    horizon, seed
        Of the path, if `source` is an environment.
    replication
        Which replication, counted from the first one of the simulation.
    axes, width, height, title
        As for `regret`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import dynabandit as db
    >>> figure = db.plot.paths("small-changes", horizon=6000, width="double")
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['Arm 1', 'Arm 2', 'Arm 3']
    """
    if isinstance(source, Simulation):
        environment, horizon, seed = source.environment, source.horizon, source.seed
        replication = integer("replication", replication, 0, source.replications - 1) + source.first_replication
    else:
        environment = make_environment(source)
        horizon = integer("horizon", horizon, 1)
    times = recorded_times(min(POINTS, horizon), horizon)
    means = environment.rewards.expected(environment.path(horizon, seed, replication)[times - 1])
    path = SamplePath(environment.name, environment.arms, replication, times, means)
    panel = replace(panels.paths(title, path, steps=True), bounded=_is_share(environment))
    return _figure(panel, axes, width, height, has_legend=environment.arms <= MOST_ARMS)


def beliefs(
    run: Simulation, *, arms: Sequence[int] | None = None, replication: int = 0, axes: "Axes | None" = None,
    width: str | float = "single", height: float | None = None, title: str = "",
) -> "Figure":  # fmt: skip
    """Plot what a policy believes about the mean of each arm along one replication, and the true means (thin).

    Parameters
    ----------
    run
        A simulation with ``keep=("arms", "rewards")``.
    arms
        Which arms, 0, 1, ...; by default all, or the eight that were played most.
    replication
        Which replication, counted from the first one of the simulation.
    axes, width, height, title
        As for `regret`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The bands are normal 95 % intervals of the estimated mean, from the variance and the effective
        size of the estimate.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = db.simulate("aff-ots", "small-changes", horizon=200, seed=1, keep=("arms", "rewards"))
    >>> figure = db.plot.beliefs(run, arms=[0, 2])
    >>> [line.get_label() for line in figure.axes[0].lines][:2]
    ['Arm 1', 'Arm 3']
    """
    if not isinstance(run, Simulation):
        raise TypeError(f"run must be what simulate returned, got {run!r}")
    seen = trace(run, replication)
    counts = seen.plays.sum(axis=0)
    most_played = np.sort(np.argsort(-counts, kind="stable")[:MOST_ARMS]).tolist()
    chosen = most_played if arms is None else [integer("arm", arm, 0, len(counts) - 1) for arm in arms]
    if not chosen:
        raise ValueError("arms must name at least one arm, got none")
    is_share = _is_share(run.environment)
    lines = []
    for place, arm in enumerate(chosen):
        mean = seen.mean[:, arm]
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = intervals.normal(mean, np.sqrt(seen.variance[:, arm] / seen.effective_size[:, arm]))
        if is_share:
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        lines.append(Line(f"Arm {arm + 1}", ARM_STYLES[place % MOST_ARMS], seen.times, mean, low, high))
    panel = Lines(title, "step", "mean reward", tuple(lines), bounded=is_share, markers=False)
    truth = [(line.style.colour, seen.truth[:, arm]) for line, arm in zip(lines, chosen, strict=True)]

    def draw_truth(own: "Axes") -> None:
        for colour, means in truth:
            own.plot(seen.times, means, color=colour, linewidth=0.6, drawstyle="steps-post")
        own.plot([], [], color="0.3", linewidth=0.6, label="true mean")

    return _figure(panel, axes, width, height, draw_more=draw_truth)


def _is_share(environment: Environment) -> bool:
    """Whether mean rewards are in [0, 1]."""
    domain = environment.rewards.domain
    return domain.low >= 0.0 and domain.high <= 1.0


def _series(runs: Runs) -> list[Series]:
    """Return runs with their labels and styles."""
    if isinstance(runs, Mapping):
        labels, found = list(runs), list(runs.values())
    else:
        found = list(runs) if isinstance(runs, Iterable) and not isinstance(runs, RecordedRegret) else [runs]
        labels = [_policy(run)[0] if isinstance(run, RecordedRegret) else "" for run in found]
    for run in found:
        if not isinstance(run, RecordedRegret):
            raise TypeError(f"runs must be what compare or simulate returned, or runs of results, got {run!r}")
    if not found:
        raise ValueError("runs must hold at least one run, got none")
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"runs must have different labels, got {label!r} twice: give a mapping from your own")
    looks = distinct_styles([_policy(run)[1] for run in found])
    return [Series(run, label, look) for run, label, look in zip(found, labels, looks, strict=True)]


def _policy(run: RecordedRegret) -> tuple[str, str]:
    """Return the label and the name of the policy of a run."""
    if isinstance(run, Simulation):
        return run.policy.label, run.policy.name
    assert isinstance(run, Run)
    return run.label, run.policy


def _figure(
    panel: Panel,
    axes: "Axes | None",
    width: str | float,
    height: float | None,
    *,
    has_legend: bool = True,
    draw_more: Any = None,
) -> "Figure":
    """Draw a panel into axes, or into a new figure."""
    if axes is not None:
        draw_panel(axes, panel, SCALE)
        if draw_more is not None:
            draw_more(axes)
        if has_legend and isinstance(panel, Lines):
            axes.legend(frameon=False)
        figure: Figure = axes.get_figure(root=True)  # type: ignore[assignment]
        return figure
    size = (_width(width), _height(panel) if height is None else number("height", height, SHORTEST, LONGEST))
    with import_extra("matplotlib", "lab").rc_context(SETTINGS):
        sheet = _figure_type()(figsize=size, layout="constrained")
        own = sheet.subplots()
        draw_panel(own, panel, SCALE)
        if draw_more is not None:
            draw_more(own)
        if has_legend and isinstance(panel, Lines):
            longest = max(len(line.name) for line in panel.lines)
            add_legend(sheet, [own], max(1, int(size[0] / (LEGEND_LINE + LEGEND_CHARACTER * longest))))
    result: Figure = sheet
    return result


def _width(width: str | float) -> float:
    if isinstance(width, str):
        if width not in WIDTHS:
            raise unknown("width", width, WIDTHS)
        return WIDTHS[width]
    return number("width", width, SHORTEST, LONGEST)


def _height(panel: Panel) -> float:
    return MARGIN + BOX_HEIGHT * len(panel.boxes) if isinstance(panel, panels.Boxes) else LINES_HEIGHT


@functools.cache
def _figure_type() -> Any:
    """Return the type of new figures: Matplotlib's, always drawn and saved with the settings of this module."""
    matplotlib, base = import_extra("matplotlib", "lab"), import_extra("matplotlib.figure", "lab").Figure

    class PublicationFigure(base):  # type: ignore[misc,valid-type]
        def draw(self, renderer: Any) -> None:
            with matplotlib.rc_context(SETTINGS):
                super().draw(renderer)

        def savefig(self, *arguments: Any, **options: Any) -> None:
            with matplotlib.rc_context(SETTINGS):
                super().savefig(*arguments, **options)

        def _repr_png_(self) -> bytes:
            """Show the figure in a notebook, also if it does not use pyplot."""
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=NOTEBOOK_DPI)
            return file.getvalue()

    return PublicationFigure
