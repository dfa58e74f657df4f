"""What the live page shows, made from histories: numbers only, ready to be drawn."""

import heapq
import math
from typing import Any

import numpy as np

from dynabandit.service.domain.events import api_event
from dynabandit.service.projections.history import (
    CLOSED,
    COUNT,
    FORGETTING,
    GATHERED,
    MEAN,
    PLAYS,
    REST,
    REST_VARIANCE,
    SIZE,
    STEP,
    TOTAL,
    WALL,
    History,
)
from dynabandit.stats.intervals import agresti_coull, binomial_total

__all__ = ["bandit_view", "overview_entry", "recent_change"]

MOST_LINES = 12  # arms that a chart draws one by one; the others are one layer
MOST_LISTED = 200  # arms in the table
RECENT_STEPS, RECENT_SHARE = 100, 0.05  # what "lately" means: so many decisions, or this part of all
SMOOTH_STEPS, SMOOTH_SHARE = 30, 0.025  # a share is that of so many decisions
CHANGED_STEPS = 1_000  # how long a change is news


def overview_entry(history: History, latest: int) -> dict[str, Any]:
    """Return a bandit's line in the list of all."""
    points, curves = history.series()
    share, leader = _leader(history, curves)
    return {
        "name": history.name,
        "policy": history.bandit.policy.name,
        "arms": len(history.columns),
        **_counts(history, latest),
        "recent_rate": _round(_recent_rate(points)),
        "leader": leader,
        "leader_share": _round(share),
        "forgetting": _round(_lowest_forgetting(history)),
        "change": recent_change(history),
        "spark": [_round(rate) for rate in _rates(points)[-60:]],
    }


def bandit_view(history: History, latest: int) -> dict[str, Any]:
    """Return all that the page of one bandit shows."""
    bandit, names = history.bandit, history.bandit.names
    points, curves = history.series()
    order = sorted(range(history.tracked), key=lambda column: -history.plays[column])[:MOST_LINES]
    random = _at_random(history, points, curves)
    return {
        "name": history.name,
        "policy": bandit.policy.name,
        "parameters": bandit.policy.parameters,
        "started": history.started,
        "wall": history.wall,
        "reward_window": history.window,
        **_counts(history, latest),
        "recent_rate": _round(_recent_rate(points)),
        "total": _round(history.uniform.total),
        "uniform": [_round(values[-1]) if len(values) else 0.0 for values in random],
        "arms": _arms(history, curves),
        "retired": _retired(history),
        "arm_count": len(history.columns),
        "series": _series(points, random),
        "lines": [_line(history, column, points, curves) for column in sorted(order)],
        "others": _others(history, sorted(order), points, curves),
        "changes": [
            {"arm": names[column], "column": column, "step": one.step, "since": one.since,
             "before": _round(one.before), "after": _round(one.after)}
            for column, one in history.changes
        ],
        "interventions": [
            {"step": step, "wall": wall, "arm": None if column is None else names[column], "column": column, **did}
            for step, wall, column, did in history.interventions
        ],
        "events": [api_event(row, names) for row in reversed(history.latest)],
    }  # fmt: skip


def recent_change(history: History) -> dict[str, Any] | None:
    """Return the latest change, while it is news."""
    if not history.changes or history.steps - history.changes[-1][1].step > CHANGED_STEPS:
        return None
    column, change = history.changes[-1]
    name = history.bandit.names[column]
    return {"arm": name, "step": change.step, "before": _round(change.before), "after": _round(change.after)}


def _counts(history: History, latest: int) -> dict[str, Any]:
    count = history.uniform.count
    return {
        "sequence": history.sequence,
        "latest": max(latest, history.sequence),
        "decisions": history.steps,
        "rewarded": history.settled - history.closed,
        "pending": history.steps - history.settled,
        "expired": history.closed,
        "rate": _round(history.uniform.total / count) if count else None,
    }


def _recent(steps: float) -> float:
    """Return how many of the latest of so many decisions were made lately."""
    return max(RECENT_STEPS, RECENT_SHARE * steps)


def _recent_rate(points: np.ndarray) -> float | None:
    if len(points) == 0:
        return None
    before = points[points[:, STEP] <= points[-1, STEP] - _recent(points[-1, STEP])]
    count, total = points[-1, [COUNT, TOTAL]] - (before[-1, [COUNT, TOTAL]] if len(before) else 0.0)
    return float(total / count) if count > 0 else None


def _rates(points: np.ndarray) -> list[float | None]:
    """Return the reward rate over time, each over a few points."""
    if len(points) == 0:
        return []
    back = _span(points)
    counts, totals = _lagged(points[:, COUNT], back), _lagged(points[:, TOTAL], back)
    return [float(total / count) if count > 0 else None for count, total in zip(counts, totals, strict=True)]


def _span(points: np.ndarray) -> int:
    """Return over how many points a share is taken."""
    steps = max(SMOOTH_STEPS, SMOOTH_SHARE * points[-1, STEP])
    return max(1, math.ceil(steps * len(points) / max(points[-1, STEP], 1)))


def _lagged(totals: np.ndarray, back: int) -> np.ndarray:
    """Return by how much totals grew over so many points."""
    return totals - np.concatenate([np.zeros((min(back, len(totals)), *totals.shape[1:])), totals[:-back]])


