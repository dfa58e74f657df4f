"""Numbers for Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dynabandit.service.events import Row

__all__ = ["Metrics"]

TURNED_AWAY = 429  # held back on purpose, see `admission`
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """What the service counts; each app has its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        to = self.registry
        self.requests = Counter(
            "dynabandit_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=to,
        )
        self.seconds = Histogram(
            "dynabandit_request_seconds",
            "Time to an answer, of calls that were let in.",
            ["method", "route"],
            buckets=SECONDS,
            registry=to,
        )
        self.events = Counter("dynabandit_events", "Events that were committed.", ["kind"], registry=to)
        self.commits = Counter("dynabandit_commits", "Commits; each may hold many events.", registry=to)
        self.commit_seconds = Histogram("dynabandit_commit_seconds", "Time of a commit.", buckets=SECONDS, registry=to)
        self.store_failures = Counter("dynabandit_store_failures", "Commits that failed.", registry=to)
        self.waiting = Gauge("dynabandit_waiting", "Calls that wait for the writer.", registry=to)
        self.turned_away = Counter("dynabandit_turned_away", "Calls answered with 429.", registry=to)
        self._answers: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def committed(self, rows: Sequence[Row], seconds: float) -> None:
        """Count a commit."""
        self.commits.inc()
        self.commit_seconds.observe(seconds)
        kinds: dict[str, int] = {}
        for row in rows:
            kinds[row.kind] = kinds.get(row.kind, 0) + 1
        for kind, count in kinds.items():
            self.events.labels(kind).inc(count)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        found = self._answers.get((method, route, status))
        if found is None:
            found = (self.requests.labels(method, route, str(status)), self.seconds.labels(method, route))
            self._answers[method, route, status] = found
        found[0].inc()
        if status != TURNED_AWAY:
            found[1].observe(seconds)

    def page(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self.registry)
