"""AFF-Revenue-TS, literally: a reward is 0, or an amount whose logarithm is normal.

The conversion has the Beta law of AFF-TS on whether a reward is positive; the logarithms of the positive rewards have
the normal law of AFF-Normal-TS. Amounts are measured in units of the first amount of any arm. The mean reward of a
log-normal amount with conversion p is p exp(mu + s^2 / 2). The Beta prior counts as `prior` rewards with the share of
positive rewards of all arms, one positive and one zero added.
"""

import math
from typing import NamedTuple

from oracles import paper
from oracles.unit_free import History, estimate, forgettings, idle_factor


class Laws(NamedTuple):
    a: float  # conversion ~ Beta(a, b)
    b: float
    center: float  # mean logarithm ~ N(center, deviation^2)
    deviation: float
    variance: float  # of a logarithm


def laws(history: History, arm: int, arms: int, step_size: float, floor: float, prior: float) -> Laws:
    own = [reward for played, reward in history if played == arm]
    usual = (sum(reward > 0 for _, reward in history) + 1) / (len(history) + 2)
    a, b = prior * usual, prior * (1 - usual)
    if own:
        converted = [float(reward > 0) for reward in own]
        found = forgettings(converted, step_size, floor)
        factors = paper.weights(found, len(own))
        factor = idle_factor(found[-1], history, arm, arms)
        a += factor * paper.dot(factors, converted)
        b += factor * paper.dot(factors, [1 - value for value in converted])
    amounts = [reward for _, reward in history if reward > 0]
    logs = [math.log(amount / amounts[0]) for amount in amounts]
    found_log = estimate([math.log(reward / amounts[0]) for reward in own if reward > 0], logs, step_size, floor)
    size = max(found_log.size * idle_factor(found_log.forgetting, history, arm, arms), 1.0)
    return Laws(a, b, found_log.mean, math.sqrt(found_log.variance / size), found_log.variance)
