"""Requests: who sent them, and the body, headers, path and query that they bring."""

import functools
import ipaddress
import math
import re
from collections import Counter
from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

from dynabandit.service.domain.names import clean_name, in_namespace
from dynabandit.service.errors import InvalidValueError, NotFoundError
from dynabandit.service.http.openapi import Query
from dynabandit.service.http.responses import JSON
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


def namespace_of(request: Request) -> str | None:
    """Return the only namespace that the key of an authorised request may use; None if it may use all bandits."""
    namespace: str | None = request.scope.get("namespace")
    return namespace


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


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body, or raise an error if it is too large or not declared as JSON."""
    media_type = (header(request, b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != JSON:  # browsers ask before they send this type to another site
        raise ApiError(415, f"Content-Type must be {JSON}, got {media_type[:100]!r}")
    body, has_more = bytearray(), True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
        if len(body) > limit:
            raise ApiError(413, f"the body must have at most {limit} bytes")
    return bytes(body)


def header(request: Request, name: bytes) -> str | None:
    """Return a header, or None."""
    for key, value in request.scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


def idempotency_key(request: Request) -> str | None:
    """Return the idempotency key of a decision, or None."""
    keys = [bytes(value) for name, value in request.scope["headers"] if name == b"idempotency-key"]
    if not keys:
        return None
    if len(keys) > 1:
        raise InvalidValueError(f"Idempotency-Key must be given at most once, got {len(keys)}")
    key = keys[0].decode("latin-1")
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise InvalidValueError(f"Idempotency-Key must have 1 to 255 printable ASCII characters, got {key[:100]!r}")
    return key


def bandit_name(request: Request) -> str:
    """Return the name of the bandit in the path; for a key of another namespace it does not exist."""
    name = path_name(request, "name")
    if not in_namespace(name, namespace_of(request)):
        raise NotFoundError(f"there is no bandit {name!r}")
    return name


def path_name(request: Request, part: str) -> str:
    """Return the name in a part of the path."""
    return checked_name(path_text(request, part), part)


def path_text(request: Request, part: str) -> str:
    """Return the text in a part of the path."""
    try:
        return unquote(request.path_params[part], errors="strict")
    except UnicodeDecodeError:
        got = request.path_params[part][:100]
        raise InvalidValueError(f"{part} must be UTF-8, percent-encoded, got {got!r}") from None


def checked_name(name: str, what: str) -> str:
    """Return a name in its normal form, or raise `InvalidValueError`."""
    try:
        return clean_name(name, what)
    except ValueError as error:
        raise InvalidValueError(str(error)) from None


def new_name(name: str, what: str) -> str:
    """Return the name of something to be created in its normal form, or raise `InvalidValueError`."""
    if name in (".", ".."):  # browsers remove them from an address, however they are written
        raise InvalidValueError(f"{what} must not be . or .., which mean something else in an address, got {name!r}")
    return checked_name(name, what)


def query_values(request: Request, *known: Query) -> dict[str, Any]:
    """Return the value of each query parameter, or its default."""
    given = dict(request.query_params)
    if len(given) < len(request.query_params.multi_items()):
        times = Counter(key for key, _ in request.query_params.multi_items())
        twice = next(key for key in times if times[key] > 1)
        raise InvalidValueError(f"every parameter must be given once, got {twice[:100]!r} {times[twice]} times")
    values = {one.name: one.parse(given.pop(one.name, None)) for one in known}
    if given:
        names = ", ".join(one.name for one in known)
        raise InvalidValueError(f"unknown parameter {next(iter(given))[:100]!r}. Known: {names}")
    return values
