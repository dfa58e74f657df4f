"""The data of the live pages, computed from histories: plain values, ready to be drawn."""

import heapq
import itertools
import math
from typing import Any

import numpy as np

from dynabandit.service.domain.alerts import api_alert
from dynabandit.service.domain.events import api_event
from dynabandit.service.domain.shadow import Shadow
from dynabandit.service.monitoring_types import ShadowState
from dynabandit.service.projections.arm_comparison import MAX_COMPARED, probabilities_of_best, uplifts
from dynabandit.service.projections.bandit_history import BanditHistory
from dynabandit.service.projections.chart_points import ChartSeries
from dynabandit.service.projections.recent_contexts import example_context
from dynabandit.stats.intervals import Estimate, agresti_coull, binomial_total

MAX_LINES = 12  # arms with lines of their own; the others are drawn as one area
MAX_LISTED = MAX_COMPARED  # arms in the table
SPARKLINE_POINTS = 60
RECENT_STEPS, RECENT_SHARE = 100, 0.05  # "the last N decisions": N is at least this many, and this share of all
SMOOTH_STEPS, SMOOTH_SHARE = 30, 0.025  # likewise, the window over which the share of an arm is computed
CHANGE_SHOWN_STEPS = 1_000  # decisions for which a detected change counts as recent


def overview_entry(history: BanditHistory, last_sequence: int) -> dict[str, Any]:
    """Return the data of one bandit on the overview page; `last_sequence` is the last event of its log."""
    series = history.series()
    plays = _recent_plays(series)
    leader = int(plays.argmax()) if plays.sum() > 0 else None
    return {
        "name": history.name,
        "policy": history.bandit.policy.name,
        "bounded": history.is_bounded,
        "features": [] if history.bandit.features is None else list(history.bandit.features.names),
        **_counts(history, last_sequence),
        **_recent_rate(series),
        "leader": None if leader is None else history.bandit.names[leader],
        "leader_share": None if leader is None else _round(plays[leader] / plays.sum()),
        "forgetting": _round(_lowest_forgetting(history)),
        "change": _recent_change(history),
        "wall": history.wall,
        "sparkline": _sparkline(history, series),
    }


def bandit_page_data(history: BanditHistory, last_sequence: int, units: int | None = None) -> dict[str, Any]:
    """Return the data of the page of one bandit; `last_sequence` is the last event of its log.

    `units` is the number of units that keep their arm now.
    """
    bandit, names = history.bandit, history.bandit.names
    series = history.series()
    most_played = heapq.nlargest(MAX_LINES, range(history.tracked), key=lambda column: history.plays[column])
    baseline = _uniform_baseline(history, series)
    return {
        "name": history.name,
        "policy": bandit.policy.name,
        "parameters": bandit.policy.parameters,
        "bounded": history.is_bounded,
        "wall": history.wall,
        "reward_window": history.reward_window,
        "learn": history.learner.rule,
        "settling_age": history.learner.age,
        "held": history.learner.held(history.steps),
        "units": units,
        "for_units": history.for_units,
        "sticky_for": history.sticky_for,
        "contextual": history.is_contextual,
        "has_features": bandit.context is not None,
        "features": _features(history),
        "example_context": None if bandit.features is None else example_context(bandit.features),
        "has_arm_features": bandit.context is not None and bandit.context.per_arm,
        **_counts(history, last_sequence),
        **_recent_rate(series),
        "total": _round(history.uniform.total),
        "uniform": [_round(values[-1]) if len(values) else 0.0 for values in baseline],
        "arms": _arms(history, series),
        "control": None,  # the arm with which `compared_with` compares the others
        "uplift": None,
        "retired": _retired_arms(history),
        "arm_count": len(history.columns),
        "series": _shared_series(series, baseline),
        "lines": [_line(history, column, series) for column in sorted(most_played)],
        "others": _other_arms(history, most_played, series),
        "changes": _changes(history),
        "recent_change": _recent_change(history),
        "interventions": [
            {"step": step, "wall": wall, "arm": None if column is None else names[column], "column": column, **change}
            for step, wall, column, change in history.interventions
        ],
        "holdout": None if history.monitoring.lift is None else history.monitoring.lift.view(),
        "shadow": None if history.shadow is None else _shadow(history.shadow),
        "guardrails": history.monitoring.guardrails.views(names),
        "alerts": [api_alert(event) for event in reversed(history.alerts)],
        "events": [api_event(event, names) for event in reversed(history.latest_events)],
    }


def compared_with(control: str | None, data: dict[str, Any], history: BanditHistory) -> dict[str, Any]:
    """Return the data of a page on which the arms are compared with a control arm."""
    if control is None:
        return data
    found = uplifts(history, control, [arm["column"] for arm in data["arms"]])
    shown = None if found is None else [None if one is None else _rounded_parts(one) for one in found]
    return {**data, "control": control, "uplift": shown}


