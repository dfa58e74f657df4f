"""Whether OpenTelemetry is configured, by its standard environment variables, and limits; without its packages."""

from collections.abc import Mapping

SIGNALS = ("traces", "metrics")
STOP_SECONDS = 3.0  # of exporting what is left when the service stops


def is_configured(environment: Mapping[str, str]) -> bool:
    """Whether anything is to be exported.

    Examples
    --------
    >>> is_configured({}), is_configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    (False, True)
    """
    return any(exporter_names(signal, environment) for signal in SIGNALS)


def exporter_names(signal: str, environment: Mapping[str, str]) -> list[str]:
    """Return the names of the exporters of a signal; none if neither an exporter nor an address is configured.

    Examples
    --------
    >>> exporter_names("traces", {"OTEL_TRACES_EXPORTER": "console,otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    ['console', 'otlp_proto_grpc']
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    otlp = f"OTEL_EXPORTER_OTLP_{signal.upper()}"
    has_address = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or environment.get(f"{otlp}_ENDPOINT")
    given = environment.get(f"OTEL_{signal.upper()}_EXPORTER") or ("otlp" if has_address else "none")
    protocol = environment.get(f"{otlp}_PROTOCOL") or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    names = [name.strip() for name in given.split(",")]
    kind = protocol.partition("/")[0]  # http or grpc
    return [f"otlp_proto_{kind}" if name == "otlp" else name for name in names if name not in ("", "none")]
