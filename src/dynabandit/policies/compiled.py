"""The functions of a policy as machine code, for one decision or one reward at a time; each is compiled once."""

import functools
from collections.abc import Callable

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.policies.base import Kernels
from dynabandit.policies.choose_arm import make_choose, make_count_choices

__all__ = ["choose", "count_choices", "learn", "learn_many"]


@functools.cache
def choose(kernels: Kernels) -> Callable[..., int]:
    """Return the compiled `make_choose`."""
    return compiled(make_choose(kernels))


@functools.cache
def count_choices(kernels: Kernels) -> Callable[..., None]:
    """Return the compiled `make_count_choices`."""
    return compiled(make_count_choices(make_choose(kernels)))


@functools.cache
def learn(kernels: Kernels) -> Callable[..., None]:
    """Return the compiled `learn`."""
    return compiled(kernels.learn)


@functools.cache
def learn_many(kernels: Kernels) -> Callable[..., None]:
    """Return learn_many(memory, shared, columns, values, numbers), which learns from one reward after the other."""
    learn = kernels.learn

    @kernel
    def learn_many(
        memory: np.ndarray, shared: np.ndarray, columns: np.ndarray, values: np.ndarray, numbers: np.ndarray
    ) -> None:
        for i in range(columns.size):
            learn(memory, shared, columns[i], values[i], numbers)

    return compiled(learn_many)
