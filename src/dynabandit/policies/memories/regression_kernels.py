r"""Kernels of Bayesian regressions: linear, logistic and Poisson, without, with fixed and with adaptive forgetting.

A model is that of `memories.linear_model`, followed by what the kind of regression needs besides. With
:math:`\eta = \theta' x`, the mean p of a reward, its weight v (`memories.links`) and the error e = r - p, a reward is
learnt by one Newton step, after the data were discounted by :math:`\lambda^m`, where m is the number of steps since the
previous reward:

.. math:: \Lambda \leftarrow \lambda^m \Lambda + v x x', \quad \theta \leftarrow \theta + e \Lambda^{-1} x

The sum :math:`\Lambda_2` with squared discounts gives the variance of a prediction, x' S x with
:math:`S = \Lambda^{-1} \Lambda_2 \Lambda^{-1}`. The derivatives Q of :math:`P = \Lambda^{-1}` and :math:`\psi` of
:math:`\theta` with respect to the forgetting factor follow the derivatives of these recursions, also of the return of
the prior. All changes of P, S and Q are of rank one or two, so that an update takes O(d^2).

References
----------
Haykin (2002), Adaptive filter theory, chapter 14, has the recursions of Q and psi for least squares without a prior.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.policies.memories import linear_model
from dynabandit.policies.memories.linear_model import CLOCK, dot, inverse_at, left_at, quadratic, space_at, theta_at

SHORTEST_MEMORY, LONGEST_MEMORY = 10.0, 10_000.0
SHORTEST, LONGEST = math.log(SHORTEST_MEMORY), math.log(LONGEST_MEMORY)
KEPT_SQUARES = 0.99
OFTEN_MIRRORED = 0.9  # if less data are kept, rounding errors of Q are removed at every reward
NO_SLOPE = 1e-10  # a derivative of the predictor up to this share of it is rounding error

# What follows the linear model: numbers, vectors, matrices
FORGETTING, LOG_MEMORY, SQUARES, WEIGHT, NUMBERS = 0, 1, 2, 3, 4  # lambda; -log(1 - lambda); see `adapt`
GAIN, PRODUCT, PSI, LEFT_SLOPE, VECTORS = 0, 1, 2, 3, 4  # two for results in between; psi; the derivative of the prior
S, Q = 0, 1


class Kind(NamedTuple):
    """Which matrices a regression has besides P."""

    squared: bool = False  # S: data are discounted
    adaptive: bool = False  # S and Q: the forgetting factor follows the data

    @property
    def matrices(self) -> int:
        """How many there are."""
        return 2 if self.adaptive else int(self.squared)

    def size(self, dimension: int) -> int:
        """Return the length of a model."""
        return matrix_at(self.matrices, dimension)


class RegressionParams(NamedTuple):
    """The parameters of a regression."""

    prior: float  # alpha, the precision of the prior of each coefficient
    forgetting: float  # lambda, at first if it is adaptive
    step_size: float  # of the logarithm of the memory


class Regression(NamedTuple):
    """The kernels of one kind of regression."""

    kind: Kind
    link: Callable[..., Any]
    learn: Callable[..., None]
    """learn(model, x, value, offset, times, params): learn a reward with the predictor theta' x + offset; `times` are
    the steps of the decision and of the reward's arrival."""
    variance: Callable[..., float]
    """variance(model, x): the variance of theta' x, in units of the variance of a reward."""


@inlined_kernel
def number_at(number: int, dimension: int) -> int:
    """Return where a number is in a model."""
    return inverse_at(dimension) + dimension * dimension + number


@kernel
def vector_at(number: int, dimension: int) -> int:
    """Return where a vector begins."""
    return number_at(NUMBERS, dimension) + number * dimension


@kernel
def matrix_at(number: int, dimension: int) -> int:
    """Return where a matrix begins."""
    return vector_at(VECTORS, dimension) + number * dimension * dimension


def initial(dimension: int, kind: Kind, params: RegressionParams) -> np.ndarray:
    """Return a model without rewards."""
    model = np.zeros(kind.size(dimension))
    model[number_at(FORGETTING, dimension)] = params.forgetting
    if kind.adaptive:
        model[number_at(LOG_MEMORY, dimension)] = -math.log(1.0 - params.forgetting)
    reset(model, dimension, params.prior)
    return model


