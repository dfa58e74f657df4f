"""Convert Python sessions and equations of the pages into a form that MkDocs renders."""

import re
from collections.abc import Iterator
from typing import Any

from latex2mathml.converter import convert

FENCE = re.compile(r"^\s*(`{3,})(.*)$")
BLOCK = "$$"
INLINE = re.compile(r"\$`([^`]+)`\$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Convert a page before it is rendered."""
    return "\n".join(_converted(markdown.split("\n")))


def _converted(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a page with LaTeX converted to MathML."""
    rest = iter(lines)
    for line in rest:
        if fence := FENCE.match(line):
            yield from _fenced(line, fence[1], rest)
        elif line.strip() == BLOCK:
            latex = " ".join(_until(rest, BLOCK))
            yield f'<div class="equation">{equation(latex, "block")}</div>'
        else:
            yield INLINE.sub(lambda found: equation(found[1], "inline"), line)


def _fenced(opening: str, ticks: str, rest: Iterator[str]) -> Iterator[str]:
    inside = list(_until(rest, ticks))
    session = bool(inside) and inside[0].lstrip().startswith(">>> ")
    yield opening.replace("python", "pycon") if session else opening
    while session and inside and not inside[-1].strip():
        inside.pop()  # doctest needs an empty line at the end of a block
    yield from (*inside, ticks)


def _until(rest: Iterator[str], end: str) -> Iterator[str]:
    for line in rest:
        if line.strip() == end:
            return
        yield line


def equation(latex: str, display: str) -> str:
    r"""Return LaTeX as MathML, which browsers render without scripts.

    >>> equation(r"\sqrt{2}", "inline").count("msqrt")
    2
    """
    return convert(latex, display=display)
