"""Keeps the report of an earlier comparison when another one is written into the same folder."""

import itertools
import json
from pathlib import Path

from dynabandit.bandit.serialization import plain
from dynabandit.experiments import Spec
from dynabandit.experiments.runner import RESULTS
from dynabandit.results.files import METADATA

KEPT = ("report.html", "report.pdf", "figures", RESULTS)


def keep_earlier_report(out: Path, spec: Spec, precision: str) -> Path | None:
    """Move the report and the results of another spec into a folder of their own, and return that folder.

    Without an earlier report, or with one of the same spec and precision, nothing is moved.
    """
    if not (out / "report.html").exists() or _has_results(out, spec, precision):
        return None
    folder = next(one for number in itertools.count(1) if not (one := out / f"earlier-{number}").exists())
    folder.mkdir()
    for name in KEPT:
        if (out / name).exists():
            (out / name).rename(folder / name)
    return folder


def _has_results(out: Path, spec: Spec, precision: str) -> bool:
    try:
        metadata = json.loads((out / RESULTS / METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    wanted = json.loads(json.dumps(plain(spec.as_dict())))
    return bool(metadata.get("spec") == wanted and metadata.get("precision") == precision)
