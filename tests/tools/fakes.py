"""Results with given total regrets, so that every verdict on them is known."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynabandit.results import Coverage, Results, Run, SamplePath

HORIZON = 10_000
REPLICATIONS = 40
STANDARD = ("ucb", "ts", "ots", "d-ucb", "sw-ucb")
ADAPTIVE = ("aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots")
STEP_SIZES = (0.0001, 0.001, 0.01, "variance-scaled")
SETTINGS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "d-ucb": ("discount", (None, 0.99, 0.8, 0.5)),
    "sw-ucb": ("window", (None, 10, 100, 1000)),
    **dict.fromkeys(("dts", "aff-dts1", "aff-dts2"), ("memory", (5.0, 10.0, 100.0, 1000.0))),
}

Key = tuple[str, str, Any]


def fake_run(
    experiment: str,
    policy: str,
    totals: Sequence[float] | np.ndarray,
    *,
    parameters: dict[str, Any] | None = None,
    correct: Callable[[np.ndarray], np.ndarray] = np.ones_like,
    times: int = 20,
    label: str = "",
    arms: int = 2,
) -> Run:
    """Return a run whose regret rises evenly to the totals."""
    steps = np.linspace(HORIZON // times, HORIZON, times).astype(np.int64)
    given = parameters or {}
    text = ", ".join(f"{name}={value}" for name, value in given.items())
    label = label or (f"{policy}({text})" if text else policy)
    shares = correct(steps.astype(float))
    played = np.arange(len(totals))[:, None] < np.round(shares * len(totals))
    return Run(
        experiment=experiment, environment=experiment.split("-arms-")[0], arms=arms,
        environment_parameters={"arms": arms}, label=label, policy=policy, parameters=given, horizon=HORIZON, seed=1,
        times=steps, regret=np.outer(totals, steps / HORIZON), correct=shares, correct_by_replication=played,
    )  # fmt: skip


@dataclass
class FakePaper:
    """Mean total regrets of the paper's experiments."""

    means: dict[Key, float] = field(default_factory=dict)
    deviations: dict[Key, float] = field(default_factory=dict)
    reacting: set[tuple[str, int]] = field(default_factory=set)
    exceeded: list[int] = field(default_factory=lambda: [10, 10, 10, 10])
    replications: int = REPLICATIONS

    def put(self, experiment: str, policies: dict[str, float], setting: Any = None) -> None:
        for policy, mean in policies.items():
            assert setting is not None or policy in (*STANDARD, *ADAPTIVE, "eps-greedy"), policy
            self.means[experiment, policy, setting] = mean

    def settings(self, experiment: str, policy: str, values: Sequence[Any], means: Sequence[float]) -> None:
        for value, mean in zip(values, means, strict=True):
            self.means[experiment, policy, str(value)] = mean

    def results(self) -> Results:
        runs = [self._run(key, mean) for key, mean in self.means.items()]
        runs += [run for experiment in self._fields() for run in self._extras(experiment)]
        coverage = [
            Coverage(mean, 0.001, count, 10_000, exceeded)
            for (mean, count), exceeded in zip(
                [(0.2, 10), (0.2, 100), (0.8, 10), (0.8, 100)], self.exceeded, strict=True
            )
        ]
        return Results(runs, {"seed": 1}, sample_paths(), coverage)

    def _fields(self) -> list[str]:
        return list(dict.fromkeys(experiment for experiment, policy, _ in self.means if policy == "eps-greedy"))

    def _extras(self, experiment: str) -> list[Run]:
        """Return a worse epsilon and the two variants that the paper does not have."""
        best = self.means[experiment, "eps-greedy", None]
        worse = self._totals((experiment, "eps-greedy", 0.2), 1.5 * best)
        growing = self._totals((experiment, "aff-ucb2-growing", None), 700.0)
        floored = self._totals((experiment, "floored", None), 600.0)
        return [
            fake_run(experiment, "eps-greedy", worse, parameters={"epsilon": 0.2}),
            fake_run(experiment, "aff-ucb2-growing", growing),
            fake_run(experiment, "aff-ucb1", floored, parameters={"variance_floor": 0.05}),
        ]

    def _run(self, key: Key, mean: float) -> Run:
        experiment, policy, setting = key
        parameters: dict[str, Any] = {}
        if policy == "eps-greedy":
            parameters = {"epsilon": 0.1}
        elif policy == "aff-ucb1":
            parameters = {"variance_floor": 0.0}
        if setting is not None:
            name, values = SETTINGS.get(policy, ("step_size", STEP_SIZES))
            parameters[name] = next(value for value in values if str(value) == setting)
        times = 1000 if experiment == "small-changes" else 20
        _, _, arms = experiment.partition("-arms-")
        label = policy if setting is None else f"{policy}({setting})"
        return fake_run(
            experiment, policy, self._totals(key, mean), parameters=parameters, times=times, label=label,
            correct=lambda steps: self._correct(policy, steps), arms=int(arms or 2),
        )  # fmt: skip

    def _totals(self, key: Key, mean: float) -> np.ndarray:
        noise = np.random.default_rng(zlib.crc32(repr(key).encode())).standard_normal(self.replications)
        noise = (noise - noise.mean()) / max(noise.std(), 1e-9)
        return mean * (1.0 + self.deviations.get(key, 0.02) * noise)

    def _correct(self, policy: str, steps: np.ndarray) -> np.ndarray:
        share = np.full(len(steps), 0.9)
        for change in (3000, 5000):
            if (policy, change) not in self.reacting:
                share[(steps > change) & (steps <= change + 1000)] = 0.1
        return share


