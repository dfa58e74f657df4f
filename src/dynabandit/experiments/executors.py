"""Executors compute the tasks of a run: on the threads of this machine or its GPU, or on a Dask cluster."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from dynabandit.environments import Bernoulli, Environment
from dynabandit.experiments.backend_choice import Gpu, find_gpu
from dynabandit.experiments.compiling import compile_ahead
from dynabandit.experiments.progress import ProgressReporter, counted
from dynabandit.experiments.tasks import CoverageTask, PathTask, PendingTask, SimulationTask, Task, TaskResults
from dynabandit.policies import Policy
from dynabandit.simulation.backends import cores


class Executor(Protocol):
    """Computes tasks."""

    metadata: dict[str, Any]
    """What the metadata of the results says about it."""

    def find_gpus(self) -> Sequence[Gpu]:
        """Return the GPU of each machine."""

    def compute(self, pending: Sequence[PendingTask], reporter: ProgressReporter) -> Iterator[tuple[Task, TaskResults]]:
        """Yield results with their task as soon as they are computed, in any order."""


class ThreadExecutor:
    """The threads of this machine, or its GPU."""

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs or cores()
        self.metadata = {"jobs": self.jobs}

    def find_gpus(self) -> Sequence[Gpu]:
        return [find_gpu()]

    def compute(self, pending: Sequence[PendingTask], reporter: ProgressReporter) -> Iterator[tuple[Task, TaskResults]]:
        compile_ahead(*to_compile(pending), self.jobs, reporter)
        if pending:
            reporter.stage(f"simulating {counted(len(pending), 'task')}")
        for task, keys in pending:
            reporter.running(task.title)
            yield task, task.compute(keys, self.jobs, reporter.advance)


def make_executor(cluster: str | None, jobs: int | None) -> AbstractContextManager[Executor]:
    """Return an executor on this machine, or on a cluster once its workers have been checked."""
    if cluster is None:
        return nullcontext(ThreadExecutor(jobs))
    from dynabandit.experiments.dask_executor import connect

    return connect(cluster, jobs)


def to_compile(pending: Sequence[PendingTask]) -> tuple[list[tuple[Policy, int]], list[Environment], bool]:
    """Return what to compile ahead: policies with their number of arms, environments, and whether coverage.

    Code for a GPU is not compiled ahead: the process that runs it compiles it within seconds and caches it on disk.
    Policies are compiled ahead for Bernoulli rewards, and for other reward laws when they are simulated.
    """
    simulated = [(task, keys) for task, keys in pending if isinstance(task, SimulationTask) and task.backend == "cpu"]
    policies = [
        (task.policies[key], task.experiment.environment.arms)
        for task, keys in simulated
        if task.experiment.environment.reward_functions == Bernoulli.functions
        for key in keys
    ]
    environments = [task.experiment.environment for task, _ in simulated]
    environments += [task.spec.environment for task, _ in pending if isinstance(task, PathTask)]
    return policies, environments, any(isinstance(task, CoverageTask) for task, _ in pending)
