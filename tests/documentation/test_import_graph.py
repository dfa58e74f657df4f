"""The import diagram and the list of parts in docs/architecture.md agree with the code."""

import importlib.util
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = DOCS / "pictures" / "imports.py"
ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")

Imports = dict[str, frozenset[str]]


@pytest.fixture(scope="module")
def graph() -> Any:
    spec = importlib.util.spec_from_file_location("imports", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def imports(graph: Any) -> Imports:
    return graph.imports()


@pytest.fixture(scope="module")
def diagram(graph: Any) -> str:
    return graph.draw()


def reachable(imports: Imports, part: str) -> set[str]:
    return set(imports[part]).union(*(reachable(imports, below) for below in imports[part]))


def test_the_committed_diagram_is_up_to_date(diagram: str) -> None:
    assert SCRIPT.with_suffix(".svg").read_text(encoding="utf-8") == diagram, "run: python docs/pictures/imports.py"
    assert "pictures/imports.svg" in ARCHITECTURE


def test_the_page_lists_each_part_above_the_parts_it_imports(imports: Imports) -> None:
    listed = re.findall(r"^  (\w+)(?:/|\.py) ", ARCHITECTURE, re.MULTILINE)
    assert sorted(listed) == sorted([*imports, "__init__"])
    for part, others in imports.items():
        for other in others:
            assert listed.index(part) < listed.index(other), f"{part} imports {other}"


def test_every_part_is_drawn_once(graph: Any, imports: Imports, diagram: str) -> None:
    parts = [part for row in graph.layers() for part in row]
    assert sorted(parts) == sorted(imports)
    texts = [element.text for element in ET.fromstring(diagram).iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(map(str, texts)) == sorted(parts)


def test_the_omitted_imports_follow_from_the_drawn_ones(graph: Any, imports: Imports) -> None:
    drawn = graph.reduced(imports)
    for part in imports:
        assert drawn[part] <= imports[part]
        assert reachable(drawn, part) == reachable(imports, part)
    assert sum(map(len, drawn.values())) < sum(map(len, imports.values())) / 2


def test_all_lines_go_down_and_no_boxes_touch(graph: Any, imports: Imports) -> None:
    rows = graph.layers()
    row_of = {part: number for number, row in enumerate(rows) for part in row}
    assert all(row_of[part] < row_of[other] for part in imports for other in imports[part])
    lines = graph.lines_of(rows, graph.reduced(imports))
    places = graph.ordered(rows, lines)
    at = graph.positions(places, lines)
    for row in places:
        for left, right in itertools.pairwise(row):
            assert at[right] - at[left] >= (graph.width(left) + graph.width(right)) / 2 + graph.GAP - 1e-6
