"""The commands; each parses, calls one function and prints."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import dynabandit
from dynabandit import experiments
from dynabandit.catalogue import entries
from dynabandit.cli import display, missing
from dynabandit.environments import ENVIRONMENTS
from dynabandit.errors import extra
from dynabandit.experiments import Experiment, Named, Spec, parsing
from dynabandit.policies import POLICIES

__all__ = ["app"]

QUICK = 10  # replications
BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells count
ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Bandits for rewards that change over time.",
)

Replications = Annotated[int | None, typer.Option(help="How many replications, instead of the spec's.")]
Only = Annotated[list[str] | None, typer.Option(metavar="FIGURE", help="Only this figure; give it again for more.")]
Seed = Annotated[int | None, typer.Option(help="The seed of all randomness, instead of the spec's.")]
Jobs = Annotated[int | None, typer.Option(help="How many threads; by default one for each core.")]
Quick = Annotated[bool, typer.Option("--quick", help=f"{QUICK} replications, for a first look.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what is kept of this and compute it again.")]
Horizon = Annotated[int | None, typer.Option(hidden=True, help="How many steps, instead of the spec's.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dynabandit {dynabandit.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def paper(
    replications: Replications = None,
    only: Only = None,
    seed: Seed = None,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("out/paper"),
    quick: Quick = False,
    fresh: Fresh = False,
    horizon: Horizon = None,
) -> None:
    """Run the whole paper: every figure and a verdict on every claim."""
    with _bad_input("--only"):
        spec = experiments.paper().only(only or [])
    spec = _changed(spec, replications, quick, seed, jobs, horizon)
    _run(spec, out, jobs, fresh, paper=True)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML file; docs/specs.md says how to write it.")],
    replications: Replications = None,
    only: Only = None,
    seed: Seed = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="The folder for everything; by default out/NAME.")] = None,
    quick: Quick = False,
    fresh: Fresh = False,
    horizon: Horizon = None,
) -> None:
    """Run your own experiments, to the same kind of report."""
    with _bad_input():
        spec = experiments.load(file)
    with _bad_input(f"{file}: --only"):
        spec = spec.only(only or [])
    spec = _changed(spec, replications, quick, seed, jobs, horizon)
    _run(spec, out or Path("out") / file.stem, jobs, fresh, paper=False)


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(metavar="POLICY...", help="Such as ucb or aff-ots:step_size=0.01.")],
    env: Annotated[str, typer.Option(help="Such as case-3 or reflected-walk:variance=0.01.")],
    arms: Annotated[int | None, typer.Option(help="How many arms; by default the environment's.")] = None,
    horizon: Annotated[int, typer.Option(help="How many steps.")] = 10_000,
    replications: Annotated[int, typer.Option(help="How many replications.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of all randomness.")] = 1,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("out/compare"),
    fresh: Fresh = False,
) -> None:
    """Compare some policies on one environment, without a file."""
    with _bad_input("--env"):
        named = parsing.named(env)
        named = Named(named.name, {**named.parameters, **({} if arms is None else {"arms": arms})})
        world = named.make_environment()
    chosen = []
    for text in policies:
        with _bad_input(text):
            chosen.append(parsing.named(text))
            chosen[-1].make_policy()
    with _bad_input():
        experiment = Experiment(
            id=f"{world.name}-arms-{world.arms}",
            environment=named,
            policies=tuple(chosen),
            title=f"{world.name} with {world.arms} arms",
            horizon=horizon,
            replications=replications,
            seed=seed,
        )
        spec = Spec(title=experiment.title, experiments=(experiment,))
    _check_jobs(jobs)
    _run(spec, out, jobs, fresh, paper=False)


@app.command(name="list")
def list_() -> None:
    """Show all policies and environments with their parameters and defaults."""
    display.print_catalogue("Policies", entries(POLICIES))
    display.print_catalogue("Environments", entries(ENVIRONMENTS))


def _changed(
    spec: Spec, replications: int | None, quick: bool, seed: int | None, jobs: int | None, horizon: int | None
) -> Spec:
    """Return the spec as the options want it."""
    if quick and replications is not None:
        _stop(f"--quick means {QUICK} replications: leave out --replications or --quick", BAD_INPUT)
    _check_jobs(jobs)
    with _bad_input():
        return spec.override(replications=QUICK if quick else replications, horizon=horizon, seed=seed)


def _check_jobs(jobs: int | None) -> None:
    if jobs is not None and jobs < 1:
        _stop(f"--jobs must be a whole number of at least 1, got {jobs}", BAD_INPUT)


def _run(spec: Spec, out: Path, jobs: int | None, fresh: bool, *, paper: bool) -> None:
    """Run a spec, write the report, print the table; say how to go on where that ends early."""
    try:
        extra("pyarrow", "lab")  # now, rather than after hours of simulation
        from dynabandit import analysis

        with display.display(sys.stderr) as watcher:
            results = experiments.run(spec, out, jobs=jobs, fresh=fresh, watcher=watcher)
            watcher.running("drawing the report")
            report = analysis.publish(results, out, paper=paper)
        display.print_summary(analysis.summary(results))
        typer.echo(f"Report: {report}")
    except KeyboardInterrupt:
        again = shlex.join(["dynabandit", *(word for word in sys.argv[1:] if word != "--fresh")])
        _stop(f"stopped. What is done is kept in {out / experiments.STORE}; go on with: {again}", INTERRUPTED)
    except ModuleNotFoundError as error:
        _stop(missing(error), FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        _stop(f"{error}. Earlier results are intact; mend this and run the same command again", FAILED)


@contextmanager
def _bad_input(where: str = "") -> Iterator[None]:
    """Turn an error about what the user gave into a message and an exit code."""
    try:
        yield
    except (TypeError, ValueError) as error:
        _stop(f"{where}: {error}" if where else str(error), BAD_INPUT)


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"dynabandit: {message}", err=True)
    raise typer.Exit(code)


def _mount_service() -> None:
    """Add the commands of the service, or in their place what to install for them."""
    try:
        from dynabandit.service.commands import app as service
    except ModuleNotFoundError as error:
        message = missing(error, "serve")
        for name in ("serve", "keys", "verify"):
            app.command(name, help="Decisions over HTTP.", context_settings=ANYTHING)(lambda: _stop(message, FAILED))
    else:
        app.add_typer(service)


_mount_service()