def _recent_plays(history: History, curves: np.ndarray) -> np.ndarray:
    """Return the plays of each tracked arm among the latest decisions."""
    if len(curves) == 0:
        return np.zeros(history.tracked)
    points = max(1, math.ceil(_recent(history.steps) / history.width))
    plays: np.ndarray = curves[-points:, PLAYS].sum(axis=0)
    return plays


def _leader(history: History, curves: np.ndarray) -> tuple[float | None, str | None]:
    """Return the arm that is chosen most lately, and its share of the decisions."""
    plays = _recent_plays(history, curves)
    if plays.sum() == 0:
        return None, None
    column = int(plays.argmax())
    return float(plays[column] / plays.sum()), history.bandit.names[column]


def _lowest_forgetting(history: History) -> float | None:
    found = [history.bandit.belief(c).forgetting for c in range(history.tracked) if history.counts[c] >= RECENT_STEPS]
    return min(found) if found else None


def _arms(history: History, curves: np.ndarray) -> list[dict[str, Any]]:
    recent = _recent_plays(history, curves)
    total = max(recent.sum(), 1.0)
    columns = list(history.columns.items())
    if len(columns) > MOST_LISTED:
        columns = heapq.nlargest(MOST_LISTED, columns, key=lambda one: history.plays[one[1]])
    listed = []
    for name, column in sorted(columns, key=lambda one: one[1]):
        arm = history.bandit.belief(column)
        low, high = agresti_coull(np.array([arm.mean]), np.array([arm.effective_size]))
        least, most = history.bandit.shares(name)
        listed.append(
            {
                "arm": name, "column": column, "mean": _round(arm.mean), "low": _round(low[0]), "high": _round(high[0]),
                "forgetting": _round(arm.forgetting), "effective_size": _round(arm.effective_size),
                "plays": history.plays[column], "rewards": history.counts[column],
                "share": _round(history.plays[column] / max(history.steps, 1)),
                "recent_share": _round(recent[column] / total) if column < len(recent) else None,
                "idle": history.steps - history.last[column],
                "paused": column in history.paused, "min_share": least, "max_share": most,
            }
        )  # fmt: skip
    return listed


def _retired(history: History) -> list[dict[str, Any]]:
    """Return the arms that were retired last, the latest first."""
    bandit = history.bandit
    return [
        {"arm": bandit.names[column], "column": column, "plays": history.plays[column],
         "mean": _round(bandit.belief(column).mean)}
        for column in reversed(history.retired)
    ]  # fmt: skip


def _at_random(history: History, points: np.ndarray, curves: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what choosing at random would have brought by each point: lower end, middle, upper end."""
    middle, variance = history.uniform.along(curves[:, GATHERED])
    return binomial_total(middle + points[:, REST], variance + points[:, REST_VARIANCE], points[:, COUNT])


def _series(points: np.ndarray, random: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, Any]:
    names = {"step": STEP, "wall": WALL, "total": TOTAL, "closed": CLOSED}
    series = {name: _rounded(points[:, index]) for name, index in names.items()}
    series["wall"] = [round(wall, 1) for wall in points[:, WALL].tolist()]
    ends = zip(("low", "middle", "high"), random, strict=True)
    return {**series, **{name: _rounded(values) for name, values in ends}}


def _line(history: History, column: int, points: np.ndarray, curves: np.ndarray) -> dict[str, Any]:
    """Return the curves of one arm."""
    name = history.bandit.names[column]
    line: dict[str, Any] = {"arm": name, "column": column, "paused": column in history.paused,
                            "retired": history.columns.get(name) != column}  # fmt: skip
    if len(points) == 0:
        return {**line, "share": [], "mean": [], "low": [], "high": [], "forgetting": []}
    low, high = agresti_coull(curves[:, MEAN, column], curves[:, SIZE, column])
    known = ~np.isnan(curves[:, MEAN, column])
    return {
        **line,
        "share": _rounded(_shares(points, curves[:, PLAYS, [column]])),
        "mean": _rounded(curves[:, MEAN, column]),
        "low": _rounded(np.where(known, low, math.nan)),
        "high": _rounded(np.where(known, high, math.nan)),
        "forgetting": _rounded(np.where(known, curves[:, FORGETTING, column], math.nan)),
    }


def _others(
    history: History, shown_columns: list[int], points: np.ndarray, curves: np.ndarray
) -> dict[str, Any] | None:
    """Return what the arms without a line of their own got together."""
    count = len(history.plays) - len(shown_columns)
    if count == 0 or len(points) == 0:
        return None
    drawn = _shares(points, curves[:, PLAYS][:, shown_columns])
    return {"arms": count, "share": _rounded(np.clip(1.0 - drawn, 0.0, 1.0))}


def _shares(points: np.ndarray, plays: np.ndarray) -> np.ndarray:
    back = _span(points)
    got = _lagged(np.cumsum(plays.sum(axis=1)), back)
    shares: np.ndarray = got / np.maximum(_lagged(points[:, STEP], back), 1.0)
    return shares


def _round(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(f"{value:.5g}")


def _rounded(values: np.ndarray) -> list[float | int | None]:
    return [None if math.isnan(x) else int(x) if x == int(x) else float(f"{x:.5g}") for x in values.tolist()]
