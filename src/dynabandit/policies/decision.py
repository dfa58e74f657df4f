"""From scores to a choice: the one place where an arm is picked, for every policy and every backend."""

import math
from collections.abc import Callable

import numpy as np

from dynabandit.kernels.compilation import kernel
from dynabandit.kernels.streams import EXPLORED_ARM, TIE, Stream, uniform
from dynabandit.policies.base import Kernels, Now

__all__ = ["make_choose", "make_count_choices"]


def make_choose(kernels: Kernels) -> Callable[..., int]:
    """Return choose(memory, shared, last, scores, step, parameters, table, source), the next arm.

    `last` holds the step of each arm's latest play, `scores` is scratch and holds the scores afterwards.
    """
    context, score, explore = kernels.context, kernels.score, kernels.explore

    @kernel
    def choose(
        memory: np.ndarray,
        shared: np.ndarray,
        last: np.ndarray,
        scores: np.ndarray,
        step: int,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
    ) -> int:
        arms = last.size
        now = Now(step, arms, context(shared, step, parameters))
        for arm in range(arms):
            scores[arm] = score(memory, arm, step - 1 - last[arm], now, parameters, table, source)
        leader = largest(scores, step, source)
        if explore(memory, leader, step - 1 - last[leader], now, parameters, source):
            return int(uniform(source, EXPLORED_ARM, step, 0) * arms)
        return leader

    return choose


def make_count_choices(choose: Callable[..., int]) -> Callable[..., None]:
    """Return a function that counts the choices of other replications, which differ in their luck alone."""

    @kernel
    def count_choices(
        memory: np.ndarray,
        shared: np.ndarray,
        last: np.ndarray,
        scores: np.ndarray,
        step: int,
        parameters: np.ndarray,
        table: np.ndarray,
        source: Stream,
        counts: np.ndarray,
        draws: int,
    ) -> None:
        for draw in range(draws):
            other = Stream(source.seed_low, source.seed_high, source.replication + 1 + draw)
            counts[choose(memory, shared, last, scores, step, parameters, table, other)] += 1

    return count_choices


@kernel
def largest(scores: np.ndarray, step: int, source: Stream) -> int:
    """Return the arm with the largest score; one of several at random, each with the same chance."""
    best = -math.inf
    leader = 0
    ties = 0
    for arm in range(scores.size):
        if scores[arm] > best:
            best = scores[arm]
            leader = arm
            ties = 1
        elif scores[arm] == best:
            ties += 1
    if ties > 1:
        skip = int(uniform(source, TIE, step, 0) * ties)
        for arm in range(leader, scores.size):
            if scores[arm] == best:
                if skip == 0:
                    return arm
                skip -= 1
    return leader
