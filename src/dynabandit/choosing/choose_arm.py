"""From scores to the chosen arm, for every policy and every backend; `core.tie_breaking` breaks ties."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.choosing.argmax_tree import tree_argmax
from dynabandit.choosing.draw_tree import make_choose_in_tree
from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.draws import beta_odds, not_empty, probability
from dynabandit.core.lanes import SINGLE_LANE, LaneGroup
from dynabandit.core.largest_beta_draw import GROUP, NOT_ABOVE, draw_above, may_exceed, uniform_prefixes
from dynabandit.core.streams import EXPLORED_ARM, SCORE, Stream, pick, shifted
from dynabandit.core.tie_breaking import make_argmax
from dynabandit.policies.base import Choose, PolicyFunctions, PolicyState, Step, no_preparation

SCRATCH_ROWS = 4
FEW_ARMS = 8  # up to this many arms, drawing all of them is cheaper than pruning


class Workspace(NamedTuple):
    """What a decision reads and writes besides the state."""

    scratch: np.ndarray  # (SCRATCH_ROWS, arms or more); the scores are in the first row after a decision
    tree: np.ndarray  # the scores of a static index or the masses of draws: `choosing.argmax_tree` or `.draw_tree`
    table: np.ndarray
    features: np.ndarray


def new_workspace(functions: PolicyFunctions, arms: int, horizon: int) -> Workspace:
    """Return the workspace of decisions without a tree."""
    arms = max(arms, 1)
    nothing = np.zeros(0)
    return Workspace(np.zeros((SCRATCH_ROWS, arms)), nothing, functions.table(arms, horizon), nothing)


def make_choose(
    functions: PolicyFunctions,
    lanes: LaneGroup = SINGLE_LANE,
    *,
    pruned: bool | None = None,
    scored: bool = False,
    in_tree: bool = False,
) -> Callable[..., int]:
    """Return choose(state, number, params, space, random), the arm to play at step `number`.

    Parameters
    ----------
    functions
        The functions of the policy.
    lanes
        How the arms are divided.
    pruned
        Whether a policy with a `posterior` prunes draws. If None, `is_pruned` decides at run time, and both ways are
        compiled.
    scored
        Whether `space` already has the scores of a static index: in the tree with a single lane, else in the first row
        of the scratch.
    in_tree
        Whether `space` has a draw tree, from which the arm of a policy with a `posterior` is chosen.
    """
    if functions.choose is not None:
        return make_direct_choice(functions.choose)
    common, explore, sync, is_leader = functions.common, functions.explore, lanes.sync, lanes.is_leader
    prepare, prepares = functions.prepare, functions.prepare is not no_preparation
    leading_arm = make_leading_arm(lanes, in_tree=scored and lanes is SINGLE_LANE)
    if scored and functions.posterior is not None:
        raise ValueError("a policy with a posterior draws new scores at every step: it has no static index")
    choose_in_tree, lowest = make_choose_in_tree(functions) if in_tree else no_tree, lanes.lowest
    if scored or in_tree:
        fill = keep_scores
    elif functions.posterior is None:
        fill = make_indices(functions, lanes)
    elif pruned is None:
        fill = make_pruned_or_all_draws(functions, lanes)
    else:
        fill = make_pruned_draws(functions, lanes) if pruned else make_all_draws(functions, lanes)

    @inlined_kernel
    def choose(state: PolicyState, number: int, params: Any, space: Workspace, random: Stream) -> int:
        arms = state.last_played.size
        step = Step(number, arms, common(state, number, params), space.features, space.table, random)
        if prepares:
            if is_leader():
                prepare(state, step, params)
            sync()
        if in_tree:
            leader = arms
            if is_leader():
                leader = choose_in_tree(space.tree, state, step, params, space.scratch)
            sync()
            leader = lowest(leader)
        else:
            fill(state, step, params, space.scratch)
            sync()
            leader = leading_arm(space, step)
        if explore(state, leader, step, params):
            return pick(random, EXPLORED_ARM, number, 0, arms)
        return leader

    return choose


def make_direct_choice(choose_arm: Choose) -> Callable[..., int]:
    """Return choose(state, number, params, space, random) for a policy that returns the arm itself."""

    def choose(state: PolicyState, number: int, params: Any, space: Workspace, random: Stream) -> int:
        step = Step(number, state.last_played.size, 0.0, space.features, space.table, random)
        return choose_arm(state, step, params)

    return choose


def make_indices(functions: PolicyFunctions, lanes: LaneGroup) -> Callable[..., None]:
    """Return fill(state, step, params, scratch) for a policy with a `score`."""
    score, rounds, arm_at, exists = functions.score, lanes.rounds, lanes.arm_at, lanes.exists

    @inlined_kernel
    def fill(state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> None:
        for turn in range(rounds(step.arms)):
            arm = arm_at(0, turn)
            if exists(arm, step.arms):
                scratch[0, arm] = score(state, arm, step, params)

    return fill


def make_score_row(functions: PolicyFunctions, lanes: LaneGroup) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `fill` and `update` of a static index, as in `choosing.argmax_tree`, for the first row of the scratch."""
    score, fill_row = functions.score, make_indices(functions, lanes)

    @inlined_kernel
    def fill(scratch: np.ndarray, state: PolicyState, step: Step, params: Any) -> None:
        fill_row(state, step, params, scratch)

    @kernel
    def update(scratch: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> None:
        scratch[0, arm] = score(state, arm, step, params)

    return fill, update


@kernel
def no_tree(tree: np.ndarray, state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> int:
    """Replace the choice in a draw tree where there is none."""
    return 0


@kernel
def keep_scores(state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> None:
    """Leave the scores as they are."""


def make_all_draws(functions: PolicyFunctions, lanes: LaneGroup = SINGLE_LANE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`: the odds of a draw for every arm."""
    posterior, optimistic = functions.posterior, functions.optimistic
    rounds, arm_at, exists = lanes.rounds, lanes.arm_at, lanes.exists
    assert posterior is not None

    @inlined_kernel
    def fill(state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> None:
        for turn in range(rounds(step.arms)):
            arm = arm_at(0, turn)
            if exists(arm, step.arms):
                a, b = not_empty(posterior(state, arm, step, params))
                draw = beta_odds(a, b, step.random, SCORE, step.number, arm)
                scratch[0, arm] = max(draw, a / b) if optimistic else draw

    return fill


@kernel
def is_pruned(arms: int) -> bool:
    """Whether draws are pruned for so many arms; the method decides which random numbers are used."""
    return arms > FEW_ARMS


def make_pruned_or_all_draws(functions: PolicyFunctions, lanes: LaneGroup = SINGLE_LANE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior` and any number of arms."""
    pruned_draws, all_draws = make_pruned_draws(functions, lanes), make_all_draws(functions, lanes)

    @inlined_kernel
    def fill(state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> None:
        if is_pruned(step.arms):
            pruned_draws(state, step, params, scratch)
        else:
            all_draws(state, step, params, scratch)

    return fill


def make_pruned_draws(functions: PolicyFunctions, lanes: LaneGroup = SINGLE_LANE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior` that skips the draws of arms that cannot have the largest one.

    The incumbent, the arm with the largest posterior mean, is drawn first; `dynabandit.core.largest_beta_draw` has the
    method.
    """
    posterior, optimistic = functions.posterior, functions.optimistic
    rounds, arm_at, exists, is_leader, sync = lanes.rounds, lanes.arm_at, lanes.exists, lanes.is_leader, lanes.sync
    top, highest, lowest = lanes.top, lanes.highest, lanes.lowest
    marked, marked_rounds, marked_arm = lanes.marked, lanes.marked_rounds, lanes.marked_arm
    mark_candidates, write_prefixes = make_mark_candidates(lanes), make_write_prefixes(lanes)
    assert posterior is not None

    @inlined_kernel
    def fill(state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> None:
        score, shape_a, shape_b, mean = scratch[0], scratch[1], scratch[2], scratch[3]
        arms, random = step.arms, step.random
        for turn in range(rounds(arms)):
            arm = arm_at(0, turn)
            if exists(arm, arms):
                a, b = not_empty(posterior(state, arm, step, params))
                shape_a[arm] = a
                shape_b[arm] = b
                mean[arm] = a / (a + b)
        own_mean, own_incumbent, _ = top(mean[:arms])
        largest_mean = highest(own_mean)
        incumbent = min(lowest(own_incumbent if own_mean == largest_mean else arms), arms - 1)
        write_prefixes(score[:arms], step.number, random)
        sync()
        first = beta_odds(shape_a[incumbent], shape_b[incumbent], random, SCORE, step.number, incumbent)
        if optimistic:
            first = max(first, shape_a[incumbent] / shape_b[incumbent])
        best = first
        for start in range(0, arms, GROUP):
            end = min(start + GROUP, arms)
            mark_candidates(
                score[start:end], shape_a[start:end], shape_b[start:end], mean[start:end], probability(best)
            )
            marks = marked(score, start, end)
            sync()
            own_best = best
            for turn in range(marked_rounds(marks, start, end)):
                arm = marked_arm(marks, start, turn)
                if exists(arm, end) and score[arm] >= 0.0 and arm != incumbent:
                    score[arm] = draw_above(
                        shape_a[arm], shape_b[arm], mean[arm], best, score[arm], random, step.number, arm
                    )
                    own_best = max(own_best, score[arm])
            best = highest(own_best)
        if is_leader():
            score[incumbent] = first
        if optimistic:
            sync()
            for turn in range(rounds(arms)):
                arm = arm_at(0, turn)
                if exists(arm, arms) and mean[arm] == largest_mean:  # a pruned arm scores its mean, which can tie
                    score[arm] = max(score[arm], shape_a[arm] / shape_b[arm])

    return fill


@functools.cache  # so that all policies share its compiled code
def make_mark_candidates(lanes: LaneGroup) -> Callable[..., None]:
    """Return mark_candidates(score, shape_a, shape_b, mean, c), for the arms of a group.

    The score of an arm is the prefix of its uniform number, and stays so if its draw may exceed c.
    """
    rounds_between, arm_at, exists = lanes.rounds_between, lanes.arm_at, lanes.exists

    @kernel
    def mark_candidates(
        score: np.ndarray, shape_a: np.ndarray, shape_b: np.ndarray, mean: np.ndarray, c: float
    ) -> None:
        for turn in range(rounds_between(0, score.size)):  # a loop from 0 is vectorised
            arm = arm_at(0, turn)
            if exists(arm, score.size):
                is_candidate = may_exceed(shape_a[arm], shape_b[arm], mean[arm], c, score[arm])
                score[arm] = score[arm] if is_candidate else NOT_ABOVE

    return mark_candidates


@functools.cache  # so that all policies share its compiled code
def make_write_prefixes(lanes: LaneGroup) -> Callable[..., None]:
    """Return a function that writes the first bits of every arm's uniform number, eight arms per call."""
    rounds_between, arm_at, exists = lanes.rounds_between, lanes.arm_at, lanes.exists

    @kernel
    def write_prefixes(prefix: np.ndarray, number: int, random: Stream) -> None:
        eighths = (prefix.size + 7) // 8
        for turn in range(rounds_between(0, eighths)):
            eighth = arm_at(0, turn)
            if exists(eighth, eighths):
                eight = uniform_prefixes(random, number, eighth)
                for i in range(min(8, prefix.size - 8 * eighth)):
                    prefix[8 * eighth + i] = eight[i]

    return write_prefixes


def make_count_choices(choose: Callable[..., int]) -> Callable[..., None]:
    """Return a function that counts the choices made with the random numbers of the replications that follow."""

    @kernel
    def count_choices(
        state: PolicyState,
        number: int,
        params: Any,
        space: Workspace,
        random: Stream,
        counts: np.ndarray,
        draws: int,
    ) -> None:
        for draw in range(draws):
            counts[choose(state, number, params, space, shifted(random, 1 + draw))] += 1

    return count_choices


@functools.cache  # so that all policies share its compiled code
def make_leading_arm(lanes: LaneGroup, *, in_tree: bool) -> Callable[[Workspace, Step], int]:
    """Return leading_arm(space, step): the arm with the largest score of the tree or of the first row."""
    argmax = make_argmax(lanes)

    @inlined_kernel
    def leading_arm(space: Workspace, step: Step) -> int:
        return argmax(space.scratch[0, : step.arms], step.number, step.random)

    @inlined_kernel
    def leading_arm_of_tree(space: Workspace, step: Step) -> int:
        return tree_argmax(space.tree, step.number, step.random)

    return leading_arm_of_tree if in_tree else leading_arm
