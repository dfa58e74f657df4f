"""The commands; each parses its arguments, calls one function and prints the result."""

import functools
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import dynabandit
from dynabandit import experiments
from dynabandit.catalogue import entries
from dynabandit.cli import SERVICE, display, missing, offline
from dynabandit.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, bad_input, no_memory, stop
from dynabandit.environments import ENVIRONMENTS, REWARD_LAWS
from dynabandit.experiments import Experiment, ProgressReporter, Spec
from dynabandit.experiments.one_line_syntax import write_one_line
from dynabandit.experiments.spec_reader import read_delay, read_environment, read_policy
from dynabandit.extras import import_extra
from dynabandit.leaderboard.environments import leaderboard_spec
from dynabandit.paper.specs import paper as paper_spec
from dynabandit.policies import POLICIES
from dynabandit.results import Results

# Writes a report of results into a folder, and returns a function that prints the rest
Publish = Callable[[Results, Path, ProgressReporter], Callable[[], None]]

QUICK = 10  # replications
REPORTING = ("pyarrow", "scipy", "matplotlib", "jinja2", "plotly")  # the packages that a report needs
ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Bandits for rewards that change over time.",
)

Replications = Annotated[int | None, typer.Option(help="Number of replications, instead of the spec's.")]
Only = Annotated[list[str] | None, typer.Option(metavar="FIGURE", help="Only this figure; repeat for several.")]
SeedOverride = Annotated[int | None, typer.Option(help="Random seed, instead of the spec's.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Jobs = Annotated[int | None, typer.Option(help="Number of threads; by default one per core.")]
Out = Annotated[Path, typer.Option(help="Folder for all output.")]
Quick = Annotated[bool, typer.Option("--quick", help=f"Run {QUICK} replications, for a first look.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard stored results of this run and compute them again.")]
Backend = Annotated[
    str,
    typer.Option(help="cpu; cuda for an NVIDIA GPU; auto for the GPU if there is one and the experiment is large."),
]
Precision = Annotated[
    str,
    typer.Option(
        help="double; with cuda also single (faster, results equal in distribution) or mixed (single where possible)."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="A Dask scheduler such as tcp://scheduler:8786, or local for worker processes."
    ),
]
Horizon = Annotated[int | None, typer.Option(help="Number of steps, instead of the spec's.")]


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
    *,
    replications: Replications = None,
    only: Only = None,
    seed: SeedOverride = None,
    jobs: Jobs = None,
    out: Out = Path("out/paper"),
    quick: Quick = False,
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    horizon: Horizon = None,
) -> None:
    """Reproduce the figures of the paper, and check its claims."""
    with bad_input("--only"):
        spec = paper_spec().only(only or [])
    spec = _override(spec, quick, replications, seed, horizon)
    options = {"jobs": jobs, "fresh": fresh, "backend": backend, "precision": precision, "cluster": cluster}
    _run(spec, out, options, functools.partial(_publish_report, paper=True))


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML file; docs/specs.md describes it.")],
    *,
    replications: Replications = None,
    only: Only = None,
    seed: SeedOverride = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all output; by default out/NAME.")] = None,
    quick: Quick = False,
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    horizon: Horizon = None,
) -> None:
    """Run the experiments of a spec file, and write a report."""
    with bad_input():
        spec = experiments.load(file)
    with bad_input(f"{file}: --only"):
        spec = spec.only(only or [])
    spec = _override(spec, quick, replications, seed, horizon)
    options = {"jobs": jobs, "fresh": fresh, "backend": backend, "precision": precision, "cluster": cluster}
    _run(spec, out or Path("out") / file.stem, options, _publish_report)


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(metavar="POLICY...", help="Such as ucb or aff-ots:step_size=0.01.")],
    *,
    env: Annotated[str, typer.Option("--env", "--environment", help="Such as case-3 or reflected-walk:variance=0.01.")],
    arms: Annotated[int | None, typer.Option(help="Number of arms; by default the environment's.")] = None,
    horizon: Annotated[int, typer.Option(help="Number of steps.")] = 10_000,
    replications: Annotated[int, typer.Option(help="Number of replications.")] = 100,
    seed: Seed = 1,
    delay: Annotated[str | None, typer.Option(help="Of rewards, such as geometric:mean=100,lost=0.01.")] = None,
    jobs: Jobs = None,
    out: Out = Path("out/compare"),
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
) -> None:
    """Compare policies on one environment, without a spec file."""
    with bad_input("--env"):
        environment = read_environment(env, arms, _as_option)
    chosen = []
    for text in policies:
        with bad_input(text):
            chosen.append(read_policy(text))
    with bad_input("--delay"):
        late = None if delay is None else read_delay(delay)
    with bad_input():
        experiment = Experiment(
            id=f"{environment.name}-arms-{environment.arms}",
            environment=environment,
            policies=tuple(chosen),
            title=f"{environment.name} with {environment.arms} arms",
            horizon=horizon,
            replications=replications,
            seed=seed,
            delay=late,
        )
        spec = Spec(title=experiment.title, experiments=(experiment,))
    options = {"jobs": jobs, "fresh": fresh, "backend": backend, "precision": precision, "cluster": cluster}
    _run(spec, out, options, _publish_report)


