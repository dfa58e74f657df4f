"""Chart points: the course of a bandit in at most 300 points, however long its log is."""

import math
from typing import Any, NamedTuple

import numpy as np

MAX_POINTS = 300


class ChartSeries(NamedTuple):
    """Chart points as arrays: (points,) for numbers of the whole bandit, (points, arms) for numbers of each arm.

    Plays are counted since the previous point; all other counts and sums are totals since the start.
    """

    step: np.ndarray
    wall: np.ndarray
    rewards: np.ndarray
    total: np.ndarray
    closed: np.ndarray
    untracked_mean: np.ndarray  # of the uniform baseline: the part of the arms that have no curves
    untracked_variance: np.ndarray
    lift: np.ndarray  # over the holdout, and its interval; NaN without one
    lift_low: np.ndarray
    lift_high: np.ndarray
    plays: np.ndarray
    mean: np.ndarray
    effective_size: np.ndarray
    forgetting: np.ndarray  # the lowest since the previous point
    uniform_plays: np.ndarray  # expected plays of the uniform baseline


ARM_FIELDS = ChartSeries._fields[ChartSeries._fields.index("plays") :]
WHOLE = len(ChartSeries._fields) - len(ARM_FIELDS)
PLAYS, FORGETTING, UNIFORM_PLAYS = (ARM_FIELDS.index(name) for name in ("plays", "forgetting", "uniform_plays"))


class ChartPoints:
    """Points that each cover `width` decisions. When there are too many, each two are merged into one."""

    def __init__(self) -> None:
        self.width = 1
        self.whole: list[list[float]] = []  # (points, fields of the whole bandit)
        self.per_arm = np.zeros((0, len(ARM_FIELDS), 0))  # (points, fields of each arm, arms)

    def add_arm(self) -> None:
        """Add an arm, which has no plays in the points so far."""
        empty = np.full((*self.per_arm.shape[:2], 1), math.nan)
        empty[:, [PLAYS, UNIFORM_PLAYS]] = 0.0
        self.per_arm = np.concatenate([self.per_arm, empty], axis=2)

    def append(self, whole: list[float], per_arm: np.ndarray) -> None:
        """Add a point."""
        self.whole.append(whole)
        self.per_arm = np.concatenate([self.per_arm, per_arm[None]])
        if len(self.whole) == MAX_POINTS:
            self._merge_pairs()

    def _merge_pairs(self) -> None:
        """Merge each two points: plays are added, the lower forgetting factor is kept, all else is the later one's."""
        self.width *= 2
        self.whole = self.whole[1::2]
        first, second = self.per_arm[::2], self.per_arm[1::2]
        merged = second.copy()
        merged[:, PLAYS] += first[:, PLAYS]
        merged[:, FORGETTING] = np.fmin(first[:, FORGETTING], second[:, FORGETTING])
        self.per_arm = merged

    def series(self, whole: list[float], per_arm: np.ndarray) -> ChartSeries:
        """Return all points, followed by one that is not complete yet."""
        all_whole = np.array([*self.whole, whole])
        all_per_arm = np.concatenate([self.per_arm, per_arm[None]])
        return ChartSeries(*all_whole.T, *np.moveaxis(all_per_arm, 1, 0))

    def empty_series(self) -> ChartSeries:
        """Return a series without points."""
        arms = self.per_arm.shape[2]
        return ChartSeries(*np.zeros((WHOLE, 0)), *np.zeros((len(ARM_FIELDS), 0, arms)))

    def to_plain(self) -> dict[str, Any]:
        """Return the points as plain values, which `from_plain` reads."""
        per_arm = [[[None if math.isnan(x) else x for x in row] for row in one] for one in self.per_arm.tolist()]
        whole = [[None if math.isnan(x) else x for x in one] for one in self.whole]
        return {"width": self.width, "whole": whole, "per_arm": per_arm, "arms": self.per_arm.shape[2]}

    @classmethod
    def from_plain(cls, content: dict[str, Any]) -> "ChartPoints":
        """Return the points that `to_plain` wrote."""
        points = cls()
        points.width = content["width"]
        points.whole = [[math.nan if x is None else x for x in one] for one in content["whole"]]
        shape = (len(points.whole), len(ARM_FIELDS), content["arms"])
        points.per_arm = np.array(content["per_arm"], dtype=float).reshape(shape)
        return points
