"""Numbers for Prometheus."""

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from dynabandit.service.domain.events import DECISION, Row

__all__ = ["Metrics"]

TURNED_AWAY = 429  # held back on purpose, see `admission`
MOST_ARMS_SHOWN = 100  # of a bandit
MOST_SERIES = 2_000  # arms of all bandits
disable_created_metrics()  # type: ignore[no-untyped-call]  # when each series began, which nothing here needs: twice as many lines
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
        arm = ["bandit", "arm"]
        self.decisions = Counter("dynabandit_decisions", "Decisions for each arm.", arm, registry=to)
        self.rewards = Counter("dynabandit_rewards", "Rewards that came for each arm.", arm, registry=to)
        self.reward_sum = Counter("dynabandit_reward_sum", "Sum of the rewards of each arm.", arm, registry=to)
        self._arms: dict[tuple[str, str], tuple[Counter, Counter, Counter]] = {}
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

    def learnt(self, bandit: str, names: Sequence[str], rows: Sequence[Row]) -> None:
        """Count the decisions and rewards of a bandit, unless it has so many arms that nobody could look at them."""
        if len(names) > MOST_ARMS_SHOWN:
            return
        for row in rows:
            if row.arm is None:
                continue
            shown = self._arm(bandit, names[row.arm])
            if shown is None:
                return
            if row.kind == DECISION:
                shown[0].inc()
            elif row.value is not None:
                shown[1].inc()
                shown[2].inc(row.value)

    def _arm(self, bandit: str, arm: str) -> tuple[Counter, Counter, Counter] | None:
        shown = self._arms.get((bandit, arm))
        if shown is None and len(self._arms) < MOST_SERIES:
            shown = (
                self.decisions.labels(bandit, arm),
                self.rewards.labels(bandit, arm),
                self.reward_sum.labels(bandit, arm),
            )
            self._arms[bandit, arm] = shown
        return shown

    def forget(self, bandit: str) -> None:
        """Show nothing more of a bandit that was deleted."""
        for key in [key for key in self._arms if key[0] == bandit]:
            del self._arms[key]
            for counter in (self.decisions, self.rewards, self.reward_sum):
                counter.remove(*key)

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
