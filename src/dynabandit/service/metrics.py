"""Metrics for Prometheus."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import ALERT, DECISION, METRIC, EventRow
from dynabandit.service.domain.lift import HoldoutLift
from dynabandit.service.domain.names import in_namespace
from dynabandit.stats.intervals import Estimate
from dynabandit.stats.lift import LiftSums

MAX_ARMS_SHOWN = 100  # per bandit
MAX_LIFTS = 100  # bandits; each takes some 0.5 ms
MAX_SERIES = 2_000  # arms of all bandits
disable_created_metrics()  # type: ignore[no-untyped-call]  # the start of each series would double the lines
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ServiceMetrics:
    """What a service counts."""

    def __init__(self, contacts: DeciderContacts | None = None) -> None:
        self.registry = CollectorRegistry()
        to = self.registry
        self.deciders = _DeciderSeries(contacts or DeciderContacts())
        to.register(self.deciders)
        by_status, by_route, arm = ["method", "route", "status"], ["method", "route"], ["bandit", "arm"]
        self.requests = Counter("dynabandit_requests", "Requests by route and status.", by_status, registry=to)
        text = "Time to the response, of admitted requests."
        self.seconds = Histogram("dynabandit_request_seconds", text, by_route, buckets=SECONDS, registry=to)
        self.events = Counter("dynabandit_events", "Events that were committed.", ["kind"], registry=to)
        self.commits = Counter("dynabandit_commits", "Commits; each may hold many events.", registry=to)
        self.commit_seconds = Histogram("dynabandit_commit_seconds", "Time of a commit.", buckets=SECONDS, registry=to)
        self.store_failures = Counter("dynabandit_store_failures", "Commits that failed.", registry=to)
        self.waiting = Gauge("dynabandit_waiting", "Requests that wait for the writer.", registry=to)
        self.refused = Counter("dynabandit_turned_away", "Requests answered with 429.", registry=to)
        self.connections = Gauge("dynabandit_connections", "Open connections.", registry=to)
        text = "Connections closed because they were too many, or because the caller did not read."
        self.connections_closed = Counter("dynabandit_connections_closed", text, ["reason"], registry=to)
        self.decisions = Counter("dynabandit_decisions", "Decisions of each arm.", arm, registry=to)
        self.rewards = Counter("dynabandit_rewards", "Rewards of each arm.", arm, registry=to)
        text = "Sum of the rewards of each arm."
        self.reward_sum = Gauge("dynabandit_reward_sum_total", text, arm, registry=to)  # rewards may be negative
        self.lifts = _LiftSeries()
        to.register(self.lifts)
        text = "Alerts of guardrails and of the sample ratio."
        self.alerts = Counter("dynabandit_alerts", text, ["bandit", "alert"], registry=to)
        text = "Alerts that the webhook has refused for good."
        self.alerts_refused = Counter("dynabandit_alerts_refused", text, registry=to)
        text = "Decisions that were compared with the choice of a shadow policy."
        self.shadow_decisions = Counter("dynabandit_shadow_decisions", text, ["bandit"], registry=to)
        text = "Those of them at which both chose the same."
        self.shadow_agreements = Counter("dynabandit_shadow_agreements", text, ["bandit"], registry=to)
        self._shadow_counters = (self.shadow_decisions, self.shadow_agreements)
        self._shadowed: set[str] = set()  # bandits
        self._arms: dict[tuple[str, str], tuple[Counter, Counter, Gauge]] = {}
        self._responses: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count_commit(self, events: Sequence[EventRow], seconds: float) -> None:
        """Count a commit."""
        self.commits.inc()
        self.commit_seconds.observe(seconds)
        kinds: dict[str, int] = {}
        for event in events:
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
        for kind, count in kinds.items():
            self.events.labels(kind).inc(count)

    def count_arms(self, bandit: str, names: Sequence[str], events: Sequence[EventRow]) -> None:
        """Count the decisions and rewards of each arm, unless the bandit has too many arms for a dashboard."""
        if len(names) > MAX_ARMS_SHOWN:
            return
        totals: dict[int, list[float]] = {}  # decisions, rewards and their sum by arm: a counter has a lock
        for _, _, kind, _, _, arm, value, *_ in events:
            if arm is None:
                continue
            total = totals.get(arm)
            if total is None:
                total = totals[arm] = [0.0, 0.0, 0.0]
            if kind == DECISION:
                total[0] += 1
            elif kind != METRIC and value is not None:
                total[1] += 1
                total[2] += value
        for arm, total in totals.items():
            for counter, amount in zip(self._arm_counters(bandit, names[arm]), total, strict=False):
                counter.inc(amount)

    def count_alerts(self, bandit: str, events: Sequence[EventRow]) -> bool:
        """Count the alerts among some events, and return whether there are any."""
        alerts = ["sample-ratio" if event.arm is None else "guardrail" for event in events if event.kind == ALERT]
        for alert in alerts:
            self.alerts.labels(bandit, alert).inc()
        return bool(alerts)

    def count_shadow(self, bandit: str, events: Sequence[EventRow]) -> None:
        """Count how often the policy and the shadow policy of a bandit choose the same."""
        if bandit not in self._shadowed and len(self._shadowed) >= MAX_SERIES:
            return
        self._shadowed.add(bandit)
        decisions = [event for event in events if event.kind == DECISION]
        pairs = [(event.arm, read_details(event.body).shadow) for event in decisions]
        compared = [arm == shadow.column for arm, shadow in pairs if shadow is not None]
        self.shadow_decisions.labels(bandit).inc(len(compared))
        self.shadow_agreements.labels(bandit).inc(sum(compared))

    def _arm_counters(self, bandit: str, arm: str) -> Sequence[Counter | Gauge]:
        """Return the three counters of an arm, or none if there are too many series."""
        counters = self._arms.get((bandit, arm))
        if counters is None and len(self._arms) < MAX_SERIES:
            counters = (
                self.decisions.labels(bandit, arm),
                self.rewards.labels(bandit, arm),
                self.reward_sum.labels(bandit, arm),
            )
            self._arms[bandit, arm] = counters
        return counters or ()

    def remove_bandit(self, bandit: str) -> None:
        """Remove the series of a deleted bandit."""
        for key in [key for key in self._arms if key[0] == bandit]:
            del self._arms[key]
            for counter in (self.decisions, self.rewards, self.reward_sum):
                counter.remove(*key)
        self.lifts.latest.pop(bandit, None)
        for alert in ("guardrail", "sample-ratio"):
            with contextlib.suppress(KeyError):
                self.alerts.remove(bandit, alert)
        if bandit in self._shadowed:
            self._shadowed.remove(bandit)
            for counter in self._shadow_counters:
                counter.remove(bandit)

    def count_response(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a response, and how long it took unless that is None."""
        found = self._responses.get((method, route, status))
        if found is None:
            found = (self.requests.labels(method, route, str(status)), self.seconds.labels(method, route))
            self._responses[method, route, status] = found
        found[0].inc()
        if seconds is not None:
            found[1].observe(seconds)

    def page(self, namespace: str | None = None) -> bytes:
        """Return the page that Prometheus reads; with a namespace, only the series of the bandits in it."""
        if namespace is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        shadows = self._shadow_counters
        counters = (self.decisions, self.rewards, self.reward_sum, self.deciders, self.alerts, self.lifts, *shadows)
        registry.register(_NamespaceSeries(namespace, counters))
        return generate_latest(registry)


