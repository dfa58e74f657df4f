"""The cells of the notebooks run; `make docs` also compares what they print."""

import json
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import dynabandit as db

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    matplotlib.use("agg")
    compare = db.compare
    monkeypatch.setattr(db, "compare", lambda *given, **named: compare(*given, **{**named, "replications": 2}))
    names: dict[str, Any] = {}
    printing = 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(line for line in cell["source"] if not line.startswith("%"))
            exec(compile(code, path.name, "exec"), names)
            printed = capsys.readouterr().out
            assert bool(printed) == any("text" in output for output in cell["outputs"])
            printing += bool(printed)
    assert printing >= 3
    matplotlib.pyplot.close("all")
