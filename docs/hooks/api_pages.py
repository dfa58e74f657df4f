"""Generate the reference of the public API from signatures and docstrings when the site is built.

The registered policies and environments have pages of their own (reference.py).
"""

import importlib
import inspect
import re
from typing import Any, NamedTuple

from docstrings import (
    ROOT,
    Item,
    described,
    fields,
    methods,
    parameters,
    returned,
    sections,
    signature,
    source_link,
    with_math,
)
from mkdocs.structure.files import File

import dynabandit
from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES

REGISTERED = {
    **{kind: f"../policies/{name}.md" for name, kind in {**POLICIES, **CONTEXTUAL_POLICIES}.items()},
    **{kind: f"../environments/{name}.md" for name, kind in {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS}.items()},
}


class Topic(NamedTuple):
    """A page: names of the top level, then all other public names of a module."""

    title: str
    names: tuple[str, ...]
    module: str = ""
    introduction: str = ""


TOPICS = {
    "simulation": Topic("Simulation", ("simulate", "compare", "Simulation", "estimation", "Estimation")),
    "results": Topic("Results", ("Results", "Run")),
    "bandit": Topic("Bandit", ("Bandit",)),
    "client": Topic(
        "Client", ("Client", "ServiceError", "sign_unit"), "", "A guide is in [decision service](../service.md)."
    ),
    "async-client": Topic("AsyncClient", ("AsyncClient",)),
    "local-decider": Topic("LocalDecider", ("LocalDecider",)),
    "client-types": Topic("What the clients return", (), "service.api_types"),
    "policies": Topic(
        "Policies", ("policy", "Policy", "PythonPolicy"), "policies",
        "Each policy has [a page of its own](../policies/index.md).",
    ),
    "memories": Topic(
        "Memories", ("compose", "grid"), "policies.memories",
        "A guide is in [any memory with any rule](../compositions.md).",
    ),
    "rules": Topic(
        "Rules", (), "policies.rules", "A guide is in [any memory with any rule](../compositions.md).",
    ),
    "detectors": Topic(
        "Detectors", (), "policies.detectors",
        "A guide is in [any memory with any rule](../compositions.md).",
    ),
    "environments": Topic(
        "Environments", ("environment", "Environment", "reward_law", "delay", "Delay"), "environments",
        "Each environment has [a page of its own](../environments/index.md).",
    ),
    "estimators": Topic("Estimators", (), "estimators"),
    "features": Topic("Features", (), "features"),
    "offline": Topic("Offline evaluation", (), "offline", "A guide is in [offline evaluation](../offline.md)."),
    "plot": Topic("Plot", (), "plot", "A guide is in [figures for publications](../figures.md)."),
    "checks": Topic("Checks", (), "checks"),
    "integrations": Topic("Integrations", (), "integrations", "A guide is in [integrations](../integrations.md)."),
}  # fmt: skip
INTRODUCTION = (
    "All public names, after `import dynabandit as db`. The pages are generated from the docstrings, which `help` also "
    "shows. Each [policy](../policies/index.md) and each [environment](../environments/index.md) has a page of its own."
)
CONSTANTS = {
    "AUTO": "The name that stands for the recommended policy.",
    "MEMORIES": "All memories by name.",
    "RULES": "All rules by name.",
    "DETECTORS": "All detectors by name.",
    "CONTEXTUAL_ENVIRONMENTS": "The environments with features, by name.",
    "CONTEXTUAL_POLICIES": "The policies that decide by features, by name.",
    "DELAYS": "The distributions of delays, by name.",
    "ENVIRONMENTS": "The environments without features, by name.",
    "PARQUET_KEY": "The key under which the metadata of a Parquet file declare the features of its contexts.",
    "POLICIES": "The policies that do not decide by features, by name.",
    "REWARD_LAWS": "The reward laws, by name.",
}
FIRST = ("create", "choose", "decide", "decide_many", "reward", "reward_many", "rank")  # methods
SIGNATURE = "```{{ .python .no-copy }}\n{}\n```"
NAME = re.compile(r"(?<![`\w])`([\w.]+)`(?!`)")
GUIDE = re.compile(r"`?(docs/([\w-]+)\.md)`?")
AS_FOR = re.compile(r"As for `(\w+)`\.")
THOSE_OF = re.compile(r"(?:those of|see)\s+`(\w+)`")


class Entry(NamedTuple):
    """A public name."""

    path: str  # as a user writes it, such as `db.simulate`
    value: Any
    anchor: str


def entries(page: str) -> list[Entry]:
    """Return the public names of a page."""
    topic = TOPICS[page]
    found = [Entry(f"db.{name}", getattr(dynabandit, name), name) for name in topic.names]
    if page == "client-types":
        return [Entry(kind.__name__, kind, kind.__name__) for kind in client_types()]
    if page == "integrations":
        for part in dynabandit.integrations.__all__:
            module = importlib.import_module(f"dynabandit.integrations.{part}")
            names = module.__all__
            found += [Entry(f"db.integrations.{part}.{one}", getattr(module, one), f"{part}.{one}") for one in names]
        return found
    module = importlib.import_module(f"dynabandit.{topic.module}") if topic.module else None
    for name in [] if module is None else sorted(module.__all__, key=lambda one: (one in CONSTANTS, one.lower())):
        value = getattr(module, name)
        is_new = name not in topic.names and not (isinstance(value, type) and value in REGISTERED)
        found += [Entry(f"db.{topic.module}.{name}", value, name)] if is_new else []
    return found


