"""OpenTelemetry: a span for each request and for its way through the writer, and the metrics of the service.

It needs the extra `otel` and is imported only if it is configured. The spans and histograms are recorded by functions
that are wrapped around those of the service, so that a service without it does nothing for it.
"""

import functools
import importlib.metadata
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from opentelemetry import propagate
from opentelemetry.metrics import CallbackOptions, MeterProvider as AnyMeterProvider, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider as AnyTracerProvider
from starlette.requests import Request
from starlette.responses import Response

from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.http import telemetry_settings
from dynabandit.service.http.openapi import Endpoint
from dynabandit.service.http.telemetry_settings import exporter_names
from dynabandit.service.metrics import ServiceMetrics
from dynabandit.service.service import Service

NAME = "dynabandit"
Serve = Callable[[Request], Any]


class Telemetry:
    """Records spans with a tracer provider, and metrics with a meter provider."""

    def __init__(self, service: Service, tracers: AnyTracerProvider, meters: AnyMeterProvider) -> None:
        version = importlib.metadata.version(NAME)
        self._tracers, self._meters = tracers, meters
        self._tracer = tracers.get_tracer(NAME, version)
        meter = meters.get_meter(NAME, version)
        self._request_seconds = meter.create_histogram("http.server.request.duration", "s", "Time to the response.")
        self._commit_seconds = meter.create_histogram("dynabandit.commit.duration", "s", "Time of a commit.")
        metrics = service.metrics
        for family in metrics.registry.collect():  # read when they are exported, so that counting costs nothing
            create = {"counter": meter.create_observable_counter, "gauge": meter.create_observable_gauge}
            if family.type in create:
                observe = functools.partial(_observe, metrics, family.name)
                create[family.type](family.name, [observe], description=family.documentation)
        self._wrap_commits(metrics)
        self._wrap_writer(service)

    def wrap(self, endpoint: Endpoint, serve: Serve) -> Serve:
        """Return a function that serves an endpoint and records a span and the time of each request."""
        attributes = {"http.request.method": endpoint.method, "http.route": endpoint.path}

        async def traced(request: Request) -> Response:
            started, context = time.perf_counter(), propagate.extract(dict(request.headers))
            with self._tracer.start_as_current_span(endpoint.id, context, SpanKind.SERVER, attributes) as span:
                if "name" in request.path_params:
                    span.set_attribute("dynabandit.bandit", unquote(request.path_params["name"]))
                response: Response = await serve(request)
                span.set_attribute("http.response.status_code", response.status_code)
                if response.status_code >= 500:
                    span.set_status(StatusCode.ERROR)
            answered: dict[str, str | int] = {**attributes, "http.response.status_code": response.status_code}
            self._request_seconds.record(time.perf_counter() - started, answered)
            return response

        return traced

    def _wrap_commits(self, metrics: ServiceMetrics) -> None:
        count_commit = metrics.count_commit

        def counted(events: Any, seconds: float) -> None:
            count_commit(events, seconds)
            self._commit_seconds.record(seconds)

        metrics.count_commit = counted  # type: ignore[method-assign]

    def _wrap_writer(self, service: Service) -> None:
        """Record a span from the submission of a function to the end of its commit."""
        submit = service.writer.submit

        def traced(run: Callable[[UnitOfWork], Any], **options: Any) -> Any:
            span = self._tracer.start_span("writer", attributes={"dynabandit.events": options.get("events", 1)})
            try:
                future = submit(_timed(run, span), **options)
            except Exception as error:
                span.record_exception(error)
                span.end()
                raise
            future.add_done_callback(lambda _: span.end())
            return future

        service.writer.submit = traced

    def stop(self) -> None:
        """Export what was recorded, for at most some seconds: exporters try for long if nobody answers."""
        providers = [one for one in (self._tracers, self._meters) if isinstance(one, TracerProvider | MeterProvider)]
        threads = [threading.Thread(target=provider.shutdown, daemon=True) for provider in providers]
        deadline = time.monotonic() + telemetry_settings.STOP_SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _timed(run: Callable[[UnitOfWork], Any], span: Span) -> Callable[[UnitOfWork], Any]:
    """Return a function that notes in a span how long it waited and ran; the rest of the span is the commit."""
    submitted = time.perf_counter()

    def timed(work: UnitOfWork) -> Any:
        started = time.perf_counter()
        result = None
        try:
            result = run(work)
        finally:
            span.set_attribute("dynabandit.waited_seconds", started - submitted)
            span.set_attribute("dynabandit.run_seconds", time.perf_counter() - started)
        return _timed_steps(result, span) if isinstance(result, Generator) else result

    return timed


def _timed_steps(steps: Generator[None, None, Any], span: Span) -> Generator[None, None, Any]:
    """Run a generator, and note in a span for how long it ran, without the requests that were served between steps."""
    seconds = 0.0
    try:
        while True:
            started = time.perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            finally:
                seconds += time.perf_counter() - started
            yield
    finally:
        span.set_attribute("dynabandit.run_seconds", seconds)


def _observe(metrics: ServiceMetrics, name: str, options: CallbackOptions) -> Iterable[Observation]:
    """Return the current values of a counter or gauge."""
    for family in metrics.registry.collect():
        if family.name == name:
            for sample in family.samples:
                yield Observation(sample.value, sample.labels)


def make_telemetry(service: Service, environment: Mapping[str, str]) -> Telemetry:
    """Return the telemetry that the environment variables of OpenTelemetry configure."""
    resource = Resource.create({"service.version": importlib.metadata.version(NAME)})
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": NAME}))
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in _exporters("traces", environment):
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    readers = [PeriodicExportingMetricReader(exporter) for exporter in _exporters("metrics", environment)]
    return Telemetry(service, tracers, MeterProvider(readers, resource, shutdown_on_exit=False))


def _exporters(signal: str, environment: Mapping[str, str]) -> Iterator[Any]:
    """Return the exporters of a signal, `traces` or `metrics`; installed packages bring them as entry points."""
    installed = importlib.metadata.entry_points(group=f"opentelemetry_{signal}_exporter")
    for name in exporter_names(signal, environment):
        if name not in installed.names:
            known = ", ".join(sorted(installed.names))
            raise ValueError(f"the exporter {name!r} of OpenTelemetry's {signal} is not installed. Installed: {known}")
        yield installed[name].load()()
