"""Run all tests again and again, in random order, while the machine is busy: `make test-steady`.

    python scripts/steady_tests.py [--passes 3] [--form busy|one-core] [--seed SEED]

`busy`: two processes per core compute without end. `one-core`: the tests share one core. Each pass prints its seed,
which `--seed SEED --passes 1` runs again. The first pass that fails ends the run; its output is in out/steady/.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep the machine busy with processes that compute without end."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_once(seed: int, output: Path) -> bool:
    """Run the compiled and the interpreted tests as `make test` does, in the random order of a seed."""
    options = f"-x -p randomly --randomly-seed={seed} -n 2 --dist worksteal"  # `compiled` has its own -n
    command = ["make", "--jobs", "2", "compiled", "quiet-interpreted", "NICE=", f"PYTEST_ADDOPTS={options}"]
    with output.open("w", encoding="utf-8") as file:
        return subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Run all tests in random order while the machine is busy.")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--form", choices=["busy", "one-core"], default="busy")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the first pass; others count up")
    asked = parser.parse_args()
    folder = ROOT / "out" / "steady"
    folder.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))
    if asked.form == "one-core":
        os.sched_setaffinity(0, cores[:1])  # also of the processes that are started from here
    with busy_processes(2 * len(cores) if asked.form == "busy" else 0):
        for number in range(asked.passes):
            seed = (asked.seed + number) % 2**32
            output = folder / f"{asked.form}-{seed}.log"
            began = time.monotonic()
            passed = run_once(seed, output)
            minutes = (time.monotonic() - began) / 60
            print(
                f"pass {number + 1} of {asked.passes}, {asked.form}, seed {seed}: "
                f"{'passed' if passed else 'FAILED'} in {minutes:.1f} min, {output.relative_to(ROOT)}",
                flush=True,
            )
            if not passed:
                sys.exit(1)


if __name__ == "__main__":
    main()
