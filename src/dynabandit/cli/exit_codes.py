"""How a command ends early: a message to standard error, and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "bad_input", "no_memory", "stop"]

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells count


@contextmanager
def bad_input(where: str = "") -> Iterator[None]:
    """Turn an error about what the user gave into a message and an exit code."""
    try:
        yield
    except (TypeError, ValueError) as error:
        stop(f"{where}: {error}" if where else str(error), BAD_INPUT)


def no_memory(error: MemoryError) -> NoReturn:
    """Say that memory is short; of what takes it, Python need not say anything."""
    stop(": ".join(filter(None, ("this takes more memory than there is", str(error)))), FAILED)


def stop(message: str, code: int) -> NoReturn:
    """Say why, and end."""
    typer.echo(f"dynabandit: {message}", err=True)
    raise typer.Exit(code)
