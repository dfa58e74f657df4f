"""Endpoints as data, and the OpenAPI document made from them and from the types that decode requests."""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from dynabandit.service.api_types import AddArm, Create, Decide, Problem, Reward
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.http.status_codes import DESCRIPTIONS

Handler = Callable[[Any, Any, Any], Awaitable[Any]]  # of (service, request, body or query)

COMMON = (401, 403, 421, 422, 429, 500, 503)
WITH_BODY = (400, 413, 415)
SUCCESSES = {200: "Success.", 201: "Created.", 202: "Accepted: the rest is done later.", 204: "Done."}

EXAMPLES: dict[type, dict[str, Any]] = {  # bodies
    Create: {
        "arms": ["red", "green"],
        "features": {"hour": "number", "country": "category"},
        "reward_window": 3600,
        "default_reward": 0,
        "sticky_for": 86400,
        "holdout": {"share": 0.1, "control": "red"},
    },
    Decide: {"context": {"hour": 14, "country": "NO"}, "unit": "user-17"},
    Reward: {"reward": 1},
    AddArm: {"arm": "blue"},
}


@dataclass(frozen=True)
class Query:
    """A query parameter: a whole number, one of some words, or any text."""

    name: str
    default: int | str = ""
    low: int = 0
    high: int = 0
    words: tuple[str, ...] = ()
    required: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        if self.words:
            return {"type": "string", "enum": list(self.words), "default": self.words[0]}
        if isinstance(self.default, int):
            return {"type": "integer", "minimum": self.low, "maximum": self.high, "default": self.default}
        return {"type": "string"}

    def parse(self, text: str | None) -> int | str:
        """Return the value that a request gives, or the default, or raise `InvalidValueError`."""
        if text is None:
            return self.words[0] if self.words else self.default
        if self.words and text not in self.words:
            raise InvalidValueError(f"{self.name} must be one of {', '.join(self.words)}, got {text[:100]!r}")
        if isinstance(self.default, str):
            return text
        is_number = text.isascii() and text.isdigit() and len(text) < 20
        if not is_number or not self.low <= int(text) <= self.high:
            valid = f"a whole number from {self.low} to {self.high}"
            raise InvalidValueError(f"{self.name} must be {valid}, got {text[:100]!r}")
        return int(text)


@dataclass(frozen=True)
class Endpoint:
    """One request of the API: who may send it, its body, its parameters and its response."""

    method: str
    path: str
    permission: str
    handler: Handler
    body: type | None
    response: type | None
    statuses: tuple[int, ...] = ()
    query: tuple[Query, ...] = ()
    headers: tuple[str, ...] = ()
    media: tuple[str, ...] = ()  # other media types of the response
    returns_json: bool = True
    large: bool = False  # whether the body may be large
    success: int = 200  # the usual status
    problem: type = Problem  # the body of a response that refuses the request
    cross_origin: bool = False  # whether pages of allowed origins may send it: only what the JavaScript client sends

    @property
    def id(self) -> str:
        """Its unique name."""
        return f"{self.method} {self.path}"


def document(endpoints: Iterable[Endpoint]) -> bytes:
    """Return the OpenAPI document as JSON."""
    kinds = {kind for one in endpoints for kind in (one.body, one.response, one.problem) if kind is not None}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schema_of)
    content = {
        "openapi": "3.1.0",
        "info": {"title": "dynabandit", "version": "1", "description": "Decisions that survive crashes and retries."},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
    return msgspec.json.encode(content)


def _operation(one: Endpoint, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    problem = {"application/json": {"schema": schema_of[one.problem]}}
    codes = {*one.statuses, *COMMON, *(WITH_BODY if one.body else ())} - SUCCESSES.keys()
    if one.problem is not Problem:  # Personalizer has no status for values that are not valid
        codes = codes - {422} | {400}
    if not one.permission:
        codes = {500, 503}
    responses = {
        str(code): _success(one, schema_of, text)
        for code, text in SUCCESSES.items()
        if code == one.success or code in one.statuses
    }
    for code in sorted(codes):
        responses[str(code)] = {"description": DESCRIPTIONS[code], "content": problem}
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", one.id.lower()).strip("_"),
        "parameters": _parameters(one),
        "responses": responses,
    }
    if one.permission:
        operation["security"] = [{"key": []}, {}]
    if one.body is not None:
        content = {"application/json": {"schema": schema_of[one.body]}}
        if one.body in EXAMPLES:
            content["application/json"]["example"] = EXAMPLES[one.body]
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _success(one: Endpoint, schema_of: dict[type, dict[str, Any]], description: str) -> dict[str, Any]:
    content: dict[str, Any] = {kind: {} for kind in one.media}
    if one.response is not None and one.returns_json:
        content["application/json"] = {"schema": schema_of[one.response]}
    return {"description": description, "content": content}


def _parameters(one: Endpoint) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", one.path)
    ]
    found += [
        {"name": query.name, "in": "query", "required": query.required, "schema": query.schema} for query in one.query
    ]
    for name in one.headers:
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        found.append({"name": name, "in": "header", "required": False, "schema": schema})
    return found
