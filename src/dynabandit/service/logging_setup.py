"""Logs: JSON lines on the standard error, also of what the libraries below have to say."""

import contextlib
import logging
import sys
from typing import Any

import structlog

__all__ = ["note_change", "write_logs"]

log = structlog.get_logger("dynabandit.service")


def write_logs() -> None:
    """Write every event as a JSON line; headers, and with them keys, are never among them."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=True,
    )
    for name in ("asyncio", "uvicorn"):
        library = logging.getLogger(name)
        library.handlers, library.propagate = [_Lines(logging.WARNING)], False


class _StandardError:
    """Writes lines to where the standard error goes now. A line that cannot be written fails no call."""

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    debug = info = warning = error = critical = msg


class _Lines(logging.Handler):
    """Hands on what libraries write with the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), source=record.name, exc_info=record.exc_info or None)


def note_change(call: str, names: dict[str, str], key: str | None, body: dict[str, Any]) -> None:
    """Write down who changed what: where traffic moved and no reward explains it, one of these lines does."""
    change = {name: len(value) if name == "arms" else value for name, value in body.items()}  # there may be many
    log.info("change", call=call, **names, key=key, change=change)
