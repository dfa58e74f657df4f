"""Runs a spec: plans its tasks, loads the results that are stored, computes and stores the others."""

import platform
import shutil
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from dynabandit.core.json_values import plain
from dynabandit.experiments.backend_choice import choose_backends
from dynabandit.experiments.earlier_results import RESULTS, set_aside
from dynabandit.experiments.executors import Executor, make_executor
from dynabandit.experiments.hardware import describe_hardware
from dynabandit.experiments.plan import Plan, make_plan
from dynabandit.experiments.progress import ProgressReporter
from dynabandit.experiments.result_store import Arrays, ResultStore, writing
from dynabandit.experiments.run_options import RunOptions
from dynabandit.experiments.spec import Spec
from dynabandit.experiments.tasks import PendingTask
from dynabandit.extras import import_extra
from dynabandit.results import Results

STORE = "store"


def run(
    spec: Spec,
    out: str | Path,
    *,
    jobs: int | None = None,
    fresh: bool = False,
    backend: str = "cpu",
    precision: str = "double",
    cluster: str | None = None,
    keep_earlier: bool = False,
    reporter: ProgressReporter | None = None,
) -> Results:
    """Run a spec and write its results.

    Every result is stored in ``out/store`` under a hash of its request and of the code that computes it. A run that
    was stopped in any way continues from there when it is started again.

    Parameters
    ----------
    spec
        What to run.
    out
        The folder for everything that is written.
    jobs
        How many threads, by default one per core; with a local cluster, how many workers.
    fresh
        Delete the stored results of this spec, and compute all of them.
    backend, precision
        As for `dynabandit.compare`; ``"auto"`` chooses for each experiment.
    cluster
        The address of a Dask scheduler such as ``tcp://scheduler:8786``, or ``local`` for worker processes on this
        machine. The results are equal bit for bit to those of this process.
    keep_earlier
        Move the results and the report of another spec, if they are in this folder, into a folder ``earlier-1``,
        ``earlier-2`` and so on, instead of replacing them.
    reporter
        Receives the progress of the run.

    Returns
    -------
    Results
        Also written to ``out/results``.

    Examples
    --------
    >>> import tempfile
    >>> import dynabandit as db
    >>> from dynabandit.experiments import Experiment, Spec, run
    >>> trial = Experiment(
    ...     id="trial", environment=db.environment("case-1"), policies=(db.policy("ucb"),), horizon=50, replications=2
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(Spec(title="A trial", experiments=(trial,)), folder)
    Results(1 runs of 1 experiments)
    """
    import_extra("pyarrow", "lab")  # writes the results: now, rather than after hours
    results = compute(spec, out, RunOptions(jobs, fresh, backend, precision, cluster), reporter)
    kept = _write(results, Path(out), keep_earlier)
    if kept and reporter:
        reporter.note(f"the earlier report is now in {kept}")
    return results


def compute(
    spec: Spec, out: str | Path, options: RunOptions | None = None, reporter: ProgressReporter | None = None
) -> Results:
    """Do what `run` does, except for writing the results of the whole spec."""
    options, reporter = options or RunOptions(), reporter or ProgressReporter()
    began = time.monotonic()
    options.check([spec])
    _note_constant_environments(spec, reporter)
    with make_executor(options.cluster, options.jobs) as executor:
        backends = choose_backends(spec, options.backend, options.precision, executor.find_gpus)
        plan, store = make_plan(spec, backends, options.precision), ResultStore(Path(out) / STORE)
        store.prepare()
        if options.fresh:
            store.delete(key for task in plan.tasks for key in task.requests)
        computed = _compute(plan, store, executor, reporter)
    return Results(
        (planned.join_batches(computed) for planned in plan.runs),
        metadata=_metadata(spec, plan, time.monotonic() - began)
        | {"backends": backends, "precision": options.precision, **executor.metadata},
        paths=plan.make_sample_paths(computed),
        coverage=plan.make_coverage(computed),
    )


def _note_constant_environments(spec: Spec, reporter: ProgressReporter) -> None:
    """Report environments that change over time, but not before the horizon ends."""
    notes = {}
    for experiment in spec.experiments:
        environment, horizon = experiment.environment, experiment.horizon
        until = environment.constant_until(1)
        if horizon <= until < environment.longest:
            notes[environment.name, horizon] = until + 1
    for (name, horizon), change in notes.items():
        reporter.note(
            f"environment {name!r} does not change before step {change}, but the horizon is {horizon}: "
            "its means are constant in this run"
        )


def _compute(plan: Plan, store: ResultStore, executor: Executor, reporter: ProgressReporter) -> dict[str, Arrays]:
    """Return all results by key, computing those that are not stored."""
    results: dict[str, Arrays] = {}
    pending: list[PendingTask] = []
    for task in plan.tasks:
        stored = {key: store.load(key) for key in task.requests}
        results.update({key: arrays for key, arrays in stored.items() if arrays is not None})
        missing = [key for key, arrays in stored.items() if arrays is None]
        if missing:
            pending.append(PendingTask(task, missing))
    for path in store.damaged:
        reporter.note(f"a stored result is damaged and is computed again; the damaged file is kept as {path}")
    waiting = {
        figure: sum(len(missing) for task, missing in pending if figure in task.figures) for figure in plan.figures
    }
    reporter.begin(sum(part.cost for part in pending), len(waiting))
    _report_finished(waiting, reporter)
    for task, computed in executor.compute(pending, reporter):
        for key, arrays in computed.items():
            store.save(key, arrays, task.requests[key])
            results[key] = arrays
        for figure in task.figures:
            waiting[figure] -= len(computed)
        _report_finished(waiting, reporter)
    return results


def _report_finished(waiting: dict[str, int], reporter: ProgressReporter) -> None:
    """Report the figures that wait for no task any more."""
    for figure in [figure for figure, count in waiting.items() if count == 0]:
        del waiting[figure]
        reporter.finished(figure)


def _write(results: Results, out: Path, keep_earlier: bool) -> Path | None:
    """Write the results beside the old ones, then replace those: a stop in between leaves no mixture.

    The old results are deleted, or kept in the folder that is returned.
    """
    new, old = out / f"{RESULTS}.new", out / f"{RESULTS}.old"
    with writing(out):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            results.save(new)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        kept = set_aside(out, results.metadata) if keep_earlier else None
        if (out / RESULTS).exists():
            (out / RESULTS).rename(old)
        new.rename(out / RESULTS)
        shutil.rmtree(old, ignore_errors=True)
    return kept


def _metadata(spec: Spec, plan: Plan, seconds: float) -> dict[str, Any]:
    """Return what is needed to compute the results again, and what it took; no Parquet file depends on it."""
    seeds = sorted({part.seed for part in spec.parts})
    code: dict[str, dict[str, str]] = {}
    for planned in plan.runs:
        code.setdefault(planned.experiment.id, {})[planned.policy.label] = planned.code
    return {
        "title": spec.title,
        "spec": plain(spec.as_dict()),
        "seed": seeds[0] if len(seeds) == 1 else seeds,
        "code_versions": code,
        "versions": {name: import_module(name).__version__ for name in ("dynabandit", "numpy", "numba")}
        | {"python": platform.python_version()},
        "hardware": describe_hardware(),
        "wall_seconds": round(seconds, 3),
    }