def _shadow(shadow: Shadow) -> ShadowState:
    """Return the shadow policy with the arms that both policies chose most."""
    found = shadow.view()
    most = set(
        heapq.nlargest(MAX_LINES, range(len(found.arms)), key=lambda n: found.arms[n].decided + found.arms[n].chosen)
    )
    found.arms = [one for number, one in enumerate(found.arms) if number in most]
    return found


def _counts(history: BanditHistory, last_sequence: int) -> dict[str, Any]:
    count = history.uniform.count
    return {
        "sequence": history.sequence,
        "last_sequence": max(last_sequence, history.sequence),
        "decisions": history.steps,
        "rewarded": history.settled - history.closed,
        "pending": history.steps - history.settled,
        "expired": history.closed,
        "rate": _round(history.uniform.total / count) if count else None,
    }


def _features(history: BanditHistory) -> list[dict[str, Any]]:
    """Return the declared features; if their values can be listed, with the latest decisions for each value."""
    encoder = history.bandit.features
    if encoder is None:
        return []
    found, names = history.contexts.by_feature(encoder.features), history.bandit.names
    for one in itertools.chain.from_iterable(found.values()):
        one["rate"] = _round(one["rate"])
        one["arms"] = [
            {"arm": names[column], "column": column, "share": _round(share)} for column, share in one["arms"].items()
        ]
    return [{"name": one.name, "kind": one.kind, "values": found.get(one.name, [])} for one in encoder.features]


def _changes(history: BanditHistory) -> list[dict[str, Any]]:
    """Return the detected changes, the latest last."""
    return [
        {
            "arm": history.bandit.names[column], "column": column, "step": change.step, "since": change.since,
            "before": _round(change.before), "after": _round(change.after),
        }
        for column, change in history.changes
    ]  # fmt: skip


def _recent_change(history: BanditHistory) -> dict[str, Any] | None:
    """Return the latest detected change if it is recent."""
    if not history.changes or history.steps - history.changes[-1][1].step > CHANGE_SHOWN_STEPS:
        return None
    return _changes(history)[-1]


# The last N decisions


def _recent_start(series: ChartSeries) -> int:
    """Return the first point of the last N decisions."""
    steps = series.step[-1]
    return int(np.searchsorted(series.step, steps - max(RECENT_STEPS, RECENT_SHARE * steps), side="right"))


def _recent_rate(series: ChartSeries) -> dict[str, Any]:
    """Return how many decisions count as recent, and the reward rate during them."""
    if len(series.step) == 0:
        return {"recent_decisions": 0, "recent_rate": None}
    start = _recent_start(series)
    steps, count, total = (
        values[-1] - (values[start - 1] if start else 0.0) for values in (series.step, series.rewards, series.total)
    )
    return {"recent_decisions": int(steps), "recent_rate": _round(total / count) if count > 0 else None}


def _recent_plays(series: ChartSeries) -> np.ndarray:
    """Return the plays of each tracked arm among the last N decisions."""
    start = _recent_start(series) if len(series.step) else 0
    return np.asarray(series.plays[start:].sum(axis=0))


def _rates(series: ChartSeries) -> list[float | None]:
    """Return the reward rate around each point."""
    if len(series.step) == 0:
        return []
    span = _smoothing_span(series)
    counts, totals = _increase(series.rewards, span), _increase(series.total, span)
    return [float(total / count) if count > 0 else None for count, total in zip(counts, totals, strict=True)]


def _sparkline(history: BanditHistory, series: ChartSeries) -> dict[str, Any]:
    """Return the reward rate at points from the first to the last decision of the charts, and how many these are.

    The place of a point is a fraction of these decisions.
    """
    rates, charted = _rates(series), history.charted
    if not rates:
        return {"decisions": charted, "points": []}
    points = np.unique(np.linspace(0, len(rates) - 1, SPARKLINE_POINTS).round().astype(int))
    places = (series.step[points] - (history.steps - charted)) / charted
    shown = [(_round(place), _round(rates[point])) for place, point in zip(places, points, strict=True)]
    return {"decisions": charted, "points": shown}


def _smoothing_span(series: ChartSeries) -> int:
    """Return over how many points shares and rates are computed."""
    last = series.step[-1]
    return max(1, math.ceil(max(SMOOTH_STEPS, SMOOTH_SHARE * last) * len(series.step) / max(last, 1)))


def _increase(totals: np.ndarray, span: int) -> np.ndarray:
    """Return how much totals grew over the last `span` points."""
    return totals - np.concatenate([np.zeros(min(span, len(totals))), totals[:-span]])


def _lowest_forgetting(history: BanditHistory) -> float | None:
    factors = [
        history.belief(column).forgetting
        for column in range(history.tracked)
        if history.rewards[column] >= RECENT_STEPS
    ]
    return min(factors, default=None)


# Arms


