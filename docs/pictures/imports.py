"""Draw docs/pictures/imports.svg, the imports between the parts of the package, from the code.

The rows are the layers of import-linter in pyproject.toml. Imports that follow from others are not drawn, nor is the
public API, `__init__.py`.
"""

import functools
import itertools
import random
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[2]
PACKAGE = "dynabandit"
MERGED = {"__main__": "cli"}  # drawn as a part of another one

Imports = Mapping[str, frozenset[str]]


def layers() -> list[list[str]]:
    """Return the parts of the package in rows; a part only imports parts of lower rows."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    rows = [[name.strip().removeprefix(f"{PACKAGE}.") for name in row.split("|")] for row in contract["layers"]]
    return [kept for row in rows if (kept := [name for name in row if name not in MERGED])]


def part_of(module: str) -> str:
    """Return the part that a module belongs to; the public API belongs to none.

    >>> part_of("dynabandit.service.stores.base"), part_of("dynabandit.bandit.arms"), part_of("dynabandit")
    ('service', 'bandit', '')
    """
    name = f"{module}.".split(".")[1]
    return MERGED.get(name, name)


def imports() -> Imports:
    """Return the parts that each part imports directly."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    pairs = {
        (part_of(importer), part_of(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    parts = {part_of(module) for module in graph.modules} - {""}
    return {part: frozenset(two for one, two in pairs if one == part and two not in ("", part)) for part in parts}


def reduced(found: Imports) -> Imports:
    """Remove the imports that follow from others.

    >>> [sorted(below) for below in reduced({"a": {"b", "c"}, "b": {"c"}, "c": frozenset()}).values()]
    [['b'], ['c'], []]
    """

    @functools.cache
    def reached(part: str) -> frozenset[str]:
        return frozenset(itertools.chain(found[part], *map(reached, found[part])))

    return {part: below - frozenset(itertools.chain(*map(reached, below))) for part, below in found.items()}


# Layout. A line that passes a row has its own place there, so that it does not cross a part


class Place(NamedTuple):
    """A part in its row, or the point where the line between two parts passes a row."""

    row: int
    part: str
    towards: str = ""


Line = tuple[Place, ...]


def lines_of(rows: Sequence[Sequence[str]], found: Imports) -> list[Line]:
    """Return each import as the places of its line, one per row."""
    row_of = {part: number for number, row in enumerate(rows) for part in row}
    lines = []
    for part in row_of:
        for other in sorted(found[part]):
            between = (Place(row, part, other) for row in range(row_of[part] + 1, row_of[other]))
            lines.append((Place(row_of[part], part), *between, Place(row_of[other], other)))
    return lines


def neighbours_of(lines: Iterable[Line]) -> dict[Place, list[Place]]:
    found: dict[Place, list[Place]] = {}
    for one, two in (pair for line in lines for pair in itertools.pairwise(line)):
        found.setdefault(one, []).append(two)
        found.setdefault(two, []).append(one)
    return found


def ordered(
    rows: Sequence[Sequence[str]], lines: Sequence[Line], tries: int = 30, sweeps: int = 6
) -> list[list[Place]]:
    """Return the places of each row from left to right with few crossings: the best of several attempts."""
    passing = {place for line in lines for place in line if place.towards}
    neighbours, luck = neighbours_of(lines), random.Random(1)
    found = []
    for _ in range(tries):
        places = [
            [*(Place(number, part) for part in row), *sorted(place for place in passing if place.row == number)]
            for number, row in enumerate(rows)
        ]
        for row in places:
            luck.shuffle(row)
        for sweep in range(sweeps):
            for row in places if sweep % 2 == 0 else reversed(places):
                spot = {place: (index + 0.5) / len(some) for some in places for index, place in enumerate(some)}
                row.sort(key=lambda place: _mean([spot[one] for one in neighbours.get(place, [place])]))
        found.append(untangled(places, lines))
    return min(found, key=lambda places: crossings(places, lines))


def untangled(places: list[list[Place]], lines: Sequence[Line]) -> list[list[Place]]:
    """Swap neighbours as long as that reduces the number of crossings."""
    fewest, before = crossings(places, lines), -1
    while fewest != before:
        before = fewest
        for row in places:
            for left, right in itertools.pairwise(range(len(row))):
                row[left], row[right] = row[right], row[left]
                if (count := crossings(places, lines)) < fewest:
                    fewest = count
                else:
                    row[left], row[right] = row[right], row[left]
    return places


def crossings(places: Sequence[Sequence[Place]], lines: Iterable[Line]) -> int:
    """Return the number of crossings."""
    spot = {place: index for row in places for index, place in enumerate(row)}
    pairs = [pair for line in lines for pair in itertools.pairwise(line)]
    return sum(
        one[0].row == two[0].row and (spot[one[0]] - spot[two[0]]) * (spot[one[1]] - spot[two[1]]) < 0
        for one, two in itertools.combinations(pairs, 2)
    )


def spread(row: Sequence[Place], wanted: Sequence[float]) -> list[float]:
    """Return positions in the given order without overlap, as close as possible to the wanted ones."""
    gaps = [(width(one) + width(two)) / 2 + GAP for one, two in itertools.pairwise(row)]
    offsets = list(itertools.accumulate(gaps, initial=0.0))
    blocks: list[list[float]] = []  # places that touch move together
    for value, offset in zip(wanted, offsets, strict=True):
        blocks.append([value - offset])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    levels = [_mean(block) for block in blocks for _ in block]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]


def positions(places: Sequence[Sequence[Place]], lines: Sequence[Line], passes: int = 60) -> dict[Place, float]:
    """Return the horizontal position of each place."""
    at = {place: x for row in places for place, x in zip(row, spread(row, [0.0] * len(row)), strict=True)}
    neighbours = neighbours_of(lines)
    for turn in range(passes):
        for row in places if turn % 2 == 0 else reversed(places):
            wanted = [_mean([at[one] for one in neighbours.get(place, [place])]) for place in row]
            at.update(zip(row, spread(row, wanted), strict=True))
    left = min(x - width(place) / 2 for place, x in at.items())
    return {place: x - left + MARGIN for place, x in at.items()}


_mean = statistics.fmean


# Drawing

MARGIN, GAP, BOX, STEP = 16, 18, 34, 66  # pixels; STEP is the distance between rows
LETTER, PASSING = 8.2, 6
STYLE = """
  text { font: 14px "DejaVu Sans", Verdana, sans-serif; fill: #1b2330; text-anchor: middle; }
  rect.part { fill: #eaf0f8; stroke: #4a6fa5; stroke-width: 1.2; }
  path.import { fill: none; stroke: #7b8794; stroke-width: 1.3; marker-end: url(#head); }
"""


def width(place: Place) -> float:
    """Return the width of a place."""
    return PASSING if place.towards else LETTER * len(place.part) + 22


def draw() -> str:
    """Return the diagram as SVG."""
    rows, found = layers(), reduced(imports())
    lines = lines_of(rows, found)
    places = ordered(rows, lines)
    at = positions(places, lines)
    wide = max(x + width(place) / 2 for place, x in at.items()) + MARGIN
    high = 2 * MARGIN + STEP * (len(rows) - 1) + BOX
    head = '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" role="img">',
            "<title>Imports between the parts of dynabandit</title>",
            f"<style>{STYLE}</style>",
            f'<defs>{head}<path d="M0 0L8 4L0 8Z" fill="#7b8794"/></marker></defs>',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(_curve(line, at) for line in lines),
            *itertools.chain(*(_box(place, at[place]) for row in places for place in row if not place.towards)),
            "</svg>\n",
        ]
    )


def _top(row: int) -> int:
    return MARGIN + STEP * row


def _curve(line: Line, at: Mapping[Place, float]) -> str:
    """Return a line that leaves each row vertically."""
    drawn = f"M{at[line[0]]:.0f} {_top(line[0].row) + BOX}"
    for one, two in itertools.pairwise(line):
        start, end = _top(one.row) + BOX, _top(two.row)
        middle = (start + end) / 2
        drawn += f"C{at[one]:.0f} {middle:.0f} {at[two]:.0f} {middle:.0f} {at[two]:.0f} {end}"
        drawn += f"V{end + BOX}" if two.towards else ""
    return f'<path class="import" d="{drawn}"/>'


def _box(place: Place, x: float) -> Iterator[str]:
    top, wide = _top(place.row), width(place)
    yield f'<rect class="part" x="{x - wide / 2:.0f}" y="{top}" width="{wide:.0f}" height="{BOX}" rx="6"/>'
    yield f'<text x="{x:.0f}" y="{top + 22}">{place.part}</text>'


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
