r"""Kernels of a linear model that forgets: recursive least squares with a prior that does not fade.

The model of d features is a vector of `size(d)` numbers. It stands for the precision matrix :math:`\Lambda`, of which
it keeps the inverse P, and the coefficients :math:`\theta`. A reward r with features x and weight w, after earlier data
were discounted by the factor `kept`, gives

.. math:: \Lambda \leftarrow \mathrm{kept} \cdot \Lambda + w x x' + (\alpha - c_i) e_i e_i', \quad
    \theta \leftarrow P (\mathrm{kept} \cdot b + w r x)

where c are the weights of the prior that are left on the diagonal, and coordinate i gets its prior weight
:math:`\alpha` back. The coordinates take turns, one or a few per reward, so that an update is a sum of a few matrices
of rank one and takes O(d^2). So many have their turn, :math:`1 + \lfloor d (1 - \mathrm{kept}) / (6 \, \mathrm{kept})
\rfloor`, that a coordinate without data keeps at least about e^-6 of its prior; if `kept` is below 1/2, all of them.
"""

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel

CLOCK, TURN, HEADER = 0, 1, 2  # the step up to which data are discounted; whose turn it is; where the arrays begin
RESTORE_ALL = 0.5  # if less is kept, all coordinates get their prior back
LONGEST_FADE = 6.0  # the prior of a coordinate fades by at most about e^-6 until its turn comes
NOTHING_LEFT = 1e-12  # data that faded by this factor are forgotten


def size(dimension: int) -> int:
    """Return the length of the vector of a model.

    Examples
    --------
    >>> size(3)
    20
    """
    return HEADER + 3 * dimension + dimension * dimension


def initial(dimension: int, prior: float) -> np.ndarray:
    """Return a model without rewards; `prior` is the precision of each coefficient.

    Examples
    --------
    >>> model = initial(2, prior=4.0)
    >>> float(quadratic(model, inverse_at(2), np.array([1.0, 2.0])))
    1.25
    """
    model = np.zeros(size(dimension))
    reset(model, dimension, prior)
    return model


# The parts of a model after the header: coefficients, weights c of the prior, space for a product, P by rows
@kernel
def theta_at(dimension: int) -> int:
    """Return where the coefficients begin."""
    return HEADER


@kernel
def left_at(dimension: int) -> int:
    """Return where the weights of the prior begin."""
    return HEADER + dimension


@kernel
def space_at(dimension: int) -> int:
    """Return where the space for a product begins."""
    return HEADER + 2 * dimension


@kernel
def inverse_at(dimension: int) -> int:
    """Return where the rows of P begin."""
    return HEADER + 3 * dimension


@kernel
def reset(model: np.ndarray, dimension: int, prior: float) -> None:
    """Forget all rewards, but not the clock."""
    for i in range(HEADER, inverse_at(dimension) + dimension * dimension):
        model[i] = 0.0
    for i in range(dimension):
        model[left_at(dimension) + i] = prior
        model[inverse_at(dimension) + i * dimension + i] = 1.0 / prior


@inlined_kernel
def dot(model: np.ndarray, start: int, x: np.ndarray) -> float:
    """Return the product of a part of the model with x."""
    total = 0.0
    for i in range(x.size):
        total += model[start + i] * x[i]
    return total


@inlined_kernel
def multiply(model: np.ndarray, x: np.ndarray) -> float:
    """Write P x into the space of the model, and return x' P x."""
    d = x.size
    space, start = model[space_at(d) : space_at(d) + d], inverse_at(d)
    for j in range(d):
        space[j] = 0.0
    for i in range(d):
        row, factor = model[start + i * d : start + (i + 1) * d], x[i]
        for j in range(d):
            space[j] += row[j] * factor
    return dot(model, space_at(d), x)


@inlined_kernel
def quadratic(model: np.ndarray, start: int, x: np.ndarray) -> float:
    """Return x' M x for the matrix that begins at `start`; it writes nothing, because arms may share a model.

    Four rows at a time have a sum each: a single sum would wait for every addition.
    """
    d = x.size
    total = 0.0
    i = 0
    while i + 4 <= d:
        row = start + i * d
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            first += model[row + j] * x[j]
            second += model[row + d + j] * x[j]
            third += model[row + 2 * d + j] * x[j]
            fourth += model[row + 3 * d + j] * x[j]
        total += first * x[i] + second * x[i + 1] + third * x[i + 2] + fourth * x[i + 3]
        i += 4
    while i < d:
        total += dot(model, start + i * d, x) * x[i]
        i += 1
    return total


