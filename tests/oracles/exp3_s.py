"""Exp3.S, literally: Auer, Cesa-Bianchi, Freund & Schapire (2002), figure 4 and corollaries 8.2 and 8.3."""

import math
from collections.abc import Sequence

History = Sequence[tuple[int, float]]


def probabilities(history: History, arms: int, exploration: float, sharing: float) -> list[float]:
    """p_1..p_K of step len(history) + 1; `exploration` is gamma, `sharing` is alpha."""
    weights = [1.0] * arms
    for played, reward in history:
        p = mixed(weights, exploration)
        total = math.fsum(weights)
        estimates = [reward / p[arm] if arm == played else 0.0 for arm in range(arms)]
        weights = [
            weight * math.exp(exploration * estimate / arms) + math.e * sharing / arms * total
            for weight, estimate in zip(weights, estimates, strict=True)
        ]
    return mixed(weights, exploration)


def mixed(weights: Sequence[float], exploration: float) -> list[float]:
    """The weights' shares, with a part `exploration` of uniform chance."""
    total = math.fsum(weights)
    return [(1 - exploration) * weight / total + exploration / len(weights) for weight in weights]


def tuned(arms: int, horizon: int, hardness: int | None = None) -> tuple[float, float]:
    """gamma and alpha; the hardness is one more than the number of switches, and None if it is unknown."""
    if hardness is None:  # corollary 8.2
        return min(1.0, math.sqrt(arms * math.log(arms * horizon) / horizon)), 1 / horizon
    learning = arms * (hardness * math.log(arms * horizon) + math.e)  # corollary 8.3
    return min(1.0, math.sqrt(learning / ((math.e - 1) * horizon))), 1 / horizon
