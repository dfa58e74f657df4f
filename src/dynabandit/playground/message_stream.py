"""Runs a trial and yields messages for the page, in the order in which their content becomes known."""

import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynabandit.core.code_cache import is_cached
from dynabandit.environments.base import compiled_write_paths
from dynabandit.experiments import Experiment
from dynabandit.playground.link import MOST_NUMBERS, Trial
from dynabandit.simulation import Simulation, Trace, compare, compile_policy, is_compiled, trace
from dynabandit.stats import intervals

POINTS = 180  # of a path, an estimate or a forgetting factor
SHARE_POINTS = 5  # points that a share of the choices is counted over
FEW_ARMS, SHOWN_ARMS = 8, 5  # up to 8 arms all are drawn; of more, the 5 that were played most
BATCH_SECONDS = 0.25  # a faster batch of replications is followed by one of twice the size
DIGITS = 5

Message = dict[str, Any]


def messages(trial: Trial, threads: int = 1, now: Callable[[], float] = time.monotonic) -> Iterator[Message]:
    """Run a trial with the simulator and yield its results as they become known.

    The first replication comes with the policies' beliefs, then the regret of more and more replications. The last
    message depends on the trial alone; how many messages with the regret come before it depends on the machine.

    Examples
    --------
    >>> from dynabandit.playground import read
    >>> kinds = [one["kind"] for one in messages(read("v=1&policies=ucb&horizon=100&replications=2"))]
    >>> kinds[-1], kinds.count("path")
    ('end', 1)
    """
    experiment = trial.experiment
    yield {"kind": "start", "policies": list(experiment.policies_by_label), "arms": trial.arms,
           "horizon": trial.horizon, "replications": trial.replications, "link": trial.query}  # fmt: skip
    yield from _compile(experiment)
    yield {"kind": "doing", "text": "running the first replication"}
    runs = _simulate(experiment, 0, 1, threads)
    yield from _beliefs(runs)
    regret = {label: run.regret for label, run in runs.items()}
    times = experiment.recorded_times()
    yield _regret(regret, times, trial.replications)
    done, size, most = 1, 1, max(1, MOST_NUMBERS // sum(trial.numbers))
    while done < trial.replications:
        began = now()
        size = min(size, most, trial.replications - done)
        more = _simulate(experiment, done, size, threads)
        regret = {label: np.concatenate([regret[label], run.regret]) for label, run in more.items()}
        done += size
        yield _regret(regret, times, trial.replications)
        if now() - began < BATCH_SECONDS:
            size *= 2
    yield {"kind": "end", "totals": [float(rows[:, -1].mean()) for rows in regret.values()]}


def _compile(experiment: Experiment) -> Iterator[Message]:
    """Compile what is not on disk yet; the page says what it waits for."""
    environment = experiment.environment
    algorithms = {policy.functions: policy for policy in experiment.policies}
    todo: list[tuple[str, Callable[[], object]]] = [
        (policy.name, functools.partial(compile_policy, policy, environment.arms))
        for policy in algorithms.values()
        if not is_compiled(policy, environment.arms)
    ]
    if not is_cached(compiled_write_paths(environment.functions)):
        todo.append(("the environment", functools.partial(environment.path, horizon=1, seed=0)))
    for number, (name, compile_it) in enumerate(todo, 1):
        which = f"compiling {name}, {number} of {len(todo)}" if len(todo) > 1 else f"compiling {name}"
        yield {"kind": "doing", "text": f"{which}: some seconds, the first time only"}
        compile_it()


def _simulate(experiment: Experiment, first: int, count: int, threads: int) -> dict[str, Simulation]:
    """Run some replications; the first one keeps its arms and rewards, for the beliefs."""
    return compare(
        experiment.policies_by_label, experiment.environment, horizon=experiment.horizon, replications=count,
        first_replication=first, seed=experiment.seed, times=experiment.times, threads=threads,
        keep=("arms", "rewards") if first == 0 else (),
    )  # fmt: skip


def _beliefs(runs: dict[str, Simulation]) -> Iterator[Message]:
    """Yield the true means, and the beliefs and choices of each policy."""
    traces = [trace(run, times=POINTS) for run in runs.values()]
    shown = _shown(traces)
    times = traces[0].times
    truth = _truth(next(iter(runs.values())), traces[0])
    yield {"kind": "path", "times": times.tolist(), "shown": shown.tolist(), "truth": _rows(truth, shown)}
    for number, one in enumerate(traces):
        yield {
            "kind": "beliefs", "policy": number,
            "mean": _rows(one.mean, shown),
            "forgetting": _rows(one.forgetting, shown),
            "share": _rows(_shares(one), shown),
        }  # fmt: skip


def _truth(run: Simulation, one: Trace) -> np.ndarray:
    """Return the true means; with features, which differ at every step, their means since the previous time."""
    if run.environment.context is None:
        return one.truth
    path = run.environment.rewards.expected(run.environment.path(run.horizon, run.seed, run.first_replication))
    firsts = np.concatenate([[0], one.times[:-1]])
    return np.asarray(np.add.reduceat(path, firsts, axis=0) / np.diff(np.append(firsts, one.times[-1]))[:, None])


def _shown(traces: list[Trace]) -> np.ndarray:
    """Return which arms to draw: all of them, or of many those that were played most."""
    plays = np.sum([one.plays.sum(axis=0) for one in traces], axis=0)
    count = len(plays) if len(plays) <= FEW_ARMS else SHOWN_ARMS
    return np.sort(np.argsort(-plays, kind="stable")[:count])


def _shares(one: Trace) -> np.ndarray:
    """Return the share of each arm in the choices around each time."""
    totals = np.vstack([np.zeros((1, one.plays.shape[1])), one.plays.cumsum(axis=0)])
    rows = np.arange(len(one.times))
    low, high = np.maximum(rows - SHARE_POINTS // 2, 0), np.minimum(rows + SHARE_POINTS // 2 + 1, len(rows))
    counts = totals[high] - totals[low]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _regret(regret: dict[str, np.ndarray], times: np.ndarray, replications: int) -> Message:
    """Return the mean regret so far, with a 95 % interval of the mean where there are several replications."""
    curves = []
    for rows in regret.values():
        mean = rows.mean(axis=0)
        error = rows.std(axis=0, ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else np.zeros(len(mean))
        low, high = intervals.normal(mean, error)
        curves.append({"mean": _row(mean), "low": _row(low), "high": _row(high)})
    done = len(next(iter(regret.values())))
    return {"kind": "regret", "done": done, "replications": replications, "times": times.tolist(), "curves": curves}


def _rows(table: np.ndarray, shown: np.ndarray) -> list[list[float | None]]:
    """Return one row of numbers per arm that is shown."""
    return [_row(table[:, arm]) for arm in shown]


def _row(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(value) else round(value, DIGITS) for value in values.tolist()]
