"""A client of the decision service, whose retries are safe because every call is idempotent."""

from dynabandit.errors import extra

extra("httpx", "serve")
from dynabandit.client.base import ServiceError  # noqa: E402 - after the message that says how to install it
from dynabandit.client.blocking import Client  # noqa: E402
from dynabandit.client.coroutines import AsyncClient  # noqa: E402

__all__ = ["AsyncClient", "Client", "ServiceError"]
