"""The data of the leaderboard: a summary of each policy in each environment, as JSON."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from dynabandit.leaderboard.environments import Trial
from dynabandit.results import Run

FORMAT = 1
FILE = "leaderboard.json"
POINTS = 20  # of a curve
BLOCKS = 10  # groups of replications, for the bootstrap
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
PRACTICAL, TUNED, ORACLE = "practical", "tuned", "oracle"  # forms of a policy


@dataclass(frozen=True)
class BoardEntry:
    """The regret of one policy in one environment."""

    trial: str
    policy: str
    """Its label: its name, and the parameters that were asked for."""
    form: str
    """``"practical"``, ``"tuned"`` (with the truth) or ``"oracle"``."""
    settings: str
    """The parameters of this form that differ from the defaults; empty if it is the policy that was asked for."""
    replications: int
    seed: int
    mean: float
    """The mean regret at the horizon."""
    error: float | None
    """Its standard error; None for a single replication."""
    quantiles: list[float]
    """Of the regret over replications, at `QUANTILES`; empty for a tuned form."""
    blocks: list[float]
    """The mean regret of each of up to `BLOCKS` groups of successive replications."""
    curve: list[float]
    """The mean regret at the times of the trial; empty for a tuned form."""
    code: str
    """Identifies the code that computed it."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies it among others."""
        return self.trial, self.policy, self.form, self.settings


def least_regret(entries: Iterable[BoardEntry]) -> dict[tuple[str, str], BoardEntry]:
    """Return the entry with the least mean regret of each policy in each environment, the first one of several."""
    best: dict[tuple[str, str], BoardEntry] = {}
    for entry in entries:
        known = best.get((entry.policy, entry.trial))
        if known is None or entry.mean < known.mean:
            best[entry.policy, entry.trial] = entry
    return best


COLUMNS = [column.name for column in fields(BoardEntry)]


@dataclass
class Board:
    """All entries, the environments they belong to, and what is known about each policy."""

    version: str = ""
    trials: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Family, number of arms, horizon, name, delay and recorded times of each environment, by id."""
    entries: list[BoardEntry] = field(default_factory=list)
    delays: dict[str, float | None] = field(default_factory=dict)
    """Steps to detect a change by policy; None if it never does."""
    microseconds: dict[str, float] = field(default_factory=dict)
    """Time per step by policy, with ten arms on one core."""
    hardware: list[str] = field(default_factory=list)
    """What the simulations ran on."""

    def add_trial(self, trial: Trial, times: Iterable[int]) -> None:
        """Add an environment."""
        environment = trial.environment
        self.trials[trial.id] = {
            "family": trial.family,
            "arms": environment.arms,
            "horizon": trial.horizon,
            "environment": environment.name,
            "delay": None if trial.delay is None else trial.delay.label,
            "times": [int(time) for time in times],
        }

    def merge(self, other: "Board") -> None:
        """Add everything of another board."""
        self.version = other.version or self.version
        self.trials |= other.trials
        new = {entry.key: entry for entry in other.entries}
        self.entries = [entry for entry in self.entries if entry.key not in new] + list(new.values())
        self.delays |= other.delays
        self.microseconds |= other.microseconds
        self.hardware = list(dict.fromkeys((*self.hardware, *other.hardware)))

    def keep_best_tuned(self) -> None:
        """Keep only the best tuned form of each policy in each environment."""
        others = [entry for entry in self.entries if entry.form != TUNED]
        self.entries = [*others, *least_regret(entry for entry in self.entries if entry.form == TUNED).values()]

    def save(self, path: Path) -> None:
        """Write the board, an entry per line: its values in the order of `columns`."""
        head = {
            "format": FORMAT, "version": self.version, "hardware": self.hardware, "trials": self.trials,
            "delays": self.delays, "microseconds": self.microseconds, "columns": COLUMNS,
        }  # fmt: skip
        order = sorted(self.entries, key=lambda entry: entry.key)
        lines = [f'  "{key}": {_json(value)},' for key, value in head.items()]
        entries = ",\n".join("    " + _json([getattr(entry, column) for column in COLUMNS]) for entry in order)
        path.write_text("\n".join(["{", *lines, '  "entries": [', entries, "  ]", "}", ""]), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError("it has another format")
            columns = content.pop("columns")
            entries = [BoardEntry(**dict(zip(columns, values, strict=True))) for values in content.pop("entries")]
            return cls(**content, entries=entries)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be a file that `dynabandit leaderboard` wrote: {error}") from None


def summarise(run: Run, trial: Trial, asked: str, form: str, code: str) -> BoardEntry:
    """Return the entry of a run of a form of the policy with the label `asked`."""
    total = run.total_regret
    groups = np.array_split(total, min(BLOCKS, len(total)))
    error = _rounded(total.std(ddof=1) / math.sqrt(len(total)), 3) if len(total) > 1 else None
    shown = form != TUNED  # of a tuned form only the mean is shown
    return BoardEntry(
        trial=trial.id, policy=asked, form=form,
        settings="" if run.label == asked else run.label.removeprefix(run.policy).removeprefix("(").removesuffix(")"),
        replications=run.replications, seed=run.seed, mean=_rounded(total.mean(), 6), error=error,
        quantiles=[_rounded(value, 4) for value in np.quantile(total, QUANTILES)] if shown else [],
        blocks=[_rounded(group.mean(), 5) for group in groups],
        curve=[_rounded(value, 4) for value in run.regret.mean(axis=0)] if shown else [],
        code=code[:12],
    )  # fmt: skip


def _rounded(value: float, digits: int) -> float:
    """Round to some significant digits; whole numbers as integers, which are shorter."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
