"""Generates the mutants of a source file: one small change each, made by the operators of Cosmic Ray.

Annotations, decorators and error messages are not mutated. Of Cosmic Ray's operators for each pair of arithmetic or
comparison operators, one or two per original operator are enough to reveal a missing test.
"""

import hashlib
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.operators.provider import OperatorProvider

__all__ = ["Mutant", "mutants_of", "unchanged"]

BINARY = (
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mod", "Mod_FloorDiv", "Pow_Mul", "RShift_LShift",
    "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitAnd",
)  # fmt: skip
COMPARISON = (
    "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Eq_NotEq", "NotEq_Eq",
    "Is_IsNot", "IsNot_Is",
)  # fmt: skip
OTHERS = (
    "NumberReplacer", "AddNot", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub",
    "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop",
)  # fmt: skip
NAMES = (
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISON),
    *OTHERS,
)
AUGMENTED = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
COMPOUND = ("if_stmt", "while_stmt", "for_stmt", "with_stmt", "try_stmt", "funcdef", "classdef")
BLOCKS = ("suite", "file_input", "simple_stmt")


class ReplaceAugmentedAssignment:
    """Turns x += y into x -= y and so on; Cosmic Ray has no such operator."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "operator" and node.value in AUGMENTED:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = AUGMENTED[node.value]
        return node


@dataclass(frozen=True)
class Mutant:
    """One changed source file.

    `lines` are the lines of the changed statement, empty for code that runs when its module is imported. `original` is
    a hash of the original file. `copy` numbers equal changes of equal lines of a function.
    """

    module: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    copy: int
    lines: tuple[int, ...]
    source: str
    original: str

    @property
    def key(self) -> str:
        """Identifies a mutant independently of the position of its function in the file."""
        copy = f" ({self.copy})" if self.copy else ""
        return f"{self.module} {self.function}: {self.before} -> {self.after}{copy}"


def unchanged(path: Path, module: str) -> Mutant:
    """Return an unchanged file as a mutant, which must survive."""
    source = path.read_text(encoding="utf-8")
    return Mutant(module, "<module>", 1, "", "", "", 0, (), source, "")


def mutants_of(path: Path, module: str) -> list[Mutant]:
    """Return the mutants of a file in a fixed order."""
    source = path.read_text(encoding="utf-8")
    original = hashlib.sha256(source.encode()).hexdigest()[:16]
    provider = OperatorProvider()
    operators = {name: provider[name]() for name in NAMES} | {"AugmentedAssignment": ReplaceAugmentedAssignment()}
    found: list[Mutant] = []
    copies: dict[tuple[str, str, str], int] = {}
    for node in ast_nodes(get_ast(source)):
        for name, operator in operators.items():
            for index, position in enumerate(operator.mutation_positions(node)):
                if is_excluded(node) or (name == "AddNot" and is_negated_elsewhere(node)):
                    continue
                code = mutated(node, operator, index)
                if node.type == "number" and literal_eval(node.value) == literal_eval(code.strip()):
                    continue  # 1e300 + 1 is 1e300
                changed = spliced(source, node, code)
                before, after = first_difference(source, changed)
                same = (function_of(node), before, after)
                copies[same] = copies.get(same, -1) + 1
                line = position[0][0]
                lines = statement_lines(node, position)
                found.append(Mutant(module, same[0], line, name, before, after, copies[same], lines, changed, original))
    return found


def mutated(node: Any, operator: Any, index: int) -> str:
    """Return the code of a mutated node; operators change the tree in place, so this restores it."""
    parts = [node, *getattr(node, "children", ())]
    values = [(part, part.value) for part in parts if hasattr(part, "value")]
    children = parts[1:]
    code = operator.mutate(node, index).get_code(include_prefix=False)
    for part, value in values:
        part.value = value
    if children:
        node.children = children
    return str(code)


def spliced(source: str, node: Any, code: str) -> str:
    """Return the source with the code of a node replaced."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    first, last = (starts[line - 1] + column for line, column in (node.start_pos, node.end_pos))
    return source[:first] + code + source[last:]


def first_difference(source: str, changed: str) -> tuple[str, str]:
    """Return the first line that differs, before and after."""
    for before, after in zip(source.splitlines(), changed.splitlines(), strict=False):
        if before != after:
            return tidy(before), tidy(after)
    return "", ""


def tidy(line: str) -> str:
    """Return a line without its comment and with single spaces."""
    return " ".join(line.partition("  # ")[0].split())


def is_excluded(node: Any) -> bool:
    """Whether a node is part of an annotation, a decorator or an error, or a star that is no arithmetic operator."""
    if node.type == "operator" and node.value in ("*", "**") and node.parent.type not in ("term", "power"):
        return True
    while node.parent is not None:
        parent = node.parent
        if node.type in ("raise_stmt", "decorator", "tfpdef"):
            return True
        if parent.type == "annassign" and node is parent.children[1]:
            return True
        if parent.type == "funcdef" and node is parent.annotation:
            return True
        node = parent
    return False


def is_negated_elsewhere(node: Any) -> bool:
    """Whether negating a condition would repeat the mutant of another operator, or none."""
    condition = node.children[2 if node.type == "test" else 1]
    if condition.type in ("and_test", "or_test"):
        condition = condition.children[0]
    return condition.type in ("comparison", "not_test")


def function_of(node: Any) -> str:
    """Return the dotted name of the function or class around a node."""
    names = []
    while node.parent is not None:
        if node.type in ("funcdef", "classdef"):
            names.append(node.name.value)
        node = node.parent
    return ".".join(reversed(names)) or "<module>"


def statement_lines(node: Any, position: tuple[Any, Any]) -> tuple[int, ...]:
    """Return the lines of the statement, or of the head of a compound one, that a node belongs to."""
    first, last = position[0][0], position[1][0]
    if node.type not in COMPOUND:
        while node.parent.type not in (*COMPOUND, *BLOCKS):
            node = node.parent
        first, last = node.start_pos[0], node.end_pos[0]
        node = node.parent
    if node.type in ("funcdef", "classdef"):  # defaults and bases are evaluated where the definition is
        node = node.parent
    while node is not None and node.type != "funcdef":
        node = node.parent
    return tuple(range(first, last + 1)) if node is not None else ()
