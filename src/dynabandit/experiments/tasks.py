"""The units that the work is cut into; each answers several requests, so that they share what they can."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from dynabandit.core.fingerprint import fingerprint
from dynabandit.environments import Environment
from dynabandit.experiments.coverage import add_exceeded, count_exceeded
from dynabandit.experiments.spec import CoverageSpec, PathSpec
from dynabandit.experiments.store import Arrays, address
from dynabandit.policies import Policy
from dynabandit.simulation import compare, device_version, path_version, recorded_times
from dynabandit.simulation.backends import in_single

__all__ = ["BATCH", "CoverageTask", "PathTask", "SimulationTask", "Task", "batches"]

Advance = Callable[[float], None]

# Replications of a unit: seconds of work, and what a kill can cost at most. A GPU needs thousands to be busy
BATCH = {"cpu": 25, "cuda": 10_000}
GPU_SPEED = 100.0  # threads that a GPU is worth, roughly, and rather too few: it likes large units
FORMAT = 2  # of what is stored: since 2, whether a best arm was played is kept for each replication
STEP_COST = 5.0  # what a step costs beside its arms, in arms; only for the time left


class Task(Protocol):
    """A unit of work. A request is what an address is the hash of."""

    figures: set[str]
    """The figures that wait for it."""

    @property
    def title(self) -> str:
        """What to say while it runs."""

    @property
    def requests(self) -> dict[str, dict[str, Any]]:
        """From address to request."""

    def cost(self, keys: Sequence[str]) -> float:
        """Return about how much work some of the requests are, in updates of an arm."""

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> dict[str, Arrays]:
        """Answer some of the requests; `advance` is told of the work done in between."""

    def cut(self, keys: Sequence[str], most: float) -> list[tuple[Self, list[str]]]:
        """Return units that are about `most` work or less, as far as it can be cut; `join` makes the answers whole."""

    def join(self, parts: Sequence[dict[str, Arrays]]) -> dict[str, Arrays]:
        """Return what `compute` would, from what the units of `cut` computed, in their order."""


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
class SimulationTask:
    """A batch of replications of all policies that want the same paths."""

    environment: Environment
    horizon: int
    seed: int
    times: np.ndarray
    first: int
    count: int
    backend: str = "cpu"
    precision: str = "double"
    figures: set[str] = field(default_factory=set)
    policies: dict[str, Policy] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        last = self.first + self.count
        return f"{self.environment.name}, {self.environment.arms} arms, replications {self.first + 1} to {last}"

    @property
    def question(self) -> dict[str, Any]:
        """What all requests of this unit have in common."""
        common = {
            "environment": self.environment.name,
            "environment_parameters": self.environment.parameters,
            "horizon": self.horizon,
            "seed": self.seed,
            "times": self.times,
            "first_replication": self.first,
            "replications": self.count,
        }
        if self.backend == "cuda":  # its choices are the processor's, the last bits of its sums are not
            common |= {"backend": "cuda", "device_code": device_version()}
        return common

    def add(self, policy: Policy, code: str) -> str:
        """Take in a policy, unless it is there already, and return the address of its result.

        `code` is the `code_version` of the policy, which takes a while to find and is that of all batches.
        """
        request = {
            **self.question,
            "policy": policy.name,
            "parameters": policy.parameters,
            "code": code,
            "format": FORMAT,
        }
        if self.backend == "cuda":
            request["precision"] = "single" if in_single(policy, self.precision) else "double"
        key = address(request)
        self.policies[key] = policy
        self.requests[key] = request
        return key

    def cost(self, keys: Sequence[str]) -> float:
        return self.count * self.horizon * (self.environment.arms + STEP_COST) * len(keys)

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> dict[str, Arrays]:
        total, before = self.cost(keys), 0.0

        def progress(done: int, steps: int) -> None:
            nonlocal before
            now = total * done / steps
            advance(now - before)
            before = now

        found = compare(
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
            progress=progress,
        )
        return {key: {"regret": one.regret, "correct": one.correct_by_replication} for key, one in found.items()}

    def cut(self, keys: Sequence[str], most: float) -> list[tuple[Self, list[str]]]:
        least = 1
        if self.backend == "cuda":
            least, most = self.count, most * GPU_SPEED
        group = max(1, int(len(keys) * most * self.count / (self.cost(keys) * least)))
        return [
            part
            for start in range(0, len(keys), group)
            for part in self._replications(keys[start : start + group], most, least)
        ]

    def _replications(self, keys: Sequence[str], most: float, least: int) -> Iterator[tuple[Self, list[str]]]:
        """Yield runs of at least so many replications."""
        asked = replace(self, policies={key: self.policies[key] for key in keys}, requests={})
        size = max(least, int(self.count * most / self.cost(keys)))
        for low in range(0, self.count, size):
            yield replace(asked, first=self.first + low, count=min(size, self.count - low)), list(keys)

    def join(self, parts: Sequence[dict[str, Arrays]]) -> dict[str, Arrays]:
        by_key: dict[str, list[Arrays]] = {}
        for part in parts:
            for key, arrays in part.items():
                by_key.setdefault(key, []).append(arrays)
        return {
            key: {name: np.concatenate([one[name] for one in some]) for name in ("regret", "correct")}
            for key, some in by_key.items()
        }


class _Separable:
    """A unit whose requests have nothing in common: it is cut into one piece for each."""

    def cut(self, keys: Sequence[str], most: float) -> list[tuple[Self, list[str]]]:
        return [(self, [key]) for key in keys]

    def join(self, parts: Sequence[dict[str, Arrays]]) -> dict[str, Arrays]:
        return {key: arrays for part in parts for key, arrays in part.items()}


@dataclass
class PathTask(_Separable):
    """The sample paths of one environment."""

    spec: PathSpec
    environment: Environment
    figures: set[str]
    replications: dict[str, int] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for replication in range(self.spec.replications):
            request = {
                "environment": self.environment.name,
                "environment_parameters": self.environment.parameters,
                "horizon": self.spec.horizon,
                "seed": self.spec.seed,
                "times": self.times,
                "replication": replication,
                "code": path_version(self.environment),
            }
            key = address(request)
            self.replications[key] = replication
            self.requests[key] = request

    @property
    def times(self) -> np.ndarray:
        return recorded_times(self.spec.points, self.spec.horizon)

    @property
    def title(self) -> str:
        return f"{self.environment.name}, {self.environment.arms} arms, sample paths"

    def cost(self, keys: Sequence[str]) -> float:
        return float(self.spec.horizon * self.environment.arms * len(keys))

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> dict[str, Arrays]:
        found = {}
        for key in keys:
            path = self.environment.path(self.spec.horizon, self.spec.seed, self.replications[key])
            found[key] = {"means": path[self.times - 1]}
            advance(self.cost([key]))
        return found


@dataclass
class CoverageTask(_Separable):
    """The coverage of the bound, for every mean and step size."""

    spec: CoverageSpec
    figures: set[str]
    points: dict[str, tuple[int, float]] = field(default_factory=dict)
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
                key = address(request)
                self.points[key] = (index, step_size)
                self.requests[key] = request

    @property
    def title(self) -> str:
        return "coverage of the bound"

    def cost(self, keys: Sequence[str]) -> float:
        return float(self.spec.streams * self.spec.observations[-1] * len(keys))

    def compute(self, keys: Sequence[str], threads: int, advance: Advance) -> dict[str, Arrays]:
        spec = self.spec

        def count(key: str) -> Arrays:
            index, step_size = self.points[key]
            arguments = (spec.means[index], step_size, spec.observations, spec.streams, index, spec.seed)
            exceeded = count_exceeded(*arguments)
            advance(self.cost([key]))
            return {"exceeded": exceeded}

        pool = ThreadPoolExecutor(threads, thread_name_prefix="dynabandit")
        try:
            return dict(zip(keys, pool.map(count, keys), strict=True))
        finally:
            pool.shutdown(cancel_futures=True)
