"""Computes tasks on a Dask cluster: the workers get groups of results to compute, each of some seconds.

A worker must run the same code on the same versions, with arithmetic that is equal to the last bit; others are
refused. Results do not depend on which worker computes them, so a worker that dies costs only time. Only this process
writes to the store.
"""

import itertools
import logging
import math
import queue
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from dynabandit.experiments.backend_choice import Gpu, find_gpu
from dynabandit.experiments.compiling import compile_ahead
from dynabandit.experiments.executors import to_compile
from dynabandit.experiments.machine_fingerprint import PACKAGES, describe_difference, machine_fingerprint
from dynabandit.experiments.progress import ProgressReporter, counted
from dynabandit.experiments.tasks import PendingTask, Task, TaskResults
from dynabandit.extras import import_extra
from dynabandit.simulation.backends import cores

Futures = queue.SimpleQueue[Any]  # that have ended, with a result or an error

CONNECT_SECONDS = 10.0  # for a scheduler to answer
FIRST_WORKER_SECONDS = 10.0  # for a first worker to appear
POLL_SECONDS = 5.0  # without a result, after which to check whether there are workers
LARGEST_COST = 2e8  # of a group, in updates of an arm: some seconds
LARGEST_COST_PER_THREAD = 2e6  # more with over a hundred threads, so that the scheduler does not become the bottleneck
SMALLEST_COST = 1e7  # about a tenth of a second: smaller groups would cost more to send than to compute
GROUPS_PER_THREAD = 4  # where there are enough tasks, so that all threads end at about the same time
LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


class ClusterError(OSError):
    """A cluster that does not answer, has gone away, or has a worker that gives other results."""


@contextmanager
def connect(address: str, jobs: int | None) -> Iterator["DaskExecutor"]:
    """Connect to a cluster and check its workers, within a bounded time.

    Parameters
    ----------
    address
        Of a scheduler, such as ``tcp://scheduler:8786``; ``local`` starts workers on this machine.
    jobs
        How many workers to start on this machine, by default one per core.
    """
    distributed = import_extra("distributed", "cluster")
    with _silenced_loggers(), ExitStack() as stack:
        at = stack.enter_context(_start_local_cluster(distributed, jobs)) if address == "local" else address
        client = _connect_client(distributed, at, address)
        stack.callback(client.close, timeout=CONNECT_SECONDS)
        executor = DaskExecutor(client, address)
        executor.check_workers()
        yield executor