@inlined_kernel
def subtract_product(model: np.ndarray, dimension: int, factor: float, scale: float) -> None:
    """Replace P by scale (P - factor u u'), where u is in the space of the model.

    Both halves of P get the same bits: rounding errors that make P asymmetric would grow by 1 / kept per update.
    """
    u, start = model[space_at(dimension) : space_at(dimension) + dimension], inverse_at(dimension)
    for i in range(dimension):
        row, own = model[start + i * dimension : start + (i + 1) * dimension], u[i]
        for j in range(dimension):
            row[j] = (row[j] - factor * (own * u[j])) * scale


@kernel
def restore(model: np.ndarray, dimension: int, i: int, prior: float) -> None:
    """Give the coefficient i its prior weight back."""
    left, theta, start = left_at(dimension), theta_at(dimension), inverse_at(dimension)
    missing = prior - model[left + i]
    if missing <= 0.0:
        return
    space = space_at(dimension)
    for j in range(dimension):
        model[space + j] = model[start + i * dimension + j]
    factor = missing / (1.0 + missing * model[space + i])
    pull = factor * model[theta + i]
    for j in range(dimension):
        model[theta + j] -= pull * model[space + j]
    subtract_product(model, dimension, factor, 1.0)
    model[left + i] = prior


@inlined_kernel
def add_product(model: np.ndarray, x: np.ndarray, weight: float, kept: float) -> float:
    """Update P with a reward with features x, after earlier data were discounted by `kept`.

    The space of the model has P x for the earlier P afterwards. Returns x' P x for the earlier P.
    """
    variance = multiply(model, x)
    subtract_product(model, x.size, weight / (kept + weight * variance), 1.0 / kept)
    return variance


@kernel
def turns(dimension: int, kept: float) -> int:
    """Return how many coordinates get their prior back with a reward; see above."""
    if kept < RESTORE_ALL:
        return dimension
    return min(1 + int(dimension * (1.0 - kept) / (LONGEST_FADE * kept)), dimension)


@kernel
def next_turn(model: np.ndarray, dimension: int) -> int:
    """Return the coordinate whose turn it is to get its prior back, and pass the turn on."""
    turn = int(model[TURN])
    model[TURN] = turn + 1 if turn + 1 < dimension else 0
    return turn


@kernel
def update(
    model: np.ndarray, x: np.ndarray, value: float, weight: float, kept: float, prior: float
) -> tuple[float, float]:
    """Learn a reward with features x, after earlier data were discounted by `kept`.

    Returns the prediction x' theta and x' P x before both.
    """
    d = x.size
    if kept < NOTHING_LEFT:
        reset(model, d, prior)
        kept = 1.0
    theta, space = theta_at(d), space_at(d)
    mean = dot(model, theta, x)
    variance = add_product(model, x, weight, kept)
    error = weight / (kept + weight * variance) * (value - mean)
    for j in range(d):
        model[theta + j] += error * model[space + j]
    if kept < 1.0:
        for j in range(d):
            model[left_at(d) + j] *= kept
        for _ in range(turns(d, kept)):
            restore(model, d, next_turn(model, d), prior)
    return mean, variance


@inlined_kernel
def square(x: np.ndarray) -> float:
    """Return x' x."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


@inlined_kernel
def faded(mean: float, variance: float, kept: float, prior_precision: float) -> tuple[float, float]:
    """Return a prediction and its variance after the data faded by the factor `kept`, while the prior stayed.

    The precision of the prediction is kept times what it was, plus 1 - kept times that of the prior, alpha / x' x. This
    is exact for one feature, and if x is an eigenvector of P; otherwise the variance is at most that large.
    """
    if kept == 1.0 or not variance > 0.0:
        return mean, max(variance, 0.0)  # rounding may make it negative
    later = 1.0 / (kept / variance + (1.0 - kept) * prior_precision)
    return mean * kept * later / variance, later
