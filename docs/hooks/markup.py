"""Turns what our pages contain into what MkDocs understands: sessions of Python, and equations."""

import re
from collections.abc import Iterator
from typing import Any

from latex2mathml.converter import convert

FENCE = re.compile(r"^\s*(`{3,})(.*)$")
BLOCK = "$$"
INLINE = re.compile(r"\$`([^`]+)`\$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Rewrite a page before it is rendered."""
    return "\n".join(_rewritten(markdown.split("\n")))


def _rewritten(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a page, with LaTeX as MathML."""
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
        inside.pop()  # a doctest needs an empty line before the fence ends
    yield from (*inside, ticks)


def _until(rest: Iterator[str], end: str) -> Iterator[str]:
    for line in rest:
        if line.strip() == end:
            return
        yield line


def equation(latex: str, display: str) -> str:
    r"""Return LaTeX as MathML, which browsers draw by themselves.

    >>> equation(r"\sqrt{2}", "inline").count("msqrt")
    2
    """
    return convert(latex, display=display)