def _arms(history: BanditHistory, series: ChartSeries) -> list[dict[str, Any]]:
    recent = _recent_plays(series)
    total = max(recent.sum(), 1.0)
    columns = list(history.columns.items())
    if len(columns) > MAX_LISTED:
        columns = heapq.nlargest(MAX_LISTED, columns, key=lambda one: history.plays[one[1]])
    propensities = history.bandit.exact_propensities() if history.bandit.features is None else None
    beliefs = {column: history.belief(column) for _, column in columns}
    best = probabilities_of_best(history, beliefs)
    listed = []
    for name, column in sorted(columns, key=lambda one: one[1]):
        arm = beliefs[column]
        low, high = _interval(history, np.array([arm.mean]), np.array([arm.effective_size]), arm.variance)
        min_share, max_share = history.bandit.shares(name)
        listed.append(
            {
                "arm": name, "column": column, "mean": _round(arm.mean), "low": _round(low[0]), "high": _round(high[0]),
                "forgetting": _round(arm.forgetting), "effective_size": _round(arm.effective_size),
                "plays": history.plays[column], "pending": history.bandit.pending(column),
                "recent_share": _round(recent[column] / total) if column < len(recent) else None,
                "best": _round(best.get(column)),
                "propensity": None if propensities is None else _round(propensities.get(name, 0.0)),
                "paused": history.bandit.paused(name), "min_share": min_share, "max_share": max_share,
            }
        )  # fmt: skip
    return listed


def _interval(
    history: BanditHistory, mean: np.ndarray, size: np.ndarray, variance: float = math.nan
) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95 % interval of means; if rewards are not in [0, 1], from their variance, and NaN without it."""
    if history.is_bounded:
        return agresti_coull(mean, size)
    error = 1.96 * np.sqrt(variance / np.maximum(size, 1.0))
    return mean - error, mean + error


def _retired_arms(history: BanditHistory) -> list[dict[str, Any]]:
    """Return the arms that were retired last, the latest first."""
    bandit = history.bandit
    return [
        {"arm": bandit.names[column], "column": column, "plays": history.plays[column],
         "mean": _round(history.belief(column).mean)}
        for column in reversed(history.retired)
    ]  # fmt: skip


def _line(history: BanditHistory, column: int, series: ChartSeries) -> dict[str, Any]:
    """Return the lines of one arm."""
    name = history.bandit.names[column]
    retired = history.columns.get(name) != column
    mean = series.mean[:, column]
    known = ~np.isnan(mean)
    low, high = _interval(history, mean, series.effective_size[:, column])
    return {
        "arm": name,
        "column": column,
        "paused": not retired and history.bandit.paused(name),
        "retired": retired,
        "share": _rounded(_shares(series, [column])),
        "mean": _rounded(mean),
        "low": _rounded(np.where(known, low, math.nan)),
        "high": _rounded(np.where(known, high, math.nan)),
        "forgetting": _rounded(np.where(known, series.forgetting[:, column], math.nan)),
    }


def _other_arms(history: BanditHistory, drawn: list[int], series: ChartSeries) -> dict[str, Any] | None:
    """Return the share of all arms that have no lines of their own."""
    count = len(history.plays) - len(drawn)
    if count == 0 or len(series.step) == 0:
        return None
    return {"arms": count, "share": _rounded(np.clip(1.0 - _shares(series, drawn), 0.0, 1.0))}


def _shares(series: ChartSeries, columns: list[int]) -> np.ndarray:
    """Return the share of some arms together in the decisions around each point."""
    if len(series.step) == 0:
        return np.zeros(0)
    span = _smoothing_span(series)
    plays = _increase(np.cumsum(series.plays[:, columns].sum(axis=1)), span)
    return np.asarray(plays / np.maximum(_increase(series.step, span), 1.0))


# The whole bandit


def _uniform_baseline(history: BanditHistory, series: ChartSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the total reward of uniform choices at each point: lower end, estimate, upper end."""
    mean, variance = history.uniform.along(series.uniform_plays)
    if not history.is_bounded:
        unknown = np.full(len(mean), math.nan)
        return unknown, mean + series.untracked_mean, unknown
    return binomial_total(mean + series.untracked_mean, variance + series.untracked_variance, series.rewards)


def _shared_series(series: ChartSeries, baseline: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Return the series that all arms share."""
    return {
        "step": _rounded(series.step),
        "wall": [round(wall, 1) for wall in series.wall.tolist()],
        "total": _rounded(series.total),
        "lift": [_rounded(values) for values in (series.lift, series.lift_low, series.lift_high)],
        **{name: _rounded(values) for name, values in zip(("low", "middle", "high"), baseline, strict=True)},
    }


def _round(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(f"{value:.5g}")


def _rounded_parts(estimates: dict[str, Estimate]) -> dict[str, list[float | None]]:
    return {kind: [_round(number) for number in estimate] for kind, estimate in estimates.items()}


def _rounded(values: np.ndarray) -> list[float | int | None]:
    return [None if math.isnan(x) else int(x) if x == int(x) else float(f"{x:.5g}") for x in values.tolist()]
