"""Thompson sampling with many arms: a tree finds the arm with the largest of all draws in O(log K) steps.

The log-odds are divided into cells. If no draw is above a cell, arm i has its draw in the cell with probability
1 - exp(-m_i), independently of the other arms, where m_i = log F_i(upper end) - log F_i(lower end) is the mass of the
arm in the cell. The tree stores the sums of these masses over groups of 8, 64, 512, ... arms. One exponential number
finds the first cell, from the top, that has a draw, and the first arm with a draw there; another one finds the next arm
of this cell, and so on. On average about 1.2 arms are found. If there are several, the cell is bisected until the
largest draw is alone. The chosen arm has the law of drawing all arms; docs/thompson-many-arms.md has the derivation.

A play changes the masses of one arm and the sums on the path to the root. Posteriors that change while an arm is idle
have masses that are large enough for a window of steps, and an arm that is found is kept only if the exponential number
is below its present mass. Arms without rewards are counted, and share a mass that is computed at every decision.

The nodes below one parent are a family of 8, stored in one row of the tree: for each of `FIELDS` the numbers of its 8
nodes. The families below family f are 8 f + 1 to 8 f + 8; those of the last level have one node per arm. The first rows
are the head of the tree. Everything but the head is a function of the state, the step and the first `SAVED` numbers of
the head. A bandit saves these, and the next decision computes the rest.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dynabandit.choosing.draw_cells import (
    BOUNDARIES,
    BOUNDARY,
    CELLS,
    EXCESS,
    EXPIRY,
    FAMILY,
    FIELDS,
    FILLED,
    HEAD_ROWS,
    NEW,
    POINTS,
    REFERENCE,
    first_leaf_of,
    is_placed,
    place,
    place_first,
    write_grid,
)
from dynabandit.choosing.draw_search import (
    Range,
    exponential,
    make_find_draws,
    make_largest_draw,
    make_log_distribution,
    mass_between,
)
from dynabandit.core.beta_cells import write_log_distribution
from dynabandit.core.compilation import kernel
from dynabandit.core.draws import not_empty
from dynabandit.core.largest_beta_draw import sub_gaussian_bound
from dynabandit.policies.base import MONOTONE, PolicyFunctions, PolicyState, Step, never_explore
from dynabandit.policies.pending_plays import pending_plays

MANY_ARMS = 1000  # with more arms, the tree is faster than pruned draws
FIRST_FILLINGS = 3  # of a tree without boundaries, which are placed by the sums of the filling before
EXCESS_PER_ARM = 4.0  # so many, and placing the boundaries again is worth its time
LONGEST_WINDOW = 22  # its logarithm to base 2
LARGEST_SHIFT = 0.25  # of the mean in a window, in standard deviations of the log-odds
UNLIKELY = 0.1  # divided by the number of arms: the probability of a draw that need not be bounded closely


def uses_draw_tree(functions: PolicyFunctions, arms: int) -> bool:
    """Whether decisions between so many arms are made with a draw tree, in simulations and by bandits."""
    known = functions.posterior is not None and functions.idle_posterior is not None
    return known and functions.explore is never_explore and arms > MANY_ARMS


def new_draw_trees(replications: int, arms: int) -> np.ndarray:
    """Return an empty tree for each replication, which its first decision fills."""
    return np.zeros((replications, *tree_shape(arms)))


def tree_shape(arms: int) -> tuple[int, int]:
    """Return the rows and columns of a tree."""
    return HEAD_ROWS + first_leaf_of(arms) + -(-arms // FAMILY), FIELDS * FAMILY


@kernel
def write_sums(tree: np.ndarray, family: int) -> None:
    """Write the node above a family: sums, and the first expiry."""
    row, above = tree[HEAD_ROWS + family], tree[HEAD_ROWS + (family - 1) // FAMILY]
    node = (family - 1) % FAMILY
    for field in range(EXPIRY):
        total = 0.0
        for i in range(field * FAMILY, field * FAMILY + FAMILY):
            total += row[i]
        above[field * FAMILY + node] = total
    first = math.inf
    for i in range(EXPIRY * FAMILY, EXPIRY * FAMILY + FAMILY):
        first = min(first, row[i])
    above[EXPIRY * FAMILY + node] = first


@kernel
def write_path(tree: np.ndarray, family: int) -> None:
    """Write all nodes above a family."""
    while family > 0:
        write_sums(tree, family)
        family = (family - 1) // FAMILY


@kernel
def clear(tree: np.ndarray) -> None:
    """Let no node expire, also those without arms."""
    for row in range(HEAD_ROWS, tree.shape[0]):
        for node in range(FAMILY):
            tree[row, EXPIRY * FAMILY + node] = math.inf


@kernel
def sum_of(tree: np.ndarray, field: int) -> float:
    """Return the sum over all arms."""
    total = 0.0
    for i in range(field * FAMILY, field * FAMILY + FAMILY):
        total += tree[HEAD_ROWS, i]
    return total


@kernel
def first_expired(tree: np.ndarray, number: int, first_leaf: int) -> int:
    """Return an arm whose masses do not hold at this step, or -1 if there is none."""
    family = 0
    while True:
        node = 0
        while node < FAMILY and not tree[HEAD_ROWS + family, EXPIRY * FAMILY + node] <= number:  # NaN never expires
            node += 1
        if node == FAMILY:
            return -1
        if family >= first_leaf:
            return (family - first_leaf) * FAMILY + node
        family = FAMILY * family + 1 + node


@kernel
def mark_all(tree: np.ndarray) -> None:
    """Let the next decision compute the whole tree, after any change of the state or of the saved numbers."""
    tree[0, FILLED] = 0.0


@kernel
def mark_arm(tree: np.ndarray, arm: int, arms: int) -> None:
    """Let the next decision compute the masses of an arm again, after a play or a reward: they expire at once."""
    family, node = first_leaf_of(arms) + arm // FAMILY, arm % FAMILY
    tree[HEAD_ROWS + family, EXPIRY * FAMILY + node] = 0.0
    while family > 0:
        node, family = (family - 1) % FAMILY, (family - 1) // FAMILY
        tree[HEAD_ROWS + family, EXPIRY * FAMILY + node] = 0.0


@kernel
def close_arm(tree: np.ndarray, arm: int, arms: int) -> None:
    """Take the masses of an arm out of a tree that is up to date: it is not chosen until `mark_arm`."""
    family, node = first_leaf_of(arms) + arm // FAMILY, arm % FAMILY
    for field in range(EXPIRY):
        tree[HEAD_ROWS + family, field * FAMILY + node] = 0.0
    write_path(tree, family)


@functools.cache
def make_choose_in_tree(functions: PolicyFunctions) -> Callable[..., int]:
    """Return choose(tree, state, step, params, scratch): the arm with the largest draw.

    A bandit saves ``tree[0, :SAVED]`` after a decision. If it is restored, or other arms can be chosen, it fills a new
    tree with these numbers.
    """
    bring_up_to_date, optimistic = make_bring_up_to_date(functions), functions.optimistic
    find_draws, largest_draw, new_shapes = (
        make_find_draws(functions),
        make_largest_draw(functions),
        make_new_shapes(functions),
    )

    @kernel
    def choose(tree: np.ndarray, state: PolicyState, step: Step, params: Any, scratch: np.ndarray) -> int:
        bring_up_to_date(tree, state, step, params)
        head, new, logs = tree[0], sum_of(tree, NEW), tree[1]
        if new > 0.0:
            a, b = new_shapes(tree, state, step, params)
            write_logs(a, b, optimistic, tree)
        rest = exponential(step.random, step.number, 0, CELLS)
        high, low, log_high, found = math.inf, math.inf, 0.0, 0
        for cell in range(CELLS):
            last = cell == BOUNDARIES
            low, log_low = (-math.inf, -math.inf) if last else (head[BOUNDARY + cell], logs[cell])
            new_mass = mass_between(log_high, log_low) if new > 0.0 else 0.0
            mass = sum_of(tree, cell) + (new * new_mass if new > 0.0 else 0.0)
            if rest < mass:
                found = find_draws(tree, state, step, params, Range(cell, high, low, new_mass), rest, scratch)
                if found > 0:
                    break
                rest = exponential(step.random, step.number, cell + 1, CELLS)
            else:
                rest -= mass
            high, log_high = low, log_low
        if found == 1:
            return int(scratch[0, 0])
        return largest_draw(state, step, params, scratch, found, low, high)

    return choose


@functools.cache
def make_bring_up_to_date(functions: PolicyFunctions) -> Callable[..., None]:
    """Return bring_up_to_date(tree, state, step, params), which computes what has changed or expired.

    All arms are computed if the tree is not filled. Boundaries are placed if there are none, and placed again if
    decisions have visited too many arms.
    """
    write_arm, write_new, place_by_sums = (
        make_write_arm(functions),
        make_write_new(functions),
        make_place_by_sums(functions),
    )

    @kernel
    def bring_up_to_date(tree: np.ndarray, state: PolicyState, step: Step, params: Any) -> None:
        head, arms = tree[0], step.arms
        first_leaf = first_leaf_of(arms)
        fillings = 0
        if head[FILLED] == 0.0:
            clear(tree)
            write_new(tree, state, params)
            fillings = 1
            if not is_placed(head):
                place_first(head)
                fillings = FIRST_FILLINGS
            write_grid(head)
        while True:
            arm = 0 if fillings > 0 else first_expired(tree, step.number, first_leaf)
            if arm < 0:  # the tree is a function of the state and the saved numbers: so are boundaries placed now
                if not head[EXCESS] > EXCESS_PER_ARM * (arms - sum_of(tree, NEW) + FAMILY * FAMILY):
                    break
                place_by_sums(tree, state, step, params)
                fillings, arm = 1, 0
            last = arms if fillings > 0 else arm + 1
            while arm < last:
                write_arm(tree, state, arm, step, params)
                arm += 1
            if fillings == 0:
                write_path(tree, first_leaf + (arm - 1) // FAMILY)
                continue
            for family in range(first_leaf + (arms - 1) // FAMILY, 0, -1):
                write_sums(tree, family)
            fillings -= 1
            if fillings > 0:
                place_by_sums(tree, state, step, params)
        head[FILLED] = 1.0

    return bring_up_to_date


@functools.cache
def make_write_new(functions: PolicyFunctions) -> Callable[..., None]:
    """Return write_new(tree, state, params), which writes the column of a new arm into the head."""
    start = functions.start

    @kernel
    def write_new(tree: np.ndarray, state: PolicyState, params: Any) -> None:
        slots, shared = state.memory.shape[0], tree[1, : state.shared.size]
        for i in range(shared.size):
            shared[i] = state.shared[i]
        column = tree[2:3, :slots].T
        start(PolicyState(column, shared, state.last_played, state.pending, state.models), 0, params)

    return write_new


@functools.cache
def make_new_shapes(functions: PolicyFunctions) -> Callable[..., tuple[float, float]]:
    """Return new_shapes(tree, state, step, params): the posterior of every new arm."""
    posterior = functions.posterior
    assert posterior is not None

    @kernel
    def new_shapes(tree: np.ndarray, state: PolicyState, step: Step, params: Any) -> tuple[float, float]:
        slots = state.memory.shape[0]
        column = tree[2:3, :slots].T
        new = PolicyState(column, state.shared, state.last_played, None, state.models)  # no play of it is pending
        return not_empty(posterior(new, 0, step, params))

    return new_shapes


@functools.cache
def make_write_arm(functions: PolicyFunctions) -> Callable[..., None]:
    """Return write_arm(tree, state, arm, step, params), which writes the node of an arm for the decision of `step`."""
    bound, optimistic = make_bound(functions), functions.optimistic

    @kernel
    def write_arm(tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> None:
        row, node = tree[HEAD_ROWS + first_leaf_of(step.arms) + arm // FAMILY], arm % FAMILY
        if is_new(tree[2], state, arm):
            for cell in range(CELLS):
                row[cell * FAMILY + node] = 0.0
            row[NEW * FAMILY + node] = 1.0
            row[EXPIRY * FAMILY + node] = math.inf
            return
        a, b, expiry = bound(tree, state, arm, step, params)
        row[NEW * FAMILY + node] = 0.0
        row[EXPIRY * FAMILY + node] = expiry
        logs = tree[1]
        write_logs(a, b, optimistic, tree)
        high = 0.0
        for cell in range(CELLS):
            low = logs[cell] if cell < BOUNDARIES else -math.inf
            row[cell * FAMILY + node] = mass_between(high, low)
            high = low

    return write_arm


@kernel
def write_logs(a: float, b: float, optimistic: bool, tree: np.ndarray) -> None:
    """Write log F of a score at all boundaries into the second row of the head."""
    head, logs = tree[0], tree[1]
    write_log_distribution(a, b, head[POINTS:], logs[BOUNDARIES:], logs[:BOUNDARIES])
    if optimistic:
        mean = math.log(a / b)
        for i in range(BOUNDARIES):
            if head[BOUNDARY + i] < mean:
                logs[i] = -math.inf


@kernel
def is_new(column: np.ndarray, state: PolicyState, arm: int) -> bool:
    """Whether an arm has the state that `start` wrote, and no pending play."""
    same = pending_plays(state, arm) == 0
    for slot in range(state.memory.shape[0]):
        same = same and state.memory[slot, arm] == column[slot]
    return same


@functools.cache
def make_bound(functions: PolicyFunctions) -> Callable[..., tuple[float, float, float]]:
    """Return bound(tree, state, arm, step, params): shapes whose masses are large enough, and the step they expire.

    The masses of Beta(a, b) rise with a and fall with b. If both shapes change in one direction, the larger a and the
    smaller b of the first and the last step bound all masses of a window of steps. Windows have 2^j steps, counted from
    the number of the arm, so that few of them end at a time. The longest one is taken that ends are close enough, or in
    which a draw among the largest is unlikely. It is the same at each of its steps.
    """
    posterior = functions.posterior
    assert posterior is not None

    @kernel
    def bound(tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
        a, b = not_empty(posterior(state, arm, step, params))
        return a, b, math.inf

    @kernel
    def bound_in_window(
        tree: np.ndarray, state: PolicyState, arm: int, step: Step, params: Any
    ) -> tuple[float, float, float]:
        top = 1.0 / (1.0 + math.exp(min(-tree[0, BOUNDARY + REFERENCE], 700.0)))
        since = state.last_played[arm] + 1
        a, b, end = 0.0, 0.0, 0
        for level in range(LONGEST_WINDOW, -1, -1):
            length = 1 << level
            end = (step.number + arm) // length * length + length - arm
            first = Step(max(end - length, since), step.arms, 0.0, step.features, step.table, step.random)
            last = Step(end - 1, step.arms, 0.0, step.features, step.table, step.random)
            a1, b1 = not_empty(posterior(state, arm, first, params))
            a2, b2 = not_empty(posterior(state, arm, last, params))
            a, b = max(a1, a2), min(b1, b2)
            shift = a / b * max(b1 / a1, b2 / a2) - 1.0
            if shift * shift <= LARGEST_SHIFT * LARGEST_SHIFT * (1.0 / a + 1.0 / b):
                break
            if sub_gaussian_bound(a, b, a / (a + b), top) * step.arms <= UNLIKELY:
                break
        return a, b, float(end)

    return bound_in_window if functions.idle_posterior == MONOTONE else bound


@functools.cache
def make_place_by_sums(functions: PolicyFunctions) -> Callable[..., None]:
    """Return place_by_sums(tree, state, step, params), which places the boundaries by the masses of all arms."""
    new_shapes, log_of = make_new_shapes(functions), make_log_distribution(functions.optimistic)

    @kernel
    def place_by_sums(tree: np.ndarray, state: PolicyState, step: Step, params: Any) -> None:
        hazard, new, total = tree[1], sum_of(tree, NEW), 0.0
        a, b = new_shapes(tree, state, step, params)
        for i in range(BOUNDARIES):
            total += sum_of(tree, i)
            hazard[i] = total - new * log_of(a, b, tree[0, BOUNDARY + i]) if new > 0.0 else total
        place(tree[0], hazard, hazard[BOUNDARIES:])

    return place_by_sums
