"""Descriptions of parameters, read from docstrings."""


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
