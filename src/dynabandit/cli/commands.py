"""The commands; each parses, calls one function and prints."""

import functools
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import dynabandit
from dynabandit import experiments
from dynabandit.catalogue import entries
from dynabandit.cli import SERVICE, display, missing, offline
from dynabandit.cli.exit_codes import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    bad_input as _bad_input,
    no_memory as _no_memory,
    stop as _stop,
)
from dynabandit.environments import ENVIRONMENTS
from dynabandit.errors import extra
from dynabandit.experiments import Experiment, Named, Spec, Watcher, missing_parameters, one_line_syntax
from dynabandit.leaderboard import environments as leaderboard_environments
from dynabandit.paper.specs import paper as paper_spec
from dynabandit.policies import POLICIES
from dynabandit.results import Results

__all__ = ["app"]

Publish = Callable[[Results, Path, Watcher], Callable[[], None]]  # writes files, and returns what prints the rest

QUICK = 10  # replications
REPORTING = ("pyarrow", "scipy", "matplotlib", "jinja2", "plotly")  # what a report is written with
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
Backend = Annotated[
    str, typer.Option(help="cpu; cuda for an NVIDIA GPU; or auto for the GPU where there is one and the work is large.")
]
Precision = Annotated[
    str,
    typer.Option(
        help="double; on a GPU also single, faster, with choices that agree in law; or mixed: single where it is safe."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="A Dask scheduler such as tcp://scheduler:8786, or local for worker processes."
    ),
]
Horizon = Annotated[int | None, typer.Option(help="How many steps, instead of the spec's.")]


class How(NamedTuple):
    """How a spec is run, as `experiments.run` takes it."""

    jobs: int | None
    fresh: bool
    backend: str
    precision: str
    cluster: str | None


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
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    horizon: Horizon = None,
) -> None:
    """Run the whole paper: all figures, and verdicts on all claims."""
    with _bad_input("--only"):
        spec = paper_spec().only(only or [])
    spec = _changed(spec, replications, quick, seed, jobs, horizon)
    _run(spec, out, How(jobs, fresh, backend, precision, cluster), functools.partial(_report, paper=True))


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
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    horizon: Horizon = None,
) -> None:
    """Run your own experiments, to the same kind of report."""
    with _bad_input():
        spec = experiments.load(file)
    with _bad_input(f"{file}: --only"):
        spec = spec.only(only or [])
    spec = _changed(spec, replications, quick, seed, jobs, horizon)
    _run(spec, out or Path("out") / file.stem, How(jobs, fresh, backend, precision, cluster), _report)


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(metavar="POLICY...", help="Such as ucb or aff-ots:step_size=0.01.")],
    env: Annotated[str, typer.Option("--env", "--environment", help="Such as case-3 or reflected-walk:variance=0.01.")],
    arms: Annotated[int | None, typer.Option(help="How many arms; by default the environment's.")] = None,
    horizon: Annotated[int, typer.Option(help="How many steps.")] = 10_000,
    replications: Annotated[int, typer.Option(help="How many replications.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of all randomness.")] = 1,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("out/compare"),
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
) -> None:
    """Compare some policies on one environment, without a file."""
    with _bad_input("--env"):
        named = one_line_syntax.named(env)
        named = Named(named.name, {**named.parameters, **({} if arms is None else {"arms": arms})})
        world = missing_parameters.try_environment(named, _as_option)
    chosen = []
    for text in policies:
        with _bad_input(text):
            chosen.append(one_line_syntax.named(text))
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
    _run(spec, out, How(jobs, fresh, backend, precision, cluster), _report)


def _as_option(name: str, parameters: Mapping[str, Any]) -> str:
    return shlex.join(["--env", one_line_syntax.written(name, parameters)])


@app.command(name="list")
def list_() -> None:
    """Show all policies and environments, and their parameters."""
    display.print_catalogue("Policies", entries(POLICIES))
    display.print_catalogue("Environments", entries(ENVIRONMENTS))


