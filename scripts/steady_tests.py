"""Run all tests again and again, in random order, while the machine is busy: `make test-steady`.

    python scripts/steady_tests.py [--passes 3] [--form busy|one-core] [--seed SEED]

`busy`: two processes per core compute without end, and processes of the tests are stopped for up to half a second, one
after the other, at random moments. `one-core`: the tests share one core. Each pass prints its seed, which `--seed SEED
--passes 1` runs again, except for the moments of the pauses. The first pass that fails ends the run; its output is in
out/steady/.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
BUSY_NICE = 10  # busy processes delay tests at every moment, but take a tenth of the time of the processors
PAUSE_SECONDS = 0.05, 0.5  # shortest and longest


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep the machine busy with processes that compute without end."""
    command = ["nice", "-n", str(BUSY_NICE), sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def pauses(run: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop processes that a run has started, one after the other, chosen at random and each for a random time.

    A test that relies on a process being quick fails, as on a machine that is busy with other work, but no processor
    time is spent for it.
    """
    ended, dice = threading.Event(), random.Random()

    def pause() -> None:
        root = psutil.Process(run.pid)
        while not ended.is_set():
            # Processes end at any moment, and one that has ended is still listed until its parent knows
            with contextlib.suppress(psutil.Error, IndexError):
                process = dice.choice(root.children(recursive=True))
                process.suspend()
                try:
                    ended.wait(dice.uniform(*PAUSE_SECONDS))
                finally:
                    process.resume()
            ended.wait(PAUSE_SECONDS[0])

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run_once(seed: int, output: Path, form: str) -> bool:
    """Run the compiled and the interpreted tests as `make test` does, in the random order of a seed."""
    options = f"-x -p randomly --randomly-seed={seed} -n 2 --dist worksteal"  # `compiled` has its own -n
    command = ["make", "--jobs", "2", "compiled", "quiet-interpreted", "NICE=", f"PYTEST_ADDOPTS={options}"]
    with output.open("w", encoding="utf-8") as file:
        run = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        with pauses(run) if form == "busy" else contextlib.nullcontext():
            return run.wait() == 0


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
            passed = run_once(seed, output, asked.form)
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
