"""The reward model of doubly robust estimates: what each arm is expected to earn at a row, from all earlier rows."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.context import Context
from dynabandit.offline.log import Logged
from dynabandit.policies.memories import adaptive, linear_model, links, unit_free
from dynabandit.policies.memories.regression_kernels import Kind, RegressionParams, initial, make_regression
from dynabandit.validation import BOUNDED, RewardDomain

MEAN_PARAMS = adaptive.make_params()
UNIT_FREE_PARAMS = unit_free.make_unit_free_params(0.001, 0.0)
LINEAR, LOGISTIC = (make_regression(link, Kind(adaptive=True)) for link in (links.identity, links.logistic))
REGRESSION_PARAMS = RegressionParams(prior=1.0, forgetting=0.999, step_size=0.2)


class State(NamedTuple):
    """What the model has learned."""

    memory: np.ndarray  # (slots of the adaptive estimator, arms)
    overall: np.ndarray  # rows and their total reward, for an arm that had no row yet
    regressions: np.ndarray  # (arms, size): a regression per arm, if there are features; else one number


class RewardModel:
    """An adaptive mean of each arm or, with features, a regression of each arm with adaptive forgetting.

    The regression is logistic for rewards in [0, 1], else linear. A row is predicted before it is learned: given the
    rows before it, its prediction does not depend on its reward.

    Examples
    --------
    >>> model = RewardModel(arms=2)
    >>> logged = Logged(np.array([0, 0]), np.array([1.0, 1.0]), np.full(2, 0.5), np.zeros((1, 1, 1)))
    >>> model.predict(logged).tolist(), model.predict(logged)[0].tolist()
    ([[0.0, 0.0], [1.0, 1.0]], [1.0, 1.0])
    """

    def __init__(self, arms: int, domain: RewardDomain = BOUNDED, context: Context | None = None) -> None:
        self._unit_free, self._in_context = not domain.is_within(BOUNDED), context is not None
        memory = np.tile(np.array(adaptive.START)[:, np.newaxis], arms)
        regressions = np.zeros((1, 1))
        if context is not None:
            regressions = np.tile(initial(context.dimension, LINEAR.kind, REGRESSION_PARAMS), (arms, 1))
        self._state, self._rows = State(memory, np.zeros(2), regressions), 0

    def predict(self, logged: Logged) -> np.ndarray:
        """Return the expected reward of each arm at each of the next rows, (rows, arms), and learn them."""
        expected = np.empty((len(logged.arms), self._state.memory.shape[1]))
        _compiled_predict(unit_free=self._unit_free, in_context=self._in_context)(
            self._state, logged, expected, self._rows + 1
        )
        self._rows += len(logged.arms)
        return expected


@functools.cache
def _compiled_predict(*, unit_free: bool, in_context: bool) -> Callable[..., None]:
    return compiled(make_predict(unit_free=unit_free, in_context=in_context))


def make_predict(*, unit_free: bool, in_context: bool) -> Callable[..., None]:
    """Return predict(state, logged, expected, first), which predicts and learns some rows, `first` and later ones."""
    observe = observe_unit_free if unit_free else observe_bounded
    regression = LINEAR if unit_free else LOGISTIC
    link, learn = regression.link, regression.learn

    @kernel
    def predict(state: State, logged: Logged, expected: np.ndarray, first: int) -> None:
        memory, overall = state.memory, state.overall
        for row in range(logged.arms.size):
            for arm in range(expected.shape[1]):
                known = adaptive.load(memory, arm)
                if known.w > 0.0:
                    expected[row, arm] = known.mean
                    if in_context:
                        x = logged.features[row, 0]
                        eta = linear_model.dot(state.regressions[arm], linear_model.theta_at(x.size), x)
                        expected[row, arm] = link(eta, 0.0)[0]
                else:
                    expected[row, arm] = overall[1] / overall[0] if overall[0] > 0.0 else 0.0
            target, value = logged.arms[row], logged.rewards[row]
            overall[0] += 1.0
            overall[1] += value
            observe(memory, target, value)
            if in_context:
                times = (first + row, first + row)
                learn(state.regressions[target], logged.features[row, 0], value, 0.0, times, REGRESSION_PARAMS)

    return predict


@kernel
def observe_unit_free(memory: np.ndarray, arm: int, value: float) -> None:
    """Update the mean of an arm with a reward in any unit."""
    known = adaptive.load(memory, arm)
    adaptive.store(memory, arm, unit_free.observe_unit_free(known, value, UNIT_FREE_PARAMS))


@kernel
def observe_bounded(memory: np.ndarray, arm: int, value: float) -> None:
    """Update the mean of an arm with a reward; it forgets as fast as the arm changes."""
    known = adaptive.load(memory, arm)
    adaptive.store(memory, arm, adaptive.observe(known, value, MEAN_PARAMS))
