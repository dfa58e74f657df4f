"""Read signatures, fields and the sections of docstrings from the source code."""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dynabandit

ROOT = Path(__file__).parents[2]
PACKAGE = Path(dynabandit.__file__).parent  # it may be installed elsewhere
REPOSITORY = f"https://github.com/dynabandit/dynabandit/blob/v{dynabandit.__version__}"
SECTION = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
MATH = re.compile(r"^\.\. math::(?: |\n\n    )(.+(?:\n    .+)*)", re.MULTILINE)
INLINE_MATH = re.compile(r":math:`([^`]+)`")
WIDTH = 78  # characters of a signature on one line


class Item(NamedTuple):
    """A parameter, an attribute or a field."""

    name: str
    kind: str  # its type, as it is written in the source code; empty if there is none
    default: str  # empty if there is none
    text: str


def sections(one: Any) -> dict[str, str]:
    """Return the sections of a docstring; the part before the first heading is called Summary."""
    first, *rest = SECTION.split(inspect.getdoc(one) or "")
    return {"Summary": first.strip()} | {title: text.strip() for title, text in zip(rest[::2], rest[1::2], strict=True)}


def described(section: str) -> tuple[dict[str, str], str]:
    r"""Return the descriptions by name in a section such as Parameters, and the text that follows them.

    >>> described("a, b\n    Two numbers.\n\nMore text.")
    ({'a': 'Two numbers.', 'b': 'Two numbers.'}, 'More text.')
    """
    found: dict[str, str] = {}
    lines = section.splitlines()
    for number, line in enumerate(lines):
        indented = number + 1 < len(lines) and lines[number + 1].startswith(" ")
        if line and not line.startswith(" "):
            if not indented:
                return found, "\n".join(lines[number:])
            rest = lines[number + 1 :]
            end = next((place for place, other in enumerate(rest) if other and not other.startswith(" ")), len(rest))
            text = textwrap.dedent("\n".join(rest[:end])).strip()
            found.update(dict.fromkeys((name.strip() for name in line.split(",")), text))
    return found, ""


def with_math(text: str) -> str:
    """Replace the equations of a docstring by those of the pages."""
    return INLINE_MATH.sub(r"$`\1`$", MATH.sub(lambda found: f"$$\n{' '.join(found[1].split())}\n$$", text))


def source_link(one: Any) -> str:
    """Return the address of the source code of a class or function."""
    path = Path(inspect.getsourcefile(inspect.unwrap(one)) or "").relative_to(PACKAGE).as_posix()
    lines, first = _source(one)
    return f"{REPOSITORY}/src/dynabandit/{path}#L{first}-L{first + len(lines) - 1}"


@functools.cache
def _source(one: Any) -> tuple[list[str], int]:
    return inspect.getsourcelines(inspect.unwrap(one))


@functools.cache
def definition(one: Any) -> Any:
    """Return the definition of a class or function in the source code."""
    return ast.parse(textwrap.dedent("".join(_source(one)[0]))).body[0]


def parameters(function: Any) -> list[Item]:
    """Return the parameters of a function, without descriptions; an item `*` stands before those with keywords only.

    >>> def example(a: int, *, b: str | None = None) -> None: ...
    >>> parameters(example)
    [Item(name='a', kind='int', default='', text=''), Item(name='*', kind='', default='', text=''), \
Item(name='b', kind='str | None', default='None', text='')]
    """
    given = definition(function).args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    found = [_item(one.arg, one, default) for one, default in zip(positional, defaults, strict=True)]
    if given.posonlyargs:
        found.insert(len(given.posonlyargs), Item("/", "", "", ""))
    if given.vararg:
        found.append(_item(f"*{given.vararg.arg}", given.vararg, None))
    elif given.kwonlyargs:
        found.append(Item("*", "", "", ""))
    found += [_item(one.arg, one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        found.append(_item(f"**{given.kwarg.arg}", given.kwarg, None))
    return found[1:] if found and found[0].name in ("self", "cls") else found


def _item(name: str, argument: ast.arg, default: ast.expr | None) -> Item:
    return Item(name, _kind(argument.annotation), "" if default is None else ast.unparse(default), "")


def _kind(annotation: ast.expr | None) -> str:
    if annotation is None:
        return ""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ast.unparse(annotation).replace("api_types.", "").replace("monitoring_types.", "")


def returned(function: Any) -> str:
    """Return the type of the result of a function; empty if it has none."""
    kind = _kind(definition(function).returns)
    return "" if kind == "None" else kind


def signature(name: str, items: list[Item], result: str = "") -> str:
    """Return a signature, on one line if it fits.

    >>> signature("f", [Item("a", "int", "1", ""), Item("*", "", "", "")], "str")
    'f(a: int = 1, *) -> str'
    """
    written = [
        item.name + (f": {item.kind}" if item.kind else "") + (f" = {item.default}" if item.default else "")
        for item in items
    ]
    arrow = f" -> {result}" if result else ""
    line = f"{name}({', '.join(written)}){arrow}"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {one},\n" for one in written) + f"){arrow}"


def own_classes(kind: type) -> list[type]:
    """Return a class and its base classes in this package, the class first."""
    return [one for one in kind.__mro__ if one.__module__.startswith("dynabandit.")]


def fields(kind: type) -> Iterator[Item]:
    """Yield the public fields of a class with the texts below or behind them, and its properties."""
    found: dict[str, Item] = {}
    for owner in reversed(own_classes(kind)):
        for item in _own_fields(owner):
            inherited = found[item.name].text if item.name in found else ""
            found[item.name] = item._replace(text=item.text or inherited)
        for name, value in vars(owner).items():
            if isinstance(value, (property, functools.cached_property)) and not name.startswith("_"):
                getter = value.fget if isinstance(value, property) else value.func
                found[name] = Item(name, returned(getter), "", inspect.getdoc(getattr(kind, name)) or "")
    yield from found.values()


def _own_fields(kind: type) -> Iterator[Item]:
    lines, body = _source(kind)[0], definition(kind).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        written, name = ast.unparse(node.annotation), node.target.id
        if not name.startswith("_") and not written.startswith("ClassVar"):
            last = [line for line in lines[node.lineno - 1 : node.end_lineno] if "  # " in line]
            comment = last[-1].partition("  # ")[2].strip() if last else ""
            yield Item(name, _kind(node.annotation), "", _text(below) or comment)


def _text(node: ast.stmt | None) -> str:
    """Return the text of a string that stands alone."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if alone else ""  # type: ignore[union-attr]


def methods(kind: type) -> dict[str, Any]:
    """Return the public methods of a class that have a docstring, those of the class first; kernels are not methods."""
    found: dict[str, Any] = {}
    for owner in own_classes(kind):
        for name, value in vars(owner).items():
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            is_method = inspect.isfunction(function) and function.__qualname__ == f"{owner.__qualname__}.{name}"
            if is_method and not name.startswith("_") and inspect.getdoc(getattr(kind, name)):
                found.setdefault(name, function)
    return found
