"""Options that all commands with simulations have in common, and how their errors are reported."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dynabandit import experiments
from dynabandit.cli import missing
from dynabandit.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, bad_input, no_memory, stop
from dynabandit.core.kernel_errors import KernelError
from dynabandit.experiments import Spec
from dynabandit.extras import import_extra

REPORTING = ("pyarrow", "scipy", "matplotlib", "jinja2", "plotly")  # the packages that a report needs

Seed = Annotated[int, typer.Option(help="Random seed.")]
Jobs = Annotated[int | None, typer.Option(help="Number of threads; by default one per core.")]
Out = Annotated[Path, typer.Option(help="Folder for all output.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Discard stored results of this run and compute them again.")]
Backend = Annotated[
    str,
    typer.Option(help="cpu; cuda for an NVIDIA GPU; auto for the GPU if there is one and the experiment is large."),
]
Precision = Annotated[
    str,
    typer.Option(
        help="double; with cuda also single (faster, results equal in distribution) or mixed (single where possible)."
    ),
]
Pdf = Annotated[bool, typer.Option("--pdf", help="Also write report.pdf, with an installed Chrome or Chromium.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="A Dask scheduler such as tcp://scheduler:8786, or local for worker processes."
    ),
]


def check_run_options(specs: Sequence[Spec], options: Mapping[str, Any]) -> None:
    """Stop with a message if no machine could run the specs with these options."""
    jobs = options["jobs"]
    if jobs is not None and jobs < 1:
        stop(f"--jobs must be a whole number of at least 1, got {jobs}", BAD_INPUT)
    for spec in specs:
        with bad_input():
            experiments.check_options(spec, options["backend"], options["precision"], options["cluster"], jobs)


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
