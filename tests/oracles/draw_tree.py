"""The choice of a draw tree without a tree: the masses of all arms are looked at one after the other."""

import itertools
import math
from collections.abc import Callable, Sequence

from scipy import special

from dynabandit.core.streams import DRAW_TREE, TIE, Stream, pick, uniform_pair, words

CELLS = 32
Shapes = tuple[float, float]


def log_distribution(shapes: Shapes, t: float, optimistic: bool) -> float:
    """Return log F(t) of the log-odds of a draw; an optimistic one is at least the mean."""
    a, b = shapes
    if optimistic and t < math.log(a / b):
        return -math.inf
    if math.isinf(t):
        return min(t, 0.0)
    above = special.betainc(b, a, special.expit(-t))
    return math.log1p(-above) if above < 0.5 else math.log(max(special.betainc(a, b, special.expit(t)), 1e-300))


def mass(shapes: Shapes, high: float, low: float, optimistic: bool) -> float:
    """Return by how much log F rises from `low` to `high`."""
    above = log_distribution(shapes, high, optimistic)
    return math.inf if above == -math.inf else above - log_distribution(shapes, low, optimistic)


def draw_below(shapes: Shapes, high: float, below: float, optimistic: bool) -> float:
    """Return the log-odds at which log F is `below` less than at `high`."""
    a, b = shapes
    above = -math.expm1(log_distribution(shapes, high, optimistic) - below)
    y = special.betaincinv(b, a, above)
    t = float(special.logit(1.0 - y))
    return max(t, math.log(a / b)) if optimistic else t


def choose(
    boundaries: Sequence[float],
    shapes: Sequence[Shapes],
    bounds: Sequence[Shapes],
    optimistic: bool,
    random: Stream,
    number: int,
) -> tuple[int, list[int], int]:
    """Return the arm, how many arms each search of a cell has visited, and how many draws the cell has.

    `bounds` has shapes whose masses are at least those of `shapes`.
    """

    def exponential(arm: int, attempt: int) -> float:
        return -math.log(uniform_pair(words(random, DRAW_TREE, number, arm, attempt))[0])

    rest, visits = exponential(0, CELLS), []
    ends = [math.inf, *boundaries, -math.inf]
    for cell, (high, low) in enumerate(itertools.pairwise(ends)):
        found, visited = [], 0
        for arm, (exact, bound) in enumerate(zip(shapes, bounds, strict=True)):
            most = mass(bound, high, low, optimistic)
            if rest >= most:
                rest -= most
                continue
            visited += 1
            if rest < mass(exact, high, low, optimistic):
                found.append((arm, draw_below(exact, high, rest, optimistic)))
            rest = exponential(arm, cell)
        if visited:
            visits.append(visited)
            rest = exponential(cell + 1, CELLS)
        if found:
            largest = max(draw for _, draw in found)
            best = [arm for arm, draw in found if draw > largest - 1e-7 * max(abs(largest), 1.0)]
            return best[pick(random, TIE, number, 0, len(best)) if len(best) > 1 else 0], visits, len(found)
    raise AssertionError("every arm has a draw above minus infinity")


def largest_shapes(
    posterior: Callable[[int], Shapes], number: int, arm: int, since: int, top: float, arms: int
) -> tuple[float, float, float]:
    """Return shapes whose masses are large enough in a window of steps, and the step after the window.

    `posterior` returns the shapes of an arm that is not played at a step. Of the windows of 2^22, ..., 2, 1 steps, the
    first one is taken in which the mean moves by at most a quarter of a standard deviation of the log-odds, or in which
    a draw above `top` has a probability of at most 0.1 for all arms together.
    """
    for length in (2**level for level in reversed(range(23))):
        start = (number + arm) // length * length - arm
        ends = [posterior(max(start, since)), posterior(start + length - 1)]
        a, b = max(a for a, _ in ends), min(b for _, b in ends)
        smallest_odds = min(one / other for one, other in ends)
        is_close = abs(a / b / smallest_odds - 1.0) <= 0.25 * math.sqrt(1.0 / a + 1.0 / b)
        mean = a / (a + b)
        chance = math.exp(-2.0 * (a + b + 1.0) * (top - mean) ** 2) if top > mean else 1.0
        if is_close or chance * arms <= 0.1:
            return a, b, start + length
    raise AssertionError("a window of one step has equal ends")
