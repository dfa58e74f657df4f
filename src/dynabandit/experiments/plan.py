"""From a spec to units of work, and from their answers to results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dynabandit.bandit.serialization import plain
from dynabandit.environments import Environment
from dynabandit.experiments.spec import Experiment, Spec
from dynabandit.experiments.store import Arrays, address
from dynabandit.experiments.tasks import CoverageTask, PathTask, SimulationTask, Task, batches
from dynabandit.policies import Policy
from dynabandit.results import Coverage, Run, SamplePath
from dynabandit.simulation import code_version

__all__ = ["Plan", "PlannedRun", "make_plan"]


@dataclass(frozen=True)
class PlannedRun:
    """One policy of one experiment, and the addresses of its batches."""

    experiment: Experiment
    environment: Environment
    policy: Policy
    addresses: tuple[str, ...]
    code: str

    def run(self, found: Mapping[str, Arrays]) -> Run:
        """Put the batches together."""
        parts = [found[key] for key in self.addresses]
        correct = np.concatenate([part["correct"] for part in parts])
        return Run(
            experiment=self.experiment.id,
            environment=self.environment.name,
            arms=self.environment.arms,
            environment_parameters=plain(self.environment.parameters),
            label=self.policy.label,
            policy=self.policy.name,
            parameters=plain(self.policy.parameters),
            horizon=self.experiment.horizon,
            seed=self.experiment.seed,
            times=self.experiment.recorded_times(),
            regret=np.concatenate([part["regret"] for part in parts]),
            correct=correct.mean(axis=0),
            correct_by_replication=correct,
        )


@dataclass(frozen=True)
class Plan:
    """The units of work of a spec, and how to read their answers."""

    simulations: tuple[SimulationTask, ...]
    paths: tuple[PathTask, ...]
    coverage: tuple[CoverageTask, ...]
    runs: tuple[PlannedRun, ...]
    figures: tuple[str, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All units of work."""
        return (*self.simulations, *self.paths, *self.coverage)

    def sample_paths(self, found: Mapping[str, Arrays]) -> list[SamplePath]:
        """Return the sample paths."""
        return [
            SamplePath(
                environment=task.environment.name,
                arms=task.environment.arms,
                replication=replication,
                times=task.times,
                means=found[key]["means"],
            )
            for task in self.paths
            for key, replication in task.replications.items()
        ]

    def coverages(self, found: Mapping[str, Arrays]) -> list[Coverage]:
        """Return the coverage of the bound."""
        return [
            Coverage(
                mean=task.spec.means[index],
                step_size=step_size,
                observations=count,
                streams=task.spec.streams,
                exceeded=int(exceeded),
            )
            for task in self.coverage
            for key, (index, step_size) in task.points.items()
            for count, exceeded in zip(task.spec.observations, found[key]["exceeded"], strict=True)
        ]


def make_plan(spec: Spec, places: Mapping[str, str] | None = None, precision: str = "double") -> Plan:
    """Cut a spec into units; experiments on the same paths share them, whatever figure they belong to.

    `places` is the backend of each experiment by its id, the processor where left out.
    """
    shared: dict[str, SimulationTask] = {}
    runs: list[PlannedRun] = []
    for experiment in spec.experiments:
        environment = experiment.environment.make_environment()
        backend = (places or {}).get(experiment.id, "cpu")
        tasks = [
            _shared(shared, task, experiment.figure) for task in _tasks(experiment, environment, backend, precision)
        ]
        for named in experiment.policies:
            policy = named.make_policy()
            code = code_version(policy, environment, experiment.horizon)
            keys = tuple(task.add(policy, code) for task in tasks)
            runs.append(PlannedRun(experiment, environment, policy, keys, code))
    return Plan(
        simulations=tuple(shared.values()),
        paths=tuple(PathTask(one, one.environment.make_environment(), {one.figure}) for one in spec.sample_paths),
        coverage=tuple(CoverageTask(one, {one.figure}) for one in spec.coverage),
        runs=tuple(runs),
        figures=spec.figures,
    )


def _tasks(experiment: Experiment, environment: Environment, backend: str, precision: str) -> Iterator[SimulationTask]:
    times = experiment.recorded_times()
    for first, count in batches(experiment.replications, backend):
        yield SimulationTask(environment, experiment.horizon, experiment.seed, times, first, count, backend, precision)


def _shared(shared: dict[str, SimulationTask], task: SimulationTask, figure: str) -> SimulationTask:
    """Return the unit with the same question, this one where it is the first."""
    same = shared.setdefault(address(task.question), task)
    same.figures.add(figure)
    return same
