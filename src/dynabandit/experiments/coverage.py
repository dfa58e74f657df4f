"""How often the bound of the appendix is exceeded, on streams whose mean stands still."""

import functools
from collections.abc import Callable

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.streams import REWARD, Stream, stream, uniform
from dynabandit.estimators.adaptive_forgetting import START, AdaptiveParams, make_params, observe
from dynabandit.policies.aff_shared import hoeffding

__all__ = ["add_exceeded", "compiled_count", "count_exceeded"]


@kernel
def add_exceeded(
    exceeded: np.ndarray,
    observations: np.ndarray,
    mean: float,
    params: AdaptiveParams,
    streams: int,
    number: int,
    source: Stream,
) -> None:
    """Add, for each of `observations`, the streams on which mean - estimate >= bonus right after it.

    `number` tells the streams of one mean from those of another; `source` belongs to the first stream.
    """
    for index in range(streams):
        own = Stream(source.seed_low, source.seed_high, source.replication + index)
        state = START
        mark = 0
        for step in range(1, observations[-1] + 1):
            reward = 1.0 if uniform(own, REWARD, step, number) < mean else 0.0
            state = observe(state, reward, params)
            if step == observations[mark]:
                exceeded[mark] += mean - state.mean >= hoeffding(state)
                mark += 1


@functools.cache
def compiled_count() -> Callable[..., None]:
    """Return the compiled `add_exceeded`."""
    return compiled(add_exceeded)


def count_exceeded(
    mean: float, step_size: float, observations: tuple[int, ...], streams: int, number: int, seed: int
) -> np.ndarray:
    """Return how many of `streams` Bernoulli streams exceed the bound after each of `observations`.

    Examples
    --------
    >>> count_exceeded(0.5, 0.001, (10, 100), streams=100, number=0, seed=1).shape
    (2,)
    """
    exceeded = np.zeros(len(observations), dtype=np.int64)
    marks = np.array(observations, dtype=np.int64)
    compiled_count()(exceeded, marks, float(mean), make_params(step_size), streams, number, stream(seed))
    return exceeded
