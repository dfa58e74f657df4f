"""Generate the page of all messages that a user can cause from the source code when the site is built."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dynabandit"
INTRODUCTION = Path(__file__).with_name("messages.intro.md")

# The sections of the page, and the files whose messages belong there; the first that fits takes them
SECTIONS = {
    "Checks of your own policies, environments and estimators": ("checks.py",),
    "Specs and runs of the lab": ("experiments/", "leaderboard/", "paper/", "report/"),
    "Logs, replay and advice": ("offline/",),
    "The command line": ("cli/", "service/commands.py"),
    "The playground and the pages": ("playground/", "service/web/"),
    "The client": ("client/",),
    "The store of the service": ("service/stores/",),
    "The service over HTTP": ("service/",),
    "The library": ("",),
}  # fmt: skip
LOG = "The log of the service"  # what an operator reads
DIFFERS = "When a log and its replay disagree"
LEVELS = ("warning", "error", "exception")

# Calls that carry a message, and the place of it among their arguments
CARRIERS = {
    "AttributeError": 0, "BackendError": 0, "ClusterError": 0, "Differs": 2, "FileNotFoundError": 0, "LookupError": 0,
    "MemoryError": 0, "Missing": 0, "ModuleNotFoundError": 0, "Needed": 0, "Problem": 1, "Refused": 1, "ResetNeeded": 0,
    "ServiceError": 1, "SpecError": 0, "StorageError": 0, "StoreFailed": 0, "TypeError": 0, "ValueError": 0,
    "_Unusable": 0, "_differs": 1, "_fail": 0, "_failed": 1, "_hang_up": 1, "_hold": 1, "_stop": 0, "plain": 1,
    "stop": 0,
}  # fmt: skip
# What only the code itself can cause, or what never leaves it
CAUGHT = ("the checksum does not fit", "the file holds another result", "a history must", "a snapshot must",
          "a number in {...}")  # fmt: skip
INSIDE = {"AssertionError", "ClientDisconnect", "Conflict", "Interrupted", "NotImplementedError", "Overloaded", "Busy"}
KINDS = {
    "_Unusable": "bad row", "_differs": "Differs", "_fail": "exit 1", "_failed": "on the page",
    "_hold": "AssertionError", "Needed": "TypeError",
    "Problem": "beside the field", "echo": "note", "exit": "exit 1", "note": "note",
}  # fmt: skip
ASSIGNED = {
    "differs": "part of a message",
    "doubt": "doubt",
    "full": "429",
    "valid": "part of a message",
}  # names that hold a message
EXITS = {"BAD_INPUT": "exit 2", "FAILED": "exit 1", "INTERRUPTED": "exit 130"}
RETURNED = re.compile(r"_doubt_\w+|missing|difference|verdict|_why")  # functions that return a part of a message
SCRIPT = re.compile(r"new (?:Problem|Error)\(|say\(|setText\(\"gone\"|askForKey\(|notice bad|^const WORDS")
STRING = re.compile(r"""(["`])(.*?)\1""")


class Message(NamedTuple):
    """One row of the page."""

    section: str
    text: str
    kind: str


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.read_text(encoding="utf-8").rstrip()]
    found = sorted(set(messages()), key=lambda one: (one.text.lower().lstrip("{'"), one.kind))
    for section in (*SECTIONS, LOG, DIFFERS):
        rows = [f"| {one.kind} | `{one.text.replace('|', '&#124;')}` |" for one in found if one.section == section]
        parts.append("\n".join([f"## {section}\n", "| kind | message |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def messages() -> Iterator[Message]:
    """Yield every message, with the section of the page that it belongs to."""
    constants = _constants()
    for path in sorted(SOURCE.rglob("*.py")):
        for kind, text in _Reader(path, constants).found:
            yield Message(_section(path, kind), text, kind)
    for path in sorted(SOURCE.rglob("*.js")):
        for line in filter(SCRIPT.search, path.read_text(encoding="utf-8").splitlines()):
            for words in (one for _, one in STRING.findall(line) if one.count(" ") > 1 and one != "Up to date"):
                text = re.sub(r"\$\{(?:\w+\.)*(\w+)\}", r"{\1}", words)
                yield Message(_section(path, ""), text, "on the page")


def uncollected() -> list[str]:
    """Return every `raise` with words of its own that no rule here takes."""
    left = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = _name(node.exc.func)
                if name not in {*CARRIERS, *INSIDE, *HELPERS, "Exit", "Wrong", "_no_decision", "_late"}:
                    left.append(f"{path.name}:{node.lineno}: {ast.unparse(node.exc)}")
    return left


def _section(path: Path, kind: str) -> str:
    if kind.startswith("log:"):
        return LOG
    if kind == "Differs":
        return DIFFERS
    name = path.relative_to(SOURCE).as_posix()
    return next(section for section, starts in SECTIONS.items() if name.startswith(starts))


def _constants() -> dict[str, dict[str, Any]]:
    """Return the numbers and words that modules name, by name and file."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            if isinstance(node.value, ast.Name) and len(found.get(node.value.id, {})) == 1:
                found.setdefault(node.targets[0].id, {})[str(path)] = next(iter(found[node.value.id].values()))
            elif _is_plain(node.value):
                value = eval(compile(ast.Expression(node.value), str(path), "eval"), {"__builtins__": {}})
                found.setdefault(node.targets[0].id, {})[str(path)] = value
    return found


def _is_plain(node: ast.expr) -> bool:
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(one, kinds) for one in ast.walk(node))


class _Reader:
    """Collects the messages of one file as pairs of kind and text."""

    def __init__(self, path: Path, constants: dict[str, dict[str, Any]]) -> None:
        self.path, self.constants = str(path), constants
        self.found: list[tuple[str, str]] = []
        self.visit(ast.parse(path.read_text(encoding="utf-8")), "")

    def visit(self, node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call):
            self.call(node)
        if isinstance(node, ast.Assign):
            self.assignment(node)
        if isinstance(node, ast.Return) and node.value is not None and RETURNED.fullmatch(function):
            kind = "doubt" if function.startswith("_doubt") else "part of a message"
            self.add(kind if function != "_why" else "on the page", self.text(node.value))
        for child in ast.iter_child_nodes(node):
            self.visit(child, function)

    def add(self, kind: str, text: str) -> None:
        """Keep a text with words of its own: what only hands on another message has none."""
        if not text.startswith(CAUGHT) and len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{.*?\}", "", text))) > 1:
            self.found.append((kind, " ".join(text.split())))

    def call(self, node: ast.Call) -> None:
        name, arguments = _name(node.func), node.args
        if name in HELPERS and isinstance(node.func, ast.Name):
            for kind, text in HELPERS[name](self, arguments, node.keywords):
                self.add(kind, text)
        elif name in CARRIERS and len(arguments) > CARRIERS[name]:
            self.add(self.kind(name, arguments), self.text(arguments[CARRIERS[name]]))
        elif name in LEVELS and arguments and isinstance(node.func, ast.Attribute):
            fields = [word.arg for word in node.keywords if word.arg not in (None, "exc_info")]
            self.add(f"log: {'error' if name == 'exception' else name}", self.text(arguments[0]) + _listed(fields))
        elif name == "note" and arguments and isinstance(node.func, ast.Attribute):
            kind = "beside the field" if len(arguments) > 1 else "note"
            self.add(kind, self.text(arguments[-1]))
        elif name == "exit" and arguments:
            self.add("exit 1", self.text(arguments[0]))
        elif name == "echo" and any(word.arg == "err" for word in node.keywords):
            self.add("note", self.text(arguments[0]))

    def kind(self, name: str, arguments: list[ast.expr]) -> str:
        if name in ("Refused", "plain", "_hang_up"):
            return f"{ast.unparse(arguments[0])}" if isinstance(arguments[0], ast.Constant) else "HTTP"
        if name in ("_stop", "stop"):
            return EXITS.get(ast.unparse(arguments[1]), "exit")
        return KINDS.get(name, name)

    def assignment(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            names = [ast.unparse(one) for one in target.elts]
            if names[:2] == ["status", "why"]:
                self.add(ast.unparse(value.elts[0]), self.text(value.elts[1]))
        elif isinstance(target, ast.Name) and target.id in ASSIGNED:
            self.add(ASSIGNED[target.id], self.text(value))

    def text(self, node: ast.expr) -> str:
        """Return an expression as readers will see it, with names in braces for what depends on the case."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(part) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            text = self.value(node.value)
            return repr(text) if node.conversion == ord("r") and text[0] != "{" else text
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.text(node.left) + self.text(node.right)
        if isinstance(node, ast.IfExp):
            return f"[{self.text(node.body)}]" if self.text(node.orelse) == "" else self.text(node.body)
        return self.value(node)

    def value(self, node: ast.expr) -> str:
        """Return a name in braces, or a number or word where that is what it stands for."""
        if isinstance(node, ast.Call) and _name(node.func) == "nearest":
            return "[ Did you mean '...'?]"
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Name) and node.id == "GRID":
            return "grid"
        known = self.constants.get(_name(node), {})
        here = (
            f"/{node.value.id}.py"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            else self.path
        )
        values = [value for path, value in known.items() if path.endswith(here)] or list(known.values())
        if isinstance(node, (ast.Name, ast.Attribute)) and len(set(values)) == 1:
            return str(values[0])
        return f"{{{_placeholder(node)}}}"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _placeholder(node: ast.expr) -> str:
    """Return a short word for a value that depends on the case."""
    if isinstance(node, ast.Subscript):
        part = node.slice
        return (
            str(part.value)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
            else _placeholder(node.value)
        )
    if isinstance(node, ast.Call) and _name(node.func) in ("count", "getattr"):
        return "count" if _name(node.func) == "count" else _placeholder(node.args[1])
    if isinstance(node, ast.Call) and node.args:
        inner = "number" if _name(node.func) == "len" else ""
        return f"{inner} of {_placeholder(node.args[0])}".strip() if inner else _placeholder(node.args[0])
    if isinstance(node, (ast.Call, ast.GeneratorExp)):
        return _name(node.func) if isinstance(node, ast.Call) and _name(node.func) else "..."
    if isinstance(node, (ast.BinOp, ast.IfExp, ast.BoolOp)):
        return (
            "number"
            if isinstance(node, ast.BinOp)
            else _placeholder(node.body if isinstance(node, ast.IfExp) else node.values[0])
        )
    return _name(node) or "..."


def _listed(fields: list[Any]) -> str:
    return f" ({', '.join(fields)})" if fields else ""


def _number(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    low, high = (_bound(reader, one) for one in arguments[2:4])
    opened = "(" if any(word.arg == "open_low" for word in keywords) else "["
    closed = ")" if high == "inf" else "]"
    text = f"{reader.text(arguments[0])} must be a number in {opened}{low}, {high}{closed}, got {{value}}"
    return [("TypeError or ValueError", text)]


def _integer(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    valid = f"a whole number of at least {_bound(reader, arguments[2])}"
    if len(arguments) > 3 and ast.unparse(arguments[2]) == ast.unparse(arguments[3]):
        valid = _bound(reader, arguments[2])
    elif len(arguments) > 3:
        valid += f" and at most {_bound(reader, arguments[3])}"
    return [("TypeError or ValueError", f"{reader.text(arguments[0])} must be {valid}, got {{value}}")]


def _bound(reader: _Reader, node: ast.expr) -> str:
    if _is_plain(node):
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
        return f"{value:g}" if isinstance(value, float) else str(value)
    text = ast.unparse(node).replace("float('inf')", "math.inf")
    return text.replace("math.", "") if text.endswith("math.inf") else reader.value(node)


def _unknown(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    value = _placeholder(arguments[1])
    return [("ValueError", f"unknown {reader.text(arguments[0])} {{{value}}}.[ Did you mean '...'?] Known: ...")]


def _arguments(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    what = reader.text(arguments[0])
    return [("TypeError", f"{what} has no parameter {{name}}.[ Did you mean '...'?] Its parameters: ...")]


def _extra(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    module, name = (reader.text(one) for one in arguments[:2])
    text = f"this needs {module.partition('.')[0]}, which is not installed: pip install 'dynabandit[{name}]'"
    return [("ModuleNotFoundError", text)]


def _reward(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> list[tuple[str, str]]:
    return [("TypeError or ValueError", "reward must be a number in [0, 1], got {value}")]


HELPERS = {"arguments": _arguments, "check_reward": _reward, "checked_reward": _reward, "extra": _extra,
           "integer": _integer, "number": _number, "unknown": _unknown}  # fmt: skip


def on_files(files: Any, config: Any) -> Any:
    """Add the page."""
    files.append(File.generated(config, "messages.md", content=page()))
    return files
