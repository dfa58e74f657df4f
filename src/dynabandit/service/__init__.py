"""The decision service: decisions over HTTP that survive crashes, duplicates and delay."""

from dynabandit.extras import import_extra

import_extra("starlette", "serve")  # installed only by this extra; msgspec also comes with `lab`

__all__ = ()
