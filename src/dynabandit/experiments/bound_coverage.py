"""How often the bound of the paper's appendix is exceeded, on streams with a constant mean."""

import numpy as np

from dynabandit.core.compilation import compiled_once, kernel
from dynabandit.core.streams import REWARD, Stream, stream, uniform
from dynabandit.experiments.spec import CoverageSpec
from dynabandit.policies.memories.adaptive import START, AdaptiveParams, make_params, observe
from dynabandit.policies.rules.hoeffding import CONFIDENCE, bonus, level_for

LEVEL = level_for(CONFIDENCE)


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

    `number` is the number of the mean, so that each has random streams of its own; `source` is the first stream.
    """
    for index in range(streams):
        own = Stream(source.seed_low, source.seed_high, source.replication + index)
        state = START
        mark = 0
        for step in range(1, observations[-1] + 1):
            reward = 1.0 if uniform(own, REWARD, step, number) < mean else 0.0
            state = observe(state, reward, params)
            if step == observations[mark]:
                exceeded[mark] += mean - state.mean >= bonus(state.w, state.k, LEVEL)
                mark += 1


def count_exceeded(spec: CoverageSpec, mean_index: int, step_size: float) -> np.ndarray:
    """Return how many Bernoulli streams exceed the bound after each of the spec's numbers of observations.

    Examples
    --------
    >>> spec = CoverageSpec(figure="bound", means=[0.5], step_sizes=[0.001], observations=[10, 100], streams=100)
    >>> count_exceeded(spec, mean_index=0, step_size=0.001).shape
    (2,)
    """
    exceeded = np.zeros(len(spec.observations), dtype=np.int64)
    observations = np.array(spec.observations, dtype=np.int64)
    mean = float(spec.means[mean_index])
    params, source = make_params(step_size), stream(spec.seed)
    compiled_once(add_exceeded)(exceeded, observations, mean, params, spec.streams, mean_index, source)
    return exceeded
