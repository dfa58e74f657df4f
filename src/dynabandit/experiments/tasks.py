"""Tasks: what a run computes at once. A task computes several results, so that they can share paths.

The request of a result says everything that the result depends on. Its hash is the key of the result in the store.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dynabandit.core.fingerprint import fingerprint
from dynabandit.environments import Delay, Environment
from dynabandit.experiments.bound_coverage import add_exceeded, count_exceeded
from dynabandit.experiments.result_store import Arrays, request_key
from dynabandit.experiments.spec import CoverageSpec, PathSpec
from dynabandit.policies import Policy
from dynabandit.simulation import compare, device_version, path_version, recorded_times
from dynabandit.simulation.backends import in_single

Advance = Callable[[float], None]
TaskResults = dict[str, Arrays]  # by key

# Replications of a task: some seconds, which is the most that a kill can cost. A GPU needs thousands to be busy
BATCH = {"cpu": 25, "cuda": 10_000}
GPU_SPEED = 100.0  # a low estimate of how many threads a GPU replaces; it is fastest with large tasks
STORED_FORMAT = 2  # 2: whether a best arm was played is stored for each replication
STEP_COST = 5.0  # cost of a step besides its arms, in arms; only used to estimate the remaining time


class Task(ABC):
    """What is computed at once; by default its results are independent and it can be split into one task for each."""

    figures: set[str]
    """The figures that need it."""
    requests: dict[str, dict[str, Any]]
    """The requests of its results, by key."""

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

    def split(self, keys: Sequence[str], most_cost: float) -> list[tuple[Self, list[str]]]:
        """Split into tasks of about `most_cost` or less, as far as possible; `join` joins their results."""
        return [(self, [key]) for key in keys]

    def join(self, parts: Sequence[TaskResults]) -> TaskResults:
        """Return what `compute` would, from the results of the tasks of `split`, in their order."""
        return {key: arrays for part in parts for key, arrays in part.items()}


class PendingTask(NamedTuple):
    """A task, and the keys of its results that are not stored yet."""

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
    """A batch of replications of all policies that need the same paths."""

    environment: Environment
    horizon: int
    seed: int
    times: np.ndarray
    first: int
    count: int
    backend: str = "cpu"
    precision: str = "double"
    delay: Delay | None = None
    figures: set[str] = field(default_factory=set)
    policies: dict[str, Policy] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        last = self.first + self.count
        return f"{self.environment.name}, {self.environment.arms} arms, replications {self.first + 1} to {last}"

    @property
    def common_request(self) -> dict[str, Any]:
        """What all requests of this task have in common."""
        common = {
            "environment": self.environment.name,
            "environment_parameters": self.environment.parameters,
            "horizon": self.horizon,
            "seed": self.seed,
            "times": self.times,
            "first_replication": self.first,
            "replications": self.count,
        }
        if self.delay is not None:
            common["delay"] = self.delay.parameters
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
        return self.count * self.horizon * (self.environment.arms + STEP_COST) * len(keys)

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> TaskResults:
        total, before = self.cost(keys), 0.0

        def progress(done: int, steps: int) -> None:
            nonlocal before
            now = total * done / steps
            advance(now - before)
            before = now

        runs = compare(
            {key: self.policies[key] for key in keys},
            self.environment,
            horizon=self.horizon,
            replications=self.count,
            seed=self.seed,
            times=self.times,
            first_replication=self.first,
            threads=threads,
            backend=self.backend,
            precision=self.precision,
            delay=self.delay,
            progress=progress,
        )
        return {key: {"regret": run.regret, "correct": run.correct_by_replication} for key, run in runs.items()}

    def split(self, keys: Sequence[str], most_cost: float) -> list[tuple[Self, list[str]]]:
        fewest = 1
        if self.backend == "cuda":
            fewest, most_cost = self.count, most_cost * GPU_SPEED
        group = max(1, int(len(keys) * most_cost * self.count / (self.cost(keys) * fewest)))
        return [
            part
            for start in range(0, len(keys), group)
            for part in self._split_replications(keys[start : start + group], most_cost, fewest)
        ]

    def _split_replications(
        self, keys: Sequence[str], most_cost: float, fewest: int
    ) -> Iterator[tuple[Self, list[str]]]:
        """Yield tasks of at least `fewest` replications."""
        whole = replace(self, policies={key: self.policies[key] for key in keys}, requests={})
        size = max(fewest, int(self.count * most_cost / self.cost(keys)))
        for low in range(0, self.count, size):
            yield replace(whole, first=self.first + low, count=min(size, self.count - low)), list(keys)

    def join(self, parts: Sequence[TaskResults]) -> TaskResults:
        by_key: dict[str, list[Arrays]] = {}
        for part in parts:
            for key, arrays in part.items():
                by_key.setdefault(key, []).append(arrays)
        return {
            key: {name: np.concatenate([one[name] for one in some]) for name in ("regret", "correct")}
            for key, some in by_key.items()
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
