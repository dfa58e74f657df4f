"""The report on the paper: ``report.html``, ``figures/`` and ``claims.json``."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynabandit.paper import criteria, figures, large_run, lookup, verdicts
from dynabandit.paper.large_run import LargeRun
from dynabandit.paper.rule_types import ClaimPart
from dynabandit.paper.sections import SECTIONS
from dynabandit.paper.variants import compare_variants
from dynabandit.paper.verdicts import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_RUN, PARTLY, VERDICTS, Verdict
from dynabandit.report import page
from dynabandit.report.page import DASH, MINUS
from dynabandit.report.tables import summary
from dynabandit.results import Results

TEMPLATES = Path(__file__).parent / "templates"
SPLIT = 100  # replications, as many as the paper has
LOGARITHMIC = (criteria.RATIO, criteria.DEVIATION, criteria.SENSITIVITY, criteria.RELATIVE)
PREDICATES = {  # singular and plural
    HOLDS: ("holds", "hold"),
    PARTLY: ("holds in part", "hold in part"),
    CONTRADICTED: ("is contradicted", "are contradicted"),
    INCONCLUSIVE: ("is inconclusive", "are inconclusive"),
    NOT_RUN: ("was not run", "were not run"),
}
MARKS = {HOLDS: "✓", PARTLY: "◐", CONTRADICTED: "✗", INCONCLUSIVE: "?", NOT_RUN: DASH}
EVIDENCE = {"for": "holds", "against": "contradicted", "open": "inconclusive"}


@dataclass(frozen=True)
class Column:
    """The verdicts of one run."""

    heading: str
    summaries: dict[int, dict[str, Any]]
    """By claim: the verdict, and the numbers of parts for, against and open."""

    @property
    def verdicts(self) -> dict[int, str]:
        """The verdict on each claim."""
        return {identity: summary["verdict"] for identity, summary in self.summaries.items()}


def publish(results: Results, folder: str | Path) -> Path:
    """Write the report, the figures and the verdicts.

    Parameters
    ----------
    results
        The paper's experiments, or some of them; claims whose experiments are missing are listed as not run.
    folder
        Where ``report.html``, ``figures/`` and ``claims.json`` are written.

    Returns
    -------
    Path
        The report.
    """
    folder = Path(folder)
    drawn = page.draw(figures.make_figures(results), folder, summary(lookup.shown_runs(results)))
    judged = verdicts.judge(results)
    text = json.dumps(verdicts.as_json(judged, results), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    context = {"figures": {drawing.figure.id: drawing for drawing in drawn}, **_context(results, judged)}
    style = (TEMPLATES / "paper.css").read_text(encoding="utf-8")
    return page.render(TEMPLATES / "paper.html", folder, results, context, style)


def _context(results: Results, judged: list[Verdict]) -> dict[str, Any]:
    large = large_run.load()
    columns = _columns(results, judged, large)
    by_id = {verdict.claim.id: verdict for verdict in judged}
    own, of_large = columns["own"].verdicts, columns["large"].verdicts
    return {
        "sections": SECTIONS,
        "verdicts": by_id,
        "columns": columns,
        "large": large,
        "contradicted": [identity for identity, verdict in of_large.items() if verdict == CONTRADICTED],
        "differing": [
            claim for claim in by_id if own[claim] in (HOLDS, PARTLY, CONTRADICTED) and own[claim] != of_large[claim]
        ],
        "changed": [claim for claim in by_id if _changes(claim, columns.values())],
        "variants": {
            variant: compare_variants(results, policy, variant) for variant, policy in large_run.VARIANTS.items()
        },
        "criteria": criteria.CRITERIA,
        "methods": criteria.METHODS,
        "replications": verdicts.replications(results),
        "marks": MARKS,
        "evidence": EVIDENCE,
        "measured": measured,
        "glyph": glyph,
        "tally": tally,
        "sentence": sentence,
    }


def _columns(results: Results, judged: list[Verdict], large: LargeRun) -> dict[str, Column]:
    """Return the verdicts of the large run, of this run, and of the first replications of a run with many."""
    count = verdicts.replications(results)
    columns = {
        "large": Column(f"large run, {large.replications:,} replications", large.claims),
        "own": _column(f"this run, {count:,} replication{'' if count == 1 else 's'}", judged),
    }
    if count > SPLIT:
        first = verdicts.judge(lookup.first_replications(results, SPLIT))
        columns["first"] = _column(f"its first {SPLIT} replications", first)
    return columns


def _changes(claim: int, columns: Iterable[Column]) -> bool:
    """Return whether runs differ in the numbers of parts that hold, are contradicted and are open."""
    summaries = (column.summaries[claim] for column in columns)
    return len({tally(summary) for summary in summaries if summary["verdict"] != NOT_RUN}) > 1


def sentence(judged: Iterable[str]) -> str:
    """Return how many claims have which verdict, such as ``13 claims hold, 7 hold in part and 1 is contradicted``."""
    counts = Counter(judged)
    parts = [f"{counts[verdict]} {PREDICATES[verdict][counts[verdict] > 1]}" for verdict in VERDICTS if counts[verdict]]
    parts[0] = parts[0].replace(" ", " claim " if parts[0].startswith("1 ") else " claims ", 1)
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _column(heading: str, judged: list[Verdict]) -> Column:
    return Column(heading, {verdict.claim.id: verdict.summary() for verdict in judged})


def tally(summary: dict[str, Any]) -> str:
    """Return the numbers of parts of a claim as text."""
    shown, against, undecided = summary["for"], summary["against"], summary["open"]
    if not shown + against + undecided:
        return ""
    parts = [f"{shown} of {shown + against + undecided} parts hold"]
    parts += [f"{against} contradicted"] if against else []
    parts += [f"{undecided} inconclusive"] if undecided else []
    return ", ".join(parts)


def measured(part: ClaimPart) -> str:
    """Return the effect of a part with its interval, in the unit of its measure."""
    if part.criterion.measure in (criteria.SHARE, criteria.RATE):
        value, low, high = (f"{100 * number:.3g}" for number in part.effect)
        return f"{value} % ({low} to {high} %)"
    if part.criterion.measure == criteria.DIFFERENCE:
        return page.interval(part.effect)
    value, low, high = (f"{number:.3f}" if math.isfinite(number) else DASH for number in part.effect)
    return f"{value} ({low} to {high})".replace("-", MINUS)


def glyph(part: ClaimPart) -> dict[str, float] | None:
    """Return where region, interval and value lie on an axis from 0 to 100, for a small picture."""
    criterion, effect = part.criterion, part.effect
    measure = criterion.measure
    if not all(math.isfinite(number) for number in effect) or (measure in LOGARITHMIC and effect.low <= 0.0):
        return None
    scale = math.log if measure in LOGARITHMIC else float
    neutral = 1.0 if measure in (*LOGARITHMIC, criteria.ORDER) else 0.0
    ends = [number for number in (*effect, criterion.low, criterion.high, neutral) if math.isfinite(number)]
    left, right = scale(min(ends)), scale(max(ends))
    margin = 0.1 * (right - left) or 1.0

    def place(value: float) -> float:
        if math.isinf(value):
            return 0.0 if value < 0 else 100.0
        return round(100.0 * (scale(value) - left + margin) / (right - left + 2.0 * margin), 2)

    return {
        "low": place(effect.low),
        "high": place(effect.high),
        "value": place(effect.value),
        "from": place(criterion.low),
        "to": place(criterion.high),
    }
