"""How a command with simulations reports its errors; if it was interrupted, it says how to continue."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynabandit import experiments
from dynabandit.cli import missing
from dynabandit.cli.exit_codes import FAILED, INTERRUPTED, no_memory, stop
from dynabandit.core.kernel_errors import KernelError
from dynabandit.extras import import_extra

REPORTING = ("pyarrow", "scipy", "matplotlib", "jinja2", "plotly")  # the packages that a report needs


@contextmanager
def run_errors(out: Path) -> Iterator[None]:
    """Turn the errors of a run into messages; an interrupted run says how to continue."""
    try:
        for module in REPORTING:
            import_extra(module, "lab")  # now, rather than after hours of simulation
        yield
    except KeyboardInterrupt:
        again = shlex.join(["dynabandit", *(word for word in sys.argv[1:] if word != "--fresh")])
        stop(f"stopped. Finished results are stored in {out / experiments.STORE}; continue with: {again}", INTERRUPTED)
    except ModuleNotFoundError as error:
        stop(missing(error, "cluster" if error.name == "distributed" else "lab"), FAILED)
    except (experiments.BackendError, KernelError) as error:
        stop(str(error), FAILED)
    except MemoryError as error:
        no_memory(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        stop(f"{error}. Earlier results are intact; fix this and run the same command again", FAILED)
