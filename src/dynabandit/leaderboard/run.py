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
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy, policy as make_policy
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

    asked: str  # the label of the policy of which this is a form
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
        by_count: dict[int, dict[str, Policy]] = {}
        for job in self.jobs:  # a form of one policy may be another policy that is asked for
            by_count.setdefault(job.replications, {})[job.policy.label] = job.policy
        trial = self.trial
        experiments = [
            Experiment(
                id=f"{trial.id}-{count}", figure=trial.id, environment=trial.environment,
                policies=tuple(policies.values()),
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
        Policies, or their names, and ids or families of environments; empty for all.
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

    policies: Sequence[str | Policy] = ()
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

    def chosen(self) -> list[Policy]:
        """Return the policies."""
        policies = [make_policy(one) for one in self.policies]
        for policy in policies:
            if policy.functions.contextual and not self.contextual:
                raise unknown("policy", policy.name, POLICIES)
        if policies and all(policy.informed for policy in policies):
            labels = [policy.label for policy in policies]
            raise ValueError(f"policies must hold at least one that does not know the true means, got {labels!r}")
        if not policies:
            policies = [make_policy(name) for name in self._all_names()]
        number, parts = self.part
        return policies[number - 1 :: parts]

    def _all_names(self) -> Sequence[str]:
        """Return the names of the policies if none are named."""
        if self.contextual:
            return [*(QUICK_CONTEXTUAL_POLICIES if self.quick else CONTEXTUAL_POLICIES), *WITHOUT_CONTEXT]
        return QUICK_POLICIES if self.quick else practical_names()

    def make_work(self) -> list[TrialJobs]:
        """Return everything to run."""
        policies = self.chosen()
        if self.contextual:
            trials = make_contextual_trials(self.environments or (QUICK_CONTEXTUAL if self.quick else ()), self.horizon)
            one_change = make_contextual_change(self.horizon or HORIZON)
        else:
            trials = select(make_trials(self.horizon), self.environments or (QUICK if self.quick else ()))
            one_change = make_one_change(self.horizon or HORIZON)
        work = [TrialJobs(trial, tuple(self._jobs(trial, policies))) for trial in trials.values()]
        return [trial_jobs for trial_jobs in (*work, self._detection(one_change, policies)) if trial_jobs.jobs]

    def _jobs(self, trial: Trial, policies: Sequence[Policy]) -> list[Job]:
        policies, jobs = _fitting(trial, policies), []
        for policy in policies:
            form = ORACLE if policy.informed else PRACTICAL
            jobs.append(Job(policy.label, practical_form(policy), form, self._count(policy)))
        tuned = [policy for policy in policies if self.tuned and not self.quick and tunable(policy)]
        if tuned:
            facts = path_facts(trial, self.seed)
            for policy in tuned:
                count = max(self._count(policy) // FEWER_TUNED, min(self.replications, LEAST_TUNED))
                jobs += [Job(policy.label, form, TUNED, count) for form in tuned_forms(policy, facts)]
        return jobs

    def _count(self, policy: Policy, most: int | None = None) -> int:
        """Return the number of replications of a policy."""
        count = self.replications if most is None else min(self.replications, most)
        return max(1, count // FEWER) if policy.name in SLOW and not self.quick else count

    def _detection(self, trial: Trial, policies: Sequence[Policy]) -> TrialJobs:
        jobs = tuple(
            Job(policy.label, practical_form(policy), PRACTICAL, self._count(policy, MOST_DETECTION_REPLICATIONS))
            for policy in _fitting(trial, policies)
        )
        half = trial.horizon // 2
        spacing = DETECTION_SPACING if trial.horizon >= HORIZON else 1
        return TrialJobs(trial, jobs, tuple(range(half, trial.horizon + 1, spacing)))


def _fitting(trial: Trial, policies: Sequence[Policy]) -> list[Policy]:
    """Return the policies that can learn from the rewards of an environment; some need rewards of 0 or 1."""
    return [one for one in policies if trial.environment.rewards.domain.is_within(practical_form(one).rewards)]


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
    for run_ in results:
        jobs = [
            job for job in trial_jobs.jobs if (job.policy.label, job.replications) == (run_.label, run_.replications)
        ]
        if isinstance(trial_jobs.times, tuple):
            board.delays |= {job.asked: detection_delay(run_) for job in jobs}
            continue
        if not board.trials:
            board.add_trial(trial_jobs.trial, run_.times)
        code = codes[run_.experiment][run_.label]
        board.entries += [summarise(run_, trial_jobs.trial, job.asked, job.form, code) for job in jobs]
    return board
