"""Runs a spec: what is kept is read, what is missing is computed and kept."""

import platform
import shutil
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from dynabandit.bandit.serialization import plain
from dynabandit.errors import extra, integer
from dynabandit.experiments.backends import check, place
from dynabandit.experiments.executors import Crew, hire
from dynabandit.experiments.machine import hardware
from dynabandit.experiments.plan import Plan, make_plan
from dynabandit.experiments.progress import Watcher
from dynabandit.experiments.spec import Spec
from dynabandit.experiments.store import Arrays, Store, writing
from dynabandit.experiments.tasks import Task
from dynabandit.results import Results

__all__ = ["RESULTS", "STORE", "run"]

STORE = "store"
RESULTS = "results"


def run(
    spec: Spec,
    out: str | Path,
    *,
    jobs: int | None = None,
    fresh: bool = False,
    backend: str = "cpu",
    precision: str = "double",
    cluster: str | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Run a spec and write its results.

    Every finished unit of work is kept in ``out/store`` under a hash of what was asked and of the code that
    answers it. A run that was stopped, in whatever way, goes on from there when it is started again.

    Parameters
    ----------
    spec
        What to run.
    out
        The folder for everything that is written.
    jobs
        How many threads, by default one for each core; the workers of a local cluster.
    fresh
        Forget what is kept of this spec, and compute all of it.
    backend, precision
        As for `dynabandit.compare`; ``"auto"`` decides for each experiment.
    cluster
        The address of a Dask scheduler such as ``tcp://scheduler:8786``, or ``local`` for worker processes on this
        machine: the results are those of this process, bit for bit.
    watcher
        Told of what is going on.

    Returns
    -------
    Results
        Also written to ``out/results``.

    Examples
    --------
    >>> import tempfile
    >>> from dynabandit.experiments import Experiment, Named, Spec, run
    >>> trial = Experiment(
    ...     id="trial", environment=Named("case-1"), policies=(Named("ucb"),), horizon=50, replications=2
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(Spec(title="A trial", experiments=(trial,)), folder)
    Results(1 runs of 1 experiments)
    """
    jobs = None if jobs is None else integer("jobs", jobs, 1)
    watcher = watcher or Watcher()
    began = time.monotonic()
    out = Path(out)
    check(spec, backend, precision, cluster, jobs)
    _note_stillness(spec, watcher)
    extra("pyarrow", "lab")  # writes the results: now, rather than after hours
    with hire(cluster, jobs) as crew:
        places = place(spec, backend, precision, crew.gpus)
        plan, store = make_plan(spec, places, precision), Store(out / STORE)
        store.prepare()
        if fresh:
            store.forget(key for task in plan.tasks for key in task.requests)
        found = _answer(plan, store, crew, watcher)
    results = Results(
        (one.run(found) for one in plan.runs),
        metadata=_metadata(spec, plan, time.monotonic() - began)
        | {"backends": places, "precision": precision, **crew.about},
        paths=plan.sample_paths(found),
        coverage=plan.coverages(found),
    )
    _write(results, out)
    return results


def _note_stillness(spec: Spec, watcher: Watcher) -> None:
    """Tell of environments that are meant to change, but not before the horizon ends."""
    notes = {}
    for one in spec.experiments:
        world = one.environment.make_environment()
        until = world.constant_until(1)
        if one.horizon <= until < world.longest:
            notes[world.name, one.horizon] = until + 1
    for (name, horizon), change in notes.items():
        watcher.note(
            f"environment {name!r} cannot change before step {change}, and the horizon is {horizon}: it stands still"
        )


def _answer(plan: Plan, store: Store, crew: Crew, watcher: Watcher) -> dict[str, Arrays]:
    """Return the answers to all requests, computing those that are not kept."""
    found: dict[str, Arrays] = {}
    missing: list[tuple[Task, list[str]]] = []
    for task in plan.tasks:
        kept = {key: store.load(key) for key in task.requests}
        found.update({key: arrays for key, arrays in kept.items() if arrays is not None})
        missing.append((task, [key for key, arrays in kept.items() if arrays is None]))
    for path in store.damaged:
        watcher.note(f"{path} is damaged; it was set aside under this name and is computed again")
    work = [(task, keys) for task, keys in missing if keys]
    waiting = {figure: sum(figure in task.figures for task, _ in work) for figure in plan.figures}
    watcher.begin(sum(task.cost(keys) for task, keys in work), len(waiting))
    _finish(waiting, watcher)
    for task, answers in crew.compute(work, watcher):
        for key, arrays in answers.items():
            store.save(key, arrays, task.requests[key])
            found[key] = arrays
        for figure in task.figures:
            waiting[figure] -= 1
        _finish(waiting, watcher)
    return found


def _finish(waiting: dict[str, int], watcher: Watcher) -> None:
    """Tell of the figures that wait for nothing any more."""
    for figure in [figure for figure, count in waiting.items() if count == 0]:
        del waiting[figure]
        watcher.finished(figure)


def _write(results: Results, out: Path) -> None:
    """Write the results beside the old ones, then take their place: a stop in between leaves no mixture."""
    new, old = out / f"{RESULTS}.new", out / f"{RESULTS}.old"
    with writing(out):
        for leftover in (new, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            results.save(new)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if (out / RESULTS).exists():
            (out / RESULTS).rename(old)
        new.rename(out / RESULTS)
        shutil.rmtree(old, ignore_errors=True)


def _metadata(spec: Spec, plan: Plan, seconds: float) -> dict[str, Any]:
    """What it takes to make the results again, and what it took; no Parquet file holds any of it."""
    seeds = sorted({part.seed for part in spec.parts})
    code: dict[str, dict[str, str]] = {}
    for one in plan.runs:
        code.setdefault(one.experiment.id, {})[one.policy.label] = one.code
    return {
        "title": spec.title,
        "spec": plain(spec.as_dict()),
        "seed": seeds[0] if len(seeds) == 1 else seeds,
        "code_versions": code,
        "versions": {name: import_module(name).__version__ for name in ("dynabandit", "numpy", "numba")}
        | {"python": platform.python_version()},
        "hardware": hardware(),
        "wall_seconds": round(seconds, 3),
    }
