"""Tasks: what a run stores at once. A task computes several results, so that they can share paths.

The request of a result says everything that the result depends on. Its hash is the key of the result in the store.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.fingerprint import fingerprint
from dynabandit.core.streams import stream
from dynabandit.experiments.bound_coverage import add_exceeded, count_exceeded
from dynabandit.experiments.result_store import Arrays, request_key
from dynabandit.experiments.spec import CoverageSpec, Experiment, PathSpec
from dynabandit.policies import Policy
from dynabandit.simulation import device_version, path_version, recorded_times
from dynabandit.simulation.backends import in_single
from dynabandit.simulation.engine import run as simulate
from dynabandit.simulation.request import SimulationRequest

Advance = Callable[[float], None]
TaskResults = dict[str, Arrays]  # by key

# Replications of a task: some seconds, which is the most that a kill can cost. A GPU needs thousands to be busy
BATCH = {"cpu": 25, "cuda": 10_000}
GPU_SPEED = 100.0  # a low estimate of how many threads a GPU replaces; it is fastest with large tasks
STORED_FORMAT = 2  # 2: whether a best arm was played is stored for each replication
STEP_COST = 5.0  # cost of a step besides its arms, in arms; only used to estimate the remaining time


class Task(ABC):
    """What is computed at once; its results are independent, so that several workers can compute some of them each."""

    figures: set[str]
    """The figures that need it."""
    requests: dict[str, dict[str, Any]]
    """The requests of its results, by key."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "requests": {}}  # the workers of a cluster need none

    @property
    @abstractmethod
    def title(self) -> str:
        """What to show while it runs."""

    @abstractmethod
    def cost(self, keys: Sequence[str]) -> float:
        """Return the approximate cost of some results, in updates of an arm."""

    @abstractmethod
    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> TaskResults:
        """Compute some results; `advance` is called with the cost that was done meanwhile."""


class PendingTask(NamedTuple):
    """A task, and the keys of some of its results that are not stored yet."""

    task: Task
    keys: list[str]

    @property
    def cost(self) -> float:
        """The approximate cost, in updates of an arm."""
        return self.task.cost(self.keys)


def batches(replications: int, backend: str = "cpu") -> Iterator[tuple[int, int]]:
    """Yield the first replication and the size of each batch.

    Examples
    --------
    >>> list(batches(60))
    [(0, 25), (25, 25), (50, 10)]
    """
    size = BATCH[backend]
    for first in range(0, replications, size):
        yield first, min(size, replications - first)


@dataclass
class SimulationTask(Task):
    """A batch of replications of an experiment, also with the policies of others that need the same paths."""

    experiment: Experiment
    first: int
    count: int
    backend: str = "cpu"
    precision: str = "double"
    figures: set[str] = field(default_factory=set)
    policies: dict[str, Policy] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        environment, last = self.experiment.environment, self.first + self.count
        return f"{environment.name}, {environment.arms} arms, replications {self.first + 1} to {last}"

    @property
    def common_request(self) -> dict[str, Any]:
        """What all requests of this task have in common."""
        experiment, environment = self.experiment, self.experiment.environment
        common = {
            "environment": environment.name,
            "environment_parameters": environment.parameters,
            "horizon": experiment.horizon,
            "seed": experiment.seed,
            "times": experiment.recorded_times(),
            "first_replication": self.first,
            "replications": self.count,
        }
        if experiment.delay is not None:
            common["delay"] = experiment.delay.parameters
        if self.backend == "cuda":  # the same choices as on the CPU, but the last bits of sums may differ
            common |= {"backend": "cuda", "device_code": device_version()}
        return common

    def add(self, policy: Policy, code: str) -> str:
        """Add a policy, unless it is there already, and return the key of its result.

        `code` is the `code_version` of the policy: slow to compute, and the same for all batches.
        """
        request = {
            **self.common_request,
            "policy": policy.name,
            "parameters": policy.parameters,
            "code": code,
            "format": STORED_FORMAT,
        }
        if self.backend == "cuda":
            request["precision"] = "single" if in_single(policy, self.precision) else "double"
        key = request_key(request)
        self.policies[key] = policy
        self.requests[key] = request
        return key

    def cost(self, keys: Sequence[str]) -> float:
        arms = self.experiment.environment.arms + STEP_COST
        cost = self.count * self.experiment.horizon * arms * len(keys)
        return cost / GPU_SPEED if self.backend == "cuda" else cost

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> TaskResults:
        experiment, total, before = self.experiment, self.cost(keys), 0.0

        def progress(done: int, steps: int) -> None:
            nonlocal before
            now = total * done / steps
            advance(now - before)
            before = now

        records = simulate(
            SimulationRequest(
                environment=experiment.environment,
                policies={key: self.policies[key] for key in keys},
                horizon=experiment.horizon,
                replications=self.count,
                random=stream(experiment.seed, self.first),
                times=experiment.recorded_times(),
                delay=experiment.delay,
                backend=self.backend,
                precision=self.precision,
                threads=threads,
                progress=progress,
            )
        )
        return {
            key: {"regret": record.regret, "correct": record.correct.astype(bool)} for key, record in records.items()
        }


@dataclass
class PathTask(Task):
    """The sample paths of one environment."""

    spec: PathSpec
    figures: set[str]
    replications: dict[str, int] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        environment = self.spec.environment
        for replication in range(self.spec.replications):
            request = {
                "environment": environment.name,
                "environment_parameters": environment.parameters,
                "horizon": self.spec.horizon,
                "seed": self.spec.seed,
                "times": self.times,
                "replication": replication,
                "code": path_version(environment),
            }
            key = request_key(request)
            self.replications[key] = replication
            self.requests[key] = request

    @property
    def times(self) -> np.ndarray:
        return recorded_times(self.spec.points, self.spec.horizon)

    @property
    def title(self) -> str:
        return f"{self.spec.environment.name}, {self.spec.environment.arms} arms, sample paths"

    def cost(self, keys: Sequence[str]) -> float:
        return float(self.spec.horizon * self.spec.environment.arms * len(keys))

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> TaskResults:
        results = {}
        for key in keys:
            path = self.spec.environment.path(self.spec.horizon, self.spec.seed, self.replications[key])
            results[key] = {"means": path[self.times - 1]}
            advance(self.cost([key]))
        return results


@dataclass
class CoverageTask(Task):
    """The coverage of the bound, for every mean and step size."""

    spec: CoverageSpec
    figures: set[str]
    points: dict[str, tuple[int, float]] = field(default_factory=dict)  # index of the mean, and step size
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        code = fingerprint(add_exceeded)
        for index, mean in enumerate(self.spec.means):
            for step_size in self.spec.step_sizes:
                request = {
                    "mean": mean,
                    "number": index,
                    "step_size": step_size,
                    "observations": self.spec.observations,
                    "streams": self.spec.streams,
                    "seed": self.spec.seed,
                    "code": code,
                }
                key = request_key(request)
                self.points[key] = (index, step_size)
                self.requests[key] = request

    @property
    def title(self) -> str:
        return "coverage of the bound"

    def cost(self, keys: Sequence[str]) -> float:
        return float(self.spec.streams * self.spec.observations[-1] * len(keys))

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> TaskResults:
        def count(key: str) -> Arrays:
            index, step_size = self.points[key]
            exceeded = count_exceeded(self.spec, index, step_size)
            advance(self.cost([key]))
            return {"exceeded": exceeded}

        pool = ThreadPoolExecutor(threads, thread_name_prefix="dynabandit")
        try:
            return dict(zip(keys, pool.map(count, keys), strict=True))
        finally:
            pool.shutdown(cancel_futures=True)
