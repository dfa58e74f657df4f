"""The logarithm of the distribution function of a Beta law, at one point or at all boundaries of a grid.

Points are log-odds. Below the mean, F is the continued fraction of the incomplete Beta function; above it, 1 - F is,
so that small probabilities at both ends keep their digits. The coefficients of the fraction do not depend on the
point: with many points they are computed once, and the loop over the points has no division.

References
----------
Abramowitz & Stegun (1964), Handbook of mathematical functions, 26.5.8.
"""

import math

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.special_functions import log_beta

BETWEEN_TESTS = 8  # terms of the fraction between two tests for convergence
MOST_TERMS = 100_000
CONVERGED = 1e-14  # the relative change in so many terms
NEGLIGIBLE = -90.0  # the logarithm of a probability that no simulation sees
BELOW_1 = 1.0 - 2.0**-53  # the largest number below 1


@kernel
def log_parts(t: float) -> tuple[float, float]:
    """Return log x and log(1 - x) of the x with log-odds t."""
    shared = math.log1p(math.exp(-abs(t)))
    return min(t, 0.0) - shared, min(-t, 0.0) - shared


@kernel
def log_complement(p: float) -> float:
    """Return log(1 - p) of a probability, which rounding can make 1 or more."""
    return math.log1p(-min(p, BELOW_1))


@kernel
def largest_argument(a: float, b: float) -> float:
    """Return the largest x for F; for a larger one 1 - F, with a and b exchanged, is the fraction that ends sooner."""
    return (a + 1.0) / (a + b + 2.0)


@kernel
def even_term(m: float, a: float, b: float) -> float:
    """Return the coefficient of the argument in the term 2 m of the continued fraction."""
    return m * (b - m) / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))


@kernel
def odd_term(m: float, a: float, b: float) -> float:
    """Return the coefficient of the argument in the term 2 m + 1."""
    return -(a + m) * (a + b + m) / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))


@kernel
def next_convergent(
    p0: float, q0: float, p1: float, q1: float, even: float, odd: float
) -> tuple[float, float, float, float]:
    """Return two successive numerators p and denominators q after two more terms of a fraction."""
    p, q = p1 + even * p0, q1 + even * q0
    return p, q, p + odd * p1, q + odd * q1


@kernel
def fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete Beta function, for x up to `largest_argument`."""
    p0 = q0 = p1 = 1.0
    q1 = 1.0 + odd_term(0.0, a, b) * x
    m = before = 0.0
    while m < MOST_TERMS:
        for _ in range(BETWEEN_TESTS):
            m += 1.0
            p0, q0, p1, q1 = next_convergent(p0, q0, p1, q1, even_term(m, a, b) * x, odd_term(m, a, b) * x)
        p0, q0, p1, q1 = p0 / q1, q0 / q1, p1 / q1, 1.0
        if abs(p1 - before) <= CONVERGED * p1:
            break
        before = p1
    return p1


@kernel
def write_fractions(x: np.ndarray, a: float, b: float, work: np.ndarray) -> None:
    """Write `fraction` for all x, a rising or falling sequence, into the first numbers of `work`."""
    n = x.size
    p1, q1, p0, q0 = work[:n], work[n : 2 * n], work[2 * n : 3 * n], work[3 * n : 4 * n]
    first = odd_term(0.0, a, b)
    for i in range(n):
        p0[i] = q0[i] = p1[i] = 1.0
        q1[i] = 1.0 + first * x[i]
    slowest = 0 if x[0] > x[n - 1] else n - 1
    m = before = 0.0
    while m < MOST_TERMS:
        for _ in range(BETWEEN_TESTS):
            m += 1.0
            even, odd = even_term(m, a, b), odd_term(m, a, b)
            for i in range(n):
                p0[i], q0[i], p1[i], q1[i] = next_convergent(p0[i], q0[i], p1[i], q1[i], even * x[i], odd * x[i])
        for i in range(n):
            scale = 1.0 / q1[i]
            p0[i] *= scale
            q0[i] *= scale
            p1[i] *= scale
            q1[i] = 1.0
        if abs(p1[slowest] - before) <= CONVERGED * p1[slowest]:
            break
        before = p1[slowest]


@kernel
def log_distribution(a: float, b: float, t: float) -> float:
    """Return log F(t) of the log-odds of a Beta(a, b) draw.

    Examples
    --------
    >>> round(math.exp(log_distribution(1.0, 1.0, math.log(3.0))), 12)
    0.75
    """
    if t == math.inf:
        return 0.0
    if t == -math.inf:
        return -math.inf
    log_x, log_y = log_parts(t)
    x, y = math.exp(log_x), math.exp(log_y)
    log_front = a * log_x + b * log_y - log_beta(a, b)
    if x > largest_argument(a, b):
        return log_complement(math.exp(log_front) * fraction(y, b, a) / b)
    return min(log_front + math.log(fraction(x, a, b) / a), 0.0)


@kernel
def write_points(points: np.ndarray, grid: np.ndarray) -> None:
    """Write x, 1 - x and their logarithms for falling log-odds into a grid, which `write_log_distribution` reads."""
    n = points.size
    for i in range(n):
        log_x, log_y = log_parts(points[i])
        grid[i], grid[n + i] = math.exp(log_x), math.exp(log_y)
        grid[2 * n + i], grid[3 * n + i] = log_x, log_y


@kernel
def write_log_distribution(a: float, b: float, grid: np.ndarray, work: np.ndarray, logs: np.ndarray) -> None:
    """Write `log_distribution` at all points of a grid; probabilities below exp(-90) count as 0."""
    n = logs.size
    log_norm, switch = log_beta(a, b), largest_argument(a, b)
    first = above = last = 0  # 1 - F is computed from `first` on, F from `above` on, and F is 0 from `last` on
    for i in range(n):
        logs[i] = a * grid[2 * n + i] + b * grid[3 * n + i] - log_norm
        if grid[i] > switch:
            above = last = i + 1
            if logs[i] < NEGLIGIBLE:
                first = i + 1
        elif logs[i] >= NEGLIGIBLE:
            last = i + 1
    for i in range(n):
        if i < first:
            logs[i] = 0.0
        elif i >= last:
            logs[i] = -math.inf
    for side in range(2):  # one call of a function that takes long to compile
        start, end = (first, above) if side == 0 else (above, last)
        shape, other = (b, a) if side == 0 else (a, b)
        if start < end:
            points = grid[(1 - side) * n + start : (1 - side) * n + end]
            write_fractions(points, shape, other, work)
            for i in range(start, end):
                share = work[i - start] / shape
                if side == 0:
                    logs[i] = log_complement(math.exp(logs[i]) * share)
                else:
                    logs[i] += math.log(share)
                logs[i] = min(logs[i], logs[i - 1] if i > 0 else 0.0)  # F falls, also where rounding errors are large
