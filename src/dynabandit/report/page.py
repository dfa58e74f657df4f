"""The report of any experiment: one HTML file that opens from disk and loads nothing from the network."""

import base64
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynabandit.extras import import_extra
from dynabandit.report import tables
from dynabandit.report.figure_folder import draw_all
from dynabandit.report.figures import Figure, groups, make_figures
from dynabandit.report.plotly_charts import chart
from dynabandit.results import Results
from dynabandit.stats.intervals import Estimate

TEMPLATES = Path(__file__).parent / "templates"
DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Drawn:
    """A figure in the forms that the page needs."""

    figure: Figure
    picture: str
    """The PNG file as a data URL, for print and for browsers without scripts."""
    charts: list[dict[str, Any]]
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The table of its numbers."""


def publish(results: Results, folder: str | Path) -> Path:
    """Write ``report.html`` and ``figures/`` into a folder, and return the path of the report."""
    drawn = draw(make_figures(results), Path(folder))
    all_groups = groups(results)
    experiments = [
        {"group": group, "run": group.runs[0], "drawn": drawing, "rows": tables.summary(Results(group.runs))}
        for group, drawing in zip(all_groups, drawn, strict=False)
    ]
    count = f"{len(all_groups)} experiment{'' if len(all_groups) == 1 else 's'}"
    title = results.metadata.get("title") or (all_groups[0].title if len(all_groups) == 1 else count)
    context = {"title": title, "experiments": experiments, "others": drawn[len(all_groups) :]}
    return render(TEMPLATES / "experiments.html", Path(folder), results, context)


def draw(figures: list[Figure], folder: Path, rows: list[dict[str, Any]] | None = None) -> list[Drawn]:
    """Draw figures into ``figures/`` of a folder, and add to each the rows of its experiments."""
    pictures = draw_all(figures, folder / "figures")
    return [_drawn(figure, pictures[figure.stem], rows or []) for figure in figures]


def _drawn(figure: Figure, picture: Path, rows: list[dict[str, Any]]) -> Drawn:
    image = "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
    charts = [
        {"id": f"chart-{figure.stem}-{index}", "title": block.title, **chart(block)}
        for index, block in enumerate(figure.blocks, start=1)
    ]
    return Drawn(figure, image, charts, [row for row in rows if row["experiment"] in figure.experiments])


def render(template: Path, folder: Path, results: Results, context: dict[str, Any], style: str = "") -> Path:
    """Write ``report.html`` from a template, which may extend those of this package; `style` is additional CSS."""
    jinja2, plotly = import_extra("jinja2", "lab"), import_extra("plotly.offline", "lab")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(amount=amount, interval=interval, embedded=embedded)
    text = environment.get_template(template.name).render(
        **context,
        plotly=plotly.get_plotlyjs(),
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8") + style,
        script=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
        metadata=json.dumps(results.metadata, indent=2, sort_keys=True, default=str, ensure_ascii=False),
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".pdf").unlink(missing_ok=True)  # it was printed from the earlier report
    return path


def amount(value: float) -> str:
    """Return a number with about three digits.

    Examples
    --------
    >>> from dynabandit.report.page import amount
    >>> amount(1234.5), amount(12.345), amount(0.12345)
    ('1,234', '12.3', '0.123')
    """
    if not math.isfinite(value):
        return DASH
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}".replace("-", MINUS)


def interval(estimate: Estimate) -> str:
    """Return a value with its interval."""
    return f"{amount(estimate.value)} ({amount(estimate.low)} to {amount(estimate.high)})"


def embedded(value: object) -> str:
    """Return JSON that cannot end the script element around it."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
