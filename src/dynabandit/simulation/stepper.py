"""One step of a policy: burn-in or decision, regret, reward, learning, record. All backends are built from it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.choosing.argmax_tree import make_fill_tree, make_update_tree
from dynabandit.choosing.choose_arm import Workspace, make_choose, make_score_row
from dynabandit.choosing.draw_tree import mark_all, mark_arm
from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.lanes import SINGLE_LANE, LaneGroup
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import Stream, shifted
from dynabandit.environments.delays import DelayParams
from dynabandit.environments.reward_laws import Bernoulli, RewardFunctions, RewardStep
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step, row_of
from dynabandit.policies.pending_plays import begin_play, end_play
from dynabandit.simulation import in_flight
from dynabandit.simulation.best_in_hindsight import make_arm_mean, make_best_policy
from dynabandit.simulation.in_flight import InFlight


class Replications(NamedTuple):
    """What a policy carries from one block to the next; replications are the first axis of every array."""

    memory: np.ndarray  # (replications, slots, arms)
    shared: np.ndarray  # (replications, shared)
    last_played: np.ndarray  # (replications, arms)
    # The following two are (replications, arms), or (replications, 0) if means do not depend on plays
    plays: np.ndarray
    optimal: np.ndarray  # the best policy in hindsight, see `simulation.best_in_hindsight`
    params: np.ndarray  # (replications, fields): a tuned policy has other parameters on each path
    # The following have no columns without delays; see `simulation.in_flight`
    pending: np.ndarray  # (replications, arms): plays whose rewards have not arrived
    queue: np.ndarray  # (replications, rows, places): these rewards
    settling: np.ndarray  # (replications, size): the settling age, if there is a window
    models: np.ndarray  # (replications, models, size): see `PolicyState.models`; no columns without context


@functools.cache
def make_state_of(*, delayed: bool, contextual: bool) -> Callable[[Replications, int], PolicyState]:
    """Return state_of(replications, row), the state of one replication."""

    @inlined_kernel
    def state_of(replications: Replications, row: int) -> PolicyState:
        memory, shared, last_played = replications.memory[row], replications.shared[row], replications.last_played[row]
        pending = replications.pending[row] if delayed else None
        models = replications.models[row] if contextual else None
        return PolicyState(memory, shared, last_played, pending, models)

    return state_of


class Paths(NamedTuple):
    """The means of a block; if it has fewer rows than steps, the last row applies to all later steps."""

    means: np.ndarray  # (replications, rows, arms)
    best: np.ndarray  # (replications, rows): the largest mean
    law: np.ndarray  # the parameters of the reward law
    params: np.ndarray  # (fields, arms): those of the environment
    features: np.ndarray  # (replications, rows, vectors, dimension), or one number without a context


class Block(NamedTuple):
    """Which steps are played, and what is recorded of them."""

    first: int
    steps: int
    burn_in: int
    cursor: int  # the place in `Record.times` of the first time that is not before this block
    keep: bool  # whether arms and rewards are kept


class Record(NamedTuple):
    """What is recorded of a simulation."""

    times: np.ndarray  # the steps after which the cumulative regret is recorded
    total: np.ndarray  # (replications,): the regret so far
    regret: np.ndarray  # (replications, times)
    correct: np.ndarray  # (replications, times): whether the best arm was played at that step
    arms: np.ndarray  # (replications, horizon), or empty if not kept
    rewards: np.ndarray  # likewise


def empty_record(times: np.ndarray, replications: int, kept_steps: int, dtype: type = np.uint8) -> Record:
    """Return an empty record; the arms and rewards of `kept_steps` steps are kept, rewards as `dtype`."""
    return Record(
        times=times,
        total=np.zeros(replications),
        regret=np.zeros((replications, len(times))),
        correct=np.zeros((replications, len(times)), dtype=np.uint8),
        arms=np.zeros((replications, kept_steps), dtype=np.int32),
        rewards=np.zeros((replications, kept_steps), dtype=dtype),
    )


def part_of(record: Record, low: int, high: int) -> Record:
    """Return the record of the replications from `low` up to `high`."""
    return Record(record.times, *(part[low:high] for part in record[1:]))


@kernel
def least_played_arm(plays: np.ndarray, burn_in: int) -> int:
    """Return the arm that the burn-in plays next, or -1 after the burn-in: the first of the least played arms.

    Examples
    --------
    >>> least_played_arm(np.array([3, 1, 1]), burn_in=2), least_played_arm(np.array([2, 2, 2]), burn_in=2)
    (1, -1)
    """
    arm = int(plays.argmin())
    return arm if plays[arm] < burn_in else -1


@kernel
def round_robin_arm(arms: int, number: int, burn_in: int) -> int:
    """Return `least_played_arm` at step `number` if the arms never changed, without counting plays.

    Examples
    --------
    >>> [round_robin_arm(2, number, burn_in=2) for number in (1, 2, 3, 4, 5)]
    [0, 1, 0, 1, -1]
    """
    return (number - 1) % arms if number <= burn_in * arms else -1


def make_play(
    functions: PolicyFunctions,
    law: RewardFunctions = Bernoulli.functions,
    *,
    pruned: bool | None = None,
    delayed: bool = False,
    in_tree: bool = False,
) -> Callable[..., None]:
    """Return play(replications, record, paths, block, space, delays, random), for one replication after the other.

    `random` belongs to the first replication; `space.tree` has a tree for each of them.
    """
    play_replication = make_play_replication(
        functions, SINGLE_LANE, law, pruned=pruned, delayed=delayed, in_tree=in_tree
    )

    @kernel
    def play(
        replications: Replications,
        record: Record,
        paths: Paths,
        block: Block,
        space: Workspace,
        delays: DelayParams,
        random: Stream,
    ) -> None:
        for row in range(paths.means.shape[0]):
            own = Workspace(space.scratch, space.tree[row], space.table, space.features)
            play_replication(replications, record, paths, block, own, delays, row, shifted(random, row))

    return play


def make_finish_step(
    functions: PolicyFunctions, refresh_arm: Callable[..., None], *, delayed: bool, stores: bool
) -> Callable[..., None]:
    """Return finish_step(state, arm, value, step, params, flight, stored_scores): what follows from a play.

    The reward is learned at once, or sent, and then all rewards that arrive at this step are learned in the order of
    their decisions. If the policy `stores` its scores or a draw tree, `refresh_arm` changes them after the play and
    after each reward.
    """
    learn, contextual = functions.learn, functions.contextual

    @inlined_kernel
    def finish_step(
        state: PolicyState, arm: int, value: float, step: Step, params: Any, flight: InFlight, stored_scores: np.ndarray
    ) -> None:
        state.last_played[arm] = step.number
        features = step.features[row_of(step.features, arm)] if contextual else None
        learn(state, arm, Reward(value, step.number, step.number, features), params)
        if stores:
            refresh_arm(stored_scores, state, arm, step, params)

    @inlined_kernel
    def finish_step_delayed(
        state: PolicyState, arm: int, value: float, step: Step, params: Any, flight: InFlight, stored_scores: np.ndarray
    ) -> None:
        number = step.number
        begin_play(state, arm, number)
        if stores:
            refresh_arm(stored_scores, state, arm, step, params)
        in_flight.send(flight, arm, value, number, step.random)
        if contextual:
            in_flight.keep_features(flight, step.features[row_of(step.features, arm)], number)
        place = in_flight.take(flight, number)
        while place >= 0:
            rewarded = int(flight.queue[in_flight.ARM, place])
            if rewarded >= 0:
                decided = in_flight.decided_at(flight, place, number)
                if in_flight.is_decision(flight, place):
                    end_play(state, rewarded, decided)
                features = flight.queue[in_flight.ROWS :, place] if contextual else None
                learn(state, rewarded, Reward(flight.queue[in_flight.VALUE, place], decided, number, features), params)
                if stores:
                    refresh_arm(stored_scores, state, rewarded, step, params)
            place = in_flight.take(flight, number)

    return finish_step_delayed if delayed else finish_step


@kernel
def start_tree(tree: np.ndarray, state: PolicyState, step: Step, params: Any) -> None:
    """Let the next decision fill a draw tree."""
    mark_all(tree)


@kernel
def change_tree(tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> None:
    """Let the next decision compute the masses of an arm in a draw tree again."""
    mark_arm(tree, arm, step.arms)


def make_play_replication(
    functions: PolicyFunctions,
    lanes: LaneGroup,
    law: RewardFunctions = Bernoulli.functions,
    *,
    pruned: bool | None,
    delayed: bool,
    in_tree: bool = False,
) -> Callable[..., None]:
    """Return play_replication(replications, record, paths, block, space, delays, row, random), for one row.

    A static index is stored: with a single lane in a tree, else in the first row of the scratch, which is filled at the
    start of every block. With `in_tree`, draws are made from a draw tree.
    """
    static, single = functions.static_index, lanes is SINGLE_LANE
    choose = make_choose(functions, lanes, pruned=pruned, scored=static, in_tree=in_tree)
    stores, in_scratch = static or in_tree, static and not single
    if in_tree:
        begin_stored_scores, refresh_arm = start_tree, change_tree
    elif single:
        begin_stored_scores, refresh_arm = make_fill_tree(functions), make_update_tree(functions)
    else:
        begin_stored_scores, refresh_arm = make_score_row(functions, lanes)
    contextual = functions.contextual
    finish_step = make_finish_step(functions, refresh_arm, delayed=delayed, stores=stores)
    state_of = make_state_of(delayed=delayed, contextual=contextual)
    reveal, read_params = functions.reveal, vector_reader(functions.params)
    draw, expected, read_law = law.draw, law.expected, vector_reader(law.params)
    observes_plays, arm_mean, (best_reward, is_best) = law.observes_plays, make_arm_mean(law), make_best_policy(law)
    rounds, arm_at, exists, is_leader, sync = lanes.rounds, lanes.arm_at, lanes.exists, lanes.is_leader, lanes.sync

    @inlined_kernel
    def play_replication(
        replications: Replications,
        record: Record,
        paths: Paths,
        block: Block,
        space: Workspace,
        delays: DelayParams,
        row: int,
        random: Stream,
    ) -> None:
        state = state_of(replications, row)
        flight = InFlight(replications.queue[row], replications.settling[row], delays)
        params, plays, stored_scores = read_params(replications.params[row]), replications.plays[row], space.tree
        optimal, matrix = replications.optimal[row], paths.params
        means, best, times, law_params = paths.means[row], paths.best[row], record.times, read_law(paths.law)
        arms, rows = state.last_played.size, means.shape[0]
        total = record.total[row]
        cursor = block.cursor
        next_recorded = times[cursor] if cursor < times.size else 0
        for offset in range(block.steps):
            number = block.first + offset
            at = min(offset, rows - 1)
            for turn in range(rounds(arms)):
                if exists(arm_at(0, turn), arms):
                    current = arm_mean(means[at], plays, arm_at(0, turn), matrix)
                    reveal(state, arm_at(0, turn), expected(current, law_params))
            arm = round_robin_arm(arms, number, block.burn_in)
            if arm < 0:
                is_first = number == block.burn_in * arms + 1 or (offset == 0 and in_scratch)
                if stores and is_first and (is_leader() or not in_tree):
                    first = Step(number, arms, 0.0, space.features, space.table, random)
                    begin_stored_scores(stored_scores, state, first, params)
                if contextual:
                    own = Workspace(space.scratch, space.tree, space.table, paths.features[row, at])
                    arm = choose(state, number, params, own, random)
                else:
                    arm = choose(state, number, params, space, random)
            sync()
            mean = arm_mean(means[at], plays, arm, matrix)
            gap = expected(best[at], law_params) - expected(mean, law_params)
            is_correct = gap == 0.0
            if observes_plays and is_leader():
                reward_of_best = best_reward(means[at], optimal, number, matrix, law_params)
                gap = reward_of_best - expected(mean, law_params)
                is_correct = number == next_recorded and is_best(means[at], plays, optimal, arm, matrix)
            total += gap
            if is_leader():
                value = draw(mean, arm, RewardStep(number, random), law_params)
                if observes_plays:
                    plays[arm] += 1
                features = paths.features[row, at] if contextual else space.features
                step = Step(number, arms, 0.0, features, space.table, random)
                finish_step(state, arm, value, step, params, flight, stored_scores)
                if number == next_recorded:
                    record.regret[row, cursor] = total
                    record.correct[row, cursor] = is_correct
                if block.keep:
                    record.arms[row, number - 1] = arm
                    record.rewards[row, number - 1] = value
            if number == next_recorded:
                cursor += 1
                next_recorded = times[cursor] if cursor < times.size else 0
            sync()
        if is_leader():
            record.total[row] = total

    return play_replication


@kernel
def add_changes(means: np.ndarray, best: np.ndarray, steps: int, incumbent: np.ndarray, changes: np.ndarray) -> None:
    """Add how often the best arm changes; an incumbent that ties with the best one stays.

    `incumbent` has the best arm of each replication before the block, -1 before the first step.
    """
    for replication in range(len(means)):
        holder = incumbent[replication]
        for step in range(steps):
            largest = best[replication, step]
            if holder < 0 or means[replication, step, holder] < largest:
                if holder >= 0:
                    changes[replication] += 1
                holder = 0
                while means[replication, step, holder] < largest:
                    holder += 1
        incumbent[replication] = holder
