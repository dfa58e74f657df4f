"""The probability of each choice, computed from what a policy declares about its random numbers.

A policy is exact if its scores are not random, or if their law is known: a `posterior`, or a `law` of
`policies.rules.score_laws`. The probabilities of all other policies can only be estimated from draws.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dynabandit.choosing.choose_arm import Workspace
from dynabandit.core import probability_of_largest
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.draws import not_empty
from dynabandit.core.fingerprint import refers_to
from dynabandit.core.philox import philox
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import Stream
from dynabandit.policies.base import PolicyFunctions, PolicyState, ScoreLaw, Step, never_explore
from dynabandit.policies.rules.score_laws import BETA, COMMON_NORMAL, GAMMA, STUDENT, WEIGHTS

MOST_ARMS = 100  # whose probabilities are computed by quadrature
INTEGRATED = {
    BETA: probability_of_largest.BETA,
    GAMMA: probability_of_largest.GAMMA,
    STUDENT: probability_of_largest.STUDENT,
}
LAW_NUMBERS = 3  # at most


class Choice(NamedTuple):
    """How the probabilities of a policy's choices are found."""

    law: ScoreLaw | None  # None if scores are not random
    optimistic: bool
    exploration: Callable[..., float] | None  # the probability of a random arm instead of the leader; None for 0

    def allows(self, arms: int) -> bool:
        """Whether the probabilities of so many arms are computed."""
        return self.law is None or self.law.family not in INTEGRATED or arms <= MOST_ARMS


@functools.cache
def choice_of(functions: PolicyFunctions) -> Choice | None:
    """Return how the choices of a policy are made, or None if their probabilities cannot be computed.

    Examples
    --------
    >>> from dynabandit.policies import AffRevenueTS, TS, UCB
    >>> choice_of(UCB.functions).law, choice_of(TS.functions).law.family, choice_of(AffRevenueTS.functions)
    (None, 'Beta', None)
    """
    if functions.in_python:
        return None
    law = functions.law
    if functions.posterior is not None:
        law = ScoreLaw(BETA, make_beta_numbers(functions.posterior))
    elif law is None and any(is_random(one) for one in (functions.score, functions.common, functions.prepare)):
        return None
    exploration: Callable[..., float] | None = functions.exploration
    if exploration is None and functions.explore is not never_explore:
        if is_random(functions.explore):
            return None
        exploration = functions.explore
    return Choice(law, functions.optimistic, exploration)


def is_random(function: Callable[..., Any]) -> bool:
    """Return whether a function of a policy draws random numbers: all of them are made by `core.philox`."""
    return refers_to(function, philox)


def make_beta_numbers(posterior: Callable[..., tuple[float, float]]) -> Callable[..., tuple[float, float]]:
    """Return the numbers of a Beta law."""

    @kernel
    def numbers(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        return not_empty(posterior(state, arm, step, params))

    return numbers


@functools.cache
def write_laws(functions: PolicyFunctions) -> Callable[..., None]:
    """Return write_laws(state, number, params, space, laws), compiled: the numbers of the law of each arm."""
    choice = choice_of(functions)
    assert choice is not None
    assert choice.law is not None
    numbers_of, common, prepare = choice.law.numbers, functions.common, functions.prepare
    read_params = vector_reader(functions.params)

    @kernel
    def write_laws(state: PolicyState, number: int, params: np.ndarray, space: Workspace, laws: np.ndarray) -> None:
        read = read_params(params)
        random = Stream(0, 0, 0)
        step = Step(number, laws.shape[0], common(state, number, read), space.features, space.table, random)
        prepare(state, step, read)
        for arm in range(laws.shape[0]):
            numbers = numbers_of(state, arm, step, read)
            for place in range(len(numbers)):
                laws[arm, place] = numbers[place]

    return compiled(write_laws)


def probabilities_of(choice: Choice, laws: np.ndarray) -> np.ndarray | None:
    """Return the probability of each arm that it has the largest score, or None if a law is not known."""
    assert choice.law is not None
    family = choice.law.family
    if family == WEIGHTS:
        probabilities = laws[:, 0] / math.fsum(laws[:, 0])
    elif family == COMMON_NORMAL:
        probabilities = on_upper_envelope(laws[:, 0], laws[:, 1])
    else:
        probabilities = probability_of_largest.largest_probabilities(INTEGRATED[family], laws, choice.optimistic)
    return None if math.isnan(probabilities[0]) else probabilities


def with_exploration(
    functions: PolicyFunctions,
    exploration: Callable[..., float],
    decision: tuple[PolicyState, int, np.ndarray, Workspace],
    probabilities: np.ndarray,
) -> np.ndarray:
    """Return the probability of each arm, if a random one may be played instead of the leader.

    `decision` is what `write_laws` takes, and `probabilities` has the probability of each arm to be the leader.
    """
    state, number, row, space = decision
    params, arms = vector_reader(functions.params)(row), len(probabilities)
    random = Stream(0, 0, 0)
    step = Step(number, arms, functions.common(state, number, params), space.features, space.table, random)
    chances = np.zeros(arms)
    for leader in np.flatnonzero(probabilities):
        chances[leader] = float(exploration(state, int(leader), step, params))
    return np.asarray((1.0 - chances) * probabilities + math.fsum(chances * probabilities) / arms)


def probabilities_of_ties(scores: np.ndarray) -> np.ndarray:
    """Return the probability of each arm if scores are not random: arms with the largest score are equally likely.

    Examples
    --------
    >>> probabilities_of_ties(np.array([1.0, 3.0, 3.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    if len(scores) > MOST_ARMS:
        best = np.asarray(scores == np.fmax.reduce(scores))
        return best / np.count_nonzero(best)
    values = scores.tolist()  # for few arms lists are faster than arrays
    largest = max(values)
    if values.count(largest) > 1:
        return np.asarray((scores == largest) / values.count(largest))
    probabilities = np.zeros(len(values))
    probabilities[values.index(largest)] = 1.0
    return probabilities


def on_upper_envelope(means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the probability of each arm that its mean + max(z, 0) deviation is the largest, for one normal z.

    The scores are lines in z. The largest mean wins for z < 0; above, the winner changes where a steeper line crosses
    the current one.

    Examples
    --------
    >>> on_upper_envelope(np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(4).tolist()
    [0.8413, 0.1587]
    """
    probabilities = 0.5 * probabilities_of_ties(means)
    winner, reached = int(np.lexsort((deviations, means))[-1]), 0.5  # the probability of a smaller z
    while True:
        same = (means == means[winner]) & (deviations == deviations[winner])
        steeper = np.flatnonzero(deviations > deviations[winner])
        if len(steeper) == 0:
            return probabilities + same * (1.0 - reached) / np.count_nonzero(same)
        crossings = (means[winner] - means[steeper]) / (deviations[steeper] - deviations[winner])
        until = 0.5 * math.erfc(-float(crossings.min()) / math.sqrt(2.0))
        probabilities += same * (until - reached) / np.count_nonzero(same)
        next_ones = steeper[crossings == crossings.min()]
        winner, reached = int(next_ones[np.argmax(deviations[next_ones])]), until
