"""The probability of each of several independent random numbers that it is the largest, by quadrature.

The numbers have laws of one family, with densities f and distribution functions F, and

    P(i is the largest) = integral of f_i(t) * product of F_j(t) over j != i.

All integrals are computed together, from the largest values of t downwards, on panels with Gauss-Legendre nodes. On
each panel the densities are replaced by the polynomials through their values at the nodes. Their integrals are the
probabilities 1 - F_j of values above t, so that no distribution function is needed. The width of a panel follows from
the narrowest density on it. The integration ends where the product of all F_j is negligible, which is the probability
of what is left, or at an atom: in optimistic Thompson sampling the largest of the means, with scale 0 the value itself.

Beta laws are integrated over log-odds and gamma laws over logarithms. There the densities are log-concave, also for
shapes below 1, and the mode is at the mean. Normal laws are Student laws with infinitely many degrees of freedom.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import overload

from dynabandit.core.compilation import compiled_once, kernel
from dynabandit.core.special_functions import stirling, stirling_error

BETA, GAMMA, STUDENT = range(3)  # families of laws
NODES = 16
NEGLIGIBLE = 1e-10  # probability
NEGLIGIBLE_DROP = -22.0  # of the logarithm of a density below its maximum
STUDENT_TAIL = 41.4  # -2 log(1e-9)
NORMAL_FREEDOM = 1e7  # a Student law with more degrees of freedom is normal, up to 1e-7
WIDTH = 4.0  # of a panel, in standard deviations of a normal density
FLATTEST = 3.0  # the width of a panel near a point where densities have a singularity at a distance of pi
LINEAR_FROM = 40.0  # log-odds from which on the logarithm of a Beta density is linear
LINEAR_DROP = 8.0  # of the logarithm of a density on a panel where it is linear
CANCELLED_FROM = 1e9  # a logarithm of a density that is the difference of numbers above this has lost digits
LEAST_LOG = -745.0  # the logarithm of the smallest positive double: smaller gamma draws are 0 and tie
NARROW = 1e-5  # half of the width of a density relative to its mode, from which on rounding counts
MOST_PANELS = 100_000
LARGEST_ERROR = 1e-6  # of the sum of all probabilities


class Rule(NamedTuple):
    """Gauss-Legendre quadrature on [0, 1], measured from the upper end of a panel."""

    nodes: np.ndarray
    weights: np.ndarray
    cumulative: np.ndarray  # (node, value): the weights of the integral from the upper end to a node


def gauss_legendre(count: int = NODES) -> Rule:
    """Return the rule with so many nodes.

    Examples
    --------
    >>> rule = gauss_legendre(4)
    >>> bool(np.allclose(rule.cumulative @ rule.nodes**3, rule.nodes**4 / 4))
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    values = np.polynomial.legendre.legvander(nodes, count)  # P_m at each node, m = 0, ..., count
    degree = np.arange(count)
    integrals = np.empty((count, count))  # of P_m from -1 to each node
    integrals[:, 0] = nodes + 1.0
    integrals[:, 1:] = (values[:, 2:] - values[:, : count - 1]) / (2.0 * degree[1:] + 1.0)
    coefficients = (degree[:, np.newaxis] + 0.5) * values[:, :count].T * weights
    return Rule(0.5 * (nodes + 1.0), 0.5 * weights, 0.5 * integrals @ coefficients)


class Work(NamedTuple):
    """What is computed for every arm on a panel."""

    values: np.ndarray  # (arms, nodes): the densities
    below: np.ndarray  # (arms, nodes): the distribution functions
    above: np.ndarray  # (arms,): the probability of a value above the panels so far


class Density(NamedTuple):
    """The logarithm of a density is `peak` at its mode, and negligible above `top`."""

    mode: float
    peak: float
    top: float


@kernel
def stirling_rest(x: float) -> float:
    """Return log Gamma(x) minus Stirling's formula, for x > 0."""
    if x >= 1.0:
        return stirling_error(x)
    return stirling(x + 1.0) + stirling_error(x + 1.0) - math.log(x) - stirling(x)


