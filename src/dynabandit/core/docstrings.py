"""Descriptions of parameters, read from docstrings and written into them."""

import textwrap

WIDTH = 116  # of lines of docstrings without their indentation


def parameter_descriptions(text: str) -> list[tuple[list[str], str]]:
    """Read the section ``Parameters`` of a docstring: names and their description."""
    # Not docstring-parser: it would be a dependency of three extras, for these lines
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found: list[tuple[list[str], list[str]]] = []
    for line in section.splitlines():
        if line.startswith(" "):
            found[-1][1].append(line.strip())
        else:
            found.append(([name.strip() for name in line.split(",")], []))
    return [(names, " ".join(lines)) for names, lines in found]


def with_parameters(text: str, described: dict[str, str]) -> str:
    r"""Return a docstring with a section ``Parameters`` before its examples, if it has examples and no such section.

    Examples
    --------
    >>> text = "Wait.\n\nExamples\n--------\n>>> 1\n1"
    >>> with_parameters(text, {"steps": "For how long."}).splitlines()[2:6]
    ['Parameters', '----------', 'steps', '    For how long.']
    """
    before, heading, after = text.partition("Examples\n--------")
    if "Parameters\n----------" in before or not heading or not described:
        return text
    lines = ["Parameters", "----------"]
    for name, description in described.items():
        lines += [name, textwrap.fill(description, WIDTH, initial_indent="    ", subsequent_indent="    ")]
    return f"{before}{chr(10).join(lines)}\n\n{heading}{after}"
