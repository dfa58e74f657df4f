"""Analysis: results in; statistics, figures, verdicts and a report out."""

import math
from pathlib import Path
from typing import Any

from dynabandit.results import Results

__all__ = ["publish", "summary"]


def publish(results: Results, folder: Path, *, paper: bool) -> Path:
    """Write a report into a folder and return its path."""
    path = folder / "report.html"
    path.write_text(f"<!doctype html><title>dynabandit</title><p>{results!r}</p>\n", encoding="utf-8")
    return path


def summary(results: Results) -> list[dict[str, Any]]:
    """Return the mean total regret of every run with a 95 % interval."""
    rows = []
    for run in results:
        mean = float(run.total_regret.mean())
        half = 1.96 * float(run.total_regret.std()) / math.sqrt(run.replications)
        rows.append(
            {
                "experiment": run.experiment,
                "arms": run.arms,
                "policy": run.label,
                "mean": mean,
                "low": mean - half,
                "high": mean + half,
            }
        )
    return rows
