"""The command that starts a bandit of the service from a log of another system."""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from dynabandit import offline
from dynabandit.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, bad_input, stop
from dynabandit.cli.offline import (
    Arm,
    Encoding,
    Propensity,
    Reward,
    Rewards,
    Separator,
    SkipBad,
    Time,
    read_features,
    report_bad_rows,
    show_progress,
)
from dynabandit.core.one_line_syntax import read_one_line
from dynabandit.offline import Log
from dynabandit.service import api_types
from dynabandit.service.command_line import DEFAULT_STORE, PluginOption, StoreOption, use_plugins
from dynabandit.service.domain.names import clean_name
from dynabandit.service.errors import DomainError, StoreError, WriteConflictError
from dynabandit.service.http.request_bodies import decode_body
from dynabandit.service.log_import import Imported, import_log, source_of
from dynabandit.service.stores import Store, open_store
from dynabandit.service.stores.schema import VERSION

app = typer.Typer()


@app.command("import")
def import_command(
    file: Annotated[
        Path, typer.Argument(metavar="LOG", help="A CSV file whose first line names the columns, or a Parquet file.")
    ],
    *,
    bandit: Annotated[str, typer.Option(metavar="NAME", help="The bandit to create.")],
    store: StoreOption = DEFAULT_STORE,
    policy: Annotated[str, typer.Option(metavar="POLICY", help="Such as aff-ots:step_size=0.01.")] = "auto",
    settings: Annotated[
        str, typer.Option(metavar="JSON", help='Further settings of the bandit, such as {"reward_window": 3600}.')
    ] = "{}",
    arm: Arm = "arm",
    reward: Reward = "reward",
    time: Time = None,
    propensity: Propensity = None,
    rewards: Rewards = "bounded",
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature",
            "--context",
            metavar="COLUMN",
            help="Column with a feature of the context, such as hour or country:kind=category; repeat for several.",
        ),
    ] = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    plugin: PluginOption = None,
) -> None:
    """Create a bandit from an old log of decisions and rewards.

    If it is interrupted, run the same command again, and it continues.
    """
    use_plugins(plugin)
    columns = {"arm": arm, "reward": reward, "time": time, "propensity": propensity, "rewards": rewards}
    options: dict[str, Any] = {**columns, "skip_bad": skip_bad, "encoding": encoding, "separator": separator}
    try:
        with bad_input():
            log = offline.read(file, features=read_features(feature), **options)
            asked = _create_body(log, policy, rewards, settings)
            source = source_of(file, {**options, "feature": feature, "policy": policy, "settings": settings})
            name = clean_name(bandit)
            opened = open_store(store)
        report_bad_rows(log)
        try:
            _prepare(opened)
            with show_progress(f"importing {log.rows} rows") as progress:
                found = import_log(opened, name, log, asked, source, progress)
        finally:
            opened.close()
    except DomainError as error:
        stop(str(error), BAD_INPUT)
    except WriteConflictError as error:
        stop(f"{error}; the rows so far are stored: run the same command again", FAILED)
    except (ModuleNotFoundError, OSError, StoreError) as error:
        stop(str(error), FAILED)
    except KeyboardInterrupt:
        stop("stopped; the rows so far are stored: run the same command again to continue", INTERRUPTED)
    _report(name, log, asked, found)


def _prepare(store: Store) -> None:
    """Create the tables of a new store, or claim an SQLite store; only the service migrates that of another release."""
    store.create_tables()
    if store.rows(store.version_statement)[0][0] < VERSION:
        stop(f"store {store.public_url} is of an earlier release: let dynabandit serve migrate it first", FAILED)
    store.prepare()


def _create_body(log: Log, policy: str, rewards: str, settings: str) -> api_types.Create:
    """Return the settings of the bandit; those that the log decides must not be given."""
    name, parameters = read_one_line(policy)
    given: dict[str, Any] = {"arms": [clean_name(one, "an arm's name") for one in log.arms], "rewards": rewards}
    given |= {"policy": name, "parameters": parameters}
    if log.features is not None:
        given["features"] = log.features.to_json()["features"]
    try:
        others = json.loads(settings)
    except ValueError as error:
        raise ValueError(f"--settings must be JSON, such as {{}}: {error}") from None
    if not isinstance(others, dict) or given.keys() & others.keys():
        raise ValueError(f"--settings must be an object without {', '.join(given)}, got {settings[:100]}")
    return decode_body(msgspec.json.Decoder(api_types.Create), json.dumps({**given, **others}).encode())


def _report(bandit: str, log: Log, asked: api_types.Create, found: Imported) -> None:
    said = f"imported {found.rows - found.earlier} decisions with rewards into bandit {bandit!r} ({found.id})"
    if found.earlier:
        said += f", after {found.earlier} that were imported before"
    typer.echo(said)
    typer.echo(f"policy {found.policy}, {len(asked.arms)} arms, rewards {asked.rewards}")
    if log.features is not None:
        kinds = ", ".join(f"{one.name} ({one.kind})" for one in log.features.features)
        typer.echo(f"features: {kinds}")
    if not log.has_propensities:
        typer.echo("the log has no propensities, so those of the imported decisions are not known")
