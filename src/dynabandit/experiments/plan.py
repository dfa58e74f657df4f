"""Plans a run: the tasks of a spec, and how their results become `Results`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynabandit.core.json_values import plain
from dynabandit.experiments.result_store import Arrays, request_key
from dynabandit.experiments.spec import Experiment, Spec
from dynabandit.experiments.tasks import CoverageTask, PathTask, SimulationTask, Task, batches
from dynabandit.policies import Policy
from dynabandit.results import Coverage, Run, SamplePath
from dynabandit.simulation import code_version


@dataclass(frozen=True)
class PlannedRun:
    """One policy of one experiment, and the keys of the results of its batches."""

    experiment: Experiment
    policy: Policy
    keys: tuple[str, ...]
    code: str

    def join_batches(self, results: Mapping[str, Arrays]) -> Run:
        """Return the run of all batches."""
        regret, correct = (np.concatenate([results[key][name] for key in self.keys]) for name in ("regret", "correct"))
        environment = self.experiment.environment
        return Run(
            experiment=self.experiment.id,
            environment=environment.name,
            arms=environment.arms,
            environment_parameters=plain(environment.parameters),
            label=self.policy.label,
            policy=self.policy.name,
            parameters=plain(self.policy.parameters),
            horizon=self.experiment.horizon,
            seed=self.experiment.seed,
            times=self.experiment.recorded_times(),
            regret=regret,
            correct=correct.mean(axis=0),
            correct_by_replication=correct,
        )


@dataclass(frozen=True)
class Plan:
    """The tasks of a spec, and what to make of their results."""

    simulations: tuple[SimulationTask, ...]
    paths: tuple[PathTask, ...]
    coverage: tuple[CoverageTask, ...]
    runs: tuple[PlannedRun, ...]
    figures: tuple[str, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks."""
        return (*self.simulations, *self.paths, *self.coverage)

    def make_sample_paths(self, results: Mapping[str, Arrays]) -> list[SamplePath]:
        """Return the sample paths."""
        return [
            SamplePath(
                environment=task.spec.environment.name,
                arms=task.spec.environment.arms,
                replication=replication,
                times=task.times,
                means=results[key]["means"],
            )
            for task in self.paths
            for key, replication in task.replications.items()
        ]

    def make_coverage(self, results: Mapping[str, Arrays]) -> list[Coverage]:
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
            for count, exceeded in zip(task.spec.observations, results[key]["exceeded"], strict=True)
        ]


def make_plan(spec: Spec, backends: Mapping[str, str] | None = None, precision: str = "double") -> Plan:
    """Split a spec into tasks; experiments on the same paths share them, whatever figure they belong to.

    `backends` is the backend of each experiment by its id, by default the CPU.
    """
    tasks_by_key: dict[str, SimulationTask] = {}
    runs: list[PlannedRun] = []
    for experiment in spec.experiments:
        backend = (backends or {}).get(experiment.id, "cpu")
        tasks = []
        for first, count in batches(experiment.replications, backend):
            task = SimulationTask(experiment, first, count, backend, precision)
            shared = tasks_by_key.setdefault(request_key(task.common_request), task)
            shared.figures.add(experiment.figure)
            tasks.append(shared)
        for policy in experiment.policies:
            code = code_version(
                policy, experiment.environment, experiment.horizon, delayed=experiment.delay is not None
            )
            keys = tuple(task.add(policy, code) for task in tasks)
            runs.append(PlannedRun(experiment, policy, keys, code))
    return Plan(
        simulations=tuple(tasks_by_key.values()),
        paths=tuple(PathTask(paths, {paths.figure}) for paths in spec.sample_paths),
        coverage=tuple(CoverageTask(coverage, {coverage.figure}) for coverage in spec.coverage),
        runs=tuple(runs),
        figures=spec.figures,
    )
