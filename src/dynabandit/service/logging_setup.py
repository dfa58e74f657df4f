"""Logging: JSON lines on the standard error, including what libraries log."""

import contextlib
import logging
import sys
from typing import Any

import structlog

log = structlog.get_logger("dynabandit.service")


def configure_logging() -> None:
    """Log every event as a JSON line. Headers, which contain keys, are never logged."""
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
    for name in ("asyncio", "opentelemetry", "uvicorn"):
        library = logging.getLogger(name)
        library.handlers, library.propagate = [_StructlogHandler(logging.WARNING)], False


class _StandardError:
    """Writes lines to the current standard error. A line that cannot be written fails no request."""

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)

    debug = info = warning = error = critical = msg


class _StructlogHandler(logging.Handler):
    """Passes on what libraries log with the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), source=record.name, exc_info=record.exc_info or None)


def log_change(call: str, names: dict[str, str], key: str | None, body: dict[str, Any]) -> None:
    """Log who changed what, to explain later why traffic moved."""
    counted = {"arms", "arm_features"}  # because arms may be many
    change = {name: len(value) if name in counted and value is not None else value for name, value in body.items()}
    log.info("change", call=call, **names, key=key, change=change)
