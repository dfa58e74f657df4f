"""`python -m tools.patient_service` is `dynabandit` serve, keys and verify, but its server waits longer.

A connection, or a write of the store, that is slow because the machine is busy must not fail a test.
"""

import functools
import os
from unittest import mock

from dynabandit.service import command_line
from dynabandit.service.http import telemetry_settings
from dynabandit.service.http.connections import TimeLimits
from dynabandit.service.http.server import make_server
from dynabandit.service.service import Service
from dynabandit.service.stores import sqlite
from tools.waiting import PATIENCE

LONG_LIMITS = TimeLimits(
    request=PATIENCE,
    refused=PATIENCE,
    fresh=0.0,  # a test decides which connection has waited longest
    write=PATIENCE,
    keep_alive=int(PATIENCE),
    shutdown=int(PATIENCE),
    stop=float(os.environ.get("DYNABANDIT_STOP_SECONDS", PATIENCE)),
)

if __name__ == "__main__":
    with (
        mock.patch.multiple(
            command_line,
            make_server=functools.partial(make_server, limits=LONG_LIMITS),
            Service=functools.partial(
                Service, ready_seconds=PATIENCE, snapshot_seconds=PATIENCE, preview_seconds=PATIENCE
            ),
        ),
        mock.patch.object(telemetry_settings, "STOP_SECONDS", PATIENCE),
        mock.patch.object(sqlite, "BUSY_SECONDS", PATIENCE),
    ):
        command_line.app()
