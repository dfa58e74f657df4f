"""The verdicts of a large run, which come with the package and are shown beside those of any other run.

A new one is made in two steps. The first needs nothing but numpy, numba and msgspec, so it can be done on any machine
with a GPU. The second one judges the claims, and writes ``large_run.json`` beside this file::

    python -m dynabandit.paper.large_run simulate out/large --replications 10000 --backend cuda --precision mixed
    python -m dynabandit.paper.large_run judge out/large/totals.npz

The second step also takes the folder ``results`` of ``dynabandit paper``.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynabandit.core.json_values import plain
from dynabandit.experiments.progress import ProgressReporter
from dynabandit.experiments.run_options import RunOptions
from dynabandit.experiments.runner import compute
from dynabandit.paper.lookup import FLOORED
from dynabandit.paper.rule_types import ClaimPart
from dynabandit.paper.specs import paper
from dynabandit.paper.variants import VariantEffect, compare_variants
from dynabandit.paper.verdicts import Verdict, judge, replications
from dynabandit.results import Coverage, Results, Run
from dynabandit.results.runs import KEYS
from dynabandit.stats.intervals import LEVEL, Estimate

FILE = Path(__file__).parent / "large_run.json"
FEWEST = 5_000  # replications that are called large
TOTALS = "totals.npz"
VARIANTS = {"aff-ucb2-growing": "aff-ucb2", FLOORED: "aff-ucb1"}
"""Each variant that the paper does not have, with the policy that it changes."""


@dataclass(frozen=True)
class LargeRun:
    """What ``large_run.json`` says."""

    version: str
    """The version of dynabandit that simulated."""
    replications: int
    seed: int
    precision: str
    claims: dict[int, dict[str, Any]]
    """By claim: ``verdict``, the numbers of parts ``for``, ``against`` and ``open``, and its ``parts``."""
    variants: dict[str, list[VariantEffect]]
    """By variant: its regret and that of the policy that it changes, in each experiment."""

    def part(self, verdict: Verdict, index: int) -> ClaimPart | None:
        """Return a part of a claim as this run measured it, if it did."""
        kept = self.claims[verdict.claim.id]["parts"]
        if len(kept) != len(verdict.parts):
            return None
        return replace(verdict.parts[index], text=kept[index]["text"], effect=_estimate(kept[index]["effect"]))


def load(file: Path | None = None) -> LargeRun:
    """Read a file that `summarise` made, by default the one that comes with the package."""
    kept = json.loads((file or FILE).read_text(encoding="utf-8"))
    return LargeRun(
        kept["dynabandit"],
        kept["replications"],
        kept["seed"],
        kept["precision"],
        {int(identity): claim for identity, claim in kept["claims"].items()},
        {name: [_variant_effect(row) for row in rows] for name, rows in kept["variants"].items()},
    )


def summarise(results: Results) -> dict[str, Any]:
    """Return the content of ``large_run.json``: the verdict on each claim, and the effect of each part."""
    metadata = results.metadata
    return {
        "dynabandit": metadata.get("versions", {}).get("dynabandit", "unknown"),
        "replications": replications(results),
        "seed": metadata.get("seed"),
        "backends": sorted(set(metadata.get("backends", {}).values())),
        "precision": metadata.get("precision", "double"),
        "level": LEVEL,
        "claims": {
            str(verdict.claim.id): {**verdict.summary(), "parts": _parts(verdict)} for verdict in judge(results)
        },
        "variants": {
            variant: [_rounded(asdict(row)) for row in compare_variants(results, policy, variant)]
            for variant, policy in VARIANTS.items()
        },
    }


def _parts(verdict: Verdict) -> list[dict[str, Any]]:
    return [{"text": part.text, "evidence": part.evidence, "effect": _rounded(part.effect)} for part in verdict.parts]


def _rounded(value: Any) -> Any:
    """Round numbers to six digits; those that are not finite become None, as JSON needs it."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value


def _estimate(numbers: list[float | None]) -> Estimate:
    return Estimate(*(np.nan if number is None else number for number in numbers))


def _variant_effect(row: dict[str, Any]) -> VariantEffect:
    numbers = {name: _estimate(row[name]) for name in ("before", "after", "difference", "ratio")}
    return VariantEffect(row["experiment"], **numbers)


def save_totals(results: Results, file: Path) -> None:
    """Write what the claims need: total regrets, shares of correct selections, and coverage.

    Seven digits of each regret are enough for every verdict, and keep 10,000 replications below 16 MB.
    """
    runs = [
        {**{name: getattr(run, name) for name in (*KEYS, "horizon", "seed")}, "times": run.times.tolist(),
         "correct": run.correct.tolist()}
        for run in results
    ]  # fmt: skip
    metadata = {name: results.metadata[name] for name in ("versions", "seed", "backends", "precision")}
    about = {"metadata": metadata, "runs": runs, "coverage": [asdict(coverage) for coverage in results.coverage]}
    text = np.frombuffer(json.dumps(plain(about)).encode(), dtype=np.uint8)
    totals = np.stack([run.total_regret for run in results]).astype(np.float32)
    np.savez_compressed(file, about=text, totals=totals)


def load_totals(file: Path) -> Results:
    """Read what `save_totals` wrote; of the regret of each run only the last column is known."""
    with np.load(file) as kept:
        about, totals = json.loads(kept["about"].tobytes()), kept["totals"].astype(float)
    runs = [
        Run(**{**run, "times": np.array(run["times"]), "correct": np.array(run["correct"])}, regret=total[:, None])
        for run, total in zip(about["runs"], totals, strict=True)
    ]
    return Results(runs, about["metadata"], coverage=[Coverage(**fields) for fields in about["coverage"]])


class _Lines(ProgressReporter):
    """Prints one line for each finished figure."""

    def finished(self, figure: str) -> None:
        sys.stderr.write(f"{figure}: simulated\n")


def main(arguments: list[str] | None = None) -> None:
    """Run one of the two steps."""
    parser = argparse.ArgumentParser(prog="python -m dynabandit.paper.large_run", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    simulate = commands.add_parser("simulate", help="simulate the paper, and keep what its claims need")
    simulate.add_argument("folder", type=Path)
    simulate.add_argument("--replications", type=int, default=10_000)
    simulate.add_argument("--backend", default="auto")
    simulate.add_argument("--precision", default="double")
    judged = commands.add_parser("judge", help=f"judge the claims, and write {FILE.name}")
    judged.add_argument("results", type=Path, help=f"{TOTALS}, or the folder results of dynabandit paper")
    chosen = parser.parse_args(arguments)
    if chosen.command == "simulate":
        spec = paper().override(replications=chosen.replications, horizon=None, seed=None)
        options = RunOptions(backend=chosen.backend, precision=chosen.precision)
        results = compute(spec, chosen.folder, options, _Lines())
        save_totals(results, chosen.folder / TOTALS)
        return
    results = Results.load(chosen.results) if chosen.results.is_dir() else load_totals(chosen.results)
    if replications(results) < FEWEST:
        parser.error(f"a large run has at least {FEWEST:,} replications, got {replications(results):,}")
    FILE.write_text(json.dumps(summarise(results), indent=1, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
