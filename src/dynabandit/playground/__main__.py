"""The process that runs one trial: a link comes in on a line, messages go out, a line of JSON each.

It lives no longer than whoever started it: when its input ends, so does it.
"""

import contextlib
import json
import os
import sys
import threading
from importlib import import_module

from dynabandit.playground.running import messages
from dynabandit.playground.trial import read
from dynabandit.simulation.backends import cores

__all__ = ["main"]

KINDNESS = 10  # of 19: decisions come first
MOST_BYTES = 4 << 30  # a trial that was let in takes a tenth; this is for those that should not have been
STACK_BYTES = 1 << 26  # that come with each core: threads and their buffers


def main() -> None:
    """Run the trial of the first line of input."""
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(KINDNESS)
    _limit_memory()
    line = sys.stdin.readline()
    if not line:
        return
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        for message in messages(read(line.strip()), threads=max(1, cores() // 2)):
            sys.stdout.write(json.dumps(message, separators=(",", ":"), allow_nan=False) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # not on every system
        resource = import_module("resource")
        most, hard = MOST_BYTES + STACK_BYTES * (os.cpu_count() or 1), resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
