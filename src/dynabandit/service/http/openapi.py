"""The OpenAPI document, made from the endpoints and the very types that requests are read with."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from dynabandit.service.api_types import Problem

__all__ = ["Endpoint", "Query", "document"]

PROBLEMS = {
    400: "The body is no JSON.",
    401: "An API key is missing or wrong.",
    403: "The API key may not do this.",
    404: "There is no such thing.",
    409: "It does not fit what is there.",
    410: "The window of the decision has ended.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "Without API keys, the Host must be this machine.",
    422: "A value is not valid.",
    429: "Too many calls wait; try again after a while.",
    500: "A fault of the service.",
    501: "Something optional is not installed.",
    503: "The store is not available; try again after a while.",
}
COMMON = (401, 403, 421, 422, 429, 500, 503)
WITH_BODY = (400, 413, 415)


@dataclass(frozen=True)
class Query:
    """A parameter after the question mark: a whole number, one of some words, or any text."""

    name: str
    default: int | str = ""
    low: int = 0
    high: int = 0
    words: tuple[str, ...] = ()
    required: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """What the document says about it."""
        if self.words:
            return {"type": "string", "enum": list(self.words), "default": self.words[0]}
        if isinstance(self.default, int):
            return {"type": "integer", "minimum": self.low, "maximum": self.high, "default": self.default}
        return {"type": "string"}


@dataclass(frozen=True)
class Endpoint:
    """A call of the API: who may make it, what it reads and what it answers."""

    method: str
    path: str
    permission: str
    body: type | None
    answer: type | None
    statuses: tuple[int, ...] = ()
    query: tuple[Query, ...] = ()
    headers: tuple[str, ...] = ()
    media: tuple[str, ...] = ()  # other forms of the answer
    answers_json: bool = True
    large: bool = False  # whether the body may be large

    @property
    def id(self) -> str:
        """A name for it that is unique."""
        return f"{self.method} {self.path}"


def document(endpoints: list[Endpoint]) -> bytes:
    """Return the OpenAPI document as JSON."""
    kinds = {kind for one in endpoints for kind in (one.body, one.answer) if kind is not None} | {Problem}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schema_of)
    content = {
        "openapi": "3.1.0",
        "info": {
            "title": "dynabandit",
            "version": "1",
            "description": "Decisions that survive crashes and retries.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.encode(content)


def _operation(one: Endpoint, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    good = 201 if 201 in one.statuses else 200
    problem = {"application/json": {"schema": schema_of[Problem]}}
    codes = {*one.statuses, *COMMON, *(WITH_BODY if one.body else ())} - {201}
    if not one.permission:
        codes = {500, 503}
    responses = {"200": _good(one, schema_of)}
    if good == 201:
        responses["201"] = _good(one, schema_of)
    for code in sorted(codes):
        responses[str(code)] = {"description": PROBLEMS[code], "content": problem}
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", one.id.lower()).strip("_"),
        "parameters": _parameters(one),
        "responses": responses,
    }
    if one.permission:
        operation["security"] = [{"key": []}, {}]
    if one.body is not None:
        content = {"application/json": {"schema": schema_of[one.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _good(one: Endpoint, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {kind: {} for kind in one.media}
    if one.answer is not None and one.answers_json:
        content["application/json"] = {"schema": schema_of[one.answer]}
    return {"description": "As asked.", "content": content}


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
