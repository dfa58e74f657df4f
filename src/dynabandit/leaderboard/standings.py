"""Who is best where: ranks with critical differences, regret against the best, and how soon a change is seen."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynabandit.errors import extra
from dynabandit.results import Results, Run
from dynabandit.stats.rank_tests import critical_difference

__all__ = ["HEADINGS", "Standing", "as_json", "as_markdown", "cells", "standings"]

HEADINGS = (
    "policy", "mean rank", "regret, times the best", "worst world", "best in", "steps to see a change", "µs a step",
)  # fmt: skip
ONE_CHANGE = "one-change"
HALF = 0.5
WINDOW = 50  # steps


@dataclass(frozen=True)
class Standing:
    """One policy's row."""

    policy: str
    rank: float
    """Mean rank over all worlds, 1 for the least regret; NaN for a yardstick, which is not ranked."""
    ratio: float
    """Geometric mean over all worlds of its mean regret over the least of any ranked policy there."""
    worst: float
    """The largest of these ratios."""
    wins: int
    """In how many worlds it has the least regret."""
    delay: float
    """Steps after the change of `one-change` until half of the plays go to the new best arm; NaN if never."""
    microseconds: float
    """Time of a step on one core with ten arms; NaN where it was not measured."""

    @property
    def ranked(self) -> bool:
        """Whether it takes part in the ranking."""
        return not math.isnan(self.rank)


def standings(
    results: Results, yardsticks: Sequence[str] = (), microseconds: Mapping[str, float] | None = None
) -> list[Standing]:
    """Return all rows, the best mean rank first and the yardsticks last.

    Parameters
    ----------
    results
        Of the leaderboard's experiments, each with the same policies.
    yardsticks
        Policies that are told what no user knows: shown, but not ranked.
    microseconds
        Time of a step of each policy.
    """
    worlds: dict[str, dict[str, Run]] = {}
    for run in results:
        worlds.setdefault(run.experiment, {})[run.label] = run
    changed = worlds.pop(ONE_CHANGE, {})
    labels = list(next(iter(worlds.values()), changed))
    ranked = [label for label in labels if label not in yardsticks]
    regret = np.array([[float(world[label].total_regret.mean()) for label in labels] for world in worlds.values()])
    regret = regret.reshape(len(worlds), len(labels))
    of_ranked = regret[:, [labels.index(label) for label in ranked]]
    rankdata = extra("scipy.stats", "lab").rankdata
    ranks = dict(zip(ranked, rankdata(of_ranked, axis=1).mean(axis=0).tolist(), strict=True)) if worlds else {}
    least = of_ranked.min(axis=1, keepdims=True) if worlds else np.ones((0, 1))
    ratios = regret / np.maximum(least, np.finfo(float).tiny)
    rows = [
        Standing(
            policy=label,
            rank=ranks.get(label, math.nan),
            ratio=_geometric(ratios[:, i]),
            worst=float(ratios[:, i].max()) if worlds else math.nan,
            wins=int((regret[:, i] <= least[:, 0]).sum()) if label in ranked else 0,
            delay=_delay(changed[label]) if label in changed else math.nan,
            microseconds=(microseconds or {}).get(label, math.nan),
        )
        for i, label in enumerate(labels)
    ]
    return sorted(rows, key=lambda row: (not row.ranked, row.rank if row.ranked else 0.0, row.policy))


def cells(row: Standing) -> list[str]:
    """Return a row as text, a cell for each of `HEADINGS`."""
    return [
        row.policy, f"{row.rank:.1f}" if row.ranked else "yardstick", _number(row.ratio), _number(row.worst),
        str(row.wins) if row.ranked else "", "never" if math.isnan(row.delay) else f"{row.delay:.0f}",
        _number(row.microseconds),
    ]  # fmt: skip


def as_markdown(rows: Sequence[Standing], results: Results) -> str:
    """Return the leaderboard as a table with a line on how to read it."""
    worlds = sorted({run.experiment for run in results} - {ONE_CHANGE})
    ranked = [row for row in rows if row.ranked]
    apart = critical_difference(len(ranked), len(worlds))
    replications = max((run.replications for run in results), default=0)
    reading = f"{len(ranked)} policies in {len(worlds)} worlds, {replications:,} replications each."
    if not math.isnan(apart):
        reading += f" Mean ranks differ by more than chance where they are {apart:.1f} or more apart (Nemenyi, 5 %)."
    reading += " Yardsticks are told what no user knows, and are not ranked."
    lines = [reading, "", f"| {' | '.join(HEADINGS)} |", f"|---|{'--:|' * (len(HEADINGS) - 1)}"]
    for row in rows:
        policy, *others = cells(row)
        lines.append(f"| {' | '.join([f'`{policy}`', *others])} |")
    return "\n".join([*lines, "", f"Worlds: {', '.join(worlds)}.", ""])


def as_json(rows: Sequence[Standing], results: Results) -> str:
    """Return the leaderboard as JSON, with each world's mean regret."""
    worlds: dict[str, dict[str, float]] = {}
    for run in results:
        worlds.setdefault(run.experiment, {})[run.label] = float(run.total_regret.mean())
    ranked = sum(row.ranked for row in rows)
    content: dict[str, Any] = {
        "critical_difference": critical_difference(ranked, len(worlds.keys() - {ONE_CHANGE})),
        "standings": [asdict(row) for row in rows],
        "mean_regret": worlds,
    }
    return json.dumps(_without_nan(content), indent=2, allow_nan=False) + "\n"


def _delay(run: Run) -> float:
    """Return after how many steps half of the plays of the next steps go to the new best arm.

    Over several steps, since a policy that looks at every arm by a timetable plays the new best arm now and then
    without having seen anything.
    """
    after = run.correct[1:]  # the first recorded step is the last before the change
    length = min(WINDOW, after.size)
    if length == 0:
        return math.nan
    shares = np.convolve(after, np.full(length, 1.0 / length), mode="valid")
    seen = np.flatnonzero(shares >= HALF - 1e-9)
    return float(run.times[1:][seen[0]] - run.times[0]) if seen.size else math.nan


def _geometric(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(np.maximum(ratios, np.finfo(float).tiny)).mean())) if ratios.size else math.nan


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