def _as_option(name: str, parameters: Mapping[str, Any]) -> str:
    return shlex.join(["--env", write_one_line(name, parameters)])


@app.command(name="list")
def list_() -> None:
    """Show all policies and environments, and their parameters."""
    display.print_catalogue("Policies", entries(POLICIES))
    display.print_catalogue("Environments", entries(ENVIRONMENTS))
    display.print_catalogue("Reward laws, as rewards=... of an environment", entries(REWARD_LAWS))


@app.command()
def leaderboard(
    *,
    policy: Annotated[list[str] | None, typer.Option(help="Only this policy; repeat for several.")] = None,
    environment: Annotated[
        list[str] | None, typer.Option("--environment", "--env", help="Only this environment; repeat for several.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Number of replications.")] = 1000,
    seed: Seed = 1,
    jobs: Jobs = None,
    out: Out = Path("out/leaderboard"),
    fresh: Fresh = False,
    backend: Backend = "cpu",
    precision: Precision = "double",
    cluster: Cluster = None,
    timing: Annotated[bool, typer.Option(help="Measure the time per step of each policy.")] = True,
    horizon: Annotated[int, typer.Option(help="Number of steps.")] = 10_000,
) -> None:
    """Rank all policies on the paper's and other environments.

    Environments that take any number of arms are run with 2, 10, 50 and 100, and case-3 also with late rewards.
    """
    with bad_input():
        spec = leaderboard_spec(replications, seed, horizon, policy or (), environment or ())
    options = {"jobs": jobs, "fresh": fresh, "backend": backend, "precision": precision, "cluster": cluster}
    _run(spec, out, options, functools.partial(_publish_leaderboard, timed=timing))


def _publish_report(
    results: Results, out: Path, reporter: ProgressReporter, *, paper: bool = False
) -> Callable[[], None]:
    from dynabandit.paper import lookup, publish
    from dynabandit.report import page, tables

    reporter.running("writing the report")
    report = publish.publish(results, out) if paper else page.publish(results, out)

    def show() -> None:
        display.print_summary(tables.summary(lookup.shown_runs(results) if paper else results))
        typer.echo(f"Report: {report}")

    return show


def _publish_leaderboard(results: Results, out: Path, reporter: ProgressReporter, *, timed: bool) -> Callable[[], None]:
    from dynabandit.leaderboard import standings
    from dynabandit.leaderboard.step_times import time_steps

    names = sorted({run.policy for run in results})
    if timed:
        reporter.running("measuring the time per step of each policy")
    oracles = [name for name in names if POLICIES[name].informed]
    rows = standings.standings(results, oracles, time_steps(names) if timed else {})
    table = standings.write(rows, results, out)

    def show() -> None:
        display.print_standings(standings.HEADINGS, [standings.cells(row) for row in rows])
        typer.echo(f"Table: {table}")

    return show


def _override(spec: Spec, quick: bool, replications: int | None, seed: int | None, horizon: int | None) -> Spec:
    if quick and replications is not None:
        stop(f"--quick means {QUICK} replications: leave out --replications or --quick", BAD_INPUT)
    with bad_input():
        return spec.override(replications=QUICK if quick else replications, horizon=horizon, seed=seed)


def _run(spec: Spec, out: Path, options: dict[str, Any], publish: Publish) -> None:
    """Run a spec, publish and print its results; an interrupted run says how to continue."""
    jobs = options["jobs"]
    if jobs is not None and jobs < 1:
        stop(f"--jobs must be a whole number of at least 1, got {jobs}", BAD_INPUT)
    with bad_input():
        experiments.check_options(spec, options["backend"], options["precision"], options["cluster"], jobs)
    try:
        for module in REPORTING:
            import_extra(module, "lab")  # now, rather than after hours of simulation
        with display.progress_display(sys.stderr) as reporter:
            results = experiments.run(spec, out, reporter=reporter, **options)
            show = publish(results, out, reporter)
    except KeyboardInterrupt:
        again = shlex.join(["dynabandit", *(word for word in sys.argv[1:] if word != "--fresh")])
        stop(f"stopped. Finished results are stored in {out / experiments.STORE}; continue with: {again}", INTERRUPTED)
    except ModuleNotFoundError as error:
        stop(missing(error, "cluster" if error.name == "distributed" else "lab"), FAILED)
    except experiments.BackendError as error:
        stop(str(error), FAILED)
    except MemoryError as error:
        no_memory(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        stop(f"{error}. Earlier results are intact; fix this and run the same command again", FAILED)
    show()


def _add_service_commands() -> None:
    """Add the commands of the service, or commands that say what to install for them."""
    try:
        from dynabandit.service.commands import app as service
    except ModuleNotFoundError as error:
        message = missing(error, "serve")
        for name in SERVICE:
            app.command(name, help="Decisions over HTTP.", context_settings=ANYTHING)(lambda: stop(message, FAILED))
    else:
        app.add_typer(service)


app.add_typer(offline.app)
_add_service_commands()
