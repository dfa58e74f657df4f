"""Descriptions of parameters, read from docstrings and written into them."""

import inspect
import textwrap

TITLE = "Parameters\n----------\n"
WIDTH = 116  # of lines of docstrings without their indentation


def parameter_descriptions(text: str) -> list[tuple[list[str], str]]:
    """Read the section ``Parameters`` of a docstring: names and their description."""
    # Not docstring-parser: it would be a dependency of three extras, for these lines
    section = text.partition(TITLE)[2].partition("\n\n")[0]
    found: list[tuple[list[str], list[str]]] = []
    for line in section.splitlines():
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        else:
            found.append(([name.strip() for name in line.split(",")], []))
    return [(names, " ".join(lines)) for names, lines in found]


def descriptions_of(kind: type) -> dict[str, str]:
    """Return the descriptions in the docstring of a class, by the names that each of them describes."""
    return {", ".join(names): text for names, text in parameter_descriptions(inspect.getdoc(kind) or "")}


def with_parameters(text: str, described: dict[str, str]) -> str:
    r"""Return a docstring whose section ``Parameters`` also has these, unless it describes them itself.

    A docstring without such a section gets it before its examples; one without examples stays as it is.

    Examples
    --------
    >>> text = "Wait.\n\nParameters\n----------\nsteps\n    For how long.\n\nExamples\n--------\n>>> 1\n1"
    >>> with_parameters(text, {"steps": "How long.", "rate": "How often."}).splitlines()[2:8]
    ['Parameters', '----------', 'steps', '    For how long.', 'rate', '    How often.']
    """
    before, heading, after = text.partition("Examples\n--------")
    own = {name for names, _ in parameter_descriptions(before) for name in names}
    missing = {names: one for names, one in described.items() if own.isdisjoint(names.split(", "))}
    if not heading or not missing:
        return text
    top, title, section = before.partition(TITLE)
    first, _, rest = section.partition("\n\n") if title else ("", "", "")
    lines = [first] if first else []
    for name, description in missing.items():
        lines += [name, textwrap.fill(description, WIDTH, initial_indent="    ", subsequent_indent="    ")]
    return f"{top}{TITLE}{chr(10).join(lines)}\n\n{rest}{heading}{after}"