@kernel
def reset(model: np.ndarray, dimension: int, prior: float) -> None:
    """Forget all rewards, but neither the clock nor the forgetting factor."""
    linear_model.reset(model, dimension, prior)
    for i in range(vector_at(0, dimension), model.size):
        model[i] = 0.0
    if model.size > matrix_at(S, dimension):
        for i in range(dimension):
            model[matrix_at(S, dimension) + i * dimension + i] = 1.0 / prior


@inlined_kernel
def kept_until(model: np.ndarray, dimension: int, number: int) -> float:
    """Return the factor by which the data of a model have faded at a step."""
    return power(model[number_at(FORGETTING, dimension)], max(number - model[CLOCK], 0.0))


@inlined_kernel
def power(forgetting: float, steps: float) -> float:
    """Return lambda^m; without a logarithm in the most frequent cases."""
    if steps == 0.0 or forgetting == 1.0:
        return 1.0
    return forgetting if steps == 1.0 else forgetting**steps


@kernel
def multiply(model: np.ndarray, number: int, x: np.ndarray) -> float:
    """Write the product of S or Q and x into the vector `PRODUCT`, and return its product with x."""
    d = x.size
    start = matrix_at(number, d)
    product = model[vector_at(PRODUCT, d) : vector_at(PRODUCT, d) + d]  # a loop over a part is vectorised
    for j in range(d):
        product[j] = 0.0
    for i in range(d):
        row, factor = model[start + i * d : start + (i + 1) * d], x[i]
        for j in range(d):
            product[j] += row[j] * factor
    return dot(product, 0, x)


@kernel
def transform(model: np.ndarray, number: int, dimension: int, weight: float, factor: float) -> None:
    """Replace S or Q by its sum with -weight (g s' + s g') + factor g g', where g is the gain and s the product."""
    d = dimension
    start, gain, product = (
        matrix_at(number, d),
        model[vector_at(GAIN, d) : vector_at(GAIN, d) + d],
        model[vector_at(PRODUCT, d) : vector_at(PRODUCT, d) + d],
    )
    for i in range(d):
        row, of_gain, of_product = (
            model[start + i * d : start + (i + 1) * d],
            factor * gain[i] - weight * product[i],
            weight * gain[i],
        )
        for j in range(d):
            row[j] += of_gain * gain[j] - of_product * product[j]


@kernel
def mirror(model: np.ndarray, dimension: int) -> None:
    """Make Q symmetric: its two halves round differently, and the difference is divided by `kept` at every reward."""
    start = matrix_at(Q, dimension)
    for i in range(dimension):
        for j in range(i):
            model[start + i * dimension + j] = model[start + j * dimension + i]


@kernel
def add_change_of_inverse(model: np.ndarray, dimension: int, change: float, kept: float) -> None:
    """Replace Q by (Q - change P) / kept."""
    size, scale = dimension * dimension, 1.0 / kept
    q = model[matrix_at(Q, dimension) : matrix_at(Q, dimension) + size]
    inverse = model[inverse_at(dimension) : inverse_at(dimension) + size]
    for i in range(size):
        q[i] = (q[i] - change * inverse[i]) * scale


@kernel
def add_slope(model: np.ndarray, dimension: int, factor: float, product: float) -> None:
    """Add factor g + product s to psi, where g is the gain and s the product."""
    psi, gain, s = vector_at(PSI, dimension), vector_at(GAIN, dimension), vector_at(PRODUCT, dimension)
    for j in range(dimension):
        model[psi + j] += factor * model[gain + j] + product * model[s + j]


# Each large function has one place in the code from which it is called, in a loop if need be: compilers insert a copy
# at every place, and a policy would take twice as long to compile.
def make_restore(kind: Kind) -> Callable[..., None]:
    """Return restore(model, dimension, i, prior): give the coefficient i its prior weight back."""
    adaptive, matrices = kind.adaptive, kind.matrices
    if matrices == 0:
        return linear_model.restore

    @kernel
    def take_row(model: np.ndarray, number: int, dimension: int, i: int) -> float:
        start, product = matrix_at(number, dimension) + i * dimension, vector_at(PRODUCT, dimension)
        for j in range(dimension):
            model[product + j] = model[start + j]
        return model[start + i]

    @kernel
    def restore(model: np.ndarray, dimension: int, i: int, prior: float) -> None:
        d = dimension
        left, theta = model[left_at(d) + i], model[theta_at(d) + i]
        slope, psi = model[vector_at(LEFT_SLOPE, d) + i], model[vector_at(PSI, d) + i]
        missing = prior - left
        if missing <= 0.0:
            return
        linear_model.restore(model, d, i, prior)
        total = 1.0 + missing * model[space_at(d) + i]
        for j in range(d):
            model[vector_at(GAIN, d) + j] = model[space_at(d) + j] / total
        for number in range(matrices):
            own = take_row(model, number, d, i)
            further = prior - left * left / prior if number == S else slope
            transform(model, number, d, missing, missing * missing * own + further)
        if adaptive:
            take_row(model, Q, d, i)
            add_slope(model, d, slope * theta - missing * psi, -missing * theta)
            model[vector_at(LEFT_SLOPE, d) + i] = 0.0

    return restore


