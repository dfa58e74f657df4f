"""The commands for logged decisions; each parses its arguments, calls one function and prints the result."""

import contextlib
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.progress import Progress
from rich.table import Table

from dynabandit import offline
from dynabandit.cli import display, missing
from dynabandit.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, bad_input, no_memory, stop
from dynabandit.cli.run_options import Seed
from dynabandit.core.one_line_syntax import read_one_line
from dynabandit.experiments.spec_reader import read_policy
from dynabandit.offline import Advice, Estimate, Log, Replay
from dynabandit.offline.log import from_source
from dynabandit.offline.readers import Memory, Source, open_file
from dynabandit.policies import AUTO, Policy, policy as make_policy

app = typer.Typer()

File = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A CSV file whose first line names the columns, a Parquet file, or with --bandit the store of a service.",
    ),
]
Bandit = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Read the log of this bandit of the service; LOG is then the URL of its store."),
]
Arm = Annotated[str, typer.Option(metavar="COLUMN", help="Column with the chosen arm.")]
Reward = Annotated[str, typer.Option(metavar="COLUMN", help="Column with the reward.")]
Rewards = Annotated[
    str, typer.Option(metavar="LAW", help="Which rewards are valid: bernoulli, bounded, normal, counts or revenue.")
]
Time = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the time; rows must be sorted by it.")]
Propensity = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the probability with which the arm was chosen; by default 'propensity', if there is one.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="COLUMN",
        help="Column with a feature of the context, such as hour or country:kind=category,columns=8; repeat for "
        "several.",
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip rows that cannot be used, and show the first few of them.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of a CSV file.")]
Separator = Annotated[str, typer.Option(help="Separator of the values in a CSV file.")]
Replications = Annotated[int, typer.Option(help="Number of replays of the log, each with other random numbers.")]
Draws = Annotated[int, typer.Option(help="Number of draws that estimate the policy's probabilities at each row.")]
Clip = Annotated[float, typer.Option(help="Replace smaller propensities by this value.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def replay(
    file: File,
    *,
    policy: Annotated[
        list[str], typer.Option(metavar="POLICY", help="Such as aff-ots:step_size=0.01; repeat for several.")
    ],
    bandit: Bandit = None,
    arm: Arm = "arm",
    reward: Reward = "reward",
    time: Time = None,
    propensity: Propensity = None,
    rewards: Rewards = "bounded",
    feature: Features = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    replications: Replications = 10,
    draws: Draws = 20,
    clock: Annotated[str, typer.Option(help="log: every row is a step; accepted: only accepted rows are.")] = "log",
    learn: Annotated[
        str | None,
        typer.Option(
            help="accepted: learn from rows with the policy's choice; all: from every row, the default for a log "
            "with different propensities."
        ),
    ] = None,
    clip: Clip = 0.0,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Estimate from a log what another policy would have earned."""
    with _ending():
        chosen = _policies(policy)
        with bad_input():
            log = from_source(
                _source(file, bandit, encoding, separator), read_features(feature), skip_bad, rewards,
                arm=arm, reward=reward, time=time, propensity=propensity,
            )  # fmt: skip
            options: dict[str, Any] = {"replications": replications, "draws": draws, "clip": clip, "seed": seed}
            found = []
            for one in (make_policy(log.resolved(each)) for each in chosen):
                with show_progress(one.label) as progress:
                    found.append(offline.replay(log, one, clock=clock, learn=learn, progress=progress, **options))
        _report_left_out(log)
        for replayed in found:
            _warn(replayed.doubts)
        if as_json:
            typer.echo(json.dumps([_plain_replay(one) for one in found], indent=2))
        else:
            _print_replays(log, found)


@app.command()
def advise(
    file: File,
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="POLICY", help="A policy to compare; repeat for several; by default about twenty."),
    ] = None,
    bandit: Bandit = None,
    arm: Arm = "arm",
    reward: Reward = "reward",
    time: Time = None,
    propensity: Propensity = None,
    rewards: Rewards = "bounded",
    feature: Features = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    replications: Replications = 2,
    draws: Draws = 10,
    clip: Clip = 0.0,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Recommend a policy for a log, and say how certain that is."""
    with _ending():
        chosen = _policies(policy) if policy else None
        with bad_input():
            log = from_source(
                _source(file, bandit, encoding, separator), read_features(feature), skip_bad, rewards,
                arm=arm, reward=reward, time=time, propensity=propensity,
            )  # fmt: skip
            with show_progress("all candidates") as progress:
                advice = offline.advise(
                    log, chosen, replications=replications, draws=draws, clip=clip, seed=seed, progress=progress
                )
        _report_left_out(log)
        if as_json:
            typer.echo(json.dumps(_plain_advice(advice), indent=2))
        else:
            _print_advice(advice)


def _source(file: str, bandit: str | None, encoding: str, separator: str) -> Source:
    """Return the rows of a file, or of a bandit of the service; only the latter needs the service to be installed."""
    if bandit is None:
        return open_file(file, encoding, separator)
    from dynabandit.service.command_line import open_tables
    from dynabandit.service.errors import NotFoundError, ReplayMismatchError
    from dynabandit.service.export import read_decisions

    try:
        with open_tables(file) as store:
            columns, features = read_decisions(store, bandit)
            return Memory(columns, f"{bandit!r} in {store.public_url}", features)
    except NotFoundError as error:
        stop(str(error), BAD_INPUT)
    except ReplayMismatchError as error:
        stop(str(error), FAILED)


def read_features(texts: list[str] | None) -> Any:
    """Return the features as `offline.read` takes them: names if no feature has options, else a mapping."""
    pairs = [read_one_line(text) for text in texts or ()]
    if not any(options for _, options in pairs):
        return [name for name, _ in pairs] or None
    return dict(pairs)


def _policies(texts: list[str]) -> list[Policy | str]:
    """Return the policies; which one "auto" stands for depends on the log."""
    chosen: list[Policy | str] = []
    for text in texts:
        with bad_input(text):
            chosen.append(AUTO if text == AUTO else read_policy(text))
    return chosen


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """Turn any failure into a message and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        stop("stopped; nothing is stored, so run the same command again", INTERRUPTED)
    except ModuleNotFoundError as error:
        stop(missing(error), FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        stop(f"cannot read {error.filename}: {error.strerror}" if error.filename else str(error), FAILED)
    except MemoryError as error:
        no_memory(error)


@contextlib.contextmanager
def show_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show in a terminal how many rows are done."""
    with Progress(console=display.console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _report_left_out(log: Log) -> None:
    """Print on standard error which rows were left out, and reasons to doubt the estimates."""
    report_bad_rows(log)
    _warn(log.doubts)


def report_bad_rows(log: Log) -> None:
    """Print on standard error which rows were left out."""
    if log.bad.count:
        typer.echo(f"dynabandit: left out {log.bad.count} of {log.rows + log.bad.count} rows:\n{log.bad}", err=True)


def _warn(doubts: list[str]) -> None:
    for doubt in doubts:
        typer.echo(f"dynabandit: warning: {doubt}", err=True)


def _print_replays(log: Log, found: list[Replay]) -> None:
    table = Table(box=SIMPLE)
    for heading in ("policy", "replay", "IPS", "SNIPS", "doubly robust", "accepted"):
        table.add_column(heading, justify="left" if heading == "policy" else "right", overflow="fold")
    for one in found:
        values = (one.replay, one.ips, one.snips, one.dr)
        table.add_row(one.policy.label, *map(str, values), f"{one.accepted:.0f}")
    table.add_row("as logged", str(found[0].logged), "", "", "", f"{log.rows}")
    out = display.console(sys.stdout)
    out.print(f"{log.name}: {log.rows} rows, {len(log.arms)} arms", soft_wrap=True)
    out.print("Mean reward per decision, with 95 % intervals", table, sep="\n")


def _print_advice(advice: Advice) -> None:
    table = Table(box=SIMPLE)
    for heading in ("policy", "mean reward", "behind the leader by", "may be the best"):
        table.add_column(heading, justify="left" if heading == "policy" else "right", overflow="fold")
    for one in advice.candidates:
        behind = "" if one is advice.candidates[0] else str(one.behind)
        table.add_row(one.policy.label, str(one.value), behind, "yes" if one.may_be_best else "no")
    table.add_row("as logged", str(advice.logged), "", "")
    out = display.console(sys.stdout)
    out.print(f"{advice.log.name}: {advice.log.rows} rows, {len(advice.log.arms)} arms", soft_wrap=True)
    out.print("Doubly robust mean reward per decision, with 95 % intervals", table, sep="\n")
    for line in advice.verdict():
        out.print(line, soft_wrap=True)


def _plain_advice(advice: Advice) -> dict[str, Any]:
    return {
        "log": _plain_log(advice.log),
        "leader": advice.leader.label,
        "sure": advice.sure,
        "verdict": advice.verdict(),
        "logged": _plain_estimate(advice.logged),
        "gain": _plain_estimate(advice.gain),
        "left_out": [one.label for one in advice.left_out],
        "rows_needed": advice.rows_needed if math.isfinite(advice.rows_needed) else None,
        "candidates": [
            {
                "policy": one.policy.name,
                "parameters": one.policy.parameters,
                "value": _plain_estimate(one.value),
                "behind": _plain_estimate(one.behind),
                "may_be_best": one.may_be_best,
            }
            for one in advice.candidates
        ],
    }


def _plain_replay(one: Replay) -> dict[str, Any]:
    values = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    values["policy"], values["parameters"] = one.policy.name, one.policy.parameters
    values["log"] = _plain_log(one.log)
    return {key: _plain_estimate(value) if isinstance(value, Estimate) else value for key, value in values.items()}


def _plain_log(log: Log) -> dict[str, Any]:
    return {"name": log.name, "rows": log.rows, "bad": log.bad.count, "arms": list(log.arms), "doubts": log.doubts}


def _plain_estimate(estimate: Estimate) -> dict[str, float | None]:
    return {key: None if math.isnan(value) else value for key, value in estimate._asdict().items()}