class _NamespaceSeries(Collector):
    """The series of some counters that belong to the bandits of a namespace."""

    def __init__(self, namespace: str, counters: Sequence[Counter | Gauge | Collector]) -> None:
        self._namespace, self._counters = namespace, counters

    def collect(self) -> Iterator[Metric]:
        for counter in self._counters:
            for metric in counter.collect():
                metric.samples = [one for one in metric.samples if in_namespace(one.labels["bandit"], self._namespace)]
                yield metric


class _LiftSeries(Collector):
    """The lift of each bandit that has a holdout, computed when it is asked for and has changed."""

    def __init__(self) -> None:
        self.latest: dict[str, HoldoutLift] = {}  # copies
        self._computed: dict[str, tuple[LiftSums, Estimate]] = {}

    def note(self, bandit: str, lift: HoldoutLift | None) -> None:
        """Note the lift of a bandit, unless too many have one."""
        if lift is not None and (bandit in self.latest or len(self.latest) < MAX_LIFTS):
            self.latest[bandit] = lift.copy()

    def collect(self) -> Iterator[Metric]:
        latest = dict(self.latest)
        before, self._computed = self._computed, {}
        for bandit, lift in latest.items():
            sums, found = before.get(bandit, (None, None))
            self._computed[bandit] = (lift.sums, found if found and sums is lift.sums else lift.estimate().absolute)
        texts = {
            "dynabandit_lift": "What a decision of the policy earns more than one of the holdout.",
            "dynabandit_lift_low": "The lower end of its interval.",
            "dynabandit_lift_high": "The upper end of its interval.",
        }
        yield from _gauges(texts, {bandit: found for bandit, (_, found) in self._computed.items()})


class _DeciderSeries(Collector):
    """What local deciders said when they last asked for the state."""

    def __init__(self, contacts: DeciderContacts) -> None:
        self._contacts = contacts

    def collect(self) -> Iterator[Metric]:
        totals: dict[str, list[float]] = {}
        for contact in self._contacts.latest():
            total = totals.setdefault(contact.name, [0.0, 0.0, 0.0])
            total[0] += 1
            total[1] = max(total[1], contact.time)
            total[2] += contact.waiting
        texts = {
            "dynabandit_deciders": "Local deciders that have asked for the state in the last ten minutes.",
            "dynabandit_decider_silence_seconds": "The longest time since one of them asked.",
            "dynabandit_decider_waiting": "Decisions and rewards that they had to send.",
        }
        yield from _gauges(texts, totals)


def _gauges(texts: Mapping[str, str], values: Mapping[str, Sequence[float]]) -> Iterator[Metric]:
    """Return gauges, given by name and text; `values` has, by bandit, the value of each."""
    for place, (name, text) in enumerate(texts.items()):
        family = GaugeMetricFamily(name, text, labels=["bandit"])
        for bandit, value in values.items():
            family.add_metric([bandit], value[place])
        yield family