@app.command()
def leaderboard(
    policy: Annotated[list[str] | None, typer.Option(help="Only this policy; give it again for more.")] = None,
    environment: Annotated[
        list[str] | None, typer.Option("--environment", "--env", help="Only this world; give it again for more.")
    ] = None,
    replications: Annotated[int, typer.Option(help="How many replications.")] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of all randomness.")] = 1,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="The folder for everything.")] = Path("out/leaderboard"),
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    timing: Annotated[bool, typer.Option(help="Whether to time a step of each policy.")] = True,
    horizon: Annotated[int, typer.Option(help="How many steps.")] = 10_000,
) -> None:
    """Rank all policies over the paper's worlds and benchmarks. Those of any size come with 2, 10, 50 and 100 arms."""
    _check_jobs(jobs)
    with _bad_input():
        spec = leaderboard_environments.leaderboard(replications, seed, horizon, policy or (), environment or ())
    publish = functools.partial(_report_leaderboard, timed=timing)
    _run(spec, out, How(jobs, fresh, backend, precision, cluster), publish)


def _report(results: Results, out: Path, watcher: Watcher, *, paper: bool = False) -> Callable[[], None]:
    from dynabandit.paper import lookup, publish
    from dynabandit.report import page, tables

    watcher.running("drawing the report")
    report = publish.publish(results, out) if paper else page.publish(results, out)

    def show() -> None:
        display.print_summary(tables.summary(lookup.shown(results) if paper else results))
        typer.echo(f"Report: {report}")

    return show


def _report_leaderboard(results: Results, out: Path, watcher: Watcher, *, timed: bool) -> Callable[[], None]:
    from dynabandit.leaderboard import standings

    names = sorted({run.policy for run in results})
    if timed:
        watcher.running("timing a step of each policy")
    times = leaderboard_environments.time_steps(names) if timed else {}
    rows = standings.standings(results, [name for name in names if POLICIES[name].informed], times)
    table = out / "leaderboard.md"
    table.write_text(standings.as_markdown(rows, results), encoding="utf-8")
    (out / "leaderboard.json").write_text(standings.as_json(rows, results), encoding="utf-8")

    def show() -> None:
        display.print_standings(standings.HEADINGS, [standings.cells(row) for row in rows])
        typer.echo(f"Table: {table}")

    return show


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


def _run(spec: Spec, out: Path, how: How, publish: Publish) -> None:
    """Run a spec, write and print what it found; say how to go on where that ends early."""
    with _bad_input():
        experiments.check(spec, how.backend, how.precision, how.cluster, how.jobs)
    try:
        for module in REPORTING:
            extra(module, "lab")  # now, rather than after hours of simulation
        with display.display(sys.stderr) as watcher:
            results = experiments.run(spec, out, watcher=watcher, **how._asdict())
            show = publish(results, out, watcher)
    except KeyboardInterrupt:
        again = shlex.join(["dynabandit", *(word for word in sys.argv[1:] if word != "--fresh")])
        _stop(f"stopped. What is done is kept in {out / experiments.STORE}; go on with: {again}", INTERRUPTED)
    except ModuleNotFoundError as error:
        _stop(missing(error, "cluster" if error.name == "distributed" else "lab"), FAILED)
    except experiments.BackendError as error:
        _stop(str(error), FAILED)
    except MemoryError as error:
        _no_memory(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        _stop(f"{error}. Earlier results are intact; mend this and run the same command again", FAILED)
    show()


def _mount_service() -> None:
    """Add the commands of the service, or in their place what to install for them."""
    try:
        from dynabandit.service.commands import app as service
    except ModuleNotFoundError as error:
        message = missing(error, "serve")
        for name in SERVICE:
            app.command(name, help="Decisions over HTTP.", context_settings=ANYTHING)(lambda: _stop(message, FAILED))
    else:
        app.add_typer(service)


app.add_typer(offline.app)
_mount_service()
