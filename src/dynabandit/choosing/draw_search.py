"""The search for the largest draw in a cell of a draw tree; `choosing.draw_tree` has the method."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.choosing.draw_cells import EXCESS, FAMILY, HEAD_ROWS, NEW, first_leaf_of
from dynabandit.core.beta_cells import log_distribution
from dynabandit.core.compilation import kernel
from dynabandit.core.draws import not_empty
from dynabandit.core.streams import DRAW_TREE, TIE, Stream, pick, uniform_pair, words
from dynabandit.policies.base import MONOTONE, PolicyFunctions, PolicyState, Step

USUAL_VISITS = 3.0  # more arms in one decision count as excess


class Range(NamedTuple):
    """A cell of the log-odds, and the mass of each new arm in it."""

    cell: int
    high: float
    low: float
    new_mass: float


@kernel
def mass_between(log_high: float, log_low: float) -> float:
    """Return the mass of a cell from log F at its ends; infinite if no draw can be below it."""
    return math.inf if log_high == -math.inf else max(log_high - log_low, 0.0)


@kernel
def exponential(random: Stream, number: int, arm: int, attempt: int) -> float:
    """Return an exponential number with mean 1."""
    u, _ = uniform_pair(words(random, DRAW_TREE, number, arm, attempt))
    return -math.log(u)


@functools.cache
def make_log_distribution(optimistic: bool) -> Callable[[float, float, float], float]:
    """Return log_of(a, b, t): log F(t) of the score of an arm; an optimistic score is never below the mean."""

    @kernel
    def log_of(a: float, b: float, t: float) -> float:
        if optimistic and t < math.log(a / b):
            return -math.inf
        return log_distribution(a, b, t)

    return log_of


@functools.cache
def make_find_draws(functions: PolicyFunctions) -> Callable[..., int]:
    """Return find_draws(tree, state, step, params, within, rest, scratch), which finds the arms with a draw in a cell.

    It returns their number and writes, for each of them, the arm and by how much log F of its draw is below log F of
    the upper end. `rest` is an exponential number below the mass of all arms in the cell.
    """
    posterior, log_of = functions.posterior, make_log_distribution(functions.optimistic)
    changes = functions.idle_posterior == MONOTONE
    assert posterior is not None

    @kernel
    def find_draws(
        tree: np.ndarray, state: PolicyState, step: Step, params: Any, within: Range, rest: float, scratch: np.ndarray
    ) -> int:
        first_leaf, cell, new_mass = first_leaf_of(step.arms), within.cell, within.new_mass
        family = node = found = visits = 0
        while True:
            if node == FAMILY:  # go up, to the node on the right of the parent
                if family == 0:
                    break
                node = (family - 1) % FAMILY + 1
                family = (family - 1) // FAMILY
                continue
            row = tree[HEAD_ROWS + family]
            mass, new = row[cell * FAMILY + node], row[NEW * FAMILY + node]
            if new > 0.0:
                mass += new * new_mass
            if rest >= mass:
                rest -= mass
                node += 1
            elif family < first_leaf:  # go down
                family = FAMILY * family + 1 + node
                node = 0
            else:
                arm = (family - first_leaf) * FAMILY + node
                visits += 1
                if changes and new == 0.0:
                    a, b = not_empty(posterior(state, arm, step, params))
                    mass = mass_between(log_of(a, b, within.high), log_of(a, b, within.low))
                if rest < mass:
                    scratch[0, found] = arm
                    scratch[1, found] = rest
                    found += 1
                rest = exponential(step.random, step.number, arm, cell)
                node += 1
        tree[0, EXCESS] = max(tree[0, EXCESS] + visits - USUAL_VISITS, 0.0)
        return found

    return find_draws


@functools.cache
def make_largest_draw(functions: PolicyFunctions) -> Callable[..., int]:
    """Return largest_draw(state, step, params, scratch, found, low, high): the arm with the largest of some draws.

    The interval is bisected until only one draw is in its upper part. What `find_draws` wrote says in which part the
    draw of an arm is. Optimistic scores can be equal; one of these arms is chosen at random.
    """
    posterior, log_of = functions.posterior, make_log_distribution(functions.optimistic)
    assert posterior is not None

    @kernel
    def largest_draw(
        state: PolicyState, step: Step, params: Any, scratch: np.ndarray, found: int, low: float, high: float
    ) -> int:
        arm, below, log_high, log_middle = scratch[0], scratch[1], scratch[2], scratch[3]
        for i in range(found):
            a, b = not_empty(posterior(state, int(arm[i]), step, params))
            log_high[i] = log_of(a, b, high)
        stride = 1.0
        while found > 1:
            middle = low + stride if high == math.inf else high - stride if low == -math.inf else 0.5 * (low + high)
            stride *= 2.0
            if not low < middle < high:
                break
            above = 0
            for i in range(found):
                a, b = not_empty(posterior(state, int(arm[i]), step, params))
                log_middle[i] = log_of(a, b, middle)
                if below[i] < log_high[i] - log_middle[i]:
                    arm[above], below[above], log_high[above] = arm[i], below[i], log_high[i]
                    above += 1
            if above > 0:
                found, low = above, middle
            else:
                high = middle
                for i in range(found):
                    below[i] -= log_high[i] - log_middle[i]
                    log_high[i] = log_middle[i]
        return int(arm[pick(step.random, TIE, step.number, 0, found) if found > 1 else 0])

    return largest_draw
