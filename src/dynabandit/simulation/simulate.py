"""Policies on an environment, over many replications and all cores."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dynabandit.environments import Environment, environment as make_environment
from dynabandit.environments.base import path_writer
from dynabandit.errors import integer, unknown
from dynabandit.kernels.streams import LARGEST_REPLICATION, Stream, stream
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.policies.decision import SCRATCH_ROWS
from dynabandit.simulation.episodes import Record, State, count_switches, episodes, start

__all__ = ["Simulation", "compare", "simulate"]

Policies = Policy | str | Iterable[Policy | str] | Mapping[str, Policy | str]
Progress = Callable[[int, int], None]

BLOCK_CELLS = 1 << 17  # means in a block: 1 MB, so that every policy reads them from the cache
MOST_REPLICATIONS = 16  # in a task
KEPT = ("arms", "rewards")


@dataclass(frozen=True, eq=False)
class Simulation:
    """What came out of one policy on one environment.

    `regret` is the expected regret, the sum of max_a mu_t(a) - mu_t(a_t); burn-in plays count.
    """

    policy: Policy
    environment: Environment
    horizon: int
    seed: int
    times: np.ndarray = field(repr=False)
    """The recorded steps; the last one is the horizon."""
    regret: np.ndarray = field(repr=False)
    """Cumulative regret, replications x times."""
    correct: np.ndarray = field(repr=False)
    """Share of replications that played a best arm, at each of the times."""
    arms: np.ndarray | None = field(default=None, repr=False)
    """Chosen arms, replications x horizon, where asked for with ``keep``."""
    rewards: np.ndarray | None = field(default=None, repr=False)
    """Rewards, replications x horizon, where asked for with ``keep``."""

    @property
    def total_regret(self) -> np.ndarray:
        """The regret at the horizon, one number a replication."""
        return self.regret[:, -1]

    @property
    def replications(self) -> int:
        """How many replications there are."""
        return len(self.regret)

    def __repr__(self) -> str:
        plural = "" if self.replications == 1 else "s"
        return (
            f"Simulation({self.policy.label} on {self.environment.name}, {self.environment.arms} arms, "
            f"{self.horizon} steps, {self.replications} replication{plural}: "
            f"mean total regret {self.total_regret.mean():.4g})"
        )


def simulate(
    policy: Policy | str,
    environment: Environment | str,
    *,
    horizon: int = 10_000,
    replications: int = 1,
    seed: int = 0,
    times: int | Sequence[int] | np.ndarray = 200,
    keep: str | Sequence[str] = (),
    first_replication: int = 0,
    threads: int | None = None,
    block: int | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Run one policy on one environment; `compare` documents the arguments.

    Examples
    --------
    >>> import dynabandit as db
    >>> sim = db.simulate("aff-ots", "small-changes", horizon=5000, replications=10, seed=1)
    >>> sim.regret.shape
    (10, 200)
    """
    chosen = make_policy(policy)
    return compare(
        {chosen.label: chosen}, environment, horizon=horizon, replications=replications, seed=seed,
        times=times, keep=keep, first_replication=first_replication, threads=threads, block=block,
        progress=progress,
    )[chosen.label]  # fmt: skip