def sample_paths() -> list[SamplePath]:
    """Return a few short paths."""
    times = np.linspace(1, HORIZON, 50).astype(np.int64)
    paths = []
    for name in ("small-changes", "case-1", "case-2", "case-3", "case-4"):
        arms = 3 if name == "small-changes" else 2
        for replication in range(1 if name == "small-changes" else 3):
            phase = np.outer(times / HORIZON, np.arange(1, arms + 1)) + replication
            paths.append(SamplePath(name, arms, replication, times, 0.5 + 0.4 * np.sin(7 * phase)))
    return paths


def fake_paper() -> FakePaper:
    """Return results in which all claims hold."""
    paper = FakePaper(reacting={(policy, change) for policy in ADAPTIVE for change in (3000, 5000)})
    paper.reacting.discard(("aff-ucb2", 3000))
    numbers = {"eps-greedy": 1000.0, "ucb": 800.0, "ts": 1000.0, "ots": 1000.0, "d-ucb": 900.0, "aff-ucb2": 900.0}
    similar = {"sw-ucb": 420.0, "aff-d-greedy": 410.0, "aff-ucb1": 405.0, "aff-ts": 410.0, "aff-ots": 400.0}
    paper.put("small-changes", {**numbers, **similar})
    paper.put("case-1-arms-2", {**numbers, **similar})
    paper.put("case-2-arms-2", dict.fromkeys(("eps-greedy", *STANDARD, *ADAPTIVE), 500.0))
    for policy in ("eps-greedy", *STANDARD, "aff-ucb2"):
        paper.deviations["case-2-arms-2", policy, None] = 0.2 if policy == "aff-ucb2" else 0.1
    paper.put("case-3-arms-2", {**dict.fromkeys(("eps-greedy", *STANDARD), 1000.0), **dict.fromkeys(ADAPTIVE, 500.0)})
    paper.put("case-4-arms-2", {**dict.fromkeys(("eps-greedy", *STANDARD, *ADAPTIVE), 500.0), "ts": 1000.0})
    many = {
        "eps-greedy": 2600.0, "ucb": 2400.0, "ts": 2200.0, "ots": 2000.0, "d-ucb": 5000.0, "sw-ucb": 4500.0,
        "aff-d-greedy": 1800.0, "aff-ucb1": 1600.0, "aff-ucb2": 1000.0, "aff-ts": 1400.0, "aff-ots": 1200.0,
    }  # fmt: skip
    for number in (1, 2, 3, 4):
        for arms in (50, 100):
            paper.put(f"case-{number}-arms-{arms}", many)
    for arms in (2, 50, 100):
        for policy in ADAPTIVE:
            paper.settings(f"step-size-arms-{arms}", policy, STEP_SIZES, [500.0] * 4)
        for policy in ("d-ucb", "sw-ucb"):
            values = SETTINGS[policy][1]
            paper.settings(f"discount-window-arms-{arms}", policy, values, [700.0, 600.0, 1200.0, 1400.0])
    for policy, means in (("dts", [450, 500, 900, 1200]), ("aff-dts1", [500] * 4), ("aff-dts2", [510] * 4)):
        paper.settings("memory", policy, SETTINGS[policy][1], [float(mean) for mean in means])
    paper.put("memory", {"aff-ots": 400.0})
    return paper


def only(results: Results, *experiments: str) -> Results:
    """Keep some experiments and nothing else."""
    runs = [run for run in results if run.experiment in experiments]
    return Results(runs, results.metadata)


def shortened(results: Results, replications: int) -> Results:
    """Keep the first replications."""
    runs = [replace(run, regret=run.regret[:replications]) for run in results]
    return Results(runs, results.metadata, results.paths, results.coverage)
