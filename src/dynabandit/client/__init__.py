"""Clients of the decision service. Their retries are safe, because every request is idempotent."""

from dynabandit.extras import import_extra

import_extra("httpx", "serve")
from dynabandit.client.async_client import AsyncClient  # noqa: E402 - after the message that says how to install it
from dynabandit.client.base import ServiceError  # noqa: E402
from dynabandit.client.sync_client import Client  # noqa: E402
from dynabandit.service.domain.signed_units import sign_unit  # noqa: E402

__all__ = ["AsyncClient", "Client", "ServiceError", "sign_unit"]
