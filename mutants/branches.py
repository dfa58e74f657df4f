"""How many branches of the core the tests take without compiled code; fails below 95 %.

    python mutants/branches.py --jobs 2

What is measured here serves `run.py` too, for the same sources and tests and in the same folder.
"""

import argparse
import json
import sys
from pathlib import Path

from suite import ROOT, prepare

prepare()

from reach import branches, measure  # noqa: E402

__all__ = ["AT_LEAST"]

AT_LEAST = 0.95


def main() -> int:
    """Read the command line, measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="the folder for results")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    taken, there = branches(asked.out, measure(asked.out, asked.jobs).digest)
    for file, found in sorted(json.loads((asked.out / "branches.json").read_text())["files"].items()):
        for first, then in found["missing_branches"]:
            print(f"{Path(file).relative_to(ROOT)}: line {first} never leads to {then if then > 0 else 'its end'}")
    print(f"{taken} of {there} branches taken: {taken / there:.1%}")
    return 0 if taken / there >= AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
