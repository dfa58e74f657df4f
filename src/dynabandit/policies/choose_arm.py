"""From scores to a choice: the one place where an arm is picked, for every policy and every backend."""

from collections.abc import Callable

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta, not_empty
from dynabandit.core.lanes import ALONE, Walk
from dynabandit.core.largest_beta_draw import GROUP, NOT_ABOVE, draw_above, may_exceed, uniform_prefixes
from dynabandit.core.streams import EXPLORED_ARM, SCORE, TIE, Stream, shifted, uniform
from dynabandit.policies.argmax_tree import winner
from dynabandit.policies.base import Kernels, Now

__all__ = ["SCRATCH_ROWS", "is_contest", "make_choose", "make_count_choices", "make_enter_row", "make_largest"]

SCRATCH_ROWS = 5
FEW = 8  # up to so many arms, drawing them all is cheaper than a contest


def make_choose(
    kernels: Kernels, walk: Walk = ALONE, *, contest: bool | None = None, still: bool = False
) -> Callable[..., int]:
    """Return choose(memory, shared, last, scratch, step, parameters, table, source), the next arm.

    `last` holds the step of each arm's latest play; `scratch` is an array (SCRATCH_ROWS, arms or more) whose first
    row holds the scores afterwards. A Thompson policy holds a `contest` or draws every arm; where that is None, it does
    what `is_contest` says, and both have to be compiled. With `still`, for scores that stand still, `scratch` has the
    scores as they are now: in a tree of `policies.tournament` where one walker is alone, else in the first row, as
    `make_enter_row` writes them.
    """
    context, explore, meet = kernels.context, kernels.explore, walk.meet
    lead = winner if still and walk is ALONE else make_first_row(walk)
    if still and kernels.posterior is not None:
        raise ValueError("a policy with a posterior draws new scores at every step: its kernels cannot be still")
    if still:
        fill = keep_scores
    elif kernels.posterior is None:
        fill = make_indices(kernels, walk)
    elif contest is None:
        fill = make_contest_or_draws(kernels, walk)
    else:
        fill = make_contest(kernels, walk) if contest else make_draws(kernels, walk)

    @kernel
    def choose(
        memory: np.ndarray,
        shared: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        step: int,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> int:
        now = Now(step, last.size, context(shared, step, parameters))
        fill(memory, last, scratch, now, parameters, table, source)
        meet()
        leader = lead(scratch, last.size, step, source)
        if explore(memory, leader, step - 1 - last[leader], now, parameters, source):
            return min(int(uniform(source, EXPLORED_ARM, step, 0) * last.size), last.size - 1)
        return leader

    return choose


def make_indices(kernels: Kernels, walk: Walk) -> Callable[..., None]:
    """Return fill(memory, last, scratch, now, parameters, table, source) for a policy with a `score`."""
    score, rounds, place, inside = kernels.score, walk.rounds, walk.place, walk.inside

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        for turn in range(rounds(last.size)):
            arm = place(0, turn)
            if inside(arm, last.size):
                scratch[0, arm] = score(memory, arm, now.step - 1 - last[arm], now, parameters, table, source)

    return fill


def make_enter_row(kernels: Kernels, walk: Walk) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `enter_all` and `enter` of scores that stand still, as in `policies.tournament`, for a plain row."""
    score, rounds, place, inside = kernels.score, walk.rounds, walk.place, walk.inside

    @kernel
    def enter(
        scratch: np.ndarray,
        memory: np.ndarray,
        arm: int,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        scratch[0, arm] = score(memory, arm, 0, now, parameters, table, source)

    @kernel
    def enter_all(
        scratch: np.ndarray, memory: np.ndarray, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
    ) -> None:
        for turn in range(rounds(now.arms)):
            arm = place(0, turn)
            if inside(arm, now.arms):
                enter(scratch, memory, arm, now, parameters, table, source)

    return enter_all, enter


@kernel
def keep_scores(
    memory: np.ndarray,
    last: np.ndarray,
    scratch: np.ndarray,
    now: Now,
    parameters: np.ndarray,
    table: np.ndarray,
    source: Stream,
) -> None:
    """Leave the scores as they are."""


def make_draws(kernels: Kernels, walk: Walk = ALONE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`: a draw for every arm."""
    posterior, optimistic = kernels.posterior, kernels.optimistic
    rounds, place, inside = walk.rounds, walk.place, walk.inside
    assert posterior is not None

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        for turn in range(rounds(last.size)):
            arm = place(0, turn)
            if inside(arm, last.size):
                a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
                draw = beta(a, b, source, SCORE, now.step, arm)
                scratch[0, arm] = max(draw, a / (a + b)) if optimistic else draw

    return fill


@kernel
def is_contest(arms: int) -> bool:
    """Whether a contest between so many arms is cheaper than drawing them all; it is part of what is chosen."""
    return arms > FEW


def make_contest_or_draws(kernels: Kernels, walk: Walk = ALONE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`, for any number of arms."""
    hold_contest, draw_all = make_contest(kernels, walk), make_draws(kernels, walk)

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        if is_contest(last.size):
            hold_contest(memory, last, scratch, now, parameters, table, source)
        else:
            draw_all(memory, last, scratch, now, parameters, table, source)

    return fill


def make_contest(kernels: Kernels, walk: Walk = ALONE) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`, where many arms that cannot have the largest draw get none.

    The arm with the largest posterior mean is drawn first; see `dynabandit.core.largest_beta_draw` for the rest.
    """
    posterior, optimistic = kernels.posterior, kernels.optimistic
    rounds, turns, place, inside, meet = walk.rounds, walk.turns, walk.place, walk.inside, walk.meet
    top, highest, lowest = walk.top, walk.highest, walk.lowest
    mark_open, write_prefixes = make_mark_open(walk), make_write_prefixes(walk)
    assert posterior is not None

    @kernel
    def fill(
        memory: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        now: Now,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> None:
        score, shape_a, shape_b, mean, prefix = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
        arms = last.size
        for turn in range(rounds(arms)):
            arm = place(0, turn)
            if inside(arm, arms):
                a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
                shape_a[arm] = a
                shape_b[arm] = b
                mean[arm] = a / (a + b)
        own_mean, own_favourite, _ = top(mean[:arms])
        largest_mean = highest(own_mean)
        favourite = min(lowest(own_favourite if own_mean == largest_mean else arms), arms - 1)
        write_prefixes(prefix[:arms], now.step, source)
        meet()
        first = beta(shape_a[favourite], shape_b[favourite], source, SCORE, now.step, favourite)
        if optimistic:
            first = max(first, largest_mean)
        best = first
        for start in range(0, arms, GROUP):
            end = min(start + GROUP, arms)
            mark_open(
                score[start:end], shape_a[start:end], shape_b[start:end], mean[start:end], best, prefix[start:end]
            )
            own_best = best
            for turn in range(turns(start, end)):
                arm = place(start, turn)
                if not inside(arm, end):
                    continue
                if arm == favourite:
                    score[arm] = first
                elif score[arm] > 0.0:
                    score[arm] = draw_above(
                        shape_a[arm], shape_b[arm], mean[arm], best, prefix[arm], source, now.step, arm
                    )
                    own_best = max(own_best, score[arm])
                if optimistic:  # a loser still scores its mean, which can tie with the favourite's
                    score[arm] = max(score[arm], mean[arm])
            best = highest(own_best)

    return fill


def make_mark_open(walk: Walk) -> Callable[..., None]:
    """Return a function that scores 1 where it is open if an arm of a group exceeds `best`."""
    turns, place, inside = walk.turns, walk.place, walk.inside

    @kernel
    def mark_open(
        score: np.ndarray, shape_a: np.ndarray, shape_b: np.ndarray, mean: np.ndarray, best: float, prefix: np.ndarray
    ) -> None:
        for turn in range(turns(0, score.size)):  # from 0 on: such a loop vectorises
            arm = place(0, turn)
            if inside(arm, score.size):
                open_ = may_exceed(shape_a[arm], shape_b[arm], mean[arm], best, prefix[arm])
                score[arm] = 1.0 if open_ else NOT_ABOVE

    return mark_open


def make_write_prefixes(walk: Walk) -> Callable[..., None]:
    """Return a function that writes the first bits of every arm's uniform number, eight arms at a turn."""
    turns, place, inside = walk.turns, walk.place, walk.inside

    @kernel
    def write_prefixes(prefix: np.ndarray, step: int, source: Stream) -> None:
        eighths = (prefix.size + 7) // 8
        for turn in range(turns(0, eighths)):
            eighth = place(0, turn)
            if inside(eighth, eighths):
                eight = uniform_prefixes(source, step, eighth)
                for i in range(min(8, prefix.size - 8 * eighth)):
                    prefix[8 * eighth + i] = eight[i]

    return write_prefixes


def make_count_choices(choose: Callable[..., int]) -> Callable[..., None]:
    """Return a function that counts the choices of other replications, which differ in their luck alone."""

    @kernel
    def count_choices(
        memory: np.ndarray,
        shared: np.ndarray,
        last: np.ndarray,
        scratch: np.ndarray,
        step: int,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
        counts: np.ndarray,
        draws: int,
    ) -> None:
        for draw in range(draws):
            other = shifted(source, 1 + draw)
            counts[choose(memory, shared, last, scratch, step, parameters, table, other)] += 1

    return count_choices


def make_first_row(walk: Walk) -> Callable[..., int]:
    """Return first_row(scratch, arms, step, source): the arm with the largest score in the first row."""
    largest = make_largest(walk)

    @kernel
    def first_row(scratch: np.ndarray, arms: int, step: int, source: Stream) -> int:
        return largest(scratch[0, :arms], step, source)

    return first_row


def make_largest(walk: Walk = ALONE) -> Callable[..., int]:
    """Return largest(scores, step, source): the arm with the largest score, one of several with the same chance."""
    top, highest, only = walk.top, walk.highest, walk.only

    @kernel
    def largest(scores: np.ndarray, step: int, source: Stream) -> int:
        own_best, own_arm, ties = top(scores)
        best = highest(own_best)
        leader = only(own_arm, own_best == best, ties > 1)
        return leader if leader >= 0 else one_of_ties(scores, best, step, source)

    return largest


@kernel
def one_of_ties(scores: np.ndarray, best: float, step: int, source: Stream) -> int:
    """Return one of the arms with the score `best`."""
    ties = 0
    for arm in range(scores.size):
        if scores[arm] == best:
            ties += 1
    skip = min(int(uniform(source, TIE, step, 0) * ties), ties - 1)
    for arm in range(scores.size):
        if scores[arm] == best:
            if skip == 0:
                return arm
            skip -= 1
    return 0
