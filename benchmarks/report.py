"""Helpers of the benchmarks: alternating measurements, a description of the machine, and writing results."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("DYNABANDIT_INTERPRETED_FIRST", "0")  # measure compiled code, even in the first call
DOCS = Path(__file__).parent.parent / "docs"
ENOUGH = 1.5  # seconds for all measurements of one contestant


class Contestant(NamedTuple):
    """A function that simulates `steps` steps."""

    steps: int
    play: Callable[[], object]


def in_turns(contestants: dict[Any, Contestant], most: int) -> dict[Any, float]:
    """Return the median CPU time per step in microseconds, measured alternately.

    CPU time and alternation make the result robust against other load on the machine. Each contestant first runs
    twice: once to warm up, and once to determine its number of measurements, which is `most` or fewer if it is slow. A
    very slow contestant runs only once.
    """
    turns: dict[Any, int] = {}
    taken: dict[Any, list[float]] = {}
    for name, contestant in contestants.items():
        once = _seconds(contestant)
        taken[name] = [once if once > ENOUGH else _seconds(contestant)]
        turns[name] = max(1, min(most, round(ENOUGH / max(taken[name][0], 1e-9))))
    for turn in range(1, most):
        for name, contestant in contestants.items():
            if turn < turns[name]:
                taken[name].append(_seconds(contestant))
    return {name: 1e6 * statistics.median(times) / contestants[name].steps for name, times in taken.items()}


def shortest(action: Callable[[], object], tries: int = 3) -> float:
    """Return the shortest of several wall-clock times in seconds."""
    taken = []
    for _ in range(tries):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return min(taken)


def _seconds(contestant: Contestant) -> float:
    began = time.process_time()
    contestant.play()
    return time.process_time() - began


def machine() -> dict[str, str]:
    """Return a description of the machine and the versions."""
    import numba
    import numpy as np

    import dynabandit as db
    from dynabandit.experiments.hardware import processor

    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "dynabandit": db.__version__,
    }


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(name: str, numbers: dict[str, Any], text: str) -> None:
    """Write the numbers to docs/measured and the text between its markers in docs/performance.md."""
    (DOCS / "measured").mkdir(exist_ok=True)
    (DOCS / "measured" / f"{name}.json").write_text(json.dumps(numbers, indent=1) + "\n")
    replace_part(DOCS / "performance.md", name, text)


def replace_part(page: Path, name: str, text: str) -> None:
    """Replace the text between two markers of a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
