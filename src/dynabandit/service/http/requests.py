"""Requests: the body, headers, path and query that they bring, and the namespace of their key."""

from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

from dynabandit.service.domain.names import clean_name, in_namespace
from dynabandit.service.errors import InvalidValueError, NotFoundError
from dynabandit.service.http.openapi import Query
from dynabandit.service.http.responses import JSON
from dynabandit.service.http.status_codes import ApiError
from dynabandit.service.stores import KeyRow
from dynabandit.validation import repeated


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


def api_key_of(request: Request) -> KeyRow | None:
    """Return the key of an authorised request; None if the service needs no keys."""
    api_key: KeyRow | None = request.scope.get("api_key")
    return api_key


def caller_of(request: Request) -> str | None:
    """Return the id of the key of an authorised request; None if the service needs no keys."""
    api_key = api_key_of(request)
    return None if api_key is None else api_key.id


def namespace_of(request: Request) -> str | None:
    """Return the only namespace that the key of an authorised request may use; None if it may use all bandits."""
    api_key = api_key_of(request)
    return None if api_key is None else api_key.namespace


def idempotency_key(request: Request) -> str | None:
    """Return the idempotency key of a decision, or None."""
    return printable_header(request, "Idempotency-Key")


def printable_header(request: Request, name: str, *, secret: bool = False) -> str | None:
    """Return a header that may be given once, or None; an error does not show a secret one."""
    wanted = name.lower().encode()
    values = [bytes(value) for key, value in request.scope["headers"] if key == wanted]
    if not values:
        return None
    if len(values) > 1:
        raise InvalidValueError(f"{name} must be given at most once, got {len(values)}")
    text = values[0].decode("latin-1")
    if not (1 <= len(text) <= 255 and text.isascii() and text.isprintable()):
        got = "" if secret else f", got {text[:100]!r}"
        raise InvalidValueError(f"{name} must have 1 to 255 printable ASCII characters{got}")
    return text


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
    if (twice := repeated(key for key, _ in request.query_params.multi_items())) is not None:
        raise InvalidValueError(f"every parameter must be given once, got {twice[0][:100]!r} {twice[1]} times")
    values = {one.name: one.parse(given.pop(one.name, None)) for one in known}
    if given:
        names = ", ".join(one.name for one in known)
        raise InvalidValueError(f"unknown parameter {next(iter(given))[:100]!r}. Known: {names}")
    return values
