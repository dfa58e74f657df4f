"""Units of work on a Dask cluster: cut into tasks of some seconds, put together as they come back.

A worker answers exactly as this machine would, or not at all: it must run the same code on the same versions, with
arithmetic that agrees to the last bit. What it answers depends on no other worker, so that one that dies costs
nothing but time. Only this side writes anything.
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

from dynabandit.environments import Environment
from dynabandit.errors import extra
from dynabandit.experiments.backends import Gpu, look_for_gpu
from dynabandit.experiments.compiling import compile_ahead
from dynabandit.experiments.executors import Work, to_compile
from dynabandit.experiments.identity import PACKAGES, difference, identity
from dynabandit.experiments.pieces import Gathered, Piece, bundles
from dynabandit.experiments.progress import Watcher
from dynabandit.experiments.store import Arrays
from dynabandit.experiments.tasks import Task
from dynabandit.policies import Policy
from dynabandit.simulation.backends import cores

__all__ = ["Cluster", "ClusterError", "connect"]

Done = queue.SimpleQueue[Any]  # futures that have ended, in whatever way
Answers = list[dict[str, Arrays]]

PATIENCE = 10.0  # seconds for a scheduler to answer, and for a first worker to show up
LOOK = 5.0  # seconds without an answer after which to see whether anybody is left
LARGEST = 2e8  # updates of an arm in a task: some seconds
SCHEDULED = 2e6  # and more with more than a hundred threads, lest the scheduler should become the slowest part
SMALLEST = 1e7  # below about a tenth of a second, a task would cost more than it brings
EACH = 4  # tasks for each thread where there is enough work, so that all end at about the same time
LOGS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


class ClusterError(OSError):
    """A cluster that does not answer, is gone, or has a worker that may not take part."""


@contextmanager
def connect(address: str, jobs: int | None) -> Iterator["Cluster"]:
    """Reach a cluster and check that its workers may take part, within a bounded time.

    Parameters
    ----------
    address
        Of a scheduler, such as ``tcp://scheduler:8786``; ``local`` starts workers on this machine.
    jobs
        How many workers to start here, by default one for each core.
    """
    distributed = extra("distributed", "cluster")
    with _quiet(), ExitStack() as stack:
        at = stack.enter_context(_start_here(distributed, jobs)) if address == "local" else address
        client = _reach(distributed, at, address)
        stack.callback(client.close, timeout=PATIENCE)
        cluster = Cluster(client, address)
        cluster.check()
        yield cluster


class Cluster:
    """The workers of a Dask cluster, a `Crew`."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.about: dict[str, Any] = {"cluster": address}
        self._numbers = itertools.count()
        self._looked, self._threads = -math.inf, 0
        self._deserted = False

    def check(self) -> None:
        """Raise an error unless there are workers, and all of them may take part."""
        with self._connection():
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise ClusterError(
                    f"the scheduler at {self.address} has no workers; start some with: dask worker {self.address}"
                ) from None
            said = self.client.get_versions(packages=list(PACKAGES))
            _admit("the scheduler", _versions(said["scheduler"]))
            for worker, versions in said["workers"].items():
                _admit(f"worker {worker}", _versions(versions))
            for worker, found in self.client.run(identity, on_error="return").items():
                _admit(f"worker {worker}", found)
        self.about["workers"] = len(said["workers"])

    def gpus(self) -> Sequence[Gpu]:
        """Ask every worker for its GPU."""
        with self._connection():
            found = self.client.run(look_for_gpu)
        return [Gpu(gpu.missing, gpu.free, where) for where, gpu in found.items()]

    def compute(self, work: Work, watcher: Watcher) -> Iterator[tuple[Task, dict[str, Arrays]]]:
        """Answer all units, each as soon as all of its pieces are there."""
        if not work:
            return
        self._compile(work, watcher)
        watcher.stage(f"simulating {len(work)} units of work on {self.about['workers']} workers")
        gathered = Gathered(work)
        threads = max(1, self._room())
        share = sum(task.cost(keys) for task, keys in work) / (EACH * threads)
        size = min(max(LARGEST, SCHEDULED * threads), max(SMALLEST, share))
        for bundle, answers in self._answers(bundles(work, size), watcher):
            for piece, answer in zip(bundle, answers, strict=True):
                watcher.advance(piece.cost)
                yield from gathered.add(piece, answer)

    def _answers(self, todo: Iterator[list[Piece]], watcher: Watcher) -> Iterator[tuple[list[Piece], Answers]]:
        """Keep every worker busy, with few more tasks on the cluster than that takes."""
        running: dict[str, tuple[Any, list[Piece]]] = {}
        done: Done = queue.SimpleQueue()
        try:
            while True:
                for bundle in itertools.islice(todo, max(0, 2 * self._room() + 2 - len(running))):
                    asked = [(piece.task, piece.keys) for piece in bundle]
                    future = self._submit(done, answer_here, asked, identity())
                    running[future.key] = future, bundle
                if not running:
                    return
                future = self._wait(done, watcher)
                answers = self._result(future, watcher)
                yield running.pop(future.key)[1], answers
        finally:
            with suppress(Exception):  # the cluster may be gone
                self.client.cancel([future for future, _ in running.values()])

    def _compile(self, work: Work, watcher: Watcher) -> None:
        """Compile ahead on each machine; one that joins later compiles what it needs when it needs it."""
        needed = to_compile(work)
        if not any(needed):
            return
        watcher.stage("compiling where that is needed")
        with self._connection():
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
        hosts: dict[str, list[str]] = defaultdict(list)
        for address, about in workers.items():
            hosts[about["host"]].append(address)
        done: Done = queue.SimpleQueue()
        futures = [
            self._submit(done, compile_here, *needed, len(there), workers=there, allow_other_workers=True)
            for there in hosts.values()
        ]
        for _ in futures:
            self._result(self._wait(done, watcher), watcher)

    def _submit(self, done: Done, function: Any, *arguments: Any, **where: Any) -> Any:
        key = f"dynabandit-{self.client.id}-{next(self._numbers)}"
        with self._connection():
            future = self.client.submit(function, *arguments, key=key, pure=False, **where)
            future.add_done_callback(done.put)
        return future

    def _wait(self, done: Done, watcher: Watcher) -> Any:
        """Return a task that has ended, in whatever way."""
        while True:
            try:
                return done.get(timeout=LOOK)
            except queue.Empty:
                self._look(watcher)

    def _result(self, future: Any, watcher: Watcher) -> Any:
        """Return what a task answered; where it died with its worker, after another one has answered too."""
        while future.status != "error":
            with self._connection():
                try:
                    return future.result(timeout=LOOK)
                except TimeoutError:
                    self._look(watcher)
        with self._connection() as distributed:
            error = future.exception()
        if isinstance(error, distributed.KilledWorker):
            raise ClusterError(f"one task took down several workers at {self.address}; their logs may say why")
        raise error

    def _look(self, watcher: Watcher) -> None:
        """Say so where nobody is left to work."""
        deserted = self._room() == 0
        if deserted and not self._deserted:
            watcher.note(f"no worker is left at {self.address}; waiting for one to come")
        self._deserted = deserted

    def _room(self) -> int:
        """Return how many threads the workers have; asked again now and then, since workers come and go."""
        if time.monotonic() - self._looked > 1.0:
            with self._connection():
                self._threads = sum(self.client.nthreads().values())
            self._looked = time.monotonic()
        return self._threads

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Turn the many ways to say that a connection is lost into one."""
        distributed = extra("distributed", "cluster")
        lost = (OSError, distributed.client.CancelledError, distributed.client.ClosedClientError)
        try:
            yield distributed
        except ClusterError:
            raise
        except lost as error:
            raise ClusterError(f"the scheduler at {self.address} is gone") from error


def _own_address() -> str:
    """Return the address of the worker that this runs on."""
    from distributed import get_worker

    return str(get_worker().address)


def answer_here(asked: Sequence[tuple[Task, list[str]]], here: Mapping[str, str]) -> Answers:
    """Answer a bundle, on a worker; one that joined after the others were looked at is looked at now."""
    _admit(f"worker {_own_address()}, which came later,", identity(), here)
    return [task.compute(keys, 1, lambda work: None) for task, keys in asked]


def compile_here(policies: list[tuple[Policy, int]], worlds: list[Environment], coverage: bool, jobs: int) -> None:
    """Compile for all workers of this machine."""
    compile_ahead(policies, worlds, coverage, jobs, Watcher())


def _admit(who: str, found: Mapping[str, str | None] | Exception, expected: Mapping[str, str] | None = None) -> None:
    """Raise an error where somebody differs from what is expected, or cannot even say what it is."""
    differs = f"it says {found}" if isinstance(found, Exception) else difference(expected or identity(), found)
    if differs:
        raise ClusterError(f"{who} would not give the results of this machine: {differs}")


def _versions(said: Mapping[str, Any]) -> dict[str, str | None]:
    """Return what Dask says of another machine in the words of `identity`."""
    packages = said["packages"]
    return {"python": ".".join(packages["python"].split(".")[:2]), **{name: packages[name] for name in PACKAGES}}


def _reach(distributed: Any, at: Any, address: str) -> Any:
    """Connect in a thread of its own: Dask would wait for ever for a peer that listens and says nothing."""
    # What failed to connect would try to say goodbye to the scheduler when it is collected
    kind = type("Client", (distributed.Client,), {"__del__": lambda self: None})
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def reach() -> None:
        try:
            answers.put(kind(at, timeout=PATIENCE, set_as_default=False))
        except Exception as error:  # whatever is there may say anything
            answers.put(error)

    threading.Thread(target=reach, daemon=True).start()
    client: Any = None
    with suppress(queue.Empty):
        client = answers.get(timeout=PATIENCE)
    if not isinstance(client, distributed.Client):
        raise ClusterError(f"no Dask scheduler answers at {address} within {PATIENCE:g} seconds") from client
    return client


def _start_here(distributed: Any, jobs: int | None) -> Any:
    """Start a scheduler in this process, and worker processes with a thread each."""
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
    """Prepare a worker that this process started: Ctrl-C in the terminal is for the parent, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's log off the terminal: what matters of it comes as an error."""
    before = {name: logging.getLogger(name).level for name in LOGS}
    for name in LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