@kernel
def beta_drop(a: float, b: float, d: float) -> float:
    """Return the logarithm of a Beta density of log-odds, at distance d from its mode, relative to the mode."""
    n = a + b
    if n > CANCELLED_FROM:
        small, large, above = (a, b, d) if a < b else (b, a, -d)
        if above < 700.0 and small * math.exp(above) < large:
            return small * above - n * math.log1p(small / n * math.expm1(above))
    if d < 0.0:
        inner = math.log1p(a / n * math.expm1(d)) if d > -1.0 else math.log(b / n + a / n * math.exp(d))
        return a * d - n * inner
    inner = math.log1p(b / n * math.expm1(-d)) if d < 1.0 else math.log(a / n + b / n * math.exp(-d))
    return -b * d - n * inner


@kernel
def drop(family: int, law: np.ndarray, d: float) -> float:
    """Return the logarithm of a density at distance d from its mode, relative to the mode."""
    if family == BETA:
        return beta_drop(law[0], law[1], d)
    if family == GAMMA:
        return law[0] * (d - math.expm1(d)) if d < 700.0 else -math.inf
    z, freedom = d / law[1], law[2]
    if freedom > NORMAL_FREEDOM:
        return -0.5 * z * z
    return -0.5 * (freedom + 1.0) * math.log1p(z * z / freedom)


@kernel
def density_of(family: int, law: np.ndarray) -> Density:
    """Return where a density has its mode, how large it is there and from where on it is negligible."""
    if family == STUDENT:
        center, scale, freedom = law[0], law[1], law[2]
        if freedom > NORMAL_FREEDOM:
            return Density(center, -math.log(scale) - 0.5 * math.log(2.0 * math.pi), center + 6.5 * scale)
        peak = math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom) - 0.5 * math.log(math.pi * freedom)
        far = math.sqrt(freedom * math.expm1(STUDENT_TAIL / freedom))
        return Density(center, peak - math.log(scale), center + far * scale)
    a, b = law[0], law[1]
    mode = math.log(a) - math.log(b)
    if family == GAMMA:
        precision = a
        peak = 0.5 * math.log(a / (2.0 * math.pi)) - stirling_rest(a)
    else:
        precision = a * (b / (a + b))
        rest = stirling_rest(a) + stirling_rest(b) - stirling_rest(a + b)
        peak = 0.5 * math.log(precision / (2.0 * math.pi)) - rest
    # Newton's method on a concave function: after the first iteration each one is beyond the solution
    d = 6.0 / math.sqrt(precision)
    if family == GAMMA:  # far beyond the solution, iterations are about 1 apart: too many if a shape is tiny
        d = min(d, 5.0 if a > 0.01 else math.log1p(-NEGLIGIBLE_DROP / a))
    elif a < 0.1 and b > 1e5:  # nearly the same law; panels too far above the mode have a width of 1 / sqrt(b)
        d = min(d, math.log1p(-NEGLIGIBLE_DROP / a))
    for _ in range(6):
        slope = a * math.expm1(d) if family == GAMMA else beta_slope(a, b, d)
        d = max(d + (drop(family, law, d) - NEGLIGIBLE_DROP) / slope, 0.0)
    return Density(mode, peak, mode + d)


@kernel
def beta_slope(a: float, b: float, d: float) -> float:
    """Return how fast the logarithm of a Beta density of log-odds falls at distance d > 0 above its mode."""
    e = math.exp(-d)
    return a * b / (a + b) * (1.0 - e) / ((a + b * e) / (a + b))


@kernel
def panel_width(family: int, law: np.ndarray, mode: float, t: float, width: float) -> float:
    """Return the width of a panel below t on which a density is close to a polynomial."""
    if family == STUDENT:
        z, freedom = (t - mode) / law[1], law[2]
        if freedom > NORMAL_FREEDOM:
            return width * law[1]
        spread = math.sqrt(1.0 + z * z / freedom)
        return law[1] * spread * min(width, 0.6 * math.sqrt(freedom))
    a = law[0]
    place = t if family == BETA else t - mode  # log-odds, or the distance from the mode
    if place < -LINEAR_FROM:
        return LINEAR_DROP / a
    if place > LINEAR_FROM + 1.0 and family == BETA:
        return max(min(LINEAR_DROP / law[1], place - LINEAR_FROM), 1.0)
    size = a + law[1] if family == BETA else a
    found = min(FLATTEST, width / math.sqrt(size * curvature(family, place)))
    return min(found, width / math.sqrt(size * curvature(family, place - 0.5 * found)))


