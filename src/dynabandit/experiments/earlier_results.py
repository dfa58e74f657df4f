"""Keeps the results and the report of another spec when results are written into the same folder."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynabandit.results.parquet_files import METADATA

RESULTS = "results"
KEPT = ("report.html", "report.pdf", "figures", RESULTS)


def set_aside(out: Path, metadata: Mapping[str, Any]) -> Path | None:
    """Move results and report into a folder of their own, unless they are of the run with this metadata.

    Returns
    -------
    Path or None
        The new folder, or None if nothing was moved.
    """
    if not (out / RESULTS).exists() or _made_by(out, metadata):
        return None
    folder = next(free for number in itertools.count(1) if not (free := out / f"earlier-{number}").exists())
    folder.mkdir()
    for name in KEPT:
        if (out / name).exists():
            (out / name).rename(folder / name)
    return folder


def _made_by(out: Path, metadata: Mapping[str, Any]) -> bool:
    try:
        metadata_there = json.loads((out / RESULTS / METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    wanted = json.loads(json.dumps({name: metadata[name] for name in ("spec", "precision")}))
    return all(metadata_there.get(name) == value for name, value in wanted.items())
