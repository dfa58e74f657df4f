"""The commands; each parses its arguments, calls one function and prints the result."""

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import dynabandit
from dynabandit import experiments, plugins
from dynabandit.catalogue import entries
from dynabandit.cli import SERVICE, display, leaderboard, missing, offline
from dynabandit.cli.exit_codes import BAD_INPUT, FAILED, bad_input, stop
from dynabandit.cli.run_errors import run_errors
from dynabandit.cli.run_options import (
    Backend,
    Cluster,
    Fresh,
    Jobs,
    Out,
    Pdf,
    Precision,
    Seed,
    check_run_options,
)
from dynabandit.core.one_line_syntax import write_one_line
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS, REWARD_LAWS, environment_class
from dynabandit.experiments import Experiment, RunOptions, Spec
from dynabandit.experiments.spec_reader import read_delay, read_environment, read_policy
from dynabandit.paper.specs import paper as paper_spec
from dynabandit.policies import CONTEXTUAL_POLICIES, DETECTORS, MEMORIES, POLICIES, RULES, policy_class
from dynabandit.report.pdf import NO_BROWSER, find_browser, print_pdf
from dynabandit.results import Results

QUICK = 10  # replications
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
Quick = Annotated[bool, typer.Option("--quick", help=f"Run {QUICK} replications, for a first look.")]
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
    pdf: Pdf = False,
) -> None:
    """Reproduce the figures of the paper, and check its claims."""
    with bad_input("--only"):
        spec = paper_spec().only(only or [])
    spec = _override(spec, quick, replications, seed, horizon)
    _run(spec, out, RunOptions(jobs, fresh, backend, precision, cluster), paper=True, pdf=pdf)


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
    pdf: Pdf = False,
) -> None:
    """Run the experiments of a spec file, and write a report."""
    with bad_input():
        spec = experiments.load(file)
    with bad_input(f"{file}: --only"):
        spec = spec.only(only or [])
    spec = _override(spec, quick, replications, seed, horizon)
    _run(spec, out or Path("out") / file.stem, RunOptions(jobs, fresh, backend, precision, cluster), pdf=pdf)


@app.command()
def compare(
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", help="Such as ucb, aff-ots:step_size=0.01 or module:Class.")
    ],
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
    pdf: Pdf = False,
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
    _run(spec, out, RunOptions(jobs, fresh, backend, precision, cluster), pdf=pdf, keep_earlier=True)


def _as_option(name: str, parameters: Mapping[str, Any]) -> str:
    return shlex.join(["--env", write_one_line(name, parameters)])


@app.command(name="list")
def list_() -> None:
    """Show policies, their parts, environments and parameters."""
    display.print_catalogue("Policies", entries(POLICIES))
    display.print_catalogue("Policies that decide by features", entries(CONTEXTUAL_POLICIES))
    display.print_catalogue('Rules, the first part of a policy such as "ots + adaptive + glr"', entries(RULES))
    display.print_catalogue("Memories, its second part", entries(MEMORIES))
    display.print_catalogue("Detectors, its third part, which may be left out", entries(DETECTORS))
    display.print_catalogue("Environments", entries(ENVIRONMENTS))
    display.print_catalogue("Environments with features", entries(CONTEXTUAL_ENVIRONMENTS))
    _list_plugins("Policies of other packages", plugins.POLICIES, policy_class)
    _list_plugins("Environments of other packages", plugins.ENVIRONMENTS, environment_class)
    display.print_catalogue("Reward laws, as rewards=... of an environment", entries(REWARD_LAWS))


def _list_plugins(title: str, group: str, find: Callable[[str], type]) -> None:
    """Show the plug-ins that are installed; one that cannot be loaded is reported."""
    kinds = {}
    for name in plugins.installed(group):
        try:
            kinds[name] = find(name)
        except plugins.PluginError as error:
            typer.echo(f"dynabandit: {error}", err=True)
    if kinds:
        display.print_catalogue(title, entries(kinds))


def _publish_report(results: Results, out: Path, *, paper: bool, pdf: bool) -> Callable[[], None]:
    """Write the report into a folder, and return a function that prints the rest."""
    from dynabandit.paper import lookup, report as paper_report
    from dynabandit.report import page, tables

    report = paper_report.publish(results, out) if paper else page.publish(results, out)
    printed = print_pdf(report) if pdf else None
    rows = tables.summary(lookup.shown_runs(results) if paper else results)

    def show() -> None:
        display.print_summary(rows, paired=not paper)
        if printed:
            typer.echo(f"PDF: {printed}")
        typer.echo(f"Report: {report}")

    return show


def _override(spec: Spec, quick: bool, replications: int | None, seed: int | None, horizon: int | None) -> Spec:
    if quick and replications is not None:
        stop(f"--quick means {QUICK} replications: leave out --replications or --quick", BAD_INPUT)
    with bad_input():
        return spec.override(replications=QUICK if quick else replications, horizon=horizon, seed=seed)


def _run(
    spec: Spec,
    out: Path,
    options: RunOptions,
    *,
    paper: bool = False,
    pdf: bool = False,
    keep_earlier: bool = False,
) -> None:
    """Run a spec, publish and print its results; an interrupted run says how to continue."""
    check_run_options([spec], options)
    if pdf and find_browser() is None:  # now, rather than after hours of simulation
        stop(NO_BROWSER, FAILED)
    with run_errors(out), display.progress_display(sys.stderr) as reporter:
        results = experiments.run(spec, out, reporter=reporter, keep_earlier=keep_earlier, **vars(options))
        reporter.running("writing the report")
        show = _publish_report(results, out, paper=paper, pdf=pdf)
    show()


def _add_service_commands() -> None:
    """Add the commands of the service, or commands that say what to install for them."""
    try:
        from dynabandit.cli.log_import import app as log_import
        from dynabandit.service.command_line import app as service
    except ModuleNotFoundError as error:
        message = missing(error, "serve")
        for name in SERVICE:
            app.command(name, help="Decisions over HTTP.", context_settings=ANYTHING)(lambda: stop(message, FAILED))
    else:
        app.add_typer(service)
        app.add_typer(log_import)


app.add_typer(offline.app)
app.add_typer(leaderboard.app)
_add_service_commands()
