"""Write the report: verdicts, figures and the page that shows both."""

import json
from pathlib import Path

from dynabandit.paper import verdicts
from dynabandit.paper.verdicts import judge
from dynabandit.report import figures, gallery, page
from dynabandit.results import Results

__all__ = ["publish"]


def publish(results: Results, folder: str | Path, *, paper: bool) -> Path:
    """Write the report, the figures and, for the paper, the verdicts.

    Parameters
    ----------
    results
        What was found; claims whose experiments are missing are listed as not run.
    folder
        Where ``report.html``, ``figures/`` and ``claims.json`` go.
    paper
        Whether these are the paper's experiments. For others there are no claims to judge.

    Returns
    -------
    Path
        The report.
    """
    folder = Path(folder)
    chosen = figures.of_paper(results) if paper else figures.every(results)
    drawn = gallery.draw_all(chosen, folder / "figures")
    judged = judge(results) if paper else None
    if judged is not None:
        text = json.dumps(verdicts.as_json(judged, results), indent=2, ensure_ascii=False, allow_nan=False)
        (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    path = folder / "report.html"
    path.write_text(page.render(results, chosen, drawn, judged), encoding="utf-8")
    return path
