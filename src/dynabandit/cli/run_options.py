"""Options that all commands with simulations have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dynabandit.cli.exit_codes import BAD_INPUT, bad_input, stop
from dynabandit.experiments import RunOptions, Spec

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


def check_run_options(specs: Sequence[Spec], options: RunOptions) -> None:
    """Stop with a message if no machine could run the specs with these options."""
    if options.jobs is not None and options.jobs < 1:
        stop(f"--jobs must be a whole number of at least 1, got {options.jobs}", BAD_INPUT)
    with bad_input():
        options.check(specs)
