"""One page with everything: verdicts, figures, rules. It opens from disk and asks the network for nothing."""

import base64
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynabandit.errors import extra
from dynabandit.paper import lookup, verdicts
from dynabandit.paper.labels import (
    DEVIATION,
    DIFFERENCE,
    METHODS,
    ORDER,
    RATE,
    RATIO,
    RELATIVE,
    SENSITIVITY,
    SHARE,
    WORDS,
)
from dynabandit.paper.rule_types import Part
from dynabandit.paper.sections import SECTIONS
from dynabandit.paper.verdicts import FAILS, HOLDS, NOT_RUN, PARTLY, Verdict
from dynabandit.report import tables
from dynabandit.report.charts import chart
from dynabandit.report.figures import Figure, groups
from dynabandit.results import Results
from dynabandit.stats.intervals import Estimate

__all__ = ["render"]

TEMPLATES = Path(__file__).parent / "templates"
REFERENCE = Path(__file__).parent / "reference.json"
SPLIT = 100  # replications, as many as the paper has
LOGARITHMIC = (RATIO, DEVIATION, SENSITIVITY, RELATIVE)
NOTHING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
PLURALS = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "do not hold", NOT_RUN: "not run"}
MARKS = {HOLDS: "✓", PARTLY: "◐", FAILS: "✗", NOT_RUN: NOTHING}
EVIDENCE = {"for": "holds", "against": "contradicted", "open": "open"}


@dataclass(frozen=True)
class Drawn:
    """A figure as the page needs it."""

    figure: Figure
    picture: str
    charts: list[dict[str, Any]]
    numbers: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Column:
    """The verdicts at one number of replications."""

    heading: str
    verdicts: dict[int, str]
    counts: dict[int, str]


