"""The standings of the leaderboard: mean ranks, regret relative to the best, and detection delay."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynabandit.extras import import_extra
from dynabandit.leaderboard.environments import ONE_CHANGE
from dynabandit.results import Results, Run
from dynabandit.stats.rank_tests import critical_difference

HEADINGS = (
    "policy", "mean rank", "regret, times the best", "worst environment", "best in", "steps to detect a change",
    "µs per step",
)  # fmt: skip
ORACLE = "oracle"
HALF = 0.5
WINDOW = 50  # steps


@dataclass(frozen=True)
class Standing:
    """The row of one policy."""

    policy: str
    rank: float
    """Mean rank over all environments, 1 for the least regret; NaN for an oracle policy, which is not ranked."""
    ratio: float
    """Its mean regret divided by the least of any ranked policy, as a geometric mean over all environments."""
    worst: float
    """The largest of these ratios."""
    wins: int
    """In how many environments it has the least regret."""
    delay: float
    """Steps after the change of `one-change` until half of the plays go to the new best arm; NaN if never."""
    microseconds: float
    """Time per step on one core with ten arms; NaN if it was not measured."""

    @property
    def ranked(self) -> bool:
        """Whether it is ranked."""
        return not math.isnan(self.rank)


def standings(
    results: Results, oracles: Sequence[str] = (), microseconds: Mapping[str, float] | None = None
) -> list[Standing]:
    """Return all rows, the best mean rank first and the oracle policies last.

    Parameters
    ----------
    results
        Of the leaderboard's experiments, each with the same policies.
    oracles
        Policies that know what no user knows: shown, but not ranked.
    microseconds
        Time per step of each policy.
    """
    by_environment = _by_environment(results)
    one_change = by_environment.pop(ONE_CHANGE, {})
    labels = list(next(iter(by_environment.values()), one_change))
    ranked = [label for label in labels if label not in oracles]
    regret = np.array([[_mean_regret(runs[label]) for label in labels] for runs in by_environment.values()])
    regret = regret.reshape(len(by_environment), len(labels))
    of_ranked = regret[:, [labels.index(label) for label in ranked]]
    ranks, least = {}, np.ones((0, 1))
    if by_environment:
        mean_ranks = import_extra("scipy.stats", "lab").rankdata(of_ranked, axis=1).mean(axis=0)
        ranks = dict(zip(ranked, mean_ranks.tolist(), strict=True))
        least = of_ranked.min(axis=1, keepdims=True)
    ratios = regret / np.maximum(least, np.finfo(float).tiny)
    rows = [
        Standing(
            policy=label,
            rank=ranks.get(label, math.nan),
            ratio=_geometric_mean(ratios[:, i]),
            worst=float(ratios[:, i].max()) if by_environment else math.nan,
            wins=int((regret[:, i] <= least[:, 0]).sum()) if label in ranked else 0,
            delay=_delay(one_change[label]) if label in one_change else math.nan,
            microseconds=(microseconds or {}).get(label, math.nan),
        )
        for i, label in enumerate(labels)
    ]
    return sorted(rows, key=lambda row: (not row.ranked, row.rank if row.ranked else 0.0, row.policy))


def cells(row: Standing) -> list[str]:
    """Return a row as text, one cell for each of `HEADINGS`."""
    return [
        row.policy, f"{row.rank:.1f}" if row.ranked else ORACLE, _number(row.ratio), _number(row.worst),
        str(row.wins) if row.ranked else "", "never" if math.isnan(row.delay) else f"{row.delay:.0f}",
        _number(row.microseconds),
    ]  # fmt: skip


def as_markdown(rows: Sequence[Standing], results: Results) -> str:
    """Return the leaderboard as a table with a sentence on how to read it."""
    environments = sorted({run.experiment for run in results} - {ONE_CHANGE})
    ranked = [row for row in rows if row.ranked]
    difference = critical_difference(len(ranked), len(environments))
    replications = max((run.replications for run in results), default=0)
    note = f"{len(ranked)} policies in {len(environments)} environments, {replications:,} replications each."
    if not math.isnan(difference):
        note += f" Mean ranks differ significantly if they are at least {difference:.1f} apart (Nemenyi test, 5 %)."
    note += " Oracle policies know the true means and are not ranked."
    lines = [note, "", f"| {' | '.join(HEADINGS)} |", f"|---|{'--:|' * (len(HEADINGS) - 1)}"]
    for row in rows:
        policy, *others = cells(row)
        lines.append(f"| {' | '.join([f'`{policy}`', *others])} |")
    return "\n".join([*lines, "", f"Environments: {', '.join(environments)}.", ""])


def as_json(rows: Sequence[Standing], results: Results) -> str:
    """Return the leaderboard as JSON, with the mean regret in each environment."""
    by_environment = _by_environment(results)
    ranked = sum(row.ranked for row in rows)
    content: dict[str, Any] = {
        "critical_difference": critical_difference(ranked, len(by_environment.keys() - {ONE_CHANGE})),
        "standings": [asdict(row) for row in rows],
        "mean_regret": {
            name: {label: _mean_regret(run) for label, run in runs.items()} for name, runs in by_environment.items()
        },
    }
    return json.dumps(_without_nan(content), indent=2, allow_nan=False) + "\n"


def write(rows: Sequence[Standing], results: Results, folder: Path) -> Path:
    """Write the leaderboard as JSON and as a Markdown table, and return the file of the table."""
    (folder / "leaderboard.json").write_text(as_json(rows, results), encoding="utf-8")
    table = folder / "leaderboard.md"
    table.write_text(as_markdown(rows, results), encoding="utf-8")
    return table


def _by_environment(results: Results) -> dict[str, dict[str, Run]]:
    """Return the runs by experiment, of which there is one for each environment, and by label."""
    found: dict[str, dict[str, Run]] = {}
    for run in results:
        found.setdefault(run.experiment, {})[run.label] = run
    return found


def _mean_regret(run: Run) -> float:
    return float(run.total_regret.mean())


def _delay(run: Run) -> float:
    """Return the number of steps until half of the plays of the next `WINDOW` steps go to the new best arm.

    Several steps are counted, since a policy that explores every arm at regular intervals plays the new best arm now
    and then without having detected the change.
    """
    after = run.correct[1:]  # the first recorded step is the last before the change
    length = min(WINDOW, after.size)
    if length == 0:
        return math.nan
    shares = np.convolve(after, np.full(length, 1.0 / length), mode="valid")
    detected = np.flatnonzero(shares >= HALF - 1e-9)
    return float(run.times[1:][detected[0]] - run.times[0]) if detected.size else math.nan


def _geometric_mean(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(np.maximum(ratios, np.finfo(float).tiny)).mean())) if ratios.size else math.nan


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
