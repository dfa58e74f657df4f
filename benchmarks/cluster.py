"""Measure the overhead per task of a Dask cluster, and compare two workers with two threads on the same work.

    python benchmarks/cluster.py [--quick]

Each line is the best of several alternating runs with an empty store and cached compiled code, and includes storing the
results. The start of the processes is measured separately.
"""

import argparse
import math
import tempfile
import time
from pathlib import Path

import dynabandit as db
from dynabandit.experiments import Experiment, Spec, dask_executor
from dynabandit.experiments.executors import Executor, ThreadExecutor
from dynabandit.experiments.plan import make_plan
from dynabandit.experiments.progress import ProgressReporter
from dynabandit.experiments.result_store import ResultStore
from dynabandit.experiments.tasks import BATCH, PendingTask

WORKERS = 2
POLICIES = ("ucb", "aff-ucb2", "ts", "aff-ots")


def make_pending(arms: int, horizon: int, replications: int, policies: tuple[str, ...] = POLICIES) -> list[PendingTask]:
    """Return the tasks of an experiment with drifting arms."""
    experiment = Experiment(
        id="work",
        environment=db.environment("case-3", arms=arms),
        policies=tuple(map(db.policy, policies)),
        horizon=horizon,
        replications=replications,
    )
    plan = make_plan(Spec(title="Work", experiments=(experiment,)))
    return [PendingTask(task, list(task.requests)) for task in plan.tasks]


def seconds(executor: Executor, pending: list[PendingTask]) -> float:
    """Return the seconds between planning and combining the results."""
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(Path(folder) / "store")
        began = time.perf_counter()
        for task, answers in executor.compute(pending, ProgressReporter()):
            for key, arrays in answers.items():
                store.save(key, arrays, task.requests[key])
        return time.perf_counter() - began


def overhead(executor: dask_executor.DaskExecutor, tasks: int) -> float:
    """Return the seconds per task for many tasks with 25 very short replications each."""
    pending = make_pending(2, 100, BATCH["cpu"] * tasks, ("ucb",))
    sizes = dask_executor.SMALLEST_COST, dask_executor.LARGEST_COST, dask_executor.LARGEST_COST_PER_THREAD
    dask_executor.SMALLEST_COST = dask_executor.LARGEST_COST = dask_executor.LARGEST_COST_PER_THREAD = 1.0
    try:
        executor._compile(pending, ProgressReporter())
        began = time.perf_counter()
        for _ in executor.compute(pending, ProgressReporter()):
            pass
        return (time.perf_counter() - began) / tasks
    finally:
        dask_executor.SMALLEST_COST, dask_executor.LARGEST_COST, dask_executor.LARGEST_COST_PER_THREAD = sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use less work")
    quick = parser.parse_args().quick
    pending = make_pending(50, 10_000, 100 if quick else 600)
    began = time.perf_counter()
    with dask_executor.connect("local", WORKERS) as workers:
        started = time.perf_counter() - began
        executors: dict[str, Executor] = {
            "1 thread": ThreadExecutor(1),
            "2 threads": ThreadExecutor(2),
            "2 workers": workers,
        }
        best = dict.fromkeys(executors, math.inf)
        for executor in executors.values():
            seconds(executor, make_pending(50, 1000, 2))
        for _ in range(1 if quick else 3):
            for name, executor in executors.items():
                best[name] = min(best[name], seconds(executor, pending))
        each = min(overhead(workers, 200 if quick else 1000) for _ in range(1 if quick else 3))
    print("| what | measured |")
    print("|---|---|")
    print(f"| start of a scheduler and {WORKERS} local workers, including their checks | {started:.1f} s |")
    print(f"| overhead per task | {each * 1e3:.1f} ms |")
    for name, time_taken in best.items():
        print(f"| the same work on {name} | {time_taken:.2f} s |")
    print(f"| speed of {WORKERS} workers relative to {WORKERS} threads | {best['2 threads'] / best['2 workers']:.0%} |")


if __name__ == "__main__":
    main()
