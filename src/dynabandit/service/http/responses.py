"""Reading requests and writing answers: what all endpoints share."""

import functools
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from dynabandit.service import api_types
from dynabandit.service.domain.names import clean_name, is_loopback
from dynabandit.service.errors import Differs, Refused, StoreFailed
from dynabandit.service.http.openapi import Query
from dynabandit.service.keys import ROLES
from dynabandit.service.service import Service

__all__ = [
    "ALWAYS", "JSON", "RETRY_SECONDS", "authorise", "cleaned", "complete", "encode", "header", "may_still_read",
    "new_name", "path_part", "plain", "problem", "query_values", "read_body", "response", "turn_away",
]  # fmt: skip

JSON = "application/json"
RETRY_SECONDS = "1"
LONGEST_WHY = 1000  # characters: what is wrong may be long, and is quoted
ALWAYS = {"X-Content-Type-Options": "nosniff"}  # answers quote what callers sent: no browser may guess a type
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 413: {"Connection": "close"}}  # what is left is not read
PORT = re.compile(r":\d+$")

encode = msgspec.json.Encoder().encode
log = structlog.get_logger("dynabandit.service")


def plain(status: int, why: str, **headers: str) -> Response:
    """Return an answer that says why not."""
    answer = response(api_types.Problem(why if len(why) <= LONGEST_WHY else f"{why[:LONGEST_WHY]}..."), status)
    answer.headers.update({**ALWAYS, **headers})
    return answer


def response(content: Any, status: int = 200) -> Response:
    """Return an answer."""
    return Response(encode(content), status, media_type=JSON)


def complete(answer: Response, method: str, headers: Mapping[str, str]) -> Response:
    """Return an answer with the headers that it lacks; where nobody reads its body, nothing that takes long is done."""
    if method == "HEAD" and isinstance(answer, StreamingResponse):
        answer = Response(media_type=answer.media_type)
    for name, value in headers.items():
        answer.headers.setdefault(name, value)
    return answer


def _turned_away(**headers: str) -> Response:
    return plain(429, "too many calls wait already; try again", **{"Retry-After": RETRY_SECONDS}, **headers)


async def turn_away(service: Service) -> Response:
    """Return the answer to a call that cannot be let in, when its turn has come."""
    service.metrics.turned_away.inc()
    return STAY if await service.hold_back() else LEAVE


def problem(service: Service, error: Exception) -> Response:
    """Return the answer to a call that failed."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        status, why = error.status, error.problem
        headers = HEADERS.get(status, {})
    elif isinstance(error, (msgspec.DecodeError, RecursionError)):
        status, why = 400, f"the body must be JSON: {error}"
    elif isinstance(error, StoreFailed):
        status, why, headers = 503, "the store is not available now; try again", {"Retry-After": RETRY_SECONDS}
    elif isinstance(error, ClientDisconnect):
        status, why = 400, "the request must be sent whole, but its end did not come"
    elif isinstance(error, Differs):
        log.error("log and replay disagree", bandit=error.bandit, sequence=error.sequence, problem=error.problem)
        status, why = 500, f"event {error.sequence} of this bandit's log and its replay disagree"
    else:
        log.error("call failed", exc_info=error)
        status, why = 500, "something went wrong; the log of the service says what"
    return plain(status, why, **headers)


def authorise(service: Service, request: Request, permission: str) -> str | None:
    """Refuse a caller without the key for it, before anything is looked up; return the key's id."""
    if service.needs_keys:
        key = service.keyring.holder(header(request, b"authorization"))
        if key is None:
            raise Refused(401, "this needs a valid API key, as: Authorization: Bearer dyna_...")
        if permission not in ROLES[key.role]:
            roles = " or ".join(role for role, may in ROLES.items() if permission in may)
            raise Refused(403, f"this needs a key with the role {roles}, got one with the role {key.role}")
        return key.id
    host = header(request, b"host") or ""
    if not _is_local(host):
        # A page on the web can point a name of its own at this address, but cannot choose another Host header
        raise Refused(421, f"without API keys, Host must be 127.0.0.1 or localhost, got {host[:100]!r}")
    return None


def may_still_read(service: Service, request: Request) -> bool:
    """Whether the key with which a stream began was not revoked meanwhile."""
    try:
        authorise(service, request, "read")
    except Refused:
        return False
    return True


@functools.lru_cache(maxsize=64)
def _is_local(host: str) -> bool:
    """Whether a Host header, which every call brings, names this machine."""
    return is_loopback(PORT.sub("", host).strip("[]"))


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body, or refuse one that is too large or not declared as JSON."""
    kind = (header(request, b"content-type") or "").partition(";")[0].strip().lower()
    if kind != JSON:  # browsers ask before they send this type to another site
        raise Refused(415, f"Content-Type must be {JSON}, got {kind[:100]!r}")
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            raise Refused(413, f"the body must have at most {limit} bytes")
    return bytes(body)


def header(request: Request, name: bytes) -> str | None:
    """Return a header, or None."""
    for key, value in request.scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


def path_part(request: Request, part: str) -> str:
    """Return a piece of the path as the name that it stands for, or refuse."""
    try:
        return cleaned(unquote(request.path_params[part], errors="strict"), part)
    except UnicodeDecodeError:
        raise Refused(422, f"{part} must be UTF-8, percent-encoded, got {request.path_params[part][:100]!r}") from None


def cleaned(name: str, what: str) -> str:
    """Return a name in its normal form, or refuse."""
    try:
        return clean_name(name, what)
    except ValueError as error:
        raise Refused(422, str(error)) from None


def new_name(name: str, what: str) -> str:
    """Return the name of something that is to come in its normal form, or refuse."""
    if name in (".", ".."):  # browsers take them out of an address, however they are written
        raise Refused(422, f"{what} must not be . or .., which mean something else in an address, got {name!r}")
    return cleaned(name, what)


def query_values(request: Request, *known: Query) -> dict[str, Any]:
    """Return the value of each parameter, or refuse."""
    given = dict(request.query_params)
    if len(given) < len(request.query_params.multi_items()):
        keys = [key for key, _ in request.query_params.multi_items()]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise Refused(422, f"every parameter must be given once, got {twice[:100]!r} {keys.count(twice)} times")
    values = {one.name: _value(one, given.pop(one.name)) if one.name in given else _default(one) for one in known}
    if given:
        names = ", ".join(one.name for one in known)
        raise Refused(422, f"unknown parameter {next(iter(given))[:100]!r}. Known: {names}")
    return values


def _default(query: Query) -> int | str:
    return query.words[0] if query.words else query.default


def _value(query: Query, text: str) -> int | str:
    if query.words:
        if text not in query.words:
            raise Refused(422, f"{query.name} must be one of {', '.join(query.words)}, got {text[:100]!r}")
        return text
    if isinstance(query.default, int):
        digits = text.isascii() and text.isdigit() and len(text) < 20
        if not digits or not query.low <= int(text) <= query.high:
            valid = f"a whole number from {query.low} to {query.high}"
            raise Refused(422, f"{query.name} must be {valid}, got {text[:100]!r}")
        return int(text)
    return text


STAY, LEAVE = _turned_away(), _turned_away(Connection="close")  # made once: there is no time to make many
