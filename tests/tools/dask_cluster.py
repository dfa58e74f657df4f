"""Dask clusters for tests: a scheduler and workers in processes of their own, or in threads of this one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dynabandit
from tools.waiting import PATIENCE

SOURCE = Path(dynabandit.__file__).parents[1]
Process = subprocess.Popen[bytes]


def stored(out: Path) -> dict[str, bytes]:
    """The stored results of a run."""
    return {path.name: path.read_bytes() for path in (out / "store").glob("*.result")}


def _python(*arguments: object, source: Path = SOURCE) -> Process:
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class ProcessCluster:
    """A scheduler and its workers, each a process on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[Process] = []
        self.scheduler = _python(
            "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", folder / "scheduler.json",
        )  # fmt: skip
        while not (address := self._address()):
            assert self._still_runs(), "the scheduler ended early"
        self.address: str = address

    def _address(self) -> str:
        try:
            return str(json.loads((self.folder / "scheduler.json").read_text(encoding="utf-8"))["address"])
        except (FileNotFoundError, json.JSONDecodeError):
            return ""

    def _still_runs(self) -> bool:
        try:
            self.scheduler.wait(timeout=0.01)
        except subprocess.TimeoutExpired:
            return True
        return False

    def add(self, source: Path = SOURCE) -> Process:
        """Start a worker."""
        worker = _python(
            "-m", "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--local-directory", self.folder, source=source,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def wait_for(self, count: int) -> None:
        """Wait until the scheduler knows exactly so many workers."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            if count:
                client.wait_for_workers(count, timeout=PATIENCE)
            while len(client.nthreads()) > count:
                client.run_on_scheduler(lambda: None)

    def prepare(self, count: int) -> list[Process]:
        """Have exactly so many workers, and return them."""
        running = [worker for worker in self.workers if worker.poll() is None]
        for worker in running[count:]:
            kill(worker)
        self.workers = running[:count]
        while len(self.workers) < count:
            self.add()
        self.wait_for(count)
        return self.workers

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            kill(process)


def kill(process: Process) -> None:
    process.kill()
    process.wait()


@contextmanager
def thread_cluster(workers: int) -> Iterator[str]:
    """Yield the address of a scheduler with workers in threads of this process, which start at once."""
    import distributed

    cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )
    with cluster:
        yield str(cluster.scheduler_address)
