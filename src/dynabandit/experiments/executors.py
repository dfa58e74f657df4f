"""Who does the work of a run: the threads of this machine, or the workers of a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from dynabandit.environments import Environment
from dynabandit.experiments.backends import Gpu, look_for_gpu
from dynabandit.experiments.compiling import compile_ahead
from dynabandit.experiments.progress import Watcher
from dynabandit.experiments.store import Arrays
from dynabandit.experiments.tasks import CoverageTask, PathTask, SimulationTask, Task
from dynabandit.policies import Policy
from dynabandit.simulation.backends import cores

__all__ = ["Crew", "Threads", "Work", "hire", "to_compile"]

Work = Sequence[tuple[Task, list[str]]]  # units, and which of their requests to answer


class Crew(Protocol):
    """Takes units of work and gives answers."""

    about: dict[str, Any]
    """What metadata should say of it."""

    def gpus(self) -> Sequence[Gpu]:
        """Return what each machine says of its GPU."""

    def compute(self, work: Work, watcher: Watcher) -> Iterator[tuple[Task, dict[str, Arrays]]]:
        """Answer all units, each as soon as it is done, in whatever order."""


class Threads:
    """The threads of this machine, or its GPU."""

    def __init__(self, jobs: int | None) -> None:
        self.jobs = jobs or cores()
        self.about = {"jobs": self.jobs}

    def gpus(self) -> Sequence[Gpu]:
        return [look_for_gpu()]

    def compute(self, work: Work, watcher: Watcher) -> Iterator[tuple[Task, dict[str, Arrays]]]:
        compile_ahead(*to_compile(work), self.jobs, watcher)
        if work:
            watcher.stage(f"simulating {len(work)} unit{'' if len(work) == 1 else 's'} of work")
        for task, keys in work:
            watcher.running(task.title)
            yield task, task.compute(keys, self.jobs, watcher.advance)


def hire(cluster: str | None, jobs: int | None) -> AbstractContextManager[Crew]:
    """Return the threads of this machine, or the workers of a cluster once they have answered and fit."""
    if cluster is None:
        return nullcontext(Threads(jobs))
    from dynabandit.experiments.dask_executor import connect

    return connect(cluster, jobs)


def to_compile(work: Work) -> tuple[list[tuple[Policy, int]], list[Environment], bool]:
    """Return what is worth compiling ahead: policies, each with its number of arms, environments, and whether coverage.

    Code for a GPU is not: the process that runs it compiles it within seconds, and keeps it on disk.
    """
    simulated = [(task, keys) for task, keys in work if isinstance(task, SimulationTask) and task.backend == "cpu"]
    policies = [(task.policies[key], task.environment.arms) for task, keys in simulated for key in keys]
    worlds = [task.environment for task, _ in simulated]
    worlds += [task.environment for task, _ in work if isinstance(task, PathTask)]
    return policies, worlds, any(isinstance(task, CoverageTask) for task, _ in work)
