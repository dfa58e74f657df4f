"""Exponential functions, cosine and sine in plain arithmetic, which the compiler can vectorise; log Gamma, log Beta."""

import math

from dynabandit.core.compilation import kernel

LARGEST_EXPONENT = 300.0  # of numbers that are multiplied, among them two such exponentials
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# The coefficients 1 / n! of the series of cosine (even n) and sine
C2, C4, C6, C8, C10, C12, C14, C16 = (1.0 / math.factorial(n) for n in range(2, 17, 2))
C3, C5, C7, C9, C11, C13, C15 = (1.0 / math.factorial(n) for n in range(3, 16, 2))


@kernel
def exp_negative(x: float) -> float:
    """Return exp(x) for x <= 0, as (1 + y + y^2/2 + ...)^1024 with y = x/1024.

    The result is an upper bound of exp(x), up to rounding: for y < 0 a partial sum of the exponential series that ends
    with an even power is too large. The relative error is below 1e-11 for x > -4 and below 1e-6 for x > -40.

    Examples
    --------
    >>> exp_negative(-1.0), exp_negative(0.0), exp_negative(-1e300)
    (0.36787944117145366, 1.0, 0.0)
    """
    return exp_1024(max(x, -1024.0) / 1024.0)


@kernel
def exp_in_single(x: float) -> float:
    """Return exp(x) in single precision; the rounding errors of `exp_1024` add up to 1024 times that of a float32."""
    return float(math.exp(x))


@kernel
def exp_positive(x: float) -> float:
    """Return exp(x) for 0 <= x <= 50 by the same formula; the relative error is below 1e-11 for x < 4.

    Examples
    --------
    >>> exp_positive(1.0), exp_positive(0.0)
    (2.718281828458697, 1.0)
    """
    return exp_1024(x / 1024.0)


exp_negative.in_single = exp_positive.in_single = exp_in_single  # type: ignore[attr-defined]


@kernel
def exp_1024(y: float) -> float:
    """Return the fourth partial sum of exp(y) to the power of 1024."""
    e = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0))))
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    return e * e


@kernel
def cosine_sine(y: float) -> tuple[float, float]:
    """Return cosine and sine of an angle between -pi/4 and pi/4 by their series; the error is below 2e-16.

    Examples
    --------
    >>> cosine_sine(0.0)
    (1.0, 0.0)
    """
    q = y * y
    cosine = 1.0 - q * (C2 - q * (C4 - q * (C6 - q * (C8 - q * (C10 - q * (C12 - q * (C14 - q * C16)))))))
    sine = y * (1.0 - q * (C3 - q * (C5 - q * (C7 - q * (C9 - q * (C11 - q * (C13 - q * C15)))))))
    return cosine, sine


@kernel
def stirling(x: float) -> float:
    """Return Stirling's lower bound of log Gamma(x), (x - 1/2) log x - x + log(2 pi) / 2."""
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI


@kernel
def stirling_error(x: float) -> float:
    """Return log Gamma(x) - stirling(x) for x >= 1, which is in (0, 1 / (12 x)).

    The asymptotic series is accurate to 1e-13 for x >= 8; smaller arguments are shifted to that range.

    Examples
    --------
    >>> round(stirling(5.0) + stirling_error(5.0) - math.log(24.0), 12)
    0.0
    """
    shift = 0.0
    if x < 8.0:
        product = 1.0
        y = x
        while y < 8.0:
            product *= y
            y += 1.0
        shift = stirling(y) - math.log(product) - stirling(x)
        x = y
    z = 1.0 / (x * x)
    return shift + (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / x


@kernel
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the Beta function for a, b > 0.

    Examples
    --------
    >>> round(log_beta(2.0, 3.0) - math.log(1.0 / 12.0), 12), round(log_beta(0.5, 0.5) - math.log(math.pi), 12)
    (0.0, 0.0)
    """
    shift = 0.0  # B(a, b) = B(a + 1, b) (a + b) / a
    if a < 1.0:
        shift += math.log((a + b) / a)
        a += 1.0
    if b < 1.0:
        shift += math.log((a + b) / b)
        b += 1.0
    error = stirling_error(a) + stirling_error(b) - stirling_error(a + b)
    return stirling(a) + stirling(b) - stirling(a + b) + error + shift
