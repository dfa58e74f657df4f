"""The largest of an array of numbers, its index and the number of ties."""

import math

import numpy as np

from dynabandit.core.compilation import kernel

MANY = 16  # from this size on, two passes without branches are faster than one with branches


@kernel
def top(numbers: np.ndarray) -> tuple[float, int, int]:
    """Return the largest number, the index of its first occurrence and the number of occurrences.

    Examples
    --------
    >>> top(np.array([0.5, 2.0, 1.0, 2.0]))
    (2.0, 1, 2)
    """
    if numbers.size >= MANY:
        best = maximum(numbers)
        first, _, ties = occurrences(numbers, best)
        return best, first, ties
    best = -math.inf
    first = 0
    ties = 0
    for index in range(numbers.size):
        if numbers[index] > best:
            best = numbers[index]
            first = index
            ties = 1
        elif numbers[index] == best:
            ties += 1
    return float(best), first, ties


@kernel
def occurrences(numbers: np.ndarray, value: float) -> tuple[int, int, int]:
    """Return the indices of the first and the last occurrence of a value, and their number; 0 if there is none.

    Examples
    --------
    >>> occurrences(np.array([0.5, 2.0, 1.0, 2.0]), 2.0)
    (1, 3, 2)
    """
    first = numbers.size
    last = 0
    count = 0
    for index in range(numbers.size):  # without branches, so that the loop is vectorised
        same = numbers[index] == value
        first = min(first, index if same else numbers.size)
        last = max(last, index if same else 0)
        count += 1 if same else 0
    return first if count > 0 else 0, last, count


@kernel
def maximum(numbers: np.ndarray) -> float:
    """Return the largest number, with eight independent chains of comparisons for instruction-level parallelism."""
    m0 = m1 = m2 = m3 = m4 = m5 = m6 = m7 = -math.inf
    whole = numbers.size // 8 * 8
    for i in range(0, whole, 8):
        m0 = larger(m0, numbers[i])
        m1 = larger(m1, numbers[i + 1])
        m2 = larger(m2, numbers[i + 2])
        m3 = larger(m3, numbers[i + 3])
        m4 = larger(m4, numbers[i + 4])
        m5 = larger(m5, numbers[i + 5])
        m6 = larger(m6, numbers[i + 6])
        m7 = larger(m7, numbers[i + 7])
    for i in range(whole, numbers.size):
        m0 = larger(m0, numbers[i])
    return float(larger(larger(larger(m0, m1), larger(m2, m3)), larger(larger(m4, m5), larger(m6, m7))))


@kernel
def larger(best: float, other: float) -> float:
    """Return the larger number, or `best` if the other is NaN."""
    return other if other > best else best
