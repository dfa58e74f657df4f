"""The bandit over window lengths, literally: Cheung, Simchi-Levi & Zhu (2019), with the SW-UCB of Garivier & Moulines.

Time is divided into blocks of H steps. Before each block Exp3 draws one of the window lengths H^(j / D), j = 0..D, and
SW-UCB starts anew with it. After the block, Exp3 learns its mean reward.
"""

import math
from collections.abc import Callable, Sequence

History = Sequence[tuple[int, float]]


def lengths(block: int) -> list[int]:
    """The window lengths, from 1 to H."""
    steps = max(math.ceil(math.log(block)), 1)
    return [max(math.floor(block ** (j / steps) + 1e-9), 1) for j in range(steps + 1)]


def tuned(arms: int, horizon: int, capacity: int) -> tuple[int, float]:
    """H and the exploration of Exp3."""
    block = min(math.floor(math.sqrt(arms * horizon)), capacity, horizon)
    number, blocks = len(lengths(block)), math.ceil(horizon / block)
    return block, min(1.0, math.sqrt(number * math.log(number) / ((math.e - 1) * blocks)))


def window(history: History, block: int, exploration: float, draw: Callable[[int], float]) -> int:
    """The window length at step len(history) + 1; draw(n) is the random number after n rewards."""
    windows = lengths(block)
    weights = [1.0] * len(windows)
    chosen, chance = len(windows) - 1, 1.0  # the first block has the longest window
    for end in range(block, len(history) + 1, block):
        reward = math.fsum(reward for _, reward in history[end - block : end]) / block
        weights[chosen] *= math.exp(exploration / len(windows) * reward / chance)
        shares = [(1 - exploration) * weight / sum(weights) + exploration / len(windows) for weight in weights]
        left, chosen = draw(end), 0
        while chosen < len(windows) - 1 and left >= shares[chosen]:
            left -= shares[chosen]
            chosen += 1
        chance = shares[chosen]
    return windows[chosen]


def index(history: History, arm: int, block: int, length: int) -> float:
    """The index of SW-UCB in the running block."""
    latest = history[len(history) // block * block :][-length:]
    rewards = [reward for played, reward in latest if played == arm]
    if not rewards:
        return math.inf
    return math.fsum(rewards) / len(rewards) + math.sqrt(0.6 * math.log(len(latest)) / len(rewards))