class DaskExecutor:
    """The workers of a Dask cluster, an `Executor`."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.metadata: dict[str, Any] = {"cluster": address}
        self._task_numbers = itertools.count()
        self._threads, self._threads_counted = 0, -math.inf
        self._without_workers = False

    def check_workers(self) -> None:
        """Raise an error unless there are workers, and all of them give the results of this machine."""
        with self._connection():
            try:
                self.client.wait_for_workers(1, timeout=FIRST_WORKER_SECONDS)
            except TimeoutError:
                raise ClusterError(
                    f"the scheduler at {self.address} has no workers; start some with: dask worker {self.address}"
                ) from None
            versions = self.client.get_versions(packages=list(PACKAGES))
            _check_fingerprint("the scheduler", _versions(versions["scheduler"]))
            for worker, of_worker in versions["workers"].items():
                _check_fingerprint(f"worker {worker}", _versions(of_worker))
            for worker, fingerprint in self.client.run(machine_fingerprint, on_error="return").items():
                _check_fingerprint(f"worker {worker}", fingerprint)
        self.metadata["workers"] = len(versions["workers"])

    def find_gpus(self) -> Sequence[Gpu]:
        """Return the GPU of every worker."""
        with self._connection():
            gpus = self.client.run(find_gpu)
        return [Gpu(gpu.missing, gpu.free, worker) for worker, gpu in gpus.items()]

    def compute(self, pending: Sequence[PendingTask], reporter: ProgressReporter) -> Iterator[tuple[Task, TaskResults]]:
        """Yield results with their task as soon as they are computed."""
        if not pending:
            return
        self._compile(pending, reporter)
        workers = counted(self.metadata["workers"], "worker")
        reporter.stage(f"simulating {counted(len(pending), 'task')} on {workers}")
        threads = max(1, self._count_threads())
        share = sum(part.cost for part in pending) / (GROUPS_PER_THREAD * threads)
        cost = min(max(LARGEST_COST, LARGEST_COST_PER_THREAD * threads), max(SMALLEST_COST, share))
        for group, results in self._compute_groups(group_tasks(pending, cost), reporter):
            for part, result in zip(group, results, strict=True):
                reporter.advance(part.cost)
                yield part.task, result

    def _compute_groups(
        self, groups: Iterator[list[PendingTask]], reporter: ProgressReporter
    ) -> Iterator[tuple[list[PendingTask], list[TaskResults]]]:
        """Keep every worker busy, with few more groups on the cluster than that takes."""
        running: dict[str, tuple[Any, list[PendingTask]]] = {}
        ended: Futures = queue.SimpleQueue()
        try:
            while True:
                for group in itertools.islice(groups, max(0, 2 * self._count_threads() + 2 - len(running))):
                    future = self._submit(ended, compute_on_worker, group, machine_fingerprint())
                    running[future.key] = future, group
                if not running:
                    return
                future = self._wait(ended, reporter)
                results = self._result(future, reporter)
                yield running.pop(future.key)[1], results
        finally:
            with suppress(Exception):  # the cluster may have gone away
                self.client.cancel([future for future, _ in running.values()])

    def _compile(self, pending: Sequence[PendingTask], reporter: ProgressReporter) -> None:
        """Compile ahead on each machine; one that joins later compiles what it needs when it needs it."""
        needed = to_compile(pending)
        if not any(needed):
            return
        reporter.stage("compiling on the workers, where that is needed")
        with self._connection():
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        hosts: dict[str, list[str]] = defaultdict(list)
        for address, info in workers.items():
            hosts[info["host"]].append(address)
        ended: Futures = queue.SimpleQueue()
        silent = ProgressReporter()
        futures = [
            self._submit(
                ended, compile_ahead, *needed, len(addresses), silent, workers=addresses, allow_other_workers=True
            )
            for addresses in hosts.values()
        ]
        for _ in futures:
            self._result(self._wait(ended, reporter), reporter)

    def _submit(self, ended: Futures, function: Any, *arguments: Any, **options: Any) -> Any:
        key = f"dynabandit-{self.client.id}-{next(self._task_numbers)}"
        with self._connection():
            future = self.client.submit(function, *arguments, key=key, pure=False, **options)
            future.add_done_callback(ended.put)
        return future

    def _wait(self, ended: Futures, reporter: ProgressReporter) -> Any:
        """Return a future that has ended, with a result or an error."""
        while True:
            try:
                return ended.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._report_missing_workers(reporter)

    def _result(self, future: Any, reporter: ProgressReporter) -> Any:
        """Return the result of a future; if its worker died before it was read, wait until another computes it."""
        while future.status != "error":
            with self._connection():
                try:
                    return future.result(timeout=POLL_SECONDS)
                except TimeoutError:
                    self._report_missing_workers(reporter)
        with self._connection() as distributed:
            error = future.exception()
        if isinstance(error, distributed.KilledWorker):
            raise ClusterError(f"several workers at {self.address} died from the same task; their logs may say why")
        raise error

    def _report_missing_workers(self, reporter: ProgressReporter) -> None:
        without_workers = self._count_threads() == 0
        if without_workers and not self._without_workers:
            reporter.note(f"the scheduler at {self.address} has no workers any more; waiting for one")
        self._without_workers = without_workers

    def _count_threads(self) -> int:
        """Return how many threads the workers have, at most a second ago: workers come and go."""
        if time.monotonic() - self._threads_counted > 1.0:
            with self._connection():
                self._threads = sum(self.client.nthreads().values())
            self._threads_counted = time.monotonic()
        return self._threads

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Raise a `ClusterError` for any error that says that the connection is lost."""
        distributed = import_extra("distributed", "cluster")
        lost = (OSError, distributed.client.CancelledError, distributed.client.ClosedClientError)
        try:
            yield distributed
        except ClusterError:
            raise
        except lost as error:
            raise ClusterError(f"the connection to the scheduler at {self.address} is lost") from error


