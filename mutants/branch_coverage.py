"""Measures how many branches the tests take without compiled code; fails below 95 %.

    python mutants/branch_coverage.py --jobs 2

`run.py` uses the same measurement if sources and tests are unchanged.
"""

import argparse
import json
import sys
from pathlib import Path

from suite import ROOT, prepare

prepare()

from coverage_map import count_branches, measure  # noqa: E402

__all__ = ["AT_LEAST"]

AT_LEAST = 0.95


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="folder for results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    taken, total = count_branches(options.out, measure(options.out, options.jobs).digest)
    for file, found in sorted(json.loads((options.out / "branches.json").read_text())["files"].items()):
        for first, then in found["missing_branches"]:
            print(f"{(ROOT / file).relative_to(ROOT)}: line {first} never leads to {then if then > 0 else 'its end'}")
    print(f"{taken} of {total} branches taken: {taken / total:.1%}")
    return 0 if taken / total >= AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
