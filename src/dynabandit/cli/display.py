"""Shows the progress of a run, and prints tables."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from dynabandit.catalogue import Entry
from dynabandit.experiments import ProgressReporter

FILE_WIDTH = 160  # characters per line of text that goes to a file
MOST_ROWS = 40  # of the summary; a longer one shows only the best policies of each experiment
BEST = 3


def console(stream: TextIO) -> Console:
    """Return a console that writes control characters only to a terminal, whatever the environment variables say."""
    terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=terminal,
        width=None if terminal else FILE_WIDTH,
        highlight=False,
        markup=False,
    )


class LineProgress(ProgressReporter):
    """Progress in a file or a pipe: one line for each stage and each finished figure."""

    def __init__(self, stream: TextIO) -> None:
        self.console = console(stream)
        self.figures = 0
        self.done = 0

    def begin(self, cost: float, figures: int) -> None:
        self.figures, self.done = figures, 0

    def stage(self, title: str) -> None:
        self.note(title)

    def finished(self, figure: str) -> None:
        self.done += 1
        self.console.print(f"{figure}: simulated ({self.done} of {self.figures})", soft_wrap=True)

    def note(self, message: str) -> None:
        self.console.print(message, soft_wrap=True)


class _TimeLeft(ProgressColumn):
    """The remaining time, or nothing as long as it is unknown."""

    def render(self, task: Task) -> Text:
        if task.time_remaining is None or not task.total:
            return Text("")
        minutes, seconds = divmod(math.ceil(task.time_remaining), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d} left,", style="progress.remaining")


class BarProgress(LineProgress):
    """Progress in a terminal: a bar, the remaining time, and what is running."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TaskProgressColumn(),
            _TimeLeft(),
            TextColumn("{task.description}", markup=False),
            console=self.console,
            transient=True,
        )
        self.task = self.progress.add_task("reading stored results", total=None)

    def begin(self, cost: float, figures: int) -> None:
        super().begin(cost, figures)
        self.progress.update(self.task, total=max(cost, 1.0), completed=0.0 if cost else 1.0)

    def stage(self, title: str) -> None:
        self.running(title)

    def running(self, title: str) -> None:
        self.progress.update(self.task, description=title)

    def advance(self, cost: float) -> None:
        self.progress.advance(self.task, cost)


@contextmanager
def progress_display(stream: TextIO) -> Iterator[ProgressReporter]:
    """Show progress as a bar in a terminal, and as lines in any other stream."""
    if stream.isatty():
        reporter = BarProgress(stream)
        with reporter.progress:
            yield reporter
    else:
        yield LineProgress(stream)


def print_summary(rows: Sequence[Mapping[str, Any]], *, paired: bool = False) -> None:
    """Print the mean total regret of each policy; if there are many rows, only the best of each experiment.

    With `paired`, the table also has the paired difference of each policy to the first one of its experiment.
    """
    shown = rows
    title = "Mean total regret, with a 95 % interval"
    if len(rows) > MOST_ROWS:
        shown = _best(rows)
        title += f"; the best {BEST} policies of each experiment"
    table = Table(box=SIMPLE)
    for heading in ("experiment", "arms", "policy", "mean", "low", "high"):
        table.add_column(heading, justify="left" if heading in ("experiment", "policy") else "right", no_wrap=True)
    first = {row["baseline"] for row in rows}
    paired = paired and any(row["policy"] != row["baseline"] for row in rows)
    if paired:
        table.add_column(f"difference to {first.pop() if len(first) == 1 else 'the first'}", justify="right")
    for row in shown:
        numbers = [f"{row[name]:.1f}" for name in ("mean", "low", "high")] + ([_difference(row)] if paired else [])
        table.add_row(str(row["experiment"]), str(row["arms"]), str(row["policy"]), *numbers)
    console(sys.stdout).print(title, table, sep="\n")


def _difference(row: Mapping[str, Any]) -> str:
    if row["policy"] == row["baseline"] or row["difference"] is None:
        return ""
    value, low, high = row["difference"]
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _best(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows with the least regret of each experiment, experiments in order of appearance."""
    by_experiment: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_experiment.setdefault(row["experiment"], []).append(row)
    return [row for group in by_experiment.values() for row in sorted(group, key=lambda one: one["mean"])[:BEST]]


def print_standings(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the rows of the leaderboard."""
    table = Table(box=SIMPLE)
    for place, heading in enumerate(headings):
        width = max((len(row[place]) for row in rows), default=0)  # only headings are wrapped
        table.add_column(heading, justify="right" if place else "left", min_width=width)
    for row in rows:
        table.add_row(*row)
    console(sys.stdout).print("Leaderboard", table, sep="\n")


def print_catalogue(title: str, entries: Sequence[Entry]) -> None:
    """Print names, descriptions and parameters."""
    out = console(sys.stdout)
    out.print(title, style="bold")
    for entry in entries:
        out.print(f"  {entry.name}", style="bold cyan", end="")
        out.print(f"  {' '.join(entry.description.split())}", soft_wrap=True)
        for name, description in entry.parameters:
            out.print(f"      {name}" + (f": {description}" if description else ""), soft_wrap=True)
    out.print()
