"""The diagram of imports in docs/architecture.md is what the code has now."""

import importlib.util
import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = DOCS / "pictures" / "imports.py"


@pytest.fixture(scope="module")
def graph():
    spec = importlib.util.spec_from_file_location("imports", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(graph):
    return graph.imports()


def reached(found, part):
    return set(found[part]).union(*(reached(found, below) for below in found[part]))


def test_the_committed_diagram_is_what_the_code_has_now(graph):
    kept = SCRIPT.with_suffix(".svg").read_text(encoding="utf-8")
    assert kept == graph.draw(), "run: python docs/pictures/imports.py"
    assert "pictures/imports.svg" in (DOCS / "architecture.md").read_text(encoding="utf-8")


def test_the_map_lists_a_part_above_what_it_imports(found):
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^  (\w+)(?:/|\.py) ", text, re.MULTILINE)
    assert sorted(listed) == sorted([*found, "__init__"])
    for part, others in found.items():
        for other in others:
            assert listed.index(part) < listed.index(other), f"{part} imports {other}"


def test_every_part_of_the_package_is_drawn_once(graph, found):
    parts = [part for row in graph.layers() for part in row]
    assert sorted(parts) == sorted(found)
    texts = [one.text for one in ET.fromstring(graph.draw()).iter("{http://www.w3.org/2000/svg}text")]
    assert set(parts) <= set(texts)
    assert len(texts) == len(set(texts))


def test_what_is_left_out_follows_from_what_is_drawn(graph, found):
    drawn = graph.reduced(found)
    for part in found:
        assert drawn[part] <= found[part]
        assert reached(drawn, part) == reached(found, part)
    assert sum(map(len, drawn.values())) < sum(map(len, found.values())) / 2


def test_every_line_goes_down_and_no_two_boxes_touch(graph, found):
    rows = graph.layers()
    row_of = {part: number for number, row in enumerate(rows) for part in row}
    assert all(row_of[part] < row_of[other] for part in found for other in found[part])
    lines = graph.lines_of(rows, graph.reduced(found))
    places = graph.ordered(rows, lines)
    at = graph.positions(places, lines)
    for row in places:
        for one, two in itertools.pairwise(row):
            assert at[two] - at[one] >= (graph.width(one) + graph.width(two)) / 2 + graph.GAP - 1e-6