@kernel
def curvature(family: int, place: float) -> float:
    """Return the curvature of the logarithm of a Beta or gamma density, divided by the size of the law."""
    if family == GAMMA:
        return math.exp(place)
    e = math.exp(-abs(place))
    return e / ((1.0 + e) * (1.0 + e))


@kernel
def atom_of(family: int, law: np.ndarray, optimistic: bool) -> float:
    """Return the value below which there are no draws, in the unit of the draws, or -inf if there is none."""
    if family == STUDENT:
        return law[0] if optimistic or law[1] == 0.0 else -math.inf
    if not optimistic:
        return -math.inf
    return law[2] if family == GAMMA else law[0] / law[1]


@kernel
def probabilities_of_largest(
    family: int, laws: np.ndarray, optimistic: bool, rule: Rule, probabilities: np.ndarray
) -> None:
    """Write the probability of each draw that it is the largest; equal draws share theirs.

    Parameters
    ----------
    family
        BETA, GAMMA or STUDENT.
    laws
        (arms, 3): the two shapes of a Beta law; the shape, the rate and the mean of a gamma law; or the center, the
        scale and the degrees of freedom of a Student law.
    optimistic
        Whether a draw below the mean is replaced by the mean.
    rule
        What `gauss_legendre` returns.
    probabilities
        (arms,): the result. Its sum is 1; NaN if a law is not finite.
    """
    arms = laws.shape[0]
    densities = np.empty((arms, 3))  # rows: `Density`
    work = Work(np.zeros((arms, NODES)), np.ones((arms, NODES)), np.zeros(arms))
    t, atom = -math.inf, -math.inf
    probabilities[:] = 0.0
    for arm in range(arms):
        if not (math.isfinite(laws[arm, 0]) and math.isfinite(laws[arm, 1])):
            probabilities[:] = math.nan
            return
        atom = max(atom, atom_of(family, laws[arm], optimistic))
        if family == STUDENT and laws[arm, 1] == 0.0:
            densities[arm, 0], densities[arm, 1], densities[arm, 2] = laws[arm, 0], -math.inf, laws[arm, 0]
        else:
            densities[arm, 0], densities[arm, 1], densities[arm, 2] = density_of(family, laws[arm])
        t = max(t, densities[arm, 2])
    last = atom if family == STUDENT or atom == -math.inf else math.log(atom)
    if family == GAMMA:
        last = max(last, LEAST_LOG)
    width = WIDTH / math.sqrt(1.0 + math.log(arms))
    rest = 1.0
    for _ in range(MOST_PANELS):
        if t <= last or rest < NEGLIGIBLE:
            break
        low = max(lower_end(family, laws, densities, t, width), last)
        if not low < t:  # a density is narrower than the doubles near t are apart
            break
        integrate_panel(family, laws, densities, (t, low), rule, work)
        add_panel(work, rule.weights, t - low, probabilities)
        t, rest = low, 1.0
        for arm in range(arms):
            is_past = family != BETA and is_below_narrow_density(densities[arm], t)
            rest *= 0.0 if is_past else max(1.0 - work.above[arm], 0.0)
    share_rest(family, laws, optimistic, atom, rest, probabilities)


@kernel
def is_below_narrow_density(density: np.ndarray, t: float) -> bool:
    """Whether a density is negligible below t, and so narrow that rounding of t makes its integral inexact.

    Otherwise the integral would not be 1 below it either, and narrow panels would go on without end.
    """
    mode, _, top = density  # one that is so narrow is symmetric
    return t <= mode - (top - mode) and 0.0 < top - mode < NARROW * abs(mode)


