"""The commands for logs; each parses, calls one function and prints."""

import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table

from dynabandit import logs
from dynabandit.cli import display, missing, parsing
from dynabandit.cli.failing import FAILED, INTERRUPTED, bad_input, stop
from dynabandit.logs import Estimate, Log, Replay

__all__ = ["app"]

app = typer.Typer()

File = Annotated[Path, typer.Argument(metavar="LOG", help="A CSV file with a line of column names, or a Parquet file.")]
Arm = Annotated[str, typer.Option(metavar="COLUMN", help="The column with the arm that was chosen.")]
Reward = Annotated[str, typer.Option(metavar="COLUMN", help="The column with its reward, in [0, 1].")]
Time = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with the time; rows must be sorted by it.")
]
Propensity = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with the probability that the arm was chosen with.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out rows that cannot be used, and show the first few.")
]
Encoding = Annotated[str, typer.Option(help="Of a CSV file.")]
Separator = Annotated[str, typer.Option(help="Between the values of a CSV file.")]
Replications = Annotated[int, typer.Option(help="How often to replay the log, with other luck of the policy.")]
Draws = Annotated[int, typer.Option(help="From how many draws to estimate the policy's probabilities at each row.")]
Clip = Annotated[float, typer.Option(help="Take smaller propensities for this one.")]
Seed = Annotated[int, typer.Option(help="The seed of all randomness.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def replay(
    file: File,
    policy: Annotated[
        list[str], typer.Option(metavar="POLICY", help="Such as aff-ots:step_size=0.01; give it again for more.")
    ],
    arm: Arm = "arm",
    reward: Reward = "reward",
    time: Time = None,
    propensity: Propensity = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    replications: Replications = 10,
    draws: Draws = 20,
    clock: Annotated[str, typer.Option(help="log: every row is a step; accepted: accepted rows are.")] = "log",
    clip: Clip = 0.0,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Estimate from a log what a policy would have earned in its place."""
    with _ending():
        chosen = []
        for text in policy:
            with bad_input(text):
                chosen.append(parsing.named(text).make_policy())
        with bad_input():
            log = logs.read(
                file, arm=arm, reward=reward, time=time, propensity=propensity,
                skip_bad=skip_bad, encoding=encoding, separator=separator,
            )  # fmt: skip
            found = [
                logs.replay(log, one, replications=replications, draws=draws, clock=clock, clip=clip, seed=seed)
                for one in chosen
            ]
        _warn(log)
        if as_json:
            typer.echo(json.dumps([_plain_replay(one) for one in found], indent=2))
        else:
            _print_replays(log, found)


@contextmanager
def _ending() -> Iterator[None]:
    """End as every command does, whatever goes wrong."""
    try:
        yield
    except KeyboardInterrupt:
        stop("stopped; a replay keeps nothing, so run the same command again", INTERRUPTED)
    except ModuleNotFoundError as error:
        stop(missing(error), FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        stop(str(error), FAILED)


def _warn(log: Log) -> None:
    """Say on standard error what was left out, and what speaks against the estimates."""
    if log.bad.count:
        typer.echo(f"dynabandit: left out {log.bad.count} of {log.rows + log.bad.count} rows:\n{log.bad}", err=True)
    for doubt in log.doubts:
        typer.echo(f"dynabandit: doubt: {doubt}", err=True)


def _print_replays(log: Log, found: list[Replay]) -> None:
    table = Table(box=SIMPLE)
    for heading in ("policy", "replay", "IPS", "SNIPS", "doubly robust", "accepted"):
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    for one in found:
        values = (one.replay, one.ips, one.snips, one.dr)
        table.add_row(one.policy.label, *map(str, values), f"{one.accepted:.0f}")
    table.add_row("as logged", str(found[0].logged), "", "", "", f"{log.rows}")
    out = display.console(sys.stdout)
    out.print(f"{log.name}: {log.rows} rows, {len(log.arms)} arms", soft_wrap=True)
    out.print("Mean reward per decision, with 95 % intervals", table, sep="\n")


def _plain_replay(one: Replay) -> dict[str, Any]:
    values = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
    values["policy"], values["parameters"] = one.policy.name, one.policy.parameters
    values["log"] = {"name": one.log.name, "rows": one.log.rows, "bad": one.log.bad.count, "arms": list(one.log.arms)}
    return {key: _plain_estimate(value) if isinstance(value, Estimate) else value for key, value in values.items()}


def _plain_estimate(estimate: Estimate) -> dict[str, float | None]:
    return {key: None if math.isnan(value) else value for key, value in estimate._asdict().items()}
