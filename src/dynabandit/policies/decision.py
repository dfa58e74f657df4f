"""From scores to a choice: the one place where an arm is picked, for every policy and every backend."""

from collections.abc import Callable

import numpy as np

from dynabandit.kernels.compilation import kernel
from dynabandit.kernels.contest import GROUP, LOSES, challenge, contested, prefixes
from dynabandit.kernels.draws import beta, not_empty
from dynabandit.kernels.ranking import top
from dynabandit.kernels.streams import EXPLORED_ARM, SCORE, TIE, Stream, uniform
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tournament import winner

__all__ = ["SCRATCH_ROWS", "largest", "make_choose", "make_count_choices"]

SCRATCH_ROWS = 5
FEW = 8  # up to so many arms, drawing them all is cheaper than a contest


def make_choose(kernels: Kernels, *, contest: bool = True, tree: bool = False) -> Callable[..., int]:
    """Return choose(memory, shared, last, scratch, step, parameters, table, source), the next arm.

    `last` holds the step of each arm's latest play; `scratch` is an array (SCRATCH_ROWS, arms) whose first row
    holds the scores afterwards. Without `contest`, a Thompson policy draws every arm: slow, for tests. With `tree`,
    for scores that stand still, `scratch` is a tree of `policies.tournament` with the scores as they are now.
    """
    context, explore = kernels.context, kernels.explore
    lead = winner if tree else first_row
    if tree and kernels.posterior is not None:
        raise ValueError("a policy with a posterior draws new scores at every step: its kernels cannot be still")
    if tree:
        fill = keep_scores
    elif kernels.posterior is None:
        fill = make_indices(kernels)
    else:
        fill = make_contest(kernels) if contest else make_draws(kernels)

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
        leader = lead(scratch, step, source)
        if explore(memory, leader, step - 1 - last[leader], now, parameters, source):
            return min(int(uniform(source, EXPLORED_ARM, step, 0) * last.size), last.size - 1)
        return leader

    return choose


def make_indices(kernels: Kernels) -> Callable[..., None]:
    """Return fill(memory, last, scratch, now, parameters, table, source) for a policy with a `score`."""
    score = kernels.score

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
        for arm in range(last.size):
            scratch[0, arm] = score(memory, arm, now.step - 1 - last[arm], now, parameters, table, source)

    return fill


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


def make_draws(kernels: Kernels) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`: a draw for every arm."""
    posterior, optimistic = kernels.posterior, kernels.optimistic
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
        for arm in range(last.size):
            a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
            draw = beta(a, b, source, SCORE, now.step, arm)
            scratch[0, arm] = max(draw, a / (a + b)) if optimistic else draw

    return fill


def make_contest(kernels: Kernels) -> Callable[..., None]:
    """Return fill for a policy with a `posterior`, where many arms that cannot have the largest draw get none.

    The arm with the largest posterior mean is drawn first; see `dynabandit.kernels.contest` for the rest.
    """
    posterior, optimistic, draw_all = kernels.posterior, kernels.optimistic, make_draws(kernels)
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
        if arms <= FEW:
            draw_all(memory, last, scratch, now, parameters, table, source)
            return
        for arm in range(arms):
            a, b = not_empty(posterior(memory, arm, now.step - 1 - last[arm], now, parameters))
            shape_a[arm] = a
            shape_b[arm] = b
            mean[arm] = a / (a + b)
        favourite = 0
        for arm in range(arms):
            if mean[arm] > mean[favourite]:
                favourite = arm
        write_prefixes(prefix, now.step, source)
        first = beta(shape_a[favourite], shape_b[favourite], source, SCORE, now.step, favourite)
        if optimistic:
            first = max(first, mean[favourite])
        best = first
        for start in range(0, arms, GROUP):
            end = min(start + GROUP, arms)
            mark_open(
                score[start:end], shape_a[start:end], shape_b[start:end], mean[start:end], best, prefix[start:end]
            )
            highest = best
            for arm in range(start, end):
                if score[arm] > 0.0 and arm != favourite:
                    score[arm] = challenge(
                        shape_a[arm], shape_b[arm], mean[arm], best, prefix[arm], source, SCORE, now.step, arm
                    )
                    highest = max(highest, score[arm])
                if optimistic:  # a loser still scores its mean, which can tie with the favourite's
                    score[arm] = max(score[arm], mean[arm])
            best = highest
        score[favourite] = first

    return fill


@kernel
def mark_open(
    score: np.ndarray, shape_a: np.ndarray, shape_b: np.ndarray, mean: np.ndarray, best: float, prefix: np.ndarray
) -> None:
    """Score 1 where it is open if an arm exceeds `best`; a loop from 0 on, which is what the compiler vectorises."""
    for arm in range(score.size):
        open_ = contested(shape_a[arm], shape_b[arm], mean[arm], best, prefix[arm])
        score[arm] = 1.0 if open_ else LOSES


@kernel
def write_prefixes(prefix: np.ndarray, step: int, source: Stream) -> None:
    """Write the first bits of every arm's uniform number."""
    for eighth in range((prefix.size + 7) // 8):
        eight = prefixes(source, SCORE, step, eighth)
        for i in range(min(8, prefix.size - 8 * eighth)):
            prefix[8 * eighth + i] = eight[i]


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
            other = Stream(source.seed_low, source.seed_high, source.replication + 1 + draw)
            counts[choose(memory, shared, last, scratch, step, parameters, table, other)] += 1

    return count_choices


@kernel
def first_row(scratch: np.ndarray, step: int, source: Stream) -> int:
    """Return the arm with the largest score in the first row of `scratch`."""
    return largest(scratch[0], step, source)


@kernel
def largest(scores: np.ndarray, step: int, source: Stream) -> int:
    """Return the arm with the largest score; one of several at random, each with the same chance."""
    best, leader, ties = top(scores)
    if ties > 1:
        skip = min(int(uniform(source, TIE, step, 0) * ties), ties - 1)
        for arm in range(leader, scores.size):
            if scores[arm] == best:
                if skip == 0:
                    return arm
                skip -= 1
    return leader