def group_tasks(pending: Sequence[PendingTask], cost: float) -> Iterator[list[PendingTask]]:
    """Divide the results of expensive tasks, and put cheap tasks together, so that each group has about this cost."""
    group: list[PendingTask] = []
    group_cost = 0.0
    for task, keys in pending:
        size = max(1, int(len(keys) * cost / task.cost(keys)))
        for start in range(0, len(keys), size):
            group.append(PendingTask(task, keys[start : start + size]))
            group_cost += group[-1].cost
            if group_cost >= cost:
                yield group
                group, group_cost = [], 0.0
    if group:
        yield group


def _worker_address() -> str:
    """Return the address of the worker that runs this."""
    from distributed import get_worker

    return str(get_worker().address)


def compute_on_worker(group: Sequence[PendingTask], expected: Mapping[str, str]) -> list[TaskResults]:
    """Compute a group on a worker; one that joined during the run is checked here."""
    _check_fingerprint(f"worker {_worker_address()}, which joined later,", machine_fingerprint(), expected)
    return [task.compute(keys, 1, lambda cost: None) for task, keys in group]


def _check_fingerprint(
    who: str, fingerprint: Mapping[str, str | None] | Exception, expected: Mapping[str, str] | None = None
) -> None:
    """Raise an error if a worker differs from this machine, or cannot tell."""
    if isinstance(fingerprint, Exception):
        difference = f"it reports {fingerprint}"
    else:
        difference = describe_difference(expected or machine_fingerprint(), fingerprint)
    if difference:
        raise ClusterError(f"{who} would not give the results of this machine: {difference}")


def _versions(reported: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the versions that Dask reports in the form of `machine_fingerprint`."""
    packages = reported["packages"]
    return {"python": ".".join(packages["python"].split(".")[:2]), **{name: packages[name] for name in PACKAGES}}


def _connect_client(distributed: Any, at: Any, address: str) -> Any:
    """Connect in a thread: Dask would wait forever for a server that accepts the connection and sends nothing."""
    # A client that failed to connect would try to contact the scheduler when it is garbage-collected
    kind = type("Client", (distributed.Client,), {"__del__": lambda self: None})
    outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect_client() -> None:
        try:
            outcome.put(kind(at, timeout=CONNECT_SECONDS, set_as_default=False))
        except Exception as error:  # whatever listens there may answer anything
            outcome.put(error)

    threading.Thread(target=connect_client, daemon=True).start()
    client: Any = None
    with suppress(queue.Empty):
        client = outcome.get(timeout=CONNECT_SECONDS)
    if not isinstance(client, distributed.Client):
        raise ClusterError(f"no Dask scheduler answers at {address} within {CONNECT_SECONDS:g} seconds") from client
    return client


def _start_local_cluster(distributed: Any, jobs: int | None) -> Any:
    """Start a scheduler in this process, and worker processes with one thread each."""
    return distributed.LocalCluster(
        n_workers=jobs or cores(),
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        memory_limit=None,
        preload=[__name__],
        silence_logs=logging.CRITICAL,
    )


def dask_setup(worker: Any) -> None:
    """Let a local worker ignore Ctrl-C: the parent process handles it and stops its workers. Dask calls this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _silenced_loggers() -> Iterator[None]:
    """Keep Dask's log off the terminal: what matters is raised as an error."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
