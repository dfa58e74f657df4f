"""OpenTelemetry: spans and metrics of a service, and that nothing is done without it."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dynabandit.service.http import telemetry_settings
from dynabandit.service.http.telemetry import Telemetry, make_telemetry
from dynabandit.service.http.telemetry_settings import exporter_names, is_configured
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, open_store
from tools.harness import ARMS, Running, process, running, talking
from tools.waiting import PATIENCE, wait_for

ADDRESS = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Recorded = tuple[Running, InMemorySpanExporter, InMemoryMetricReader]


@pytest.fixture
def recorded(sqlite_url: str) -> Iterator[Recorded]:
    """A service whose spans and metrics stay in memory."""
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([metrics], shutdown_on_exit=False)
    store = open_store(sqlite_url)
    with running(store, telemetry=lambda service: Telemetry(service, tracers, meters)) as server:
        yield server, spans, metrics


def finished(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [one for one in spans.get_finished_spans() if one.name == name]


def points(metrics: InMemoryMetricReader) -> dict[str, Sequence[Any]]:
    """Return the values of each metric."""
    data = metrics.get_metrics_data()
    assert data is not None
    scopes = [scope for part in data.resource_metrics for scope in part.scope_metrics]
    return {one.name: one.data.data_points for scope in scopes for one in scope.metrics}


@pytest.mark.promise(110)
def test_a_request_and_its_way_through_the_writer_are_spans_of_the_callers_trace(recorded: Recorded) -> None:
    server, spans, _ = recorded
    with talking(server.url) as (client, http):
        client.create("a b", ARMS)
        spans.clear()
        answer = http.post("/v1/bandits/a%20b/decisions", json={"count": 3}, headers={"traceparent": PARENT})
        assert answer.status_code == 200
    wait_for(lambda: len(spans.get_finished_spans()) == 2)
    (request,) = finished(spans, "POST /v1/bandits/{name}/decisions")
    (writer,) = finished(spans, "writer")
    assert request.kind == SpanKind.SERVER
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/bandits/{name}/decisions",
        "dynabandit.bandit": "a b",
        "http.response.status_code": 200,
    }
    assert request.parent is not None
    assert f"{request.parent.trace_id:032x}-{request.parent.span_id:016x}" in PARENT
    assert writer.parent == request.context
    assert (writer.attributes or {})["dynabandit.events"] == 3
    assert {"dynabandit.waited_seconds", "dynabandit.run_seconds"} < (writer.attributes or {}).keys()


def test_an_error_of_the_service_is_an_error_of_the_span(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    server, spans, _ = recorded

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    with talking(server.url) as (_, http):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "bandits", fail)
            assert http.get("/v1/bandits").status_code == 500
        assert http.get("/v1/bandits/none").status_code == 404
    wait_for(lambda: finished(spans, "GET /v1/bandits/{name}"))
    (failed,), (missing,) = finished(spans, "GET /v1/bandits"), finished(spans, "GET /v1/bandits/{name}")
    assert [failed.status.status_code, missing.status.status_code] == [StatusCode.ERROR, StatusCode.UNSET]


@pytest.mark.promise(111)
def test_every_metric_is_exported(recorded: Recorded) -> None:
    server, _, metrics = recorded
    with talking(server.url) as (client, _):
        client.create("b", ARMS, seed=1)
        for decision in client.decide_many("b", 3):
            client.reward(decision.decision, 0.5)
    found = points(metrics)
    for family in server.service.metrics.registry.collect():
        changes_meanwhile = family.name in ("dynabandit_waiting", "dynabandit_connections")
        if family.type in ("counter", "gauge") and family.samples and not changes_meanwhile:
            exported = {tuple(sorted(one.attributes.items())): one.value for one in found[family.name]}
            assert exported == {tuple(sorted(one.labels.items())): one.value for one in family.samples}, family.name
    assert sum(one.value for one in found["dynabandit_decisions"]) == 3
    route = {"http.request.method": "PUT", "http.route": "/v1/decisions/{id}/reward", "http.response.status_code": 200}
    (seconds,) = [one for one in found["http.server.request.duration"] if one.attributes == route]
    assert seconds.count == 3
    assert sum(one.count for one in found["dynabandit.commit.duration"]) >= 4


@pytest.mark.promise(112)
def test_it_is_off_unless_it_is_configured() -> None:
    assert not is_configured({"PATH": "/", "OTEL_SERVICE_NAME": "shop"})
    assert not is_configured({**ADDRESS, "OTEL_SDK_DISABLED": "true"})
    assert not is_configured({**ADDRESS, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"})
    assert exporter_names("metrics", ADDRESS) == ["otlp_proto_http"]
    assert exporter_names("metrics", {"OTEL_TRACES_EXPORTER": "console"}) == []
    loaded = "import sys, dynabandit.service.command_line; print([x for x in sys.modules if 'opentelemetry' in x])"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_exporters_are_found_by_the_names_of_opentelemetry(sqlite_url: str) -> None:
    with pytest.raises(ValueError, match=r"^the exporter 'nothing' of OpenTelemetry's traces is not installed\. "):
        make_telemetry(Service(open_store(sqlite_url)), {"OTEL_TRACES_EXPORTER": "nothing"})


def test_a_collector_that_does_not_answer_does_not_delay_the_end(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry_settings, "STOP_SECONDS", 0.05)
    answered, ended = threading.Event(), threading.Event()

    class SilentExporter(InMemorySpanExporter):
        def shutdown(self) -> None:
            answered.wait(PATIENCE)
            ended.set()

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(SilentExporter()))
    telemetry = Telemetry(Service(open_store(sqlite_url)), tracers, MeterProvider(shutdown_on_exit=False))
    telemetry.stop()
    assert not ended.is_set()
    answered.set()
    assert ended.wait(PATIENCE)


@pytest.mark.parametrize(
    ("exporter", "logged"), [("console", '"name": "GET /healthz"'), ("nothing", "no telemetry"), ("none", "stopped")]
)
def test_environment_variables_configure_a_service(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, exporter: str, logged: str
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", exporter)
    with process(sqlite_url) as server:
        with talking(server.url) as (_, http):
            assert http.get("/healthz").status_code == 200
        server.process.terminate()
        output = "".join(server.process.communicate(timeout=PATIENCE))
    assert logged in output
