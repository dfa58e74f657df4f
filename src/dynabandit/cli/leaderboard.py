"""The command `dynabandit leaderboard`."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dynabandit.cli import display
from dynabandit.cli.exit_codes import BAD_INPUT, bad_input, stop
from dynabandit.cli.run_errors import run_errors
from dynabandit.cli.run_options import (
    Backend,
    Cluster,
    Fresh,
    Jobs,
    Out,
    Precision,
    Seed,
    check_run_options,
)
from dynabandit.experiments import ProgressReporter, RunOptions
from dynabandit.experiments.spec_reader import read_policy
from dynabandit.leaderboard.board import FILE, Board
from dynabandit.leaderboard.contextual_environments import make_timed_environment
from dynabandit.leaderboard.run import QUICK_REPLICATIONS, REPLICATIONS, Selection, TrialJobs, run
from dynabandit.leaderboard.step_times import GPU_ARM_STEPS, PYTHON_SECONDS, estimate_seconds, time_steps
from dynabandit.policies import resolved
from dynabandit.policies.horizons.practical_forms import practical_form
from dynabandit.simulation.backends import cores

PRINTED = (0, 1, 2, 3, 4, 5, 7, 8, 9)  # columns; the file has all of them

Policies = Annotated[
    list[str] | None,
    typer.Option(help='Only this policy, such as ts, "ots + window:window=500" or module:Class; repeat for several.'),
]
Environments = Annotated[
    list[str] | None,
    typer.Option("--environment", "--env", help="Only this environment or family; repeat for several."),
]
Part = Annotated[str, typer.Option(metavar="I/N", help="Only part I of N parts of the policies, for N processes.")]
Merge = Annotated[
    list[Path] | None,
    typer.Option(metavar="FOLDER", help="Run nothing: combine the results of these folders; repeat for several."),
]

app = typer.Typer()


@app.command()
def leaderboard(
    *,
    policy: Policies = None,
    environment: Environments = None,
    replications: Annotated[
        int | None, typer.Option(help=f"Number of replications; {REPLICATIONS} by default.")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"Some policies and environments, {QUICK_REPLICATIONS} replications."),
    ] = False,
    contextual: Annotated[
        bool, typer.Option("--contextual", help="Policies that decide by features, in environments with features.")
    ] = False,
    tuned: Annotated[bool, typer.Option(help="Run policies that are tuned with the truth, too.")] = True,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Out = Path("out/leaderboard"),
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    timing: Annotated[bool, typer.Option(help="Measure the time per step of each policy.")] = True,
    horizon: Annotated[int | None, typer.Option(help="Number of steps, instead of each environment's own.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Begin no environment after this time; the same command continues later.")
    ] = None,
    part: Part = "1/1",
    merge: Merge = None,
) -> None:
    """Compare all policies in many environments.

    Each policy runs in a form that needs no knowledge of the future. The estimated time is shown before it starts. An
    interrupted run continues where it stopped.
    """
    if merge:
        _merge(merge, out)
        return
    with bad_input():
        selection = Selection(
            policies=[read_policy(resolved(one, contextual=contextual)) for one in policy or ()],
            environments=environment or (),
            seed=seed, horizon=horizon, tuned=tuned, quick=quick, contextual=contextual, part=_part(part),
            replications=replications if replications is not None else QUICK_REPLICATIONS if quick else REPLICATIONS,
        )  # fmt: skip
        work = selection.make_work()
        specs = [one.spec(seed) for one in work]
    options = RunOptions(jobs, fresh, backend, precision, cluster)
    check_run_options(specs, options)
    with run_errors(out), display.progress_display(sys.stderr) as reporter:
        reporter.note(_cost(selection, work, jobs or cores(), backend))
        seconds = None if minutes is None else 60.0 * minutes
        board, left = run(work, out, seed, reporter, options, seconds)
        if timing and not left and backend == "cpu":
            board.microseconds = _times(selection, reporter)
            board.save(out / FILE)
    _publish(board, out)
    if left:
        typer.echo(f"{left} environments are left: run the same command again to continue.")


def _part(text: str) -> tuple[int, int]:
    """Read ``I/N``."""
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise ValueError(f"--part must be I/N with whole numbers 1 <= I <= N, got {text!r}")
    return int(number), int(parts)


def _cost(selection: Selection, work: Sequence[TrialJobs], threads: int, backend: str) -> str:
    """Return a sentence that says what will run, and about how long it takes."""
    policies = len(selection.chosen())
    what = f"{policies} policies in {len(work)} environments with {selection.replications:,} replications"
    if selection.quick:
        what = f"a quick look, not the whole leaderboard: {what}"
    arm_steps = sum(one.arm_steps for one in work)
    if selection.contextual:  # the time per step depends on the number of features
        return f"leaderboard: {what}, {arm_steps:.1e} arms x steps, and up to ten seconds per policy to compile it"
    if backend == "cuda":
        duration = f"about {_duration(arm_steps / GPU_ARM_STEPS)} on an H200"
    else:
        simulations = [
            (job.policy.name, one.trial.environment.arms, float(job.replications * one.trial.horizon))
            for one in work
            for job in one.jobs
            if not job.policy.functions.in_python
        ]
        seconds = estimate_seconds(simulations, threads) + PYTHON_SECONDS * _python_steps(work)
        duration = f"about {_duration(seconds)} on {threads} threads of this machine"
    return (
        f"leaderboard: {what}, {arm_steps:.1e} arms x steps, {duration}, and up to ten seconds per policy to compile it"
    )


def _python_steps(work: Sequence[TrialJobs]) -> float:
    """Return the steps of all policies in plain Python."""
    jobs = [(one.trial.horizon, job) for one in work for job in one.jobs]
    return float(sum(job.replications * horizon for horizon, job in jobs if job.policy.functions.in_python))


def _duration(seconds: float) -> str:
    for size, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{math.ceil(seconds / size)} {name}"
    return f"{math.ceil(seconds)} seconds"


def _times(selection: Selection, reporter: ProgressReporter) -> dict[str, float]:
    reporter.running("measuring the time per step of each policy")
    horizon = 20_000 if selection.quick else 100_000
    environment = make_timed_environment() if selection.contextual else None
    steps = horizon // 10 if selection.contextual else horizon
    forms = {policy.label: practical_form(policy) for policy in selection.chosen()}
    return {label: time_steps([form], environment, steps)[form.name] for label, form in forms.items()}


def _merge(folders: Sequence[Path], out: Path) -> None:
    """Combine the data of several runs."""
    board = Board()
    for folder in folders:
        with bad_input():
            try:
                board.merge(Board.load(folder / FILE))
            except OSError as error:
                stop(f"--merge: cannot read {folder / FILE}: {error.strerror}", BAD_INPUT)
    board.keep_best_tuned()
    out.mkdir(parents=True, exist_ok=True)
    board.save(out / FILE)
    _publish(board, out)


def _publish(board: Board, out: Path) -> None:
    """Write and print the tables."""
    from dynabandit.leaderboard import page, standings

    rows = standings.standings(board)
    (out / "leaderboard.md").write_text(standings.as_markdown(board), encoding="utf-8")
    (out / "leaderboard.html").write_text(page.render(board), encoding="utf-8")
    cells = [standings.cells(row) for row in rows]
    display.print_standings([standings.HEADINGS[i] for i in PRINTED], [[row[i] for i in PRINTED] for row in cells])
    typer.echo(f"Page: {out / 'leaderboard.html'}")
    typer.echo(f"Data: {out / FILE}")
