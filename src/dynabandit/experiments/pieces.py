"""Units of work in pieces that suit a cluster, and the pieces put together again."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from dynabandit.experiments.executors import Work
from dynabandit.experiments.store import Arrays
from dynabandit.experiments.tasks import Task

__all__ = ["Gathered", "Piece", "bundles"]


class Piece(NamedTuple):
    """A part of a unit, or all of it."""

    unit: int  # its place in the work
    number: int  # which piece of the unit
    of: int  # how many pieces the unit has
    task: Task
    keys: list[str]

    @property
    def cost(self) -> float:
        """About how much work it is, in updates of an arm."""
        return self.task.cost(self.keys)


def bundles(work: Work, most: float) -> Iterator[list[Piece]]:
    """Cut large units and put small ones together, into bundles of about `most` work."""
    bundle: list[Piece] = []
    cost = 0.0
    for unit, (task, keys) in enumerate(work):
        cut = task.cut(keys, most)
        for number, (part, some) in enumerate(cut):
            piece = Piece(unit, number, len(cut), part, some)
            bundle.append(piece)
            cost += piece.cost
            if cost >= most:
                yield bundle
                bundle, cost = [], 0.0
    if bundle:
        yield bundle


class Gathered:
    """The answers to pieces, until a unit is whole."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._answers: dict[int, dict[int, dict[str, Arrays]]] = defaultdict(dict)

    def add(self, piece: Piece, answer: dict[str, Arrays]) -> Iterator[tuple[Task, dict[str, Arrays]]]:
        """Take in an answer; yield the unit and its answers where that was the last piece."""
        there = self._answers[piece.unit]
        there[piece.number] = answer
        if len(there) == piece.of:
            del self._answers[piece.unit]
            task, _ = self.work[piece.unit]
            yield task, task.join([there[number] for number in range(piece.of)])
