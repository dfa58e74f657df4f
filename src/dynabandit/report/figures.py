"""Figures of any experiment: cumulative regret, total regret, correct selections, sample paths and coverage."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynabandit.report import panels
from dynabandit.report.panels import CurveGroup, Line, Lines, Panel, Series
from dynabandit.report.style import distinct_styles, other_style
from dynabandit.results import Results, Run, SamplePath
from dynabandit.stats import intervals


@dataclass(frozen=True)
class PanelBlock:
    """Panels that are stacked above each other under one legend."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Figure:
    """A figure: blocks, and how they are arranged."""

    id: str
    title: str
    caption: str
    blocks: tuple[PanelBlock, ...]
    columns: int = 2
    """How many blocks are side by side on the page."""
    by_row: bool = False
    """Whether each block is a row of the printed form, with its panels side by side."""
    experiments: tuple[str, ...] = ()
    """The experiments whose total regret is listed below the figure."""
    number: int = 0

    @property
    def stem(self) -> str:
        """The name of its files without the suffix."""
        return f"{self.number:02d}-{self.id}"

    @property
    def printed(self) -> list[list[Panel | None]]:
        """Rows of panels in the printed form, in which each group of curves has a panel; None is an empty cell."""
        own: list[list[Panel | None]]
        own = [[part for panel in block.panels for part in _parts(panel)] for block in self.blocks]
        if self.by_row:
            return own
        rows = []
        for start in range(0, len(own), self.columns):
            group = own[start : start + self.columns]
            group += [[None] * len(group[0])] * (min(self.columns, len(own)) - len(group))
            rows += [list(row) for row in zip(*group, strict=True)]
        return rows


def _parts(panel: Panel) -> Sequence[Panel]:
    return panel.by_group if isinstance(panel, Lines) else [panel]


def make_figures(results: Results) -> list[Figure]:
    """Return one figure per experiment with all of its runs, then the sample paths and the coverage."""
    figures = [_experiment(group) for group in groups(results)]
    figures += _sample_paths(results)
    if results.coverage:
        figures.append(coverage(results))
    return [replace(figure, number=number) for number, figure in enumerate(figures, start=1)]


@dataclass(frozen=True)
class Group:
    """The runs of one experiment on one environment; they share their sample paths."""

    title: str
    environment: str
    runs: list[Run]


def groups(results: Results) -> list[Group]:
    """Return the experiments in their order, with the titles given in the spec."""
    runs_by_group: dict[tuple[str, str], list[Run]] = {}
    for run in results:
        runs_by_group.setdefault((run.experiment, _environment(run)), []).append(run)
    parts = results.metadata.get("spec", {}).get("experiments", [])
    titles = {part["id"]: part["title"] for part in parts if part["title"] != part["id"]}
    return [
        Group(titles.get(identity, f"{identity}: {where}"), where, runs)
        for (identity, where), runs in runs_by_group.items()
    ]


def _environment(run: Run) -> str:
    others = {name: value for name, value in run.environment_parameters.items() if name != "arms"}
    if "rewards" in others:
        others["rewards"] = others["rewards"]["name"]
    details = "".join(f", {name} {value}" for name, value in others.items())
    return f"{run.environment}, {run.arms} arms{details[:80]}"


def _experiment(group: Group) -> Figure:
    series = _labelled(group.runs)
    together = panels.by_rank(series)
    if together:  # boxes in the order of the groups, so that a group has no gaps
        series = sorted(series, key=panels.mean_total)
    block = PanelBlock(
        "", (panels.regret("Cumulative regret", series, together), panels.totals("Total regret", series))
    )
    share = PanelBlock("", (panels.shares("Share of correct selections", series, together),))
    count = group.runs[0].replications
    text = f"Means over {count:,} replications with 95 % bands, and boxes of total regret."
    # The id becomes part of file names, and results may come from anyone
    identity = re.sub(r"[^A-Za-z0-9._-]+", "-", group.runs[0].experiment)
    return Figure(identity, group.title, text, (block, share), columns=1, by_row=True)


def _sample_paths(results: Results) -> Iterator[Figure]:
    """Yield one figure per environment; the paths of each environment begin with replication 0."""
    by_environment: list[list[SamplePath]] = []
    for path in results.paths:
        if path.replication == 0:
            by_environment.append([])
        by_environment[-1].append(path)
    for number, paths in enumerate(by_environment, start=1):
        name = paths[0].environment
        # Steps are right for jumps and look like a line where means drift
        lines = [panels.paths(f"{name}, path {index}", path, steps=True) for index, path in enumerate(paths, start=1)]
        blocks = tuple(PanelBlock(f"Path {index}", (panel,)) for index, panel in enumerate(lines, start=1))
        text = f"Mean reward of each arm in the first {len(paths)} replications."
        title = f"{name}, {paths[0].arms} arms: sample paths"
        yield Figure(f"sample-paths-{number}-{name}", title, text, blocks, columns=min(3, len(paths)))


def _labelled(runs: Sequence[Run]) -> list[Series]:
    """Return runs under their labels, in styles that differ."""
    looks = distinct_styles([run.policy for run in runs])
    return [Series(run, run.label, look) for run, look in zip(runs, looks, strict=True)]


def stacked(title: str, series: Sequence[Series], groups: tuple[CurveGroup, ...] = ()) -> PanelBlock:
    """Return cumulative regret above boxes of total regret."""
    curves = panels.regret(title if groups else f"{title}: cumulative regret", series, groups)
    return PanelBlock(title, (curves, panels.totals(f"{title}: total regret", series)))


def coverage(results: Results) -> Figure:
    """Return how often the bound of the adaptive mean was exceeded, with 95 % intervals."""
    blocks = []
    for size in sorted({point.step_size for point in results.coverage}):
        chosen = [point for point in results.coverage if point.step_size == size]
        counts = sorted({point.observations for point in chosen})
        lines = []
        for index, count in enumerate(counts):
            points = sorted((point for point in chosen if point.observations == count), key=lambda point: point.mean)
            ends = [intervals.clopper_pearson(point.exceeded, point.streams) for point in points]
            value, low, high = (np.array(column) for column in zip(*ends, strict=True))
            look = other_style(index)
            means = np.array([point.mean for point in points])
            lines.append(Line(f"{count:,} observations", look, means, value, low, high))
        title = f"Step size {size:g}"
        panel = Lines(title, "mean reward", "share beyond the bound", tuple(lines), percent=True, level=0.05)
        blocks.append(PanelBlock(title, (panel,)))
    text = "Share of streams in which the mean reward lies above the adaptive mean plus the bonus; dashed: 5 %."
    return Figure("bounds", "Coverage of the adaptive bound", text, tuple(blocks), columns=3)