def client_types() -> list[type]:
    """Return the classes that methods of the clients return, and the classes of their fields."""
    from dynabandit.service import api_types, monitoring_types

    known = {**vars(api_types), **vars(monitoring_types)}
    waiting = [returned(method) for method in methods(dynabandit.Client).values()]
    found: dict[str, type] = {}
    while waiting:
        for name in re.findall(r"\w+", waiting.pop(0)):
            kind = known.get(name)
            if isinstance(kind, type) and kind.__module__.startswith("dynabandit") and name not in found:
                found[name] = kind
                waiting += [item.kind for item in fields(kind)]
    return list(found.values())


def on_config(config: Any) -> Any:
    """Add all pages to the navigation."""
    pages: list[Any] = ["api/index.md", *({topic.title: f"api/{page}.md"} for page, topic in TOPICS.items())]
    for part in config.nav:
        for entry in part.get("Reference", ()):
            if entry.get("Python API") == "api/index.md":
                entry["Python API"] = pages
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    known = {page: entries(page) for page in TOPICS}
    links = {kind.__name__: address for kind, address in REGISTERED.items()}
    for name, found in known.items():
        for entry in found:
            links.setdefault(entry.anchor, f"{name}.md#{entry.anchor}")
            for method in methods(entry.value) if isinstance(entry.value, type) else ():
                links.setdefault(f"{entry.anchor}.{method}", f"{name}.md#{entry.anchor}.{method}")
    files.append(File.generated(config, "api/index.md", content=index(known, links)))
    for name, found in known.items():
        topic = TOPICS[name]
        about = inspect.getdoc(importlib.import_module(f"dynabandit.{topic.module}")) if topic.module else ""
        parts = [f"# {topic.title}", about or "", topic.introduction]
        parts += [_Writer(links, entry).text() for entry in found]
        files.append(File.generated(config, f"api/{name}.md", content="\n\n".join(filter(None, parts)) + "\n"))
    return files


