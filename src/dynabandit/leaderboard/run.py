"""Runs the leaderboard, one environment after the other, and keeps a summary of each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynabandit.core.streams import LARGEST_REPLICATION
from dynabandit.experiments import Experiment, ProgressReporter, RunOptions, Spec, compute
from dynabandit.experiments.hardware import processor
from dynabandit.leaderboard.board import FILE, ORACLE, POINTS, PRACTICAL, TUNED, Board, summarise
from dynabandit.leaderboard.contextual_environments import (
    QUICK_CONTEXTUAL,
    WITHOUT_CONTEXT,
    make_contextual_change,
    make_contextual_trials,
)
from dynabandit.leaderboard.detection_delay import detection_delay
from dynabandit.leaderboard.environments import HORIZON, QUICK, Trial, make_one_change, make_trials, select
from dynabandit.leaderboard.tuned_forms import path_facts, tunable, tuned_forms
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy, is_contextual, policy_class
from dynabandit.policies.horizons.practical_forms import practical_form, practical_names
from dynabandit.validation import integer, unknown

REPLICATIONS, QUICK_REPLICATIONS = 1000, 20
MOST_DETECTION_REPLICATIONS = 1000  # of the environment for the detection delay, which records many steps
DETECTION_SPACING = 10  # steps between two recorded ones
FEWER_TUNED, LEAST_TUNED = 10, 100  # a tuned form has ten times fewer replications, but not less than a hundred
FEWER = 10  # slow policies have this many times fewer replications
SLOW = frozenset((
    "changepoint-ts", "ad-switch", "r-bocpd-ucb",
    "d-ts", "d-ots", "f-dsw-ts", "d-kl-ucb",  # slow on a GPU, where they need double precision
))  # fmt: skip
QUICK_POLICIES = (
    "mix-ts", "uniform", "ucb", "kl-ucb", "ts", "dts", "aff-ots", "aff-dts2", "aff-ucb2", "aff-kl-ucb", "glr-kl-ucb",
    "sw-ts", "changepoint-ts",
)  # fmt: skip
QUICK_CONTEXTUAL_POLICIES = ("mix-lin-ucb", "lin-ucb", "lin-ts", "d-lin-ucb", "aff-lin-ucb")


@dataclass(frozen=True)
class Job:
    """One policy in one environment."""

    policy: Policy
    form: str
    replications: int


@dataclass(frozen=True)
class TrialJobs:
    """All policies in one environment."""

    trial: Trial
    jobs: tuple[Job, ...]
    times: int | tuple[int, ...] = POINTS

    def spec(self, seed: int) -> Spec:
        """Return the spec: an experiment for each number of replications."""
        by_count: dict[int, list[Policy]] = {}
        for job in self.jobs:
            by_count.setdefault(job.replications, []).append(job.policy)
        trial = self.trial
        experiments = [
            Experiment(
                id=f"{trial.id}-{count}", figure=trial.id, environment=trial.environment, policies=tuple(policies),
                horizon=trial.horizon, replications=count, seed=seed, times=self.times, delay=trial.delay,
            )
            for count, policies in by_count.items()
        ]  # fmt: skip
        return Spec(title=trial.id, experiments=tuple(experiments))

    @property
    def arm_steps(self) -> float:
        """Arms x steps of all replications of all policies."""
        return sum(job.replications for job in self.jobs) * self.trial.horizon * self.trial.environment.arms


@dataclass(frozen=True)
class Selection:
    """Which part of the leaderboard to run.

    Parameters
    ----------
    policies, environments
        Names of policies, and ids or families of environments; empty for all.
    replications, seed
        As for an `Experiment`.
    horizon
        Steps in place of those of each environment.
    tuned
        Whether to run the forms that are tuned with the truth as well.
    quick
        Whether to run only some policies and environments, unless they are named.
    contextual
        Whether to run policies that decide by features, in environments with features, instead of the others.
    part
        Which part of how many, to divide the policies among processes: (1, 1) for all.
    """

    policies: Sequence[str] = ()
    environments: Sequence[str] = ()
    replications: int = REPLICATIONS
    seed: int = 1
    horizon: int | None = None
    tuned: bool = True
    quick: bool = False
    contextual: bool = False
    part: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        integer("replications", self.replications, 1, LARGEST_REPLICATION)

    def names(self) -> list[str]:
        """Return the names of the policies."""
        kinds = [policy_class(name) for name in self.policies]
        for name in self.policies:
            if is_contextual(name) and not self.contextual:
                raise unknown("policy", name, POLICIES)
        if kinds and all(kind.informed for kind in kinds):
            raise ValueError(
                f"policies must hold at least one that does not know the true means, got {list(self.policies)!r}"
            )
        names = [*self.policies]
        if not names and self.contextual:
            names = [*(QUICK_CONTEXTUAL_POLICIES if self.quick else CONTEXTUAL_POLICIES), *WITHOUT_CONTEXT]
        elif not names:
            names = list(QUICK_POLICIES) if self.quick else practical_names()
        number, parts = self.part
        return names[number - 1 :: parts]

    def make_work(self) -> list[TrialJobs]:
        """Return everything to run."""
        names = self.names()
        if self.contextual:
            trials = make_contextual_trials(self.environments or (QUICK_CONTEXTUAL if self.quick else ()), self.horizon)
            one_change = make_contextual_change(self.horizon or HORIZON)
        else:
            trials = select(make_trials(self.horizon), self.environments or (QUICK if self.quick else ()))
            one_change = make_one_change(self.horizon or HORIZON)
        work = [TrialJobs(trial, tuple(self._jobs(trial, names))) for trial in trials.values()]
        return [trial_jobs for trial_jobs in (*work, self._detection(one_change, names)) if trial_jobs.jobs]

    def _jobs(self, trial: Trial, names: Sequence[str]) -> list[Job]:
        names, jobs = _fitting(trial, names), []
        for name in names:
            policy = practical_form(name)
            jobs.append(Job(policy, ORACLE if policy.informed else PRACTICAL, self._count(name)))
        tuned = [name for name in names if self.tuned and not self.quick and tunable(name)]
        if tuned:
            facts = path_facts(trial, self.seed)
            for name in tuned:
                count = max(self._count(name) // FEWER_TUNED, min(self.replications, LEAST_TUNED))
                jobs += [Job(form, TUNED, count) for form in tuned_forms(name, facts)]
        return jobs

    def _count(self, name: str, most: int | None = None) -> int:
        """Return the number of replications of a policy."""
        count = self.replications if most is None else min(self.replications, most)
        return max(1, count // FEWER) if name in SLOW and not self.quick else count

    def _detection(self, trial: Trial, names: Sequence[str]) -> TrialJobs:
        jobs = tuple(
            Job(practical_form(name), PRACTICAL, self._count(name, MOST_DETECTION_REPLICATIONS))
            for name in _fitting(trial, names)
        )
        half = trial.horizon // 2
        spacing = DETECTION_SPACING if trial.horizon >= HORIZON else 1
        return TrialJobs(trial, jobs, tuple(range(half, trial.horizon + 1, spacing)))


def _fitting(trial: Trial, names: Sequence[str]) -> list[str]:
    """Return the policies that can learn from the rewards of an environment; some need rewards of 0 or 1."""
    return [name for name in names if trial.environment.rewards.domain.is_within(practical_form(name).rewards)]


def run(
    work: Sequence[TrialJobs],
    out: Path,
    seed: int,
    reporter: ProgressReporter,
    options: RunOptions,
    seconds: float | None = None,
) -> tuple[Board, int]:
    """Run everything, or as many environments as can be begun within some seconds.

    Finished parts are stored: the same call continues where an earlier one stopped. The data of all finished
    environments are written to the folder after each.

    Parameters
    ----------
    work
        From `Selection.make_work`.
    out
        The folder for the stored results and the data.
    seed
        The seed of all experiments.
    reporter
        Receives the progress.
    options
        As for `dynabandit.experiments.run`.
    seconds
        No environment is begun after this time.

    Returns
    -------
    tuple[Board, int]
        The data, and how many environments are left.
    """
    board, began = Board(), time.monotonic()
    for done, trial_jobs in enumerate(work):
        if done and seconds is not None and time.monotonic() - began > seconds:
            return board, len(work) - done
        reporter.note(f"{trial_jobs.trial.id}: environment {done + 1} of {len(work)}")
        board.merge(_run_jobs(trial_jobs, out, seed, reporter, options))
        board.save(out / FILE)
    return board, 0


def _run_jobs(trial_jobs: TrialJobs, out: Path, seed: int, reporter: ProgressReporter, options: RunOptions) -> Board:
    """Run one environment and return its data."""
    results = compute(trial_jobs.spec(seed), out, options, reporter)
    board, codes = Board(version=results.metadata["versions"]["dynabandit"]), results.metadata["code_versions"]
    on_gpu = "cuda" in results.metadata["backends"].values()
    board.hardware = [f"GPU, {results.metadata['precision']} precision" if on_gpu else processor()]
    forms = {(job.policy.label, job.replications): job.form for job in trial_jobs.jobs}
    for run_ in results:
        if isinstance(trial_jobs.times, tuple):
            board.delays[run_.policy] = detection_delay(run_)
            continue
        if not board.trials:
            board.add_trial(trial_jobs.trial, run_.times)
        form = forms[run_.label, run_.replications]
        board.entries.append(summarise(run_, trial_jobs.trial, form, codes[run_.experiment][run_.label]))
    return board
