"""`python -m tools.held_command` is `dynabandit`, but it does not end by itself, so that a test can stop it.

Its threads compute all tasks but the last one, and its worker processes do not compile what they are given. With a
cluster it computes all tasks, and waits for the cluster as long as a busy machine needs.
"""

import time
from collections.abc import Iterator, Sequence
from unittest import mock

import dynabandit.cli
from dynabandit.experiments import compiling, dask_executor
from dynabandit.experiments.executors import ThreadExecutor
from dynabandit.experiments.progress import ProgressReporter
from dynabandit.experiments.tasks import PendingTask, Task, TaskResults
from tools.waiting import PATIENCE

WORKER = "import sys; sys.stdin.read()"
compute = ThreadExecutor.compute


def compute_all_but_last(
    executor: ThreadExecutor, pending: Sequence[PendingTask], reporter: ProgressReporter
) -> Iterator[tuple[Task, TaskResults]]:
    yield from compute(executor, pending[:-1], reporter)
    while True:
        time.sleep(0.01)


if __name__ == "__main__":
    with (
        mock.patch.object(ThreadExecutor, "compute", compute_all_but_last),
        mock.patch.object(compiling, "WORKER", WORKER),
        mock.patch.multiple(dask_executor, CONNECT_SECONDS=PATIENCE, FIRST_WORKER_SECONDS=PATIENCE),
    ):
        dynabandit.cli.main()
