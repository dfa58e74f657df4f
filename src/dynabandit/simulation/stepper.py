"""One policy on one block of steps: the loop that is compiled for each policy."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.lanes import ALONE, Walk
from dynabandit.core.streams import REWARD, Stream, shifted, uniform
from dynabandit.policies.argmax_tree import make_enter, make_enter_all
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.choose_arm import is_contest, make_choose, make_enter_row

__all__ = [
    "Record", "State", "add_switches", "count_switches", "empty_record", "episodes", "make_episode", "make_episodes",
    "part_of", "start",
]  # fmt: skip


class State(NamedTuple):
    """What a policy carries from one block to the next, for some replications."""

    memory: np.ndarray  # (replications, slots, arms)
    shared: np.ndarray  # (replications, shared)
    last: np.ndarray  # (replications, arms): the step of each arm's latest play
    parameters: np.ndarray  # (replications, parameters): a tuned policy differs from path to path


class Record(NamedTuple):
    """What is written down on the way."""

    times: np.ndarray  # the steps after which the running regret is recorded
    total: np.ndarray  # (replications,): the regret so far
    regret: np.ndarray  # (replications, times)
    correct: np.ndarray  # (replications, times): was the best arm played at that step?
    arms: np.ndarray  # (replications, horizon), or empty where nobody asked for it
    rewards: np.ndarray  # likewise


def empty_record(times: np.ndarray, replications: int, kept_steps: int) -> Record:
    """Return a record with nothing in it; `kept_steps` is how many steps keep their arm and their reward."""
    return Record(
        times=times,
        total=np.zeros(replications),
        regret=np.zeros((replications, len(times))),
        correct=np.zeros((replications, len(times)), dtype=np.uint8),
        arms=np.zeros((replications, kept_steps), dtype=np.int32),
        rewards=np.zeros((replications, kept_steps), dtype=np.uint8),
    )


def part_of(record: Record, low: int, high: int) -> Record:
    """Return the record of the replications from `low` up to `high`."""
    return Record(record.times, *(part[low:high] for part in record[1:]))


def episodes(kernels: Kernels, arms: int) -> Callable[..., None]:
    """Return the compiled `make_episodes` of a policy: the same for all numbers of arms with the same method."""
    return _episodes(kernels, kernels.posterior is not None and is_contest(arms))


@functools.cache
def _episodes(kernels: Kernels, contest: bool) -> Callable[..., None]:
    return compiled(make_episodes(kernels, contest=contest))


def make_episodes(kernels: Kernels, *, contest: bool | None = None) -> Callable[..., None]:
    """Return play(state, record, table, scratch, trees, means, best, first, steps, burn_in, cursor, source).

    It plays `steps` steps from step `first` on, one replication after the other. `source` belongs to the
    first replication, `cursor` is the first of `record.times` not before this block, `scratch` is for `choose`.
    `trees` holds the scores that stand still, a tree for each replication. Past the last row of `means` and `best`,
    that row goes on.
    """
    episode = make_episode(kernels, ALONE, contest=contest)

    @kernel
    def play(
        state: State,
        record: Record,
        table: np.ndarray,
        scratch: np.ndarray,
        trees: np.ndarray,
        means: np.ndarray,
        best: np.ndarray,
        first: int,
        steps: int,
        burn_in: int,
        cursor: int,
        source: Stream,
    ) -> None:
        for replication in range(means.shape[0]):
            episode(
                state, record, table, scratch, trees[replication], means, best, replication,
                first, steps, burn_in, cursor, record.arms.size > 0, shifted(source, replication),
            )  # fmt: skip

    return play


def make_episode(kernels: Kernels, walk: Walk, *, contest: bool | None) -> Callable[..., None]:
    """Return the function that plays a block of one replication, whose numbers stand in row `row` of each array.

    Scores that stand still are kept: in a tree where one walker is alone, and in a row, which is made anew with every
    block, where many find the largest at once.
    """
    still, alone = kernels.still, walk is ALONE
    choose = make_choose(kernels, walk, contest=contest, still=still)
    enter_all, enter = (make_enter_all(kernels), make_enter(kernels)) if alone else make_enter_row(kernels, walk)
    learn, reveal = kernels.learn, kernels.reveal
    rounds, place, inside, leads, meet = walk.rounds, walk.place, walk.inside, walk.leads, walk.meet

    @kernel
    def episode(
        state: State,
        record: Record,
        table: np.ndarray,
        scratch: np.ndarray,
        tree: np.ndarray,
        all_means: np.ndarray,
        all_best: np.ndarray,
        row: int,
        first: int,
        steps: int,
        burn_in: int,
        cursor: int,
        keep: bool,
        source: Stream,
    ) -> None:
        memory, shared, last, parameters = state.memory[row], state.shared[row], state.last[row], state.parameters[row]
        means, best, times = all_means[row], all_best[row], record.times
        arms, rows = last.size, means.shape[0]
        total = record.total[row]
        mark = cursor
        due = times[mark] if mark < times.size else 0
        for offset in range(steps):
            step = first + offset
            now_row = min(offset, rows - 1)
            truth = means[now_row]
            for turn in range(rounds(arms)):
                if inside(place(0, turn), arms):
                    reveal(memory, place(0, turn), truth[place(0, turn)])
            if step <= burn_in * arms:
                arm = (step - 1) % arms
            else:
                if still and (step == burn_in * arms + 1 or (offset == 0 and not alone)):
                    enter_all(tree, memory, Now(step, arms, 0.0), parameters, table, source)
                arm = choose(memory, shared, last, tree if still else scratch, step, parameters, table, source)
            meet()
            mean = truth[arm]
            gap = best[now_row] - mean
            total += gap
            if leads():
                last[arm] = step
                reward = 1.0 if uniform(source, REWARD, step, arm) < mean else 0.0
                learn(memory, shared, arm, reward, parameters)
                if still and step > burn_in * arms:
                    enter(tree, memory, arm, Now(step, arms, 0.0), parameters, table, source)
                if step == due:
                    record.regret[row, mark] = total
                    record.correct[row, mark] = gap == 0.0
                if keep:
                    record.arms[row, step - 1] = arm
                    record.rewards[row, step - 1] = reward
            if step == due:
                mark += 1
                due = times[mark] if mark < times.size else 0
            meet()
        if leads():
            record.total[row] = total

    return episode


def start(kernels: Kernels, state: State) -> None:
    """Write the state before the first step; all arms are alike then."""
    for memory, shared, _, parameters in zip(*state, strict=True):
        kernels.start(memory, shared, 0, parameters)
        memory[:, 1:] = memory[:, :1]


@functools.cache
def count_switches() -> Callable[..., None]:
    """Return the compiled `add_switches`."""
    return compiled(add_switches)


@kernel
def add_switches(means: np.ndarray, best: np.ndarray, steps: int, incumbent: np.ndarray, switches: np.ndarray) -> None:
    """Add how often the best arm changes; an incumbent that ties with the best one stays.

    `incumbent` holds the best arm of each replication before the block, -1 before the first step.
    """
    for replication in range(len(means)):
        holder = incumbent[replication]
        for step in range(steps):
            largest = best[replication, step]
            if holder < 0 or means[replication, step, holder] < largest:
                if holder >= 0:
                    switches[replication] += 1
                holder = 0
                while means[replication, step, holder] < largest:
                    holder += 1
        incumbent[replication] = holder