def render(results: Results, figures: list[Figure], pictures: dict[str, Path], judged: list[Verdict] | None) -> str:
    """Return the page.

    Parameters
    ----------
    results
        What was found.
    figures
        What to show.
    pictures
        From a figure's stem to its PNG file, for print and for readers without scripts.
    judged
        The verdicts on the paper's claims, or None for experiments of your own.
    """
    jinja2, offline = extra("jinja2", "lab"), extra("plotly.offline", "lab")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(amount=amount, interval=interval, measured=measured, embedded=embedded)
    environment.globals.update(glyph=glyph, mark=MARKS.get, evidence=EVIDENCE.get)
    page = environment.get_template("paper.html" if judged is not None else "experiments.html")
    rows = tables.summary(results)
    drawn = {figure.id: _drawn(figure, pictures[figure.stem], rows) for figure in figures}
    context = {
        "figures": drawn,
        "plotly": offline.get_plotlyjs(),
        "style": (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        "script": (TEMPLATES / "report.js").read_text(encoding="utf-8"),
        "metadata": json.dumps(results.metadata, indent=2, sort_keys=True, default=str, ensure_ascii=False),
        "replications": verdicts.replications(results),
        "rows": rows,
    }
    if judged is None:
        plain = [_drawn(figure, pictures[figure.stem], []) for figure in figures]
        return str(page.render(**context, **_own_experiments(results, plain)))
    return str(page.render(**context, **_paper(results, judged)))


def _drawn(figure: Figure, picture: Path, rows: list[dict[str, Any]]) -> Drawn:
    image = "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
    charts = [
        {"id": f"chart-{figure.stem}-{index}", "title": block.title, **chart(block)}
        for index, block in enumerate(figure.blocks, start=1)
    ]
    numbers = [row for row in rows if row["experiment"] in figure.experiments]
    return Drawn(figure, image, charts, numbers)


def _own_experiments(results: Results, drawn: list[Drawn]) -> dict[str, Any]:
    """Return what a page about other experiments than the paper's needs, from the figures of `figures.every`."""
    found = groups(results)
    experiments = [
        {
            "heading": group.heading,
            "world": group.world if group.world not in group.heading else "",
            "drawn": one,
            "horizon": group.runs[0].horizon,
            "replications": group.runs[0].replications,
            "seed": group.runs[0].seed,
            "rows": tables.summary(Results(group.runs)),
        }
        for group, one in zip(found, drawn, strict=False)
    ]
    count = f"{len(found)} experiment{'' if len(found) == 1 else 's'}"
    heading = results.metadata.get("title") or (found[0].heading if len(found) == 1 else count)
    return {"heading": heading, "experiments": experiments, "others": drawn[len(found) :]}


def _paper(results: Results, judged: list[Verdict]) -> dict[str, Any]:
    columns = _columns(results, judged)
    by_id = {verdict.claim.id: verdict for verdict in judged}
    counts = {name: sum(verdict.verdict == name for verdict in judged) for name in MARKS}
    return {
        "sections": SECTIONS,
        "verdicts": by_id,
        "counts": counts,
        "plurals": PLURALS,
        "columns": columns,
        "changed": [
            identity
            for identity in by_id
            if len({(column.verdicts.get(identity), column.counts.get(identity)) for column in columns}) > 1
        ],
        "growing": tables.changes(results, "aff-ucb2", "aff-ucb2-growing"),
        "floor": tables.changes(results, "aff-ucb1", lookup.FLOORED),
        "words": WORDS,
        "methods": METHODS,
        "split": SPLIT,
        "own": _own(results),
    }


def _own(results: Results) -> str:
    return f"{verdicts.replications(results):,} replications"


def _columns(results: Results, judged: list[Verdict]) -> list[Column]:
    """Return the verdicts at several numbers of replications, as far as there are any."""
    count = verdicts.replications(results)
    columns = [_column(_own(results), judged)]
    if count > SPLIT:
        columns.insert(0, _column(f"first {SPLIT}", verdicts.judge(lookup.first(results, SPLIT))))
    if REFERENCE.exists():
        kept = json.loads(REFERENCE.read_text(encoding="utf-8"))
        found = {int(identity): one for identity, one in kept["verdicts"].items()}
        heading = f"{kept['replications']:,} replications, kept with the program"
        columns.append(
            Column(
                heading,
                {identity: one["verdict"] for identity, one in found.items()},
                {identity: _tally(one["for"], one["against"], one["open"]) for identity, one in found.items()},
            )
        )
    return columns


def _column(heading: str, judged: list[Verdict]) -> Column:
    return Column(
        heading,
        {verdict.claim.id: verdict.verdict for verdict in judged},
        {
            verdict.claim.id: _tally(*(verdict.count(evidence) for evidence in ("for", "against", "open")))
            for verdict in judged
        },
    )


def _tally(shown: int, against: int, undecided: int) -> str:
    if not shown + against + undecided:
        return ""
    parts = [f"{shown} of {shown + against + undecided} parts hold"]
    parts += [f"{against} contradicted"] if against else []
    parts += [f"{undecided} open"] if undecided else []
    return ", ".join(parts)


def amount(value: float) -> str:
    """Return a number with about three digits.

    Examples
    --------
    >>> from dynabandit.report.page import amount
    >>> amount(1234.5), amount(12.345), amount(0.12345)
    ('1,234', '12.3', '0.123')
    """
    if not math.isfinite(value):
        return NOTHING
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}".replace("-", MINUS)


def interval(estimate: Estimate) -> str:
    """Return a value with its interval."""
    return f"{amount(estimate.value)} ({amount(estimate.low)} to {amount(estimate.high)})"


def measured(part: Part) -> str:
    """Return the effect of a part with its interval, in the measure's own unit."""
    if part.word.measure in (SHARE, RATE):
        value, low, high = (f"{100 * one:.3g}" for one in part.effect)
        return f"{value} % ({low} to {high} %)"
    if part.word.measure == DIFFERENCE:
        return interval(part.effect)
    value, low, high = (f"{one:.3f}" if math.isfinite(one) else NOTHING for one in part.effect)
    return f"{value} ({low} to {high})".replace("-", MINUS)


def embedded(value: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def glyph(part: Part) -> dict[str, float] | None:
    """Return where region, interval and value lie on an axis from 0 to 100, for a small picture."""
    measure, word, effect = part.word.measure, part.word, part.effect
    if not all(math.isfinite(one) for one in effect) or (measure in LOGARITHMIC and effect.low <= 0.0):
        return None
    scale = math.log if measure in LOGARITHMIC else float
    neutral = 1.0 if measure in (*LOGARITHMIC, ORDER) else 0.0
    ends = [one for one in (*effect, word.low, word.high, neutral) if math.isfinite(one)]
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
        "from": place(word.low),
        "to": place(word.high),
    }