@kernel
def lower_end(family: int, laws: np.ndarray, densities: np.ndarray, t: float, width: float) -> float:
    """Return where the panel below t ends: it may not contain a density that is too narrow for it."""
    low = -math.inf
    for arm in range(laws.shape[0]):
        mode, peak, top = densities[arm]
        if peak > -math.inf and top > low:
            start = min(top, t)
            low = max(low, min(start, t - panel_width(family, laws[arm], mode, start, width)))
    return low


@kernel
def integrate_panel(
    family: int, laws: np.ndarray, densities: np.ndarray, panel: tuple[float, float], rule: Rule, work: Work
) -> None:
    """Write each density and its distribution function at the nodes of a panel."""
    high, low = panel
    values, below, above = work
    width = high - low
    for arm in range(laws.shape[0]):
        mode, peak, top = densities[arm]
        if peak == -math.inf or top <= low:
            continue
        write_density(family, laws[arm], mode, peak, high - width * rule.nodes, values[arm])
        multiply(rule.cumulative, values[arm], below[arm])
        total = 0.0
        for node in range(NODES):
            below[arm, node] = max(1.0 - above[arm] - width * below[arm, node], 0.0)
            total += rule.weights[node] * values[arm, node]
        above[arm] += width * total


def multiply(matrix: np.ndarray, vector: np.ndarray, product: np.ndarray) -> None:
    """Write the product of a matrix and a vector."""
    np.matmul(matrix, vector, out=product)


@overload(multiply)
def _multiply(matrix, vector, product):  # type: ignore[no-untyped-def]  # Numba's own product needs SciPy
    def loops(matrix, vector, product):  # type: ignore[no-untyped-def]
        for row in range(matrix.shape[0]):
            total = 0.0
            for column in range(matrix.shape[1]):
                total += matrix[row, column] * vector[column]
            product[row] = total

    return loops


multiply.compiled_as = _multiply  # type: ignore[attr-defined]  # included in fingerprints


@kernel
def write_density(
    family: int, law: np.ndarray, mode: float, peak: float, places: np.ndarray, values: np.ndarray
) -> None:
    """Write the density at some places."""
    for node in range(NODES):
        values[node] = math.exp(peak + drop(family, law, places[node] - mode))


@kernel
def add_panel(work: Work, weights: np.ndarray, width: float, probabilities: np.ndarray) -> None:
    """Add the integral over a panel to the probability of each arm."""
    values, below = work.values, work.below
    for node in range(NODES):
        product = width * weights[node]
        for arm in range(probabilities.size):  # times the distribution functions of the arms before
            values[arm, node] *= product
            product *= below[arm, node]
        product = 1.0
        for arm in range(probabilities.size - 1, -1, -1):  # and of those after
            probabilities[arm] += values[arm, node] * product
            product *= below[arm, node]


@kernel
def share_rest(
    family: int, laws: np.ndarray, optimistic: bool, atom: float, rest: float, probabilities: np.ndarray
) -> None:
    """Divide the probability that no draw is above the last panel between the arms with the same atom."""
    ties = 0
    for arm in range(probabilities.size):
        ties += atom_of(family, laws[arm], optimistic) == atom
    total = 0.0
    for arm in range(probabilities.size):
        if atom_of(family, laws[arm], optimistic) == atom:
            probabilities[arm] += rest / ties
        total += probabilities[arm]
    if abs(total - 1.0) < LARGEST_ERROR:
        probabilities /= total
    else:
        probabilities[:] = math.nan


RULE = gauss_legendre()


def largest_probabilities(family: int, laws: np.ndarray, optimistic: bool = False) -> np.ndarray:
    """Return the probability of each draw that it is the largest, by compiled code, the same for all callers.

    The parameters are those of `probabilities_of_largest`.

    Examples
    --------
    >>> largest_probabilities(BETA, np.array([[3.0, 2.0, 0.0], [2.0, 2.0, 0.0]])).round(4).tolist()
    [0.6286, 0.3714]
    """
    probabilities = np.empty(len(laws))
    compiled_once(probabilities_of_largest, creates_arrays=True)(family, laws, optimistic, RULE, probabilities)
    return probabilities
