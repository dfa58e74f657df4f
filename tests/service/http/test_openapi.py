"""The OpenAPI document and the service agree: what schemathesis makes of the document, the service answers so."""

import os
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from dynabandit.service.http.routes import DOCUMENT, ENDPOINTS
from dynabandit.service.stores import open_store
from dynabandit.validation import LARGEST_REWARD
from tools.harness import PRODUCT, Running, running, talking, visitor
from tools.waiting import PATIENCE

CASES = 100_000 if os.environ.get("DYNABANDIT_LONG_FAULTS") else 300
EXAMPLES = -(-CASES // len(ENDPOINTS))
EXISTING: dict[str, list[str]] = {"name": ["plain", "product"], "arm": ["red", "green"], "id": []}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_store(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/store.db")) as server:
        with talking(server.url) as (client, _):
            client.create("plain", ["red", "green"], seed=1)
            client.create("product", ["red", "green"], seed=1, **{**PRODUCT, "policy": "ts"})
            made = client.decide_many("plain", 3)
            made.append(client.decide("product", **visitor("u", 1)))
            EXISTING["id"] = [one.decision for one in made]
        yield server


schema = schemathesis.openapi.from_dict(msgspec.json.decode(DOCUMENT))


@schema.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Let half of the requests be about bandits, arms and decisions that exist."""
    for name, value in (path_parameters or {}).items():
        choices = EXISTING.get(name)
        number = zlib.crc32(repr(value).encode())
        if choices and path_parameters is not None and number % 2:
            path_parameters[name] = choices[number // 2 % len(choices)]
    return path_parameters


@pytest.mark.promise(3)
@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_the_document_says(case: Any, described: Running) -> None:
    # No schema can say which names are taken, which parameters a policy has, which rewards and features a bandit has,
    # that a name must be repeated, or that 3.0 is no count
    excluded = [] if case.method == "GET" else [positive_data_acceptance]
    case.call_and_validate(
        base_url=described.url, excluded_checks=excluded, timeout=PATIENCE
    )  # a policy may be compiled


@pytest.mark.promise(3)
def test_the_document_lists_every_call(described: Running) -> None:
    document = httpx.get(f"{described.url}/openapi.json", timeout=PATIENCE, verify=False).json()
    listed = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert listed == {endpoint.id for endpoint in ENDPOINTS}


def test_the_document_has_the_limits_of_the_types(described: Running) -> None:
    document = httpx.get(f"{described.url}/openapi.json", timeout=PATIENCE, verify=False).json()
    reward = document["components"]["schemas"]["Reward"]["properties"]["reward"]
    assert (reward["minimum"], reward["maximum"]) == (-LARGEST_REWARD, LARGEST_REWARD)
    arms = document["components"]["schemas"]["Create"]["properties"]["arms"]
    assert arms["maxItems"] == 100_000
    assert msgspec.json.encode(document)
