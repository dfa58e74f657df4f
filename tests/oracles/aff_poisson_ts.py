"""AFF-Poisson-TS, literally: Gamma(a + m~, b + w~), the posterior of a Poisson mean with discounted data.

While an arm is idle, m and w are multiplied by lambda^(idle/|A|), but w never falls below one count.
"""

import math

from oracles import paper
from oracles.unit_free import History, forgettings, idle_factor


def posterior(
    history: History, arm: int, arms: int, step_size: float, floor: float, prior: tuple[float, float]
) -> tuple[float, float]:
    """Shape and rate."""
    own = [reward for played, reward in history if played == arm]
    if not own:
        return prior
    found = forgettings(own, step_size, floor)
    factors = paper.weights(found, len(own))
    m, w = paper.dot(factors, own), math.fsum(factors)
    factor = idle_factor(found[-1], history, arm, arms)
    if factor * w < 1.0:
        factor = 1.0 / w
    return prior[0] + factor * m, prior[1] + factor * w
