"""Generate the page of all messages that a user can cause from the source code when the site is built.

A message is a text in a call of an exception or of a function that reports a problem, and what the functions of
validation.py and extras.py say of the names and limits they are given.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.structure.files import File

SOURCE = Path(__file__).parents[2] / "src" / "dynabandit"
INTRODUCTION = Path(__file__).with_name("messages.intro.md")

# Sections of the page with the files whose messages they list; a file belongs to the first section that fits
SECTIONS = {
    "Checks of your own policies, environments and estimators": ("checks",),
    "Specs and experiments": ("experiments/", "leaderboard/", "paper/", "report/"),
    "Offline evaluation": ("offline/",),
    "Command line": ("cli/", "service/command_line.py"),
    "Clients": ("client/", "service/web/javascript_client/"),
    "Playground and live page": ("playground/", "service/web/"),
    "Store of the service": ("service/stores/",),
    "HTTP API": ("service/",),
    "Library": ("",),
}
LOG = "Log of the service"
REPLAY = "Differences between a log and its replay"

EXCEPTION = re.compile(r"[A-Z]\w*Error|ResetNeeded")
INTERNAL = re.compile(r"AssertionError|MissingResultError|NotImplementedError|WriteConflictError")
FUNCTIONS = {  # functions that report a problem, with the kind of message
    "FieldProblem": "next to the field", "_BadValueError": "bad row", "_close_with": "status", "_fail": "exit 1",
    "_failed": "on the page", "_mismatch": "ReplayMismatchError", "echo": "note", "exit": "exit 1", "note": "note",
    "problem_response": "status", "require": "AssertionError", "stop": "exit",
}  # fmt: skip
LEVELS = {"warning": "warning", "error": "error", "exception": "error"}  # methods of the logger
KINDS = {"NotFoundError": "404", "ConflictError": "409", "LateRewardError": "410", "InvalidValueError": "422",
         "MissingParameterError": "TypeError"}  # fmt: skip
EXITS = {"BAD_INPUT": "exit 2", "FAILED": "exit 1", "INTERRUPTED": "exit 130"}
RETURNED = re.compile(r"_doubt_\w+|missing")  # functions that return a part of a message
SCRIPT = re.compile(r"new \w*Error\(|setStatus\(|setText\(\"missing\"|askForKey\(|notice bad|^const TEXTS")
STRING = re.compile(r"""(["`])(.*?)\1""")


class Message(NamedTuple):
    """One row of the page."""

    section: str
    text: str
    kind: str


def on_files(files: Any, config: Any) -> Any:
    """Add the page."""
    files.append(File.generated(config, "messages.md", content=page()))
    return files


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.read_text(encoding="utf-8").rstrip()]
    found = sorted(set(messages()), key=lambda one: (one.text.lower().lstrip("{'"), one.kind))
    for section in (*SECTIONS, LOG, REPLAY):
        rows = [f"| {one.kind} | `{one.text.replace('|', '&#124;')}` |" for one in found if one.section == section]
        parts.append("\n".join([f"## {section}\n", "| kind | message |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def messages() -> Iterator[Message]:
    """Yield all messages."""
    constants = _constants()
    for path in sorted(SOURCE.rglob("*.py")):
        for kind, text in _Reader(path, constants).found:
            yield Message(_section(path, kind), text, kind)
    for path in sorted(SOURCE.rglob("*.js")):
        for line in filter(SCRIPT.search, path.read_text(encoding="utf-8").splitlines()):
            for text in (text for _, text in STRING.findall(line) if text.count(" ") > 1):
                kind = "TypeError" if path.parent.name == "javascript_client" else "on the page"
                yield Message(_section(path, ""), re.sub(r"\$\{(?:\w+\.)*(\w+)\}", r"{\1}", text), kind)


def uncollected() -> list[str]:
    """Return each `raise` that the rules above do not recognise."""
    known = {*FUNCTIONS, *CHECKS, "Exit", "extended", "unknown", "unreadable"}
    left = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        local = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = _name(node.exc.func)
                if not EXCEPTION.fullmatch(name) and name not in known | local:
                    left.append(f"{path.name}:{node.lineno}: {ast.unparse(node.exc)}")
    return left


def _section(path: Path, kind: str) -> str:
    if kind.startswith("log:"):
        return LOG
    if kind == "ReplayMismatchError":
        return REPLAY
    name = path.relative_to(SOURCE).as_posix()
    return next(section for section, starts in SECTIONS.items() if name.startswith(starts))


def _constants() -> dict[str, dict[str, Any]]:
    """Return the constants of all modules, by name and file."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            if isinstance(node.value, ast.Name) and len(found.get(node.value.id, {})) == 1:
                found.setdefault(node.targets[0].id, {})[str(path)] = next(iter(found[node.value.id].values()))
            elif _is_plain(node.value):
                found.setdefault(node.targets[0].id, {})[str(path)] = _evaluate(node.value)
    return found


def _is_plain(node: ast.expr) -> bool:
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(isinstance(one, kinds) for one in ast.walk(node))


def _evaluate(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "constant", "eval"), {"__builtins__": {}})


class _Reader:
    """The messages of one file as pairs of kind and text."""

    def __init__(self, path: Path, constants: dict[str, dict[str, Any]]) -> None:
        self.path, self.constants = str(path), constants
        self.found: list[tuple[str, str]] = []
        self.visit(ast.parse(path.read_text(encoding="utf-8")), "")

    def visit(self, node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call):
            self.call(node)
        if isinstance(node, ast.Return) and node.value is not None and RETURNED.fullmatch(function):
            self.add("part of a message", self.text(node.value))
        for child in ast.iter_child_nodes(node):
            self.visit(child, function)

    def add(self, kind: str, text: str) -> None:
        """Add a text that contains words, not only placeholders."""
        if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{.*?\}", "", text))) > 1:
            self.found.append((kind, " ".join(text.split())))

    def call(self, node: ast.Call) -> None:
        name, arguments = _name(node.func), node.args
        texts = [one for one in arguments if _is_text(one) or isinstance(self.constant(one), str)]
        if name in CHECKS and isinstance(node.func, ast.Name) and len(arguments) > 1:
            self.add(*CHECKS[name](self, arguments, node.keywords))
        elif name in LEVELS and isinstance(node.func, ast.Attribute) and texts:
            fields = [word.arg for word in node.keywords if word.arg not in (None, "exc_info")]
            self.add(
                f"log: {LEVELS[name]}", self.text(texts[0]) + (f" ({', '.join(map(str, fields))})" if fields else "")
            )
        elif texts and (name in FUNCTIONS or (EXCEPTION.fullmatch(name) and not INTERNAL.fullmatch(name))):
            self.add(self.kind(name, arguments), self.text(texts[-1 if name in FUNCTIONS else 0]))

    def kind(self, name: str, arguments: list[ast.expr]) -> str:
        kind = FUNCTIONS.get(name) or KINDS.get(name, name)
        if kind == "exit":
            return EXITS.get(ast.unparse(arguments[-1]), kind)
        if kind == "status" or name == "ApiError":
            return ast.unparse(arguments[0]) if isinstance(arguments[0], ast.Constant) else "status"
        return "next to the field" if name == "note" and len(arguments) > 1 else kind

    def text(self, node: ast.expr) -> str:
        """Return an expression as users see it, with names in braces in place of values."""
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
        """Return the value of a constant, or a name in braces."""
        if isinstance(node, ast.Call) and _name(node.func) == "suggestion":
            return "[ Did you mean '...'?]"
        if isinstance(node, ast.Constant):
            return str(node.value)
        constant = self.constant(node)
        return f"{{{_placeholder(node)}}}" if constant is None else str(constant)

    def constant(self, node: ast.expr) -> Any:
        """Return the value of a name that is a constant of this or another module, or None."""
        known = self.constants.get(_name(node), {})
        module = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
        here = f"/{module}.py" if module else self.path
        values = [value for path, value in known.items() if path.endswith(here)] or list(known.values())
        return values[0] if len({str(value) for value in values}) == 1 else None

    def bound(self, node: ast.expr) -> str:
        """Return a limit as it is printed."""
        if _is_plain(node):
            value = _evaluate(node)
            return f"{value:g}" if isinstance(value, float) else str(value)
        text = ast.unparse(node).replace("float('inf')", "math.inf")
        return text.replace("math.", "") if text.endswith("math.inf") else self.value(node)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.IfExp):
        return _is_text(node.body)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _placeholder(node: ast.expr) -> str:
    """Return a short name for a value."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
        case ast.Subscript(value=value) | ast.IfExp(body=value) | ast.BoolOp(values=[value, *_]):
            return _placeholder(value)
        case ast.BinOp():
            return "number"
        case ast.Call(func=function, args=[_, name, *_]) if _name(function) == "getattr":
            return _placeholder(name)
        case ast.Call(func=function) if _name(function) == "count":
            return "count"
        case ast.Call(func=function, args=[first, *_]):
            return f"number of {_placeholder(first)}" if _name(function) == "len" else _placeholder(first)
        case ast.Call(func=function):
            return _name(function) or "..."
    return _name(node) or "..."


# The messages of validation.py and extras.py


def _number(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    low, high = (reader.bound(one) for one in arguments[2:4])
    left = "(" if any(word.arg == "open_low" for word in keywords) else "["
    right = ")" if high == "inf" else "]"
    text = f"{reader.text(arguments[0])} must be a number in {left}{low}, {high}{right}, got {{value}}"
    return "TypeError or ValueError", text


def _integer(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    valid = f"a whole number of at least {reader.bound(arguments[2])}"
    if len(arguments) > 3 and ast.unparse(arguments[2]) == ast.unparse(arguments[3]):
        valid = reader.bound(arguments[2])
    elif len(arguments) > 3:
        valid += f" and at most {reader.bound(arguments[3])}"
    return "TypeError or ValueError", f"{reader.text(arguments[0])} must be {valid}, got {{value}}"


def _field(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    _, name, check, *limits = arguments
    return CHECKS[_name(check)](reader, [name, name, *limits], keywords)


def _unknown(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    value = _placeholder(arguments[1])
    return "ValueError", f"unknown {reader.text(arguments[0])} {{{value}}}.[ Did you mean '...'?] Known: ..."


def _parameter_names(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    what = reader.text(arguments[0])
    return "TypeError", f"{what} has no parameter {{name}}.[ Did you mean '...'?] Its parameters: ..."


def _extra(reader: _Reader, arguments: list[ast.expr], keywords: list[ast.keyword]) -> tuple[str, str]:
    module, extra = (reader.text(one) for one in arguments[:2])
    package = module.partition(".")[0]
    return "ModuleNotFoundError", f"this needs {package}, which is not installed: pip install 'dynabandit[{extra}]'"


Check = Callable[[_Reader, list[ast.expr], list[ast.keyword]], tuple[str, str]]
CHECKS: dict[str, Check] = {
    "check_field": _field, "check_parameter_names": _parameter_names, "import_extra": _extra, "integer": _integer,
    "number": _number, "unknown": _unknown,
}  # fmt: skip