def index(known: dict[str, list[Entry]], links: dict[str, str]) -> str:
    """Return the page that lists all public names."""
    parts = ["# Python API", INTRODUCTION]
    for name, found in known.items():
        rows = [f"| [`{one.path}`]({name}.md#{one.anchor}) | {_Writer(links, one).summary()} |" for one in found]
        parts.append(f"## [{TOPICS[name].title}]({name}.md)")
        parts.append("\n".join(["| name | description |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


class _Writer:
    """Writes the part of a page about one public name."""

    def __init__(self, links: dict[str, str], entry: Entry) -> None:
        self.links, self.entry = links, entry

    def summary(self) -> str:
        """Return the first paragraph on one line."""
        if self.entry.anchor in CONSTANTS:
            return CONSTANTS[self.entry.anchor]
        first = sections(self.entry.value)["Summary"].partition("\n\n")[0]
        return " ".join(self.linked(first).split()).replace("|", "&#124;")

    def text(self) -> str:
        path, value, anchor = self.entry
        heading = f"## `{anchor}` {{ #{anchor} }}"
        if anchor in CONSTANTS:
            return "\n\n".join([heading, SIGNATURE.format(path), CONSTANTS[anchor]])
        parts = [heading, *(self.of_class(value) if isinstance(value, type) else self.of_function(path, value))]
        return "\n\n".join(filter(None, parts))

    def of_class(self, kind: type) -> list[str]:
        path, _, anchor = self.entry
        found, listed = sections(kind), list(fields(kind))
        maker, documented = vars(kind).get("__init__"), found.get("Parameters", "")
        given: list[Item] = []
        code = "" if path == anchor else path
        if documented or (inspect.isfunction(maker) and maker.__module__ == kind.__module__ and not listed_only(kind)):
            given = constructor(kind, listed)
            code = signature(path, given)
        parts = [SIGNATURE.format(code) if code else ""]
        *body, source = self.body(found, given, kind)
        shown = [item for item in listed if item.name not in described(documented)[0]]
        parts += [*body, self.table("Attributes", shown) if shown else "", source]
        for name, method in sorted(methods(kind).items(), key=_order):
            parts.append(f"### `{name}` {{ #{anchor}.{name} }}")
            parts += self.of_function(name, method, getattr(kind, name))
        return parts

    def of_function(self, path: str, function: Any, documented: Any = None) -> list[str]:
        given, result = parameters(inspect.unwrap(function)), returned(function)
        is_async = "async " if inspect.iscoroutinefunction(function) else ""
        code = SIGNATURE.format(is_async + signature(path, given, result))
        return [code, *self.body(sections(documented or function), given, function, result)]

    def body(self, found: dict[str, str], given: list[Item], one: Any, result: str = "") -> list[str]:
        """Return the description, the parameters, the result, the equations, the example and the source."""
        texts, after = described(found.get("Parameters", ""))
        for name in THOSE_OF.findall(found["Summary"] + after):
            texts = {**self.described_by(name, one), **texts}
        for name, text in texts.items():
            if other := AS_FOR.fullmatch(text):
                texts[name] = self.described_by(other[1], one).get(name, text)
        own = {item.name.lstrip("*") for item in given}
        items = [item._replace(text=texts[key]) for item in given if (key := item.name.lstrip("*")) in texts]
        parts = [self.linked(found["Summary"], own)]
        parts += [self.table("Parameters", items, own)] if items else []
        parts.append(self.linked(after, own))
        for title in ("Returns", "Yields", "Raises"):
            if title in found:
                rows = [f"- `{name}`: {self.linked(text, own)}" for name, text in described(found[title])[0].items()]
                parts.append(f"**{title}**\n\n" + "\n".join(" ".join(row.split()) for row in rows))
        if result not in ("", "Any") and "Returns" not in found and "Yields" not in found:
            parts.append(f"**Returns** {self.kind(result)}")
        if notes := found.get("Notes"):
            parts.append(self.linked(notes, own))
        if example := found.get("Examples"):
            parts.append(examples(example, lambda text: self.linked(text, own)))
        if references := found.get("References"):
            parts.append("**References**\n\n" + self.linked(references))
        return [*parts, f"[Source code]({source_link(one)}){{ .source }}"]

    def described_by(self, name: str, one: Any) -> dict[str, str]:
        """Return the parameters of another method of the class or function of the module, or of a public name."""
        for place in (self.entry.value, inspect.getmodule(one), dynabandit):
            if hasattr(place, name):
                return described(sections(getattr(place, name)).get("Parameters", ""))[0]
        return {}

    def table(self, title: str, items: list[Item], own: set[str] = frozenset()) -> str:  # type: ignore[assignment]
        """Return a table; without any description it has two columns."""
        columns = 3 if any(item.text for item in items) else 2
        rows = [["name", "type", "description"], ["---"] * 3]
        for item in items:
            text = " ".join(self.linked(item.text, own).split()).replace("|", "&#124;")
            rows.append([f"`{item.name}`", self.kind(item.kind), text])
        return f"**{title}**\n\n" + "\n".join(f"| {' | '.join(row[:columns])} |" for row in rows)

    def kind(self, kind: str) -> str:
        """Return a type, linked to the first public class in it."""
        known = [self.links[name] for name in re.findall(r"\w+", kind) if name in self.links and name[0].isupper()]
        return (f"[`{kind}`]({known[0]})" if known else f"`{kind}`") if kind else ""

    def linked(self, text: str, own: set[str] = frozenset()) -> str:  # type: ignore[assignment]
        """Link public names, unless they are parameters, and the guides."""

        def link(found: re.Match[str]) -> str:
            name = re.sub(
                r"^(dynabandit|db)\.((policies|environments|estimators|memories|rules|detectors)\.)?", "", found[1]
            )
            for known in (f"{self.entry.anchor}.{name}", name):
                if name not in own and known in self.links:
                    return f"[`{found[1]}`]({self.links[known]})"
            return found[0]

        return GUIDE.sub(_guide, with_math(NAME.sub(link, text)))


def _order(method: tuple[str, Any]) -> int:
    """Return the place of a method: what most users need first, and what the decision service needs last."""
    name, function = method
    if name in FIRST:
        return FIRST.index(name)
    is_for_columns = "column" in name or any(item.name == "column" for item in parameters(function))
    return len(FIRST) + is_for_columns


def _guide(found: re.Match[str]) -> str:
    return f"[{found[2]}](../{found[2]}.md)" if (ROOT / found[1]).exists() else found[0]


def listed_only(kind: type) -> bool:
    """Return whether a class only has fields, so that its attributes say what its constructor takes."""
    return hasattr(kind, "__dataclass_fields__") or issubclass(kind, tuple) or hasattr(kind, "__struct_fields__")


def constructor(kind: type, listed: list[Item]) -> list[Item]:
    """Return the parameters of the constructor of a class."""
    if not listed_only(kind):
        return parameters(kind.__init__)  # type: ignore[misc]
    types = {item.name: item.kind for item in listed}
    found = []
    for one in inspect.signature(kind).parameters.values():
        default = "" if one.default is inspect.Parameter.empty else repr(one.default)
        if one.kind is inspect.Parameter.KEYWORD_ONLY and all(item.name != "*" for item in found):
            found.append(Item("*", "", "", ""))
        found.append(Item(one.name, types.get(one.name, ""), default, ""))
    return found


def examples(text: str, linked: Any) -> str:
    """Return a section of examples: text between sessions stays text."""
    parts = ["**Example**"]
    for block in re.split(r"\n\n+", text):
        if block.startswith(">>>"):
            shown = re.sub(r"\s*# doctest: \S+( \S+)*$", "", block, flags=re.MULTILINE)
            parts.append(f"```pycon\n{shown}\n```")
        else:
            parts.append(linked(block))
    return "\n\n".join(parts)
