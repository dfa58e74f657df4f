"""A folder of figures: unchanged ones are not drawn again, and obsolete ones are deleted."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynabandit.extras import import_extra
from dynabandit.report import matplotlib_figures
from dynabandit.report.figures import Figure

RECORD = "drawn.json"


def draw_all(figures: Sequence[Figure], folder: Path) -> dict[str, Path]:
    """Draw figures into a folder, delete those of earlier calls, and return the PNG file of each stem.

    A figure is not drawn if its files are unchanged since they were drawn from the same numbers with the same code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = _read(folder)
    after = {}
    for figure in figures:
        source = _source(figure)
        if before.get(figure.stem) != {"source": source, "files": _files(folder, figure.stem)}:
            matplotlib_figures.draw(figure, folder)
        after[figure.stem] = {"source": source, "files": _files(folder, figure.stem)}
    for stem in before.keys() - after.keys():
        for path in _paths(folder, stem):
            path.unlink(missing_ok=True)
    (folder / RECORD).write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return {figure.stem: _paths(folder, figure.stem)[1] for figure in figures}


def _paths(folder: Path, stem: str) -> tuple[Path, Path]:
    return folder / f"{stem}.svg", folder / f"{stem}.png"


def _read(folder: Path) -> dict[str, Any]:
    """Return the record of earlier calls; an unreadable one is ignored."""
    try:
        recorded = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = isinstance(recorded, dict) and all(Path(stem).name == stem for stem in recorded)
    return recorded if known else {}


def _files(folder: Path, stem: str) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "" for path in _paths(folder, stem)]


def _source(figure: Figure) -> str:
    """Return a hash of everything that a drawing depends on."""
    values = json.dumps(asdict(figure), default=lambda value: [str(value.dtype), value.tolist()])
    parts = (
        Path(matplotlib_figures.__file__).read_bytes(),
        import_extra("matplotlib", "lab").__version__.encode(),
        values.encode(),
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
