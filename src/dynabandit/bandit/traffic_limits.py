"""Traffic limits: the smallest and the largest share of the decisions that an arm gets, whatever the policy prefers."""

import copy
import math
from typing import Any

import numpy as np

from dynabandit.validation import number

ROUNDING = 1e-9  # 0.1 * 30 is a little over 3, and must not allow a fourth play


class TrafficLimits:
    """The limits of each column, and the plays since they were last changed.

    A minimum share holds in probability: with that probability the arm is chosen without asking the policy, so every
    arm with a minimum share has a known positive propensity. A maximum share holds by count: after n decisions the arm
    was chosen at most ceil(share * n) times. If they conflict, the maximum share takes precedence.
    """

    def __init__(self, columns: int) -> None:
        self.least = np.zeros(columns)
        self.most = np.ones(columns)
        self.plays = np.zeros(columns, dtype=np.int64)

    def grow(self) -> None:
        """Add an arm without limits."""
        self.least = np.append(self.least, 0.0)
        self.most = np.append(self.most, 1.0)
        self.plays = np.append(self.plays, 0)

    def limit(self, column: int, least: float, most: float, active: np.ndarray) -> None:
        """Set the limits of one arm and restart the count of plays."""
        least = number("min_share", least, 0.0, 1.0)
        most = number("max_share", most, 0.0, 1.0, open_low=True)
        if least > most:
            raise ValueError(f"min_share must be at most max_share = {most:g}, got {least:g}")
        others = float(self.least[active].sum() - self.least[column])
        if others + least > 1.0 + ROUNDING:
            raise ValueError(
                f"min_share must be at most {max(0.0, 1.0 - others):g}, what the other arms leave, got {least:g}"
            )
        self.least[column] = least
        self.most[column] = most
        self.plays[:] = 0

    def of(self, column: int) -> tuple[float, float]:
        """Return the minimum and the maximum share of a column."""
        return float(self.least[column]), float(self.most[column])

    @property
    def unlimited(self) -> bool:
        """Whether no arm has a limit."""
        return not self.least.any() and bool((self.most == 1.0).all())

    def allowed(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns that the next decision may choose: all of them if each is at its maximum."""
        after = int(self.plays.sum()) + 1
        room = self.plays[columns] + 1 <= np.ceil(self.most[columns] * after - ROUNDING)
        return columns[room] if room.any() else columns

    def reserved(self, columns: np.ndarray, uniform: float) -> int:
        """Return the place in `columns` of the arm that its minimum share chooses, or -1 to ask the policy."""
        bounds = np.cumsum(self.least[columns])
        return -1 if uniform >= bounds[-1] else int(np.searchsorted(bounds, uniform, side="right"))

    def mixed(self, columns: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """Return the probability of each of `columns`, given the policy's probabilities."""
        least = self.least[columns]
        return least + max(0.0, 1.0 - math.fsum(least)) * probabilities

    def copy(self) -> "TrafficLimits":
        """Return an independent copy."""
        other = copy.copy(self)
        other.least, other.most, other.plays = self.least.copy(), self.most.copy(), self.plays.copy()
        return other

    def to_json(self) -> dict[str, Any]:
        """Return the limits and plays as lists."""
        return {"least": self.least.tolist(), "most": self.most.tolist(), "plays": self.plays.tolist()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "TrafficLimits":
        """Return what `to_json` wrote."""
        limits = cls(0)
        limits.least = np.array(content["least"], dtype=float)
        limits.most = np.array(content["most"], dtype=float)
        limits.plays = np.array(content["plays"], dtype=np.int64)
        return limits
