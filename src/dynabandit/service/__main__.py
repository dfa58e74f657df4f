"""``python -m dynabandit.service``."""

from dynabandit.service.commands import app

app()
