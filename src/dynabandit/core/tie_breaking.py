"""The arm with the largest score; ties are broken uniformly at random."""

import functools
from collections.abc import Callable

import numpy as np

from dynabandit.core.argmax import MANY, maximum, occurrences
from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.lanes import SINGLE_LANE, LaneGroup
from dynabandit.core.streams import TIE, Stream, pick


@functools.cache  # so that all policies share its compiled code
def make_argmax(lanes: LaneGroup = SINGLE_LANE) -> Callable[[np.ndarray, int, Stream], int]:
    """Return argmax(scores, number, random): the arm with the largest score; ties are broken uniformly at random."""
    top, highest, unique, single = lanes.top, lanes.highest, lanes.unique, lanes is SINGLE_LANE
    break_tie = make_break_tie(lanes)

    @inlined_kernel
    def argmax(scores: np.ndarray, number: int, random: Stream) -> int:
        if single and scores.size >= MANY:  # ties are frequent: a branch for them would often be mispredicted
            return break_tie(scores, maximum(scores), number, random)
        own_best, own_arm, ties = top(scores)
        best = highest(own_best)
        leader = unique(own_arm, own_best == best, ties > 1)
        return leader if leader >= 0 else break_tie(scores, best, number, random)

    return argmax


@functools.cache  # so that all policies share its compiled code
def make_break_tie(lanes: LaneGroup = SINGLE_LANE) -> Callable[[np.ndarray, float, int, Stream], int]:
    """Return break_tie(scores, best, number, random): one of the arms with the score `best`."""
    if lanes is SINGLE_LANE:
        return break_tie
    rounds, arm_at, exists, count, nth = lanes.rounds, lanes.arm_at, lanes.exists, lanes.count, lanes.nth

    @kernel
    def break_tie_in_group(scores: np.ndarray, best: float, number: int, random: Stream) -> int:
        ties = 0
        for turn in range(rounds(scores.size)):
            arm = arm_at(0, turn)
            ties += count(exists(arm, scores.size) and scores[arm] == best)
        skip = pick(random, TIE, number, 0, ties)
        for turn in range(rounds(scores.size)):
            arm = arm_at(0, turn)
            holds = exists(arm, scores.size) and scores[arm] == best
            here = count(holds)
            if skip < here:
                return int(nth(arm, holds, skip))
            skip -= here
        return 0

    return break_tie_in_group


@kernel
def break_tie(scores: np.ndarray, best: float, number: int, random: Stream) -> int:
    """Return one of the arms with the score `best`."""
    first, last, ties = occurrences(scores, best)
    skip = pick(random, TIE, number, 0, ties)
    if ties <= 2:
        return last if skip > 0 else first
    arm = first
    while skip > 0:
        arm += 1
        if scores[arm] == best:
            skip -= 1
    return arm
