"""SW-UCB# and LM-DSEE, literally: Wei & Srivastava (2018), arXiv 1802.08380.

SW-UCB#: before step t + 1, with the latest tau = min(ceil(lambda t^alpha), t) rewards of all arms,
    mean of the arm in this window + sqrt((1 + alpha) log t / number of its rewards in the window).
LM-DSEE: epoch k plays every arm L(k) = ceil(gamma log(k^rho l b)) times, in turn, then the arm with the largest mean of
these plays until the epoch has lasted ceil(a k^rho l) steps; the next epoch knows nothing. gamma = 2 / gap^2, rho =
(1 - nu) / (1 + nu), and l is the first number from K gamma / a on with K ceil(gamma log(l b)) <= a l and a positive
logarithm.
"""

import math
from collections.abc import Sequence

History = Sequence[tuple[int, float]]


def window(t: int, alpha: float, scale: float, capacity: int) -> int:
    return min(math.ceil(scale * t**alpha), t, capacity)


def sw_ucb_sharp(history: History, arm: int, alpha: float, scale: float, capacity: int) -> float:
    """The index of an arm before step len(history) + 1."""
    t = len(history)
    latest = history[t - window(t, alpha, scale, capacity) :] if t else []
    rewards = [reward for played, reward in latest if played == arm]
    if not rewards:
        return math.inf
    return math.fsum(rewards) / len(rewards) + math.sqrt((1 + alpha) * math.log(t) / len(rewards))


def first_length(arms: int, gap: float, a: float, b: float) -> int:
    length = math.ceil(arms * 2 / gap**2 / a)
    while not 0 < arms * math.ceil(2 / gap**2 * math.log(length * b)) <= a * length:
        length += 1
    return length


def lm_dsee(history: History, arms: int, nu: float, gap: float, a: float, b: float) -> set[int]:
    """The arms that may be played at step len(history) + 1."""
    rho, length = (1 - nu) / (1 + nu), first_length(arms, gap, a, b)
    begin, epoch = 0, 1
    while True:
        growth = epoch**rho * length
        plays = math.ceil(2 / gap**2 * math.log(growth * b))
        end = begin + max(math.ceil(a * growth), arms * plays)
        if len(history) < end:
            break
        begin, epoch = end, epoch + 1
    place = len(history) - begin
    if place < arms * plays:
        return {place % arms}
    explored = history[begin : begin + arms * plays]
    means = [math.fsum(reward for played, reward in explored if played == arm) / plays for arm in range(arms)]
    return {arm for arm in range(arms) if max(means) - means[arm] < 1e-9}
