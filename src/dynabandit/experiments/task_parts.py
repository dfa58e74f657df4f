"""Splits tasks into parts that suit a cluster, and joins the results of the parts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dynabandit.experiments.tasks import PendingTask, Task, TaskResults


class TaskPart(NamedTuple):
    """A part of a pending task, or all of it."""

    task_number: int  # of the task among the pending ones
    number: int  # of the part
    parts: int  # that the task was split into
    pending: PendingTask


def group_parts(pending: Sequence[PendingTask], cost: float) -> Iterator[list[TaskPart]]:
    """Split expensive tasks and group cheap ones, so that each group has about this cost."""
    group: list[TaskPart] = []
    group_cost = 0.0
    for index, (task, keys) in enumerate(pending):
        parts = task.split(keys, cost)
        for number, part in enumerate(parts):
            group.append(TaskPart(index, number, len(parts), PendingTask(*part)))
            group_cost += group[-1].pending.cost
            if group_cost >= cost:
                yield group
                group, group_cost = [], 0.0
    if group:
        yield group


class PartCollector:
    """Collects the results of parts until those of a task are complete."""

    def __init__(self, pending: Sequence[PendingTask]) -> None:
        self.pending = pending
        self._results: dict[int, dict[int, TaskResults]] = defaultdict(dict)

    def add(self, part: TaskPart, results: TaskResults) -> Iterator[tuple[Task, TaskResults]]:
        """Add the results of a part; yield the task with its results if this was its last part."""
        of_task = self._results[part.task_number]
        of_task[part.number] = results
        if len(of_task) == part.parts:
            del self._results[part.task_number]
            task = self.pending[part.task_number].task
            yield task, task.join([of_task[number] for number in range(part.parts)])
