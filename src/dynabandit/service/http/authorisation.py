"""Authorisation: which requests may do what they ask for, by their API key, its role and its rate limit.

Without API keys, only requests that name this machine are served.
"""

import functools
import ipaddress
import math
import re

from starlette.requests import Request

from dynabandit.service.http.requests import header
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.keys import ROLES
from dynabandit.service.service import Service
from dynabandit.service.stores import KeyRow

PORT = re.compile(r":\d+$")


def authorise(service: Service, request: Request, permission: str) -> KeyRow | None:
    """Refuse a request without the necessary key, before anything is looked up; return the key if one is needed."""
    if service.needs_keys:
        api_key = service.keyring.find(_authorization(request))
        if api_key is None:
            raise ApiError(401, "this needs a valid API key, as: Authorization: Bearer dyna_...")
        if permission not in ROLES[api_key.role]:
            roles = " or ".join(role for role, permissions in ROLES.items() if permission in permissions)
            raise ApiError(403, f"this needs a key with the role {roles}, got one with the role {api_key.role}")
        request.scope["namespace"] = api_key.namespace
        return api_key
    host = header(request, b"host") or ""
    if not _is_local(host):
        # A web page can point its own name at this address, but cannot choose another Host header. Starlette's
        # TrustedHostMiddleware answers 400 in plain text, and knows no addresses but only names
        raise ApiError(421, f"without API keys, Host must be 127.0.0.1 or localhost, got {host[:100]!r}")
    return None


def _authorization(request: Request) -> str | None:
    """Return the Authorization header, or the key in the header that Personalizer's clients send instead."""
    given = header(request, b"authorization")
    key = None if given else header(request, b"ocp-apim-subscription-key")
    return given if key is None else f"Bearer {key}"


def check_rate_limit(service: Service, api_key: KeyRow | None) -> None:
    """Refuse a request that exceeds the rate limit of its key."""
    seconds = 0.0 if api_key is None else service.rate_limits.seconds_to_wait(api_key)
    if api_key is not None and seconds:
        service.metrics.refused.inc()
        problem = f"this key may send {api_key.requests_per_second:g} requests per second; try again later"
        raise ApiError(429, problem, {"Retry-After": str(math.ceil(seconds))})


def may_still_read(service: Service, request: Request) -> bool:
    """Whether the key of a stream is still valid."""
    try:
        authorise(service, request, "read")
    except ApiError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@functools.lru_cache(maxsize=64)
def _is_local(host: str) -> bool:
    """Whether a Host header names this machine; every request brings one."""
    return is_loopback(PORT.sub("", host).strip("[]"))
