"""Generate a page for each policy and each environment from its docstring when the site is built."""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import families
from docstrings import Item, sections, signature, source_link, with_math
from families import grouped
from mkdocs.structure.files import File

from dynabandit.catalogue import fields_of
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.environments.rested import RestedEnvironment
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES

DOCS = Path(__file__).parents[1]
KINDS: dict[str, Mapping[str, type]] = {
    "policies": {**POLICIES, **CONTEXTUAL_POLICIES},
    "environments": {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS},
}
FAMILIES = {"policies": families.POLICIES, "environments": families.ENVIRONMENTS}
CAPTIONS = {
    "policies": "Mean regret in [`small-changes`](../environments/small-changes.md), where the best arm changes at "
    "steps 3,000 and 5,000, compared with all other policies: 100 replications on the same paths.",
    "environments": "One sample path of the means of at most four arms.",
}
CONTEXTUAL_CAPTION = (
    "What a linear model that was fitted to the true means of 250 steps loses per step when it is used at other steps, "
    "in percent of what a random choice loses. Where only the diagonal is light, what was learned does not stay true."
)
RESTED_CAPTION = "The means of four arms by their own plays."
INTRODUCTIONS = {
    "policies": "A policy chooses an arm from the estimates of all arms. Each page is generated from the docstring of "
    "the class, which `help(type(db.policy(name)))` also shows. [Which policy should I use?](../which-policy.md)",
    "environments": "An environment defines the mean reward of each arm at each step. Each page is generated from the "
    "docstring of the class.",
}
COST = re.compile(r"^Cost per step: (.+(?:\n.+)*)", re.MULTILINE)


def on_config(config: Any) -> Any:
    """Add all pages to the navigation, in the order of the registry."""
    for part in config.nav:
        for entry in part.get("Reference", ()):
            for title, kind in [("Policies", "policies"), ("Environments", "environments")]:
                if entry.get(title) == f"{kind}/index.md":
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
    """Return the page that lists all policies or environments."""
    lines = [f"# {kind.capitalize()}", "", INTRODUCTIONS[kind]]
    for family, names in grouped(FAMILIES[kind], KINDS[kind]).items():
        lines += ["", f"## {family}", "", "| name | description |", "|---|---|"]
        for name in names:
            summary = " ".join(sections(KINDS[kind][name])["Summary"].partition("\n\n")[0].split())
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
        parts += ["## Equations", linked(notes)]
    parts += ["## Parameters", call(maker, name, one), parameters(one)]
    parts.append(
        f'Created by `db.{maker}("{name}", ...)`; the class is `db.{kind}.{one.__name__}`, a '
        f"[`{maker.capitalize()}`](../api/{kind}.md#{maker.capitalize()}) ([source code]({source_link(one)}))."
    )
    if cost := COST.search(found.get("Notes", "")):
        parts += ["## Cost", f"Cost per step: {cost[1]}", *standing(name)]
    parts += ["## Example", f"```pycon\n{found['Examples'].strip()}\n```"]
    parts += ["## References", linked(found["References"])]
    return "\n\n".join(parts) + "\n"


def linked(text: str) -> str:
    """Replace class names in backticks by links to their pages, shown with the registered name.

    >>> linked("as in `DUCB`")
    'as in [`d-ucb`](../policies/d-ucb.md)'
    """
    for kind, registry in KINDS.items():
        for name, one in registry.items():
            text = text.replace(f"`{one.__name__}`", f"[`{name}`](../{kind}/{name}.md)")
    return with_math(text)


def picture(kind: str, name: str) -> list[str]:
    """Return the figure of a page with its caption, if there is one."""
    path = f"pictures/{kind}/{name}.svg"
    caption = RESTED_CAPTION if issubclass(KINDS[kind][name], RestedEnvironment) else CAPTIONS[kind]
    caption = CONTEXTUAL_CAPTION if name in CONTEXTUAL_ENVIRONMENTS else caption
    return [f"![{name}](../{path})", f"*{caption}*"] if (DOCS / path).exists() else []


def call(maker: str, name: str, one: type) -> str:
    """Return the call that creates a policy or an environment, with all parameters."""
    given = inspect.signature(one).parameters
    items = [Item(f'"{name}"', "", "", "")]
    for field in fields_of(one):
        default = given[field.name].default
        items.append(Item(field.name, "", "..." if default is inspect.Parameter.empty else repr(default), ""))
    return f"```python\n{signature(f'db.{maker}', items).replace(' = ', '=')}\n```"


def parameters(one: type) -> str:
    """Return the parameters as a table."""
    rows = ["| parameter | default | description |", "|---|---|---|"]
    for field in fields_of(one):
        needed = field.default is None and not _has_default(one, field.name)
        default = "required" if needed else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {linked(field.description).replace('|', '&#124;')} |")
    return "\n".join(rows)


def _has_default(one: type, name: str) -> bool:
    return inspect.signature(one).parameters[name].default is not inspect.Parameter.empty


def standing(name: str) -> list[str]:
    """Return a summary of the row of a policy on the leaderboard, if it has one."""
    table = DOCS / "leaderboard.md"
    row = (
        re.search(rf"^\| `{name}` \|(.*)\|$", table.read_text(encoding="utf-8"), re.MULTILINE)
        if table.exists()
        else None
    )
    if row is None or name in CONTEXTUAL_POLICIES:
        return []
    ratio, interval, worst, where, rank, _, delay, microseconds, _, _ = (cell.strip() for cell in row[1].split("|"))
    parts = [f"{ratio} times the regret of the best policy (95 % interval {interval}; {worst} times in `{where}`)"]
    parts.append(f"mean rank {rank}" if rank[0].isdigit() else "an oracle policy, not ranked")
    parts.append("does not detect a single change" if delay == "never" else f"{delay} steps to detect a change")
    if microseconds:
        parts.append(f"{microseconds} microseconds per step with ten arms on one core")
    return [f"On the [leaderboard](../leaderboard.md): {'; '.join(parts)}."]
