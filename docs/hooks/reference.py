"""A page for each policy and each environment, written from its class and docstring when the site is built."""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from dynabandit.catalogue import fields_of
from dynabandit.environments import ENVIRONMENTS
from dynabandit.policies import POLICIES

DOCS = Path(__file__).parents[1]
KINDS: dict[str, Mapping[str, type]] = {"policies": POLICIES, "environments": ENVIRONMENTS}
CAPTIONS = {
    "policies": "Mean regret on [`small-changes`](../environments/small-changes.md), where the best arm changes at "
    "steps 3,000 and 5,000, in front of all other policies: 100 replications, on the same paths.",
    "environments": "One path of the means; no more than four of the arms are shown.",
}
WORDS = {
    "policies": "Beliefs about the arms in, the chosen arm out. Each page comes from the docstring of its class, and "
    "what `help(db.policies.POLICIES[name])` says is the same. [Which one should I use?](../which-policy.md)",
    "environments": "Time in, the mean reward of each arm out. Each page comes from the docstring of its class.",
}
SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
MATH = re.compile(r"^\.\. math:: (.+(?:\n    .+)*)", re.MULTILINE)
COST = re.compile(r"^Cost of a step: (.+(?:\n.+)*)", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Put every page into the navigation, in the order of the registry."""
    for entry in config.nav:
        for title, kind in [("Policies", "policies"), ("Environments", "environments")]:
            if isinstance(entry, dict) and entry.get(title) == f"{kind}/index.md":
                entry[title] = [f"{kind}/index.md", *({name: f"{kind}/{name}.md"} for name in KINDS[kind])]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    for kind, registry in KINDS.items():
        files.append(File.generated(config, f"{kind}/index.md", content=index(kind)))
        for name in registry:
            files.append(File.generated(config, f"{kind}/{name}.md", content=page(kind, name)))
    return files


def index(kind: str) -> str:
    """Return the page that lists all of a kind."""
    lines = [f"# {kind.capitalize()}", "", WORDS[kind], "", "| name | what it does |", "|---|---|"]
    for name, one in KINDS[kind].items():
        summary = " ".join(sections(one)["Summary"].partition("\n\n")[0].split())
        lines.append(f"| [`{name}`]({name}.md) | {linked(summary)} |")
    return "\n".join(lines) + "\n"


def page(kind: str, name: str) -> str:
    """Return the page of one policy or environment.

    >>> text = page("policies", "aff-ots")
    >>> [line for line in text.splitlines() if line.startswith("#")]
    ['# `aff-ots`', '## Equations', '## Parameters', '## Cost', '## Example', '## References']
    """
    one = KINDS[kind][name]
    found = sections(one)
    maker = "policy" if kind == "policies" else "environment"
    parts = [f"# `{name}`", linked(found["Summary"]), *picture(kind, name)]
    notes = COST.sub("", found.get("Notes", "")).strip()
    if notes:
        parts += ["## Equations", MATH.sub(_display, linked(notes))]
    parts += ["## Parameters", parameters(one)]
    parts.append(f'`db.{maker}("{name}", ...)` makes one; the class is `db.{kind}.{one.__name__}`.')
    if cost := COST.search(found.get("Notes", "")):
        parts += ["## Cost", f"A step: {cost[1]}", *standing(name)]
    parts += ["## Example", f"```pycon\n{found['Examples'].strip()}\n```"]
    parts += ["## References", linked(found["References"])]
    return "\n\n".join(parts) + "\n"


def sections(one: type) -> dict[str, str]:
    """Split a docstring into its parts; what comes first is called Summary."""
    first, *rest = SECTION.split(inspect.getdoc(one) or "")
    return {"Summary": first.strip()} | {title: text.strip() for title, text in zip(rest[::2], rest[1::2], strict=True)}


def linked(text: str) -> str:
    """Turn classes in backticks into links to their pages, with the name that users give.

    >>> linked("as in `DUCB`")
    'as in [`d-ucb`](../policies/d-ucb.md)'
    """
    for kind, registry in KINDS.items():
        for name, one in registry.items():
            text = text.replace(f"`{one.__name__}`", f"[`{name}`](../{kind}/{name}.md)")
    return text


def picture(kind: str, name: str) -> list[str]:
    """Return the picture of a page with its caption, or nothing where none was drawn yet."""
    path = f"pictures/{kind}/{name}.svg"
    return [f"![{name}](../{path})", f"*{CAPTIONS[kind]}*"] if (DOCS / path).exists() else []


def parameters(one: type) -> str:
    """Return the parameters as a table."""
    rows = ["| parameter | default | what it is |", "|---|---|---|"]
    for field in fields_of(one):
        needed = field.default is None and not _has_default(one, field.name)
        default = "needed" if needed else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {linked(field.description).replace('|', '&#124;')} |")
    return "\n".join(rows)


def _has_default(one: type, name: str) -> bool:
    return inspect.signature(one).parameters[name].default is not inspect.Parameter.empty


def standing(name: str) -> list[str]:
    """Return what the leaderboard measured for a policy, where it has a row."""
    table = DOCS / "leaderboard.md"
    row = (
        re.search(rf"^\| `{name}` \|(.*)\|$", table.read_text(encoding="utf-8"), re.MULTILINE)
        if table.exists()
        else None
    )
    if row is None:
        return []
    rank, ratio, worst, _, delay, microseconds = (cell.strip() for cell in row[1].split("|"))
    where = f"mean rank {rank}" if rank != "oracle" else "an oracle policy, not ranked"
    words = f"On the [leaderboard](../leaderboard.md): {where}, {ratio} times the regret of the best, {worst} in its "
    words += "worst environment"
    words += (
        f"; {delay} steps until it sees a change." if delay != "never" else "; it does not see a single change in time."
    )
    return [words + (f" {microseconds} microseconds a step with ten arms on one core." if microseconds else "")]


def _display(found: re.Match[str]) -> str:
    return f"$$\n{' '.join(found[1].split())}\n$$"
