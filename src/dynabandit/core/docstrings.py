"""Sections of docstrings, and descriptions of parameters, which are read from them and written into them."""

import inspect
import re
import textwrap

WIDTH = 116  # of lines of docstrings without their indentation
HEADING = re.compile(r"^(Parameters|Examples|Notes|References)\n-+\n", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    r"""Return the sections of a docstring by heading; the text before the first heading has the key "".

    Examples
    --------
    >>> sections("Wait.\n\nNotes\n-----\nTwice.")
    {'': 'Wait.', 'Notes': 'Twice.'}
    """
    before, *rest = HEADING.split(text)
    return {"": before.strip()} | {name: text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}


def with_sections(parts_by_heading: dict[str, str]) -> str:
    """Return a docstring that has these sections, in the usual order."""
    parts = [parts_by_heading[""]]
    for name in ("Parameters", "Examples", "Notes", "References"):
        parts += [f"{name}\n{'-' * len(name)}\n{parts_by_heading[name]}"] if parts_by_heading.get(name) else []
    return "\n\n".join(parts)


def parameter_descriptions(text: str) -> list[tuple[list[str], str]]:
    """Read the section ``Parameters`` of a docstring: names and their description."""
    # Not docstring-parser: it would be a dependency of three extras, for these lines
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    described: list[tuple[list[str], list[str]]] = []
    for line in section.splitlines():
        if line.startswith(" "):
            described[-1][1].append(line.strip())
        else:
            described.append(([name.strip() for name in line.split(",")], []))
    return [(names, " ".join(lines)) for names, lines in described]


def descriptions_of(kind: type) -> dict[str, str]:
    """Return the descriptions in the docstring of a class, by the names that each of them describes."""
    return {", ".join(names): text for names, text in parameter_descriptions(inspect.getdoc(kind) or "")}


def inherited_descriptions(kind: type) -> dict[str, str]:
    """Return the descriptions in the docstrings of the base classes of a class."""
    descriptions: dict[str, str] = {}
    for base in kind.__mro__[1:]:
        descriptions |= {names: text for names, text in descriptions_of(base).items() if names not in descriptions}
    return descriptions


def inherit_parameters(kind: type, source: type) -> None:
    """Let the docstring of a class, if it has one, also describe the parameters that another class describes."""
    if kind.__doc__:
        kind.__doc__ = with_parameters(inspect.cleandoc(kind.__doc__), descriptions_of(source))


def with_parameters(text: str, described: dict[str, str]) -> str:
    r"""Return a docstring with examples whose section ``Parameters`` also describes the parameters that it leaves out.

    Examples
    --------
    >>> text = "Wait.\n\nParameters\n----------\nsteps\n    For how long.\n\nExamples\n--------\n>>> 1\n1"
    >>> with_parameters(text, {"steps": "How long.", "rate": "How often."}).splitlines()[2:8]
    ['Parameters', '----------', 'steps', '    For how long.', 'rate', '    How often.']
    """
    parts = sections(text)
    known = {name for names, _ in parameter_descriptions(text) for name in names}
    left = {", ".join(name for name in names.split(", ") if name not in known): described[names] for names in described}
    added = written({names: description for names, description in left.items() if names})
    if not added or "Examples" not in parts:
        return text
    return with_sections(parts | {"Parameters": "\n".join(filter(None, [parts.get("Parameters"), added]))})


def written(described: dict[str, str]) -> str:
    """Return descriptions of parameters as in the section ``Parameters``."""
    wrapped = textwrap.TextWrapper(
        WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(f"{names}\n{wrapped.fill(description)}" for names, description in described.items())
