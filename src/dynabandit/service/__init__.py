"""The decision service: decisions over HTTP that survive crashes, duplicates and delay."""

from dynabandit.extras import import_extra

import_extra("msgspec", "serve")  # every part of it needs this one

__all__ = ()
