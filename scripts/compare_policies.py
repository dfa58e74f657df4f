"""Compare all that every policy does with an earlier commit, bit by bit: `make same-decisions BASE=<commit>`.

    python scripts/compare_policies.py BASE [--mode interpreted]... [--only ucb] [--jobs 2]

`record_policies.py` runs with the sources of the commit, from a checkout that is removed afterwards, and with those of
this folder as they are. It records choices, scores, posteriors, states, saved bandits, exact propensities and what
policies declare: interpreted, compiled and on the simulated GPU. Rows of a state are compared by the names of their
slots, so their order may change; in a saved bandit it may not, because later releases read it. The exit status is 1 if
anything differs, if a policy is missing, or if a case could not be recorded.
"""

import argparse
import contextlib
import itertools
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
RECORDER = ROOT / "scripts" / "record_policies.py"
SIMULATED_GPU = ROOT / "tests" / "tools" / "cudasim.py"
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
MODES: dict[str, dict[str, str]] = {  # with these environment variables
    "interpreted": INTERPRETED,
    "compiled": {"DYNABANDIT_INTERPRETED_FIRST": "0"},
    "gpu": {**INTERPRETED, "NUMBA_ENABLE_CUDASIM": "1"},
}
SIDES = ("before", "now")
PARTS_PER_JOB = 4  # so that all jobs end at about the same time
FIRST_CASES = 4  # of each policy that differ and are shown
FIRST_DIFFERENCES = 3  # of each of these cases
MISSING = "(not recorded)"  # in place of a value that is only on one side


class Difference(NamedTuple):
    """A value that is not the same before and now."""

    where: str
    before: Any
    now: Any
    among: str = ""  # how many numbers of an array differ

    def __str__(self) -> str:
        return f"{self.where}: {shown(self.before)} before, {shown(self.now)} now{self.among}"


def shown(value: Any) -> str:
    """Return a value with all its digits, on one line."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def bits(array: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, so that 0 and -0 differ; all NaN have the same."""
    if array.dtype.kind != "f":
        return array
    copied = array.copy()
    copied[np.isnan(copied)] = np.nan
    return copied.view(f"u{array.dtype.itemsize}")


