"""A trial, run: messages with all that is to be drawn, in the order in which it becomes known."""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynabandit.environments import Environment
from dynabandit.playground.trial import MOST_NUMBERS, TIMES, Trial
from dynabandit.policies import Policy
from dynabandit.simulation import Simulation, Trace, compare, compile_policy, is_compiled, trace
from dynabandit.stats import intervals

__all__ = ["messages"]

POINTS = 180  # of a path, an estimate or a forgetting factor
CHUNKS = 12
SHARES = 5  # points that one share of the choices is counted over
FEW_ARMS, SHOWN_ARMS = 8, 5  # up to the first all arms are drawn, else so many
PIECE_SECONDS = 0.25
DIGITS = 5

Message = dict[str, Any]


def messages(trial: Trial, threads: int = 1, now: Callable[[], float] = time.monotonic) -> Iterator[Message]:
    """Run a trial with the simulator and yield what is known on the way.

    The first replication comes with the policies' beliefs, then the regret of more and more replications. What
    comes last depends on the trial alone; how often the regret comes before depends on the machine.

    Examples
    --------
    >>> from dynabandit.playground import read
    >>> kinds = [one["kind"] for one in messages(read("v=1&policies=ucb&horizon=100&replications=2"))]
    >>> kinds[-1], kinds.count("path")
    ('end', 1)
    """
    experiment = trial.experiment
    world = experiment.environment.make_environment()
    policies = {policy.label: policy for policy in (one.make_policy() for one in experiment.policies)}
    yield {"kind": "start", "policies": list(policies), "arms": world.arms, "horizon": trial.horizon,
           "replications": trial.replications, "link": trial.query}  # fmt: skip
    yield from _compile(policies, world.arms)
    yield {"kind": "doing", "text": "running the first replication"}
    runs = _piece(policies, world, trial, 0, 1, threads)
    yield from _beliefs(runs)
    regret = {label: run.regret for label, run in runs.items()}
    yield _regret(regret, runs, trial)
    done, size, most = 1, 1, max(1, MOST_NUMBERS // sum(trial.numbers))
    while done < trial.replications:
        began = now()
        size = min(size, most, trial.replications - done)
        more = _piece(policies, world, trial, done, size, threads)
        regret = {label: np.concatenate([regret[label], run.regret]) for label, run in more.items()}
        done += size
        yield _regret(regret, runs, trial)
        if now() - began < PIECE_SECONDS:
            size *= 2
    yield {"kind": "end", "totals": [float(rows[:, -1].mean()) for rows in regret.values()]}


def _compile(policies: dict[str, Policy], arms: int) -> Iterator[Message]:
    missing = [policy for policy in policies.values() if not is_compiled(policy, arms)]
    for place, policy in enumerate(missing, 1):
        which = f"{policy.name}, {place} of {len(missing)}"
        yield {"kind": "doing", "text": f"compiling {which}: some seconds, the first time only"}
        compile_policy(policy, arms)


def _piece(
    policies: dict[str, Policy], world: Environment, trial: Trial, first: int, count: int, threads: int
) -> dict[str, Simulation]:
    return compare(
        policies, world, horizon=trial.horizon, replications=count, first_replication=first, seed=trial.seed,
        times=TIMES, threads=threads, keep=("arms", "rewards") if first == 0 else (),
    )  # fmt: skip


def _beliefs(runs: dict[str, Simulation]) -> Iterator[Message]:
    """Yield the true means and, piece by piece, the beliefs and choices of each policy."""
    traces = [trace(run, times=POINTS) for run in runs.values()]
    shown = _shown(traces)
    times = traces[0].times
    yield {"kind": "path", "times": times.tolist(), "shown": shown.tolist(), "truth": _rows(traces[0].truth, shown)}
    for piece in np.array_split(np.arange(len(times)), min(CHUNKS, len(times))):
        for place, one in enumerate(traces):
            yield {
                "kind": "beliefs", "policy": place, "first": int(piece[0]),
                "mean": _rows(one.mean[piece], shown),
                "forgetting": _rows(one.forgetting[piece], shown),
                "share": _rows(_shares(one)[piece], shown),
            }  # fmt: skip


def _shown(traces: list[Trace]) -> np.ndarray:
    """Return which arms to draw where there are many: those that were played most."""
    plays = np.sum([one.plays.sum(axis=0) for one in traces], axis=0)
    count = len(plays) if len(plays) <= FEW_ARMS else SHOWN_ARMS
    return np.sort(np.argsort(-plays, kind="stable")[:count])


def _shares(one: Trace) -> np.ndarray:
    """Return the share of each arm in the choices around each time."""
    totals = np.vstack([np.zeros((1, one.plays.shape[1])), one.plays.cumsum(axis=0)])
    rows = np.arange(len(one.times))
    low, high = np.maximum(rows - SHARES // 2, 0), np.minimum(rows + SHARES // 2 + 1, len(rows))
    counts = totals[high] - totals[low]
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _regret(regret: dict[str, np.ndarray], runs: dict[str, Simulation], trial: Trial) -> Message:
    """Return the mean regret so far, with a 95 % interval of the mean where there are several replications."""
    curves = []
    for rows in regret.values():
        mean = rows.mean(axis=0)
        error = rows.std(axis=0, ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else np.zeros(len(mean))
        low, high = intervals.normal(mean, error)
        curves.append({"mean": _row(mean), "low": _row(low), "high": _row(high)})
    times = next(iter(runs.values())).times
    done = len(next(iter(regret.values())))
    return {"kind": "regret", "done": done, "replications": trial.replications, "times": times.tolist(),
            "curves": curves}  # fmt: skip


def _rows(table: np.ndarray, shown: np.ndarray) -> list[list[float | None]]:
    """Return a row of numbers for each arm that is shown."""
    return [_row(table[:, arm]) for arm in shown]


def _row(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(value) else round(value, DIGITS) for value in values.tolist()]
