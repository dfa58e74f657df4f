"""``python -m dynabandit.service``."""

from dynabandit.service.command_line import app

app()
