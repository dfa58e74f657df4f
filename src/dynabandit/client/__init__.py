"""A client of the decision service, whose retries are safe because every call is idempotent."""

from dynabandit.client.base import ServiceError
from dynabandit.client.blocking import Client
from dynabandit.client.coroutines import AsyncClient

__all__ = ["AsyncClient", "Client", "ServiceError"]