def compare(
    policies: Policies,
    environment: Environment | str,
    *,
    horizon: int = 10_000,
    replications: int = 1,
    seed: int = 0,
    times: int | Sequence[int] | np.ndarray = 200,
    keep: str | Sequence[str] = (),
    first_replication: int = 0,
    threads: int | None = None,
    block: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Simulation]:
    """Run several policies on the same paths of one environment.

    Each path is generated once for all policies. The result of a policy is bit for bit that of a `simulate`
    call of its own, whatever the other policies, the number of threads and the size of a block.

    Parameters
    ----------
    policies
        Policies or their names, or a mapping from labels of your own to them.
    environment
        An environment or its name.
    horizon
        How many steps.
    replications
        How many independent replications.
    seed
        Of all randomness, a whole number of at least 0.
    times
        The steps after which the regret is recorded: a list that rises up to the horizon, or how many,
        evenly spaced.
    keep
        ``"arms"`` and ``"rewards"`` keep the chosen arms and the rewards of every step.
    first_replication
        The number of the first replication: a long run can be made in pieces.
    threads
        How many threads, by default one for each core.
    block
        How many steps at a time, by default as many as suit the processor's cache.
    progress
        Called now and then, by one thread at a time, as ``progress(done, total)`` with numbers of steps. An
        exception that it raises ends the run.

    Returns
    -------
    dict
        From label to `Simulation`, in the order of `policies`.

    Examples
    --------
    >>> import dynabandit as db
    >>> runs = db.compare(["ucb", "aff-ucb1"], "small-changes", horizon=1000, replications=4, seed=1)
    >>> list(runs)
    ['ucb', 'aff-ucb1']
    """
    world = make_environment(environment)
    named = _labelled(policies)
    horizon = world.check_horizon(horizon)
    for label, policy in named.items():
        if horizon < policy.burn_in * world.arms:
            raise ValueError(
                f"horizon must be at least {policy.burn_in * world.arms}, the burn-in of {label!r} "
                f"({policy.burn_in} for each of {world.arms} arms), got {horizon}"
            )
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if name not in KEPT:
            raise unknown("thing to keep", name, KEPT)
    replications = integer("replications", replications, 1, LARGEST_REPLICATION)
    first_replication = integer("first_replication", first_replication, 0, LARGEST_REPLICATION + 1 - replications)
    marks = _times(times, horizon)
    threads = _cores() if threads is None else integer("threads", threads, 1)
    work = _Work(world, named, horizon, stream(seed, first_replication), marks, _progress(progress))
    records = {
        label: Record(
            times=marks,
            total=np.zeros(replications),
            regret=np.zeros((replications, len(marks))),
            correct=np.zeros((replications, len(marks)), dtype=np.uint8),
            arms=np.zeros((replications, horizon if "arms" in keep or "rewards" in keep else 0), dtype=np.int32),
            rewards=np.zeros(
                (replications, horizon if "arms" in keep or "rewards" in keep else 0), dtype=np.uint8
            ),
        )
        for label in named
    }
    size = max(1, min(MOST_REPLICATIONS, -(-replications // threads)))
    steps = max(1, BLOCK_CELLS // (size * world.arms)) if block is None else integer("block", block, 1)
    _run(work, records, replications, size, steps, threads)
    return {
        label: Simulation(
            policy=policy,
            environment=world,
            horizon=horizon,
            seed=seed,
            times=marks,
            regret=records[label].regret,
            correct=records[label].correct.mean(axis=0),
            arms=records[label].arms if "arms" in keep else None,
            rewards=records[label].rewards if "rewards" in keep else None,
        )
        for label, policy in named.items()
    }


def _labelled(policies: Policies) -> dict[str, Policy]:
    """Return the policies by label."""
    if isinstance(policies, Mapping):
        named = {str(label): make_policy(policy) for label, policy in policies.items()}
    else:
        several = [policies] if isinstance(policies, (str, Policy)) else policies
        if not isinstance(several, Iterable):
            raise TypeError(f"policies must be policies or their names, got {policies!r}")
        listed = [make_policy(policy) for policy in several]
        named = {policy.label: policy for policy in listed}
        if len(named) < len(listed):
            raise ValueError("policies holds the same policy twice: give them labels of your own, as a mapping")
    if not named:
        raise ValueError("policies must hold at least one policy")
    return named


def _times(times: int | Sequence[int] | np.ndarray, horizon: int) -> np.ndarray:
    """Return the recorded steps."""
    if np.ndim(times) == 0:
        count = min(integer("times", times, 1), horizon)
        return np.round(np.arange(1, count + 1) * (horizon / count)).astype(np.int64)
    marks = np.asarray(times)
    rises = (
        marks.ndim == 1
        and marks.size > 0
        and np.issubdtype(marks.dtype, np.integer)
        and bool(np.all(np.diff(marks) > 0))
    )
    if not rises or marks[0] < 1 or marks[-1] != horizon:
        raise ValueError(
            f"times must be whole numbers that rise from at least 1 to the horizon {horizon}, got {times}"
        )
    return marks.astype(np.int64)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _progress(report: Progress | None) -> Progress:
    if report is None:
        return lambda done, total: None
    if not callable(report):
        raise TypeError(f"progress must be a function of the steps done and their total, got {report!r}")
    return report


class _Work(NamedTuple):
    """What every task of a run shares."""

    environment: Environment
    policies: dict[str, Policy]
    horizon: int
    source: Stream
    times: np.ndarray
    progress: Progress


def _run(work: _Work, records: dict[str, Record], replications: int, size: int, steps: int, threads: int) -> None:
    """Cut the replications into tasks and run them; an exception in one ends all."""
    tasks = [(first, min(first + size, replications)) for first in range(0, replications, size)]
    total = replications * work.horizon
    done = 0
    lock = threading.Lock()
    stop = threading.Event()

    def advance(amount: int) -> bool:
        nonlocal done
        with lock:
            if not stop.is_set():
                done += amount
                work.progress(done, total)
        return not stop.is_set()

    def task(bounds: tuple[int, int]) -> None:
        try:
            if not stop.is_set():
                _run_task(work, records, *bounds, steps, advance)
        except BaseException:
            stop.set()
            raise

    if threads == 1 or len(tasks) == 1:
        for bounds in tasks:
            task(bounds)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="dynabandit") as pool:
        try:
            for future in [pool.submit(task, bounds) for bounds in tasks]:
                future.result()
        except BaseException:
            stop.set()
            raise


def _run_task(
    work: _Work,
    records: dict[str, Record],
    low: int,
    high: int,
    steps: int,
    advance: Callable[[int], bool],
) -> None:
    """Run replications low to high of every policy, block after block."""
    arms, count = work.environment.arms, high - low
    source = work.source._replace(replication=work.source.replication + low)
    means = np.empty((count, min(steps, work.horizon), arms))
    best = np.empty((count, means.shape[1]))
    scratch = np.empty((SCRATCH_ROWS, arms))
    switches = _switches(work, source, means, best)
    states = {label: _start(policy, arms, switches, work.horizon) for label, policy in work.policies.items()}
    tables = {label: policy.kernels.table(arms, work.horizon) for label, policy in work.policies.items()}
    rows = {
        label: Record(record.times, *(part[low:high] for part in record[1:])) for label, record in records.items()
    }
    for first, length in _blocks(work, source, means, best):
        cursor = int(np.searchsorted(work.times, first))
        for label, policy in work.policies.items():
            episodes(policy.kernels)(
                states[label], rows[label], tables[label], scratch, means, best,
                first, length, policy.burn_in, cursor, source,
            )  # fmt: skip
        if not advance(count * length):
            return


def _blocks(work: _Work, source: Stream, means: np.ndarray, best: np.ndarray) -> Iterable[tuple[int, int]]:
    """Fill `means` and `best` with one block of the paths after the other; yield first step and length."""
    world = work.environment
    write = path_writer(world.kernels)
    state = np.zeros((len(means), len(world.slots), world.arms))
    numbers, table = world.numbers(), world.table()
    for first in range(1, work.horizon + 1, means.shape[1]):
        length = min(means.shape[1], work.horizon + 1 - first)
        write(state, numbers, table, means, best, first, length, source)
        yield first, length


def _switches(work: _Work, source: Stream, means: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Count the switches of the best arm on each path, where a policy wants to know."""
    switches = np.zeros(len(means), dtype=np.int64)
    if any(policy.needs_tuning for policy in work.policies.values()):
        incumbent = np.full(len(means), -1)
        for _, length in _blocks(work, source, means, best):
            count_switches()(means, best, length, incumbent, switches)
    return switches


def _start(policy: Policy, arms: int, switches: np.ndarray, horizon: int) -> State:
    """Return the state of some replications before the first step."""
    tuned = [policy.tuned(int(count), horizon) for count in switches]
    state = State(
        memory=np.zeros((len(tuned), len(policy.slots), arms)),
        shared=np.zeros((len(tuned), max(one.shared_size() for one in tuned))),
        last=np.zeros((len(tuned), arms), dtype=np.int64),
        parameters=np.stack([one.numbers(arms) for one in tuned]),
    )
    start(policy.kernels, state)
    return state
