"""Authorisation: which requests may do what they ask for, by their API key, its role and its rate limit.

Without API keys, only requests that name this machine are served.
"""

import functools
import ipaddress
import math
import re

from starlette.requests import Request

from dynabandit.service import api_types, monitoring_types
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.http.requests import header
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.keys import ROLES
from dynabandit.service.rate_limits import most_at_once
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
        request.scope["api_key"] = api_key
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


def check_rate_limit(service: Service, api_key: KeyRow | None, cost: int = 1, paid: int = 0) -> None:
    """Refuse a request that exceeds the rate limit of its key; of its cost, `paid` was counted before."""
    if api_key is None or api_key.requests_per_second is None or cost == paid:
        return
    may_send = f"this key may send {api_key.requests_per_second:g} decisions, rewards and metrics per second"
    if cost > most_at_once(api_key.requests_per_second):
        raise InvalidValueError(f"{may_send}, and no call may have more, got {cost}")
    seconds = service.rate_limits.seconds_to_wait(api_key, cost, paid)
    if seconds:
        service.metrics.refused.inc()
        raise ApiError(429, f"{may_send}; try again later", {"Retry-After": str(math.ceil(seconds))})


def cost_of(body: object) -> int:
    """Return what a body costs of the rate limit of its key: the number of its decisions, rewards or metrics.

    A batch of a local decider costs as much as one: its decisions are made already, and must not be lost.
    """
    match body:
        case api_types.Decide():
            return body.count
        case api_types.Rewards():
            return len(body.rewards)
        case monitoring_types.Metrics():
            return len(body.metrics)
    return 1


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