def differences(before: Any, now: Any, where: str = "") -> Iterator[Difference]:
    """Yield what differs between two records: numbers, texts, arrays, and dictionaries and lists of such.

    The order of a dictionary does not count. Of an array only the first different number is named.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            inner = f"{where}: {described(key)}" if where else described(key)
            yield from differences(before.get(key, MISSING), now.get(key, MISSING), inner)
    elif isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
        yield from differences_of_arrays(before, now, where)
    elif isinstance(before, (list, tuple)) and isinstance(now, type(before)) and len(before) == len(now):
        for place, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{where}[{place}]")
    elif isinstance(before, float) and isinstance(now, float):
        if bits(np.array(before)) != bits(np.array(now)):
            yield Difference(where, before, now)
    elif type(before) is not type(now) or before != now:
        yield Difference(where, before, now)


def differences_of_arrays(before: np.ndarray, now: np.ndarray, where: str) -> Iterator[Difference]:
    kinds = [f"an array {array.shape} of {array.dtype}" for array in (before, now)]
    if kinds[0] != kinds[1]:
        yield Difference(where, *kinds)
        return
    places = np.argwhere(bits(before) != bits(now))
    if len(places):
        first = tuple(places[0].tolist())
        place = f"{where}[{', '.join(map(str, first))}]"
        yield Difference(place, before[first], now[first], f" ({len(places)} of {before.size} numbers differ)")


def described(key: Any) -> str:
    """Return the name of a recorded value, whose key is its step and its name."""
    return f"step {key[0]}, {key[1]}" if isinstance(key, tuple) else str(key)


def compared(policy: str, before: dict[tuple[str, ...], Any], now: dict[tuple[str, ...], Any]) -> Iterator[str]:
    """Yield a report on each case of a policy that differs or was not recorded."""
    for case in {**before, **now}:
        name = ", ".join((policy, *case))
        if case not in before or case not in now:
            yield f"{name}: recorded only {'now' if case in now else 'before'}"
            continue
        errors = [(side, one[0, "error"]) for side, one in zip(SIDES, (before[case], now[case]), strict=True) if
                  (0, "error") in one]  # fmt: skip
        if errors:
            yield "\n".join([f"{name}: not recorded", *(f"  {side}: {text.strip()}" for side, text in errors)])
            continue
        found = differences(before[case], now[case])
        if first := list(itertools.islice(found, FIRST_DIFFERENCES)):
            more = sum(1 for _ in found)
            lines = [f"  {one}" for one in first] + ([f"  and {more} more"] if more else [])
            yield "\n".join([f"{name}:", *lines])


def read(folder: Path, policy: str) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = pickle.loads((folder / f"{policy}.pickle").read_bytes())
    return found


def compare_folders(folders: list[Path], mode: str) -> int:
    """Print what differs between two folders of records, and return how many cases do."""
    before, now = ({file.stem for file in folder.glob("*.pickle")} for folder in folders)
    different, cases, values = 0, 0, 0
    for policy in sorted(before - now):
        different += 1
        print(f"{mode}: {policy}: the policy is missing now")
    for policy in sorted(now - before):
        print(f"{mode}: {policy} is new")
    for policy in sorted(before & now):
        records = [read(folder, policy) for folder in folders]
        cases += len(records[0])
        values += sum(len(one) for one in records[0].values())
        reports = list(compared(policy, *records))
        different += len(reports)
        for report in reports[:FIRST_CASES]:
            print(f"{mode}: {report}")
        if more := len(reports[FIRST_CASES:]):
            print(f"{mode}: {policy}: {more} more cases differ", flush=True)
    verdict = f"{different} cases differ" if different else "no differences"
    print(f"{mode}: {len(before & now)} policies, {cases} cases, {values} values: {verdict}", flush=True)
    if not before & now:
        print(f"{mode}: no policy was compared")
        return max(1, different)
    return different


def recorded(sources: Path, side: str, mode: str, folder: Path, part: str, only: list[str]) -> str | None:
    """Run the recorder with these sources; return its error if it fails."""
    environment = {
        **os.environ,
        **MODES[mode],
        "PYTHONPATH": str(sources),
        "NUMBA_CACHE_DIR": str(ROOT / "out" / "same-decisions" / f"compiled-{side}"),  # compiled code of each side
    }
    for name in {name for variables in MODES.values() for name in variables} - set(MODES[mode]):
        environment.pop(name, None)
    started = [str(SIMULATED_GPU)] * (mode == "gpu") + [str(RECORDER)]
    options = ["--part", part, "--sources", str(sources), *(f"--only={name}" for name in only)]
    command = [sys.executable, *started, mode, str(folder), *options]
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    (folder / f"{part.replace('/', '-')}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    seconds = time.monotonic() - began
    print(f"  {mode}, {side}, part {part}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return None if done.returncode == 0 else f"{mode}, {side}, part {part} failed:\n{done.stdout[-500:]}{done.stderr}"


@contextlib.contextmanager
def without_waiting(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Let an error or an interrupt cancel what has not started."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def compare(sources: list[Path], modes: list[str], only: list[str], jobs: int, folder: Path) -> int:
    """Record both sides in all modes, compare them, and return how many cases differ or failed."""
    different, count = 0, PARTS_PER_JOB * jobs if jobs > 1 else 1
    parts = [f"{part}/{count}" for part in range(count)]
    with ThreadPoolExecutor(jobs) as pool, without_waiting(pool):
        running: dict[str, list[Any]] = {}
        for mode in modes:
            running[mode] = []
            for side, _ in zip(SIDES, sources, strict=True):
                (folder / mode / side).mkdir(parents=True)
            for part in parts:
                for side, own in zip(SIDES, sources, strict=True):
                    given = (own, side, mode, folder / mode / side, part, only)
                    running[mode].append(pool.submit(recorded, *given))
        for mode in modes:
            errors = [error for done in running[mode] if (error := done.result())]
            print("\n".join(errors), end="\n" * bool(errors), flush=True)
            different += len(errors) + compare_folders([folder / mode / side for side in SIDES], mode)
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare all that every policy does with an earlier commit.")
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--mode", choices=MODES, action="append", help="by default all")
    parser.add_argument("--only", action="append", default=[], help="only policies whose names contain this")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at the same time")
    asked = parser.parse_args()
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the checkout is removed, too
    with tempfile.TemporaryDirectory(prefix="same-decisions-") as folder:
        checkout = Path(folder) / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(checkout), asked.base], check=True)
        try:
            sources = [checkout / "src", ROOT / "src"]
            different = compare(sources, asked.mode or list(MODES), asked.only, asked.jobs, Path(folder) / "records")
        finally:
            subprocess.run([*git, "remove", "--force", str(checkout)], check=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{f'{different} DIFFERENCES' if different else 'The same decisions'}, {minutes:.1f} minutes")
    sys.exit(int(different > 0))


if __name__ == "__main__":
    main()
