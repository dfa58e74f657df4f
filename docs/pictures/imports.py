"""Draws docs/pictures/imports.svg: which part of the package imports which, read off the code itself.

The rows are the layers that import-linter checks, from pyproject.toml. An import that follows from others is left out,
and so is the front door, `__init__.py`, which imports what it hands out.
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
WITHIN = {"__main__": "cli", "arms": "bandit", "shares": "bandit", "saving": "bandit"}  # drawn as one with another part

Imports = Mapping[str, frozenset[str]]


def layers() -> list[list[str]]:
    """Return the parts of the package row by row, those above import those below."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    rows = [[name.strip().removeprefix(f"{PACKAGE}.") for name in row.split("|")] for row in contract["layers"]]
    return [kept for row in rows if (kept := [name for name in row if name not in WITHIN])]


def part_of(module: str) -> str:
    """Return the part that a module belongs to; the front door belongs to none.

    >>> part_of("dynabandit.service.stores.base"), part_of("dynabandit.bandit.arms"), part_of("dynabandit")
    ('service', 'bandit', '')
    """
    name = f"{module}.".split(".")[1]
    return WITHIN.get(name, name)


def imports() -> Imports:
    """Return which other parts each part imports directly, anywhere in its modules."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    pairs = {
        (part_of(importer), part_of(imported))
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    }
    parts = {part_of(module) for module in graph.modules} - {""}
    return {part: frozenset(two for one, two in pairs if one == part and two not in ("", part)) for part in parts}


def reduced(found: Imports) -> Imports:
    """Leave out what follows from the rest.

    >>> [sorted(below) for below in reduced({"a": {"b", "c"}, "b": {"c"}, "c": frozenset()}).values()]
    [['b'], ['c'], []]
    """

    @functools.cache
    def reached(part: str) -> frozenset[str]:
        return frozenset(itertools.chain(found[part], *map(reached, found[part])))

    return {part: below - frozenset(itertools.chain(*map(reached, below))) for part, below in found.items()}


# Where everything goes. A line that passes a row has a place of its own there, so that it runs into no part


class Place(NamedTuple):
    """A part in its row, or where the line between two parts passes a row."""

    row: int
    part: str
    towards: str = ""


Line = tuple[Place, ...]


def lines_of(rows: Sequence[Sequence[str]], found: Imports) -> list[Line]:
    """Return each import as the places that its line goes through, one a row."""
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
    """Return the places of each row from left to right, so that few lines cross: the best of some tries."""
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
    """Swap neighbours for as long as that makes fewer lines cross."""
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
    """Count how often lines cross."""
    spot = {place: index for row in places for index, place in enumerate(row)}
    pairs = [pair for line in lines for pair in itertools.pairwise(line)]
    return sum(
        one[0].row == two[0].row and (spot[one[0]] - spot[two[0]]) * (spot[one[1]] - spot[two[1]]) < 0
        for one, two in itertools.combinations(pairs, 2)
    )


def spread(row: Sequence[Place], wanted: Sequence[float]) -> list[float]:
    """Return where the places of a row go, in their order and apart, as near as can be to where they are wanted."""
    gaps = [(width(one) + width(two)) / 2 + GAP for one, two in itertools.pairwise(row)]
    offsets = list(itertools.accumulate(gaps, initial=0.0))
    blocks: list[list[float]] = []  # those that touch move together
    for value, offset in zip(wanted, offsets, strict=True):
        blocks.append([value - offset])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    levels = [_mean(block) for block in blocks for _ in block]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]


def positions(places: Sequence[Sequence[Place]], lines: Sequence[Line], passes: int = 60) -> dict[Place, float]:
    """Return how far to the right each place is."""
    at = {place: x for row in places for place, x in zip(row, spread(row, [0.0] * len(row)), strict=True)}
    neighbours = neighbours_of(lines)
    for turn in range(passes):
        for row in places if turn % 2 == 0 else reversed(places):
            wanted = [_mean([at[one] for one in neighbours.get(place, [place])]) for place in row]
            at.update(zip(row, spread(row, wanted), strict=True))
    left = min(x - width(place) / 2 for place, x in at.items())
    return {place: x - left + MARGIN for place, x in at.items()}


_mean = statistics.fmean


# The picture

MARGIN, GAP, BOX, STEP = 16, 18, 34, 66  # pixels; a step is from one row to the next
LETTER, PASSING = 8.2, 6
STYLE = """
  text { font: 14px "DejaVu Sans", Verdana, sans-serif; fill: #1b2330; text-anchor: middle; }
  .within { font-size: 10px; fill: #55606e; }
  rect.part { fill: #eaf0f8; stroke: #4a6fa5; stroke-width: 1.2; }
  path.import { fill: none; stroke: #7b8794; stroke-width: 1.3; marker-end: url(#head); }
"""


def within(part: str) -> str:
    """Return the modules that are drawn as one with a part."""
    return ", ".join(name for name, whole in WITHIN.items() if whole == part and name != "__main__")


def width(place: Place) -> float:
    """Return how much of a row a place takes."""
    return PASSING if place.towards else max(LETTER * len(place.part), 0.75 * LETTER * len(within(place.part))) + 22


def draw() -> str:
    """Return the picture."""
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
            "<title>Which part of dynabandit imports which</title>",
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
    """Return a line that leaves every row straight down."""
    drawn = f"M{at[line[0]]:.0f} {_top(line[0].row) + BOX}"
    for one, two in itertools.pairwise(line):
        start, end = _top(one.row) + BOX, _top(two.row)
        middle = (start + end) / 2
        drawn += f"C{at[one]:.0f} {middle:.0f} {at[two]:.0f} {middle:.0f} {at[two]:.0f} {end}"
        drawn += f"V{end + BOX}" if two.towards else ""
    return f'<path class="import" d="{drawn}"/>'


def _box(place: Place, x: float) -> Iterator[str]:
    top, wide, more = _top(place.row), width(place), within(place.part)
    yield f'<rect class="part" x="{x - wide / 2:.0f}" y="{top}" width="{wide:.0f}" height="{BOX}" rx="6"/>'
    yield f'<text x="{x:.0f}" y="{top + (15 if more else 22)}">{place.part}</text>'
    if more:
        yield f'<text class="within" x="{x:.0f}" y="{top + 28}">{more}</text>'


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(), encoding="utf-8")