@kernel
def adapt(model: np.ndarray, dimension: int, gradient: float, step_size: float) -> None:
    """Move the logarithm of the memory by the gradient, divided by its root mean square over about 100 rewards."""
    squares, weight = number_at(SQUARES, dimension), number_at(WEIGHT, dimension)
    model[squares] = KEPT_SQUARES * model[squares] + (1.0 - KEPT_SQUARES) * gradient * gradient
    model[weight] = KEPT_SQUARES * model[weight] + (1.0 - KEPT_SQUARES)
    if model[squares] > 0.0:
        step = step_size * gradient / math.sqrt(model[squares] / model[weight])
        moved = min(max(model[number_at(LOG_MEMORY, dimension)] + step, SHORTEST), LONGEST)
        model[number_at(LOG_MEMORY, dimension)] = moved
        model[number_at(FORGETTING, dimension)] = 1.0 - math.exp(-moved)


@functools.cache  # so that policies with the same model share its kernels
def make_regression(link: Callable[..., Any], kind: Kind) -> Regression:
    """Return the kernels of a regression with a link of `memories.links`."""
    adaptive, matrices, restore = kind.adaptive, kind.matrices, make_restore(kind)
    forget = reset if matrices > 0 else linear_model.reset

    @kernel
    def fade_prior(model: np.ndarray, dimension: int, kept: float, change: float, prior: float) -> None:
        d = dimension
        left, slope = left_at(d), vector_at(LEFT_SLOPE, d)
        if adaptive:
            for j in range(d):
                model[slope + j] = kept * model[slope + j] + change * model[left + j]
        for j in range(d):
            model[left + j] *= kept
        before = model[linear_model.TURN]
        for _ in range(linear_model.turns(d, kept)):
            restore(model, d, linear_model.next_turn(model, d), prior)
        if adaptive and (model[linear_model.TURN] <= before or kept < OFTEN_MIRRORED):  # once all had their turn
            mirror(model, d)

    @kernel
    def learn(
        model: np.ndarray, x: np.ndarray, value: float, offset: float, times: tuple[int, int], params: Any
    ) -> None:
        d = x.size
        decided, arrived = times
        forgetting = model[number_at(FORGETTING, d)]
        steps = max(arrived - model[CLOCK], 0.0)
        kept, late = power(forgetting, steps), power(forgetting, float(arrived - decided))
        if kept < linear_model.NOTHING_LEFT:
            forget(model, d, params.prior)
            kept, steps = 1.0, 0.0
        eta, z = dot(model, theta_at(d), x), 0.0
        p, p_slope, v, v_slope = link(offset + eta, value)
        error, weight = late * (value - p), late * v
        if adaptive:
            z = dot(model, vector_at(PSI, d), x)
            z = z if abs(z) > NO_SLOPE * abs(eta) else 0.0
        total = kept + weight * linear_model.add_product(model, x, weight, kept)
        for j in range(d):
            model[vector_at(GAIN, d) + j] = model[space_at(d) + j] / total
            model[theta_at(d) + j] += error * model[vector_at(GAIN, d) + j]
        change = steps * kept / forgetting
        for number in range(matrices):
            own = multiply(model, number, x)
            further = late * weight if number == S else weight * change - kept * late * v_slope * z
            transform(model, number, d, weight, weight * weight * own + further)
        if adaptive:
            add_change_of_inverse(model, d, change, kept)
            multiply(model, Q, x)
            add_slope(model, d, -late * p_slope * z, error)
            adapt(model, d, error * z * (1.0 - forgetting), params.step_size)
        if kept < 1.0:
            fade_prior(model, d, kept, change, params.prior)
        model[CLOCK] = max(model[CLOCK], arrived)

    @inlined_kernel
    def variance(model: np.ndarray, x: np.ndarray) -> float:
        return quadratic(model, matrix_at(S, x.size) if matrices > 0 else inverse_at(x.size), x)

    return Regression(kind, link, learn, variance)
