"""The report on the paper: ``report.html``, ``figures/`` and ``claims.json``."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynabandit.paper import criteria, figures, lookup, verdicts
from dynabandit.paper.rule_types import Part
from dynabandit.paper.sections import SECTIONS
from dynabandit.paper.variants import compare_variants
from dynabandit.paper.verdicts import FAILS, HOLDS, NOT_RUN, PARTLY, Verdict
from dynabandit.report import page
from dynabandit.report.page import DASH, MINUS
from dynabandit.report.tables import summary
from dynabandit.results import Results

TEMPLATES = Path(__file__).parent / "templates"
REFERENCE = Path(__file__).parent / "reference.json"
SPLIT = 100  # replications, as many as the paper has
LOGARITHMIC = (criteria.RATIO, criteria.DEVIATION, criteria.SENSITIVITY, criteria.RELATIVE)
PLURALS = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "do not hold", NOT_RUN: "not run"}
MARKS = {HOLDS: "✓", PARTLY: "◐", FAILS: "✗", NOT_RUN: DASH}
EVIDENCE = {"for": "holds", "against": "contradicted", "open": "open"}


@dataclass(frozen=True)
class Column:
    """The verdicts at one number of replications."""

    heading: str
    summaries: dict[int, dict[str, Any]]
    """By claim: the verdict, and the numbers of parts for, against and open."""

    @property
    def verdicts(self) -> dict[int, str]:
        """The verdict on each claim."""
        return {identity: one["verdict"] for identity, one in self.summaries.items()}

    @property
    def counts(self) -> dict[int, str]:
        """The numbers of parts of each claim, as text."""
        return {identity: _tally(one["for"], one["against"], one["open"]) for identity, one in self.summaries.items()}


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
    context = {"figures": {one.figure.id: one for one in drawn}, **_context(results, judged)}
    style = (TEMPLATES / "paper.css").read_text(encoding="utf-8")
    return page.render(TEMPLATES / "paper.html", folder, results, context, style)


def _context(results: Results, judged: list[Verdict]) -> dict[str, Any]:
    columns = _columns(results, judged)
    by_id = {verdict.claim.id: verdict for verdict in judged}
    return {
        "sections": SECTIONS,
        "verdicts": by_id,
        "counts": {name: sum(verdict.verdict == name for verdict in judged) for name in MARKS},
        "plurals": PLURALS,
        "columns": columns,
        "changed": [
            identity
            for identity in by_id
            if any(column.summaries.get(identity) != columns[0].summaries.get(identity) for column in columns)
        ],
        "growing": compare_variants(results, "aff-ucb2", "aff-ucb2-growing"),
        "floor": compare_variants(results, "aff-ucb1", lookup.FLOORED),
        "criteria": criteria.CRITERIA,
        "methods": criteria.METHODS,
        "split": SPLIT,
        "own": _heading(results),
        "replications": verdicts.replications(results),
        "marks": MARKS,
        "evidence": EVIDENCE,
        "measured": measured,
        "glyph": glyph,
    }


def _heading(results: Results) -> str:
    return f"{verdicts.replications(results):,} replications"


def _columns(results: Results, judged: list[Verdict]) -> list[Column]:
    """Return the verdicts at several numbers of replications, as far as there are any."""
    columns = [_column(_heading(results), judged)]
    if verdicts.replications(results) > SPLIT:
        columns.insert(0, _column(f"first {SPLIT}", verdicts.judge(lookup.first_replications(results, SPLIT))))
    kept = json.loads(REFERENCE.read_text(encoding="utf-8"))
    found = {int(identity): summary for identity, summary in kept["verdicts"].items()}
    columns.append(Column(f"{kept['replications']:,} replications, kept with the program", found))
    return columns


def _column(heading: str, judged: list[Verdict]) -> Column:
    return Column(heading, {verdict.claim.id: verdict.summary() for verdict in judged})


def _tally(shown: int, against: int, undecided: int) -> str:
    if not shown + against + undecided:
        return ""
    parts = [f"{shown} of {shown + against + undecided} parts hold"]
    parts += [f"{against} contradicted"] if against else []
    parts += [f"{undecided} open"] if undecided else []
    return ", ".join(parts)


def measured(part: Part) -> str:
    """Return the effect of a part with its interval, in the unit of its measure."""
    if part.criterion.measure in (criteria.SHARE, criteria.RATE):
        value, low, high = (f"{100 * one:.3g}" for one in part.effect)
        return f"{value} % ({low} to {high} %)"
    if part.criterion.measure == criteria.DIFFERENCE:
        return page.interval(part.effect)
    value, low, high = (f"{one:.3f}" if math.isfinite(one) else DASH for one in part.effect)
    return f"{value} ({low} to {high})".replace("-", MINUS)


def glyph(part: Part) -> dict[str, float] | None:
    """Return where region, interval and value lie on an axis from 0 to 100, for a small picture."""
    criterion, effect = part.criterion, part.effect
    measure = criterion.measure
    if not all(math.isfinite(one) for one in effect) or (measure in LOGARITHMIC and effect.low <= 0.0):
        return None
    scale = math.log if measure in LOGARITHMIC else float
    neutral = 1.0 if measure in (*LOGARITHMIC, criteria.ORDER) else 0.0
    ends = [one for one in (*effect, criterion.low, criterion.high, neutral) if math.isfinite(one)]
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
