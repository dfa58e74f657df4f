"""Ends a command early, with a message on standard error and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as in shells


@contextmanager
def bad_input(where: str = "") -> Iterator[None]:
    """Turn an error about the user's input into a message and an exit code."""
    try:
        yield
    except (TypeError, ValueError) as error:
        stop(f"{where}: {error}" if where else str(error), BAD_INPUT)


def no_memory(error: MemoryError) -> NoReturn:
    """Report too little memory; the text of a `MemoryError` may be empty."""
    stop(": ".join(filter(None, ("this takes more memory than there is", str(error)))), FAILED)


def stop(message: str, code: int) -> NoReturn:
    """Print a message and end with an exit code."""
    typer.echo(f"dynabandit: {message}", err=True)
    raise typer.Exit(code)
