"""The process that runs one trial: it reads a link from the first line of its input and writes one message per line.

Its arguments are the policies of other packages that the service uses.
It ends when its input ends, so that it never outlives the process that started it.
"""

import contextlib
import json
import os
import sys
import threading

import numba

from dynabandit.core.process_limits import limit_process
from dynabandit.playground.link import read
from dynabandit.playground.message_stream import messages
from dynabandit.plugins import PluginError
from dynabandit.policies import use_plugin
from dynabandit.simulation.backends import cores

MOST_BYTES = 4 << 30  # ten times what a trial within the limits of a link takes


def main() -> None:
    """Run the trial of the first line of input."""
    limit_process(MOST_BYTES)
    _load_numba()
    for plugin in sys.argv[1:]:
        with contextlib.suppress(PluginError):  # then a run of this policy fails, and others do not
            use_plugin(plugin)
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


def _load_numba() -> None:
    """Do what Numba does before the first function is loaded: half a second, while the process waits for its run."""
    numba.njit("int64(int64)")(lambda number: number)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
