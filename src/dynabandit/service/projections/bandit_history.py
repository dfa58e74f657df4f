"""The history of a bandit for the live pages, updated one event at a time.

It is computed from the log in a thread of its own, and only pages depend on it. Its size does not grow with the log.
"""

import json
import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.policies.belief import Belief
from dynabandit.service.domain.applied_changes import apply_change
from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.events import (
    ALERT,
    ARM,
    CLOSE,
    CREATE,
    DECISION,
    KINDS,
    LEARN,
    METRIC,
    POLICY,
    SHADOW,
    EventRow,
)
from dynabandit.service.domain.learning import EventLog, Learner, bodies_of, teach
from dynabandit.service.domain.log_start import state_at_start
from dynabandit.service.domain.monitoring import Monitoring
from dynabandit.service.domain.shadow import Shadow
from dynabandit.service.projections.chart_points import ARM_FIELDS, ChartPoints, ChartSeries
from dynabandit.service.projections.recent_contexts import RecentContexts
from dynabandit.service.projections.uniform_baseline import UniformBaseline
from dynabandit.service.stores import Store
from dynabandit.stats.change_detection import Change, ChangeDetector
from dynabandit.validation import BOUNDED

FORMAT = 6
MAX_TRACKED_ARMS = 50  # with curves of their own; later arms are only counted together
MAX_CHANGES = 100
MAX_RETIRED = 20  # the latest ones are still shown
MAX_EVENTS = 30  # the latest ones are shown
ARMS_PER_WIDTH = 1_000  # with more arms than this the first points cover several decisions
FORGETTING_EVERY = 4  # rewards of an arm between two reads of its forgetting factor; a dip lasts longer


class Intervention(NamedTuple):
    """A change that a person made after `step` decisions: to the arm of a column, or to the policy.

    `change` has one or more of the keys `policy` (its name), `continues` (the policy is the same, but decides by the
    rules of another release), `promoted` (it was the shadow policy), `shadow` (the name of the new shadow policy, null
    if there is none any more), `added`, `paused`, `resumed`, `retired` (all true), `limits` (the new minimum and
    maximum share) and `guardrail` (the metric because of which the service paused the arm).
    """

    step: int
    wall: float
    column: int | None
    change: dict[str, Any]


class BanditHistory:
    """The history of one bandit, up to event `sequence` of its log."""

    def __init__(self, bandit_number: int, log: EventLog) -> None:
        self.bandit_number = bandit_number
        self.sequence = 0
        self.name = ""
        self.reward_window: float | None = None
        self.time = 0.0  # of the service's clock
        self.wall = 0.0
        self.steps = 0
        self.settled = 0  # decisions that have a reward or were closed
        self.closed = 0
        self.columns: dict[str, int] = {}  # of the arms that are not retired; a name can be used again
        self.plays: list[int] = []  # by column
        self.rewards: list[int] = []  # how many, by column
        self.changes: deque[tuple[int, Change]] = deque(maxlen=MAX_CHANGES)
        self.interventions: deque[Intervention] = deque(maxlen=MAX_CHANGES)
        self.retired: deque[int] = deque(maxlen=MAX_RETIRED)
        self.latest_events: deque[EventRow] = deque(maxlen=MAX_EVENTS)
        self.uniform = UniformBaseline()
        self.points = ChartPoints()
        self._detectors: list[ChangeDetector] = []
        # Of the point that is not complete yet: its decisions, and of each tracked arm the lowest forgetting factor and
        # the plays
        self._point_steps = 0
        self._point_forgetting: list[float] = []
        self._point_plays: list[int] = []
        self.sticky_for: float | None = None
        self.for_units = 0  # decisions for units
        self.contexts = RecentContexts()
        self.learner = Learner()
        self.monitoring = Monitoring()
        self.alerts: deque[EventRow] = deque(maxlen=MAX_CHANGES)
        self.shadow: Shadow | None = None
        self._bandit: Bandit | None = None
        self._log = log

    @classmethod
    def at_start(cls, bandit_number: int, store: Store) -> "BanditHistory":
        """Return the history at the start of a log; of a compacted log it knows the arms, plays and beliefs then."""
        history, state = cls(bandit_number, store), state_at_start(store, bandit_number)
        if state.sequence == 0:
            return history
        for event in store.log(bandit_number, kinds=(CREATE, ARM, ALERT)):
            if event.sequence <= state.sequence:
                history.apply(event)
        history._bandit, history.learner, history.shadow = state.bandit, state.learner, state.shadow
        history.monitoring = state.monitoring
        history.sequence, history.steps = state.sequence, state.bandit.step
        history.plays = [state.bandit.plays(column) for column in range(len(history.plays))]
        history.settled = history.steps - sum(state.bandit.pending(column) for column in range(len(history.plays)))
        history.interventions.clear()  # their steps are not known
        return history

    @property
    def bandit(self) -> Bandit:
        """The library's bandit; it is told the logged decisions and learns the logged rewards."""
        assert self._bandit is not None, "a log begins with the event that creates the bandit"
        return self._bandit

    @property
    def is_bounded(self) -> bool:
        """Whether all rewards are in [0, 1]; changes are detected and intervals given only for these."""
        return self.bandit.rewards.is_within(BOUNDED)

    @property
    def tracked(self) -> int:
        """How many arms have curves."""
        return min(len(self.plays), MAX_TRACKED_ARMS)

    @property
    def is_contextual(self) -> bool:
        """Whether the policy decides by the context, so that it has no estimate of the mean of an arm."""
        return self.bandit.policy.functions.contextual

    def belief(self, column: int) -> Belief:
        """Return the policy's belief about an arm; if it depends on the context, with the mean that was observed."""
        found = self.bandit.belief(column)
        belief = Belief(*(value if math.isfinite(value) else math.nan for value in found))
        if not self.is_contextual:
            return belief
        mean, size = self.uniform.observed(column)
        return belief._replace(mean=mean, effective_size=size)

    def apply(self, event: EventRow) -> None:
        """Apply the next event of the log; an earlier one changes nothing."""
        if event.sequence <= self.sequence:
            return
        self.sequence = event.sequence
        self.time = max(self.time, event.time)
        self.wall = event.wall
        self.latest_events.append(event)
        if event.kind == DECISION:
            self._add_decision(event.arm or 0, read_details(event.body))
            self.monitoring.count(event)
        elif event.kind in KINDS["reward"]:
            self._add_settlement(event)
        elif event.kind == METRIC:
            self.monitoring.add_metric(event, self.bandit)
        else:
            self._add_change(event)

    def _add_decision(self, column: int, details: DecisionDetails) -> None:
        if self._point_steps == self.points.width:
            self.points.append(*self._current_point())
            self._start_point()
        self.bandit.play_column(column, details.context, counts_for_shares=not details.holdout)
        if self.shadow is not None:
            self.shadow.see(column, details)
        self.steps += 1
        self.for_units += details.unit is not None
        if details.context is not None:
            self.contexts.add(self.steps, column, details.context)
        self._point_steps += 1
        self.plays[column] += 1
        if column < MAX_TRACKED_ARMS:
            self._point_plays[column] += 1

    def _add_settlement(self, event: EventRow) -> None:
        self.settled += event.kind != LEARN
        self.closed += event.kind == CLOSE
        learned = self.learner.observations(event, self._log)
        counted = self.learner.final_observations(event, learned, self._log)
        has_lift = self.monitoring.lift is not None
        needs_bodies = self.bandit.policy.functions.contextual or has_lift or self.shadow is not None
        bodies = bodies_of(self.bandit_number, learned, self._log) if needs_bodies else {}
        for observation in learned:
            teach(self.bandit, (observation,), bodies)
            if observation.value is not None:
                self.contexts.reward(observation.step, observation.value)
                self._add_reward(observation.column, observation.value)
        if self.shadow is not None:
            self.shadow.learn(learned, bodies)
        if has_lift:
            self.monitoring.learn(counted, bodies_of(self.bandit_number, counted, self._log, bodies), self.bandit)

    def _add_reward(self, column: int, value: float) -> None:
        """Count a reward that the policy has learned."""
        self.rewards[column] += 1
        self.uniform.reward(column, value)
        if column >= MAX_TRACKED_ARMS:
            return
        change = None
        if self.is_bounded:  # the test is for rewards in [0, 1]
            change = self._detectors[column].add(value, self.steps, self.uniform.expected_plays(column))
        if change is not None:
            self.uniform.change(column, change)
            self.changes.append((column, change))
        if self.rewards[column] % FORGETTING_EVERY == 0:
            forgetting = self.bandit.belief(column).forgetting
            self._point_forgetting[column] = min(self._point_forgetting[column], forgetting)

    def _add_change(self, event: EventRow) -> None:
        body = json.loads(event.body or "{}")
        if event.kind == CREATE:
            self.name, self.reward_window = body["name"], body["reward_window"]
            self.sticky_for = body.get("sticky_for")
            self.learner = Learner.of_new_bandit(body)
            self._apply_change(event, body)
            self.points.width = max(1, len(body["arms"]) // ARMS_PER_WIDTH)
            for name in body["arms"]:
                self._add_arm(name)
        elif event.kind == ARM:
            self._change_arm(event, body)
        elif event.kind == POLICY:
            self._apply_change(event, body)
            change = {key: body[key] for key in ("policy", "continues", "promoted") if key in body}
            self._add_intervention(None, change)
        elif event.kind == SHADOW:
            self._apply_change(event, body)
            self._add_intervention(None, {"shadow": body.get("policy")})
        elif event.kind == ALERT:
            self.alerts.append(event)
        self.monitoring.change(event, body, self.bandit)

    def _apply_change(self, event: EventRow, body: dict[str, Any]) -> None:
        self._bandit, self.shadow = apply_change(self._bandit, self.shadow, event, body, self.learner, self._log)

    def _change_arm(self, event: EventRow, body: dict[str, Any]) -> None:
        name, change = body["arm"], self._actual_change(body)
        self._apply_change(event, body)
        if body.get("add"):
            self._add_arm(name)
        column = self.columns[name]
        if body.get("retired"):
            del self.columns[name]
            self.retired.append(column)
        self.uniform.allow(column, name in self.columns and not self.bandit.paused(name))
        if change:
            self._add_intervention(column, change)

    def _actual_change(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what an event is about to change of an arm, without values that are the same as before."""
        if body.get("add"):
            return {"added": True}
        name = body["arm"]
        change: dict[str, Any] = {}
        before = self.bandit.shares(name)
        limits = (body.get("min_share", before[0]), body.get("max_share", before[1]))
        if limits != before:
            change["limits"] = list(limits)
        if "paused" in body and body["paused"] != self.bandit.paused(name):
            change["paused" if body["paused"] else "resumed"] = True
            if "guardrail" in body:
                change["guardrail"] = body["guardrail"]
        if body.get("retired"):
            change["retired"] = True
        return change

    def _add_intervention(self, column: int | None, change: dict[str, Any]) -> None:
        self.interventions.append(Intervention(self.steps, self.wall, column, change))

    def _add_arm(self, name: str) -> None:
        self.columns[name] = len(self.plays)
        self.uniform.add_arm()
        self.plays.append(0)
        self.rewards.append(0)
        if len(self.plays) <= MAX_TRACKED_ARMS:
            self._detectors.append(ChangeDetector())
            self._point_forgetting.append(1.0)
            self._point_plays.append(0)
            self.points.add_arm()

    # Chart points

    def _start_point(self) -> None:
        self._point_steps = 0
        self._point_plays = [0] * self.tracked
        self._point_forgetting = [1.0] * self.tracked

    def _current_point(self) -> tuple[list[float], np.ndarray]:
        """Return the numbers of the point that ends here, in the order of `ChartSeries`."""
        uniform = self.uniform
        untracked = uniform.rest(self.tracked)
        lift = self.monitoring.lift
        ends = (math.nan,) * 3 if lift is None else lift.estimate().absolute
        whole = [self.steps, self.wall, uniform.count, uniform.total, self.closed, *untracked, *ends]
        per_arm = np.full((len(ARM_FIELDS), self.tracked), math.nan)
        for column in range(self.tracked):
            belief = self.belief(column)
            forgetting = min(self._point_forgetting[column], belief.forgetting)
            expected = uniform.expected_plays(column)
            per_arm[:, column] = self._point_plays[column], belief.mean, belief.effective_size, forgetting, expected
        return whole, per_arm

    @property
    def charted(self) -> int:
        """How many decisions the chart points cover: all, unless old ones were removed by a compaction."""
        return len(self.points.whole) * self.points.width + self._point_steps

    def series(self) -> ChartSeries:
        """Return all chart points, the incomplete last one included."""
        return self.points.series(*self._current_point()) if self.steps else self.points.empty_series()

    # Saving

    def to_json(self) -> str:
        """Return the whole history, which `from_json` reads."""
        content = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "changes": [[column, *change] for column, change in self.changes],
            "interventions": [list(one) for one in self.interventions],
            "retired": list(self.retired),
            "latest_events": [list(event) for event in self.latest_events],
            "alerts": [list(event) for event in self.alerts],
            "monitoring": self.monitoring.to_plain(),
            "points": self.points.to_plain(),
            "uniform": self.uniform.to_plain(),
            "detectors": [detector.to_list() for detector in self._detectors],
            "contexts": self.contexts.to_plain(),
            "learner": vars(self.learner),
            "bandit": self.bandit.to_json(),
            "shadow": None if self.shadow is None else self.shadow.to_plain(),
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, bandit_number: int, text: str, log: EventLog) -> "BanditHistory":
        """Return the history that `to_json` wrote."""
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"a history must have format {FORMAT}, got {content['format']!r}")
        history = cls(bandit_number, log)
        for name in PLAIN_FIELDS:
            setattr(history, name, content[name])
        history.changes.extend((column, Change(*change)) for column, *change in content["changes"])
        history.interventions.extend(Intervention(*one) for one in content["interventions"])
        history.retired.extend(content["retired"])
        history.latest_events.extend(EventRow(*event) for event in content["latest_events"])
        history.alerts.extend(EventRow(*event) for event in content["alerts"])
        history.monitoring = Monitoring.from_plain(content["monitoring"])
        if history.monitoring.guardrails.restarted:
            raise ValueError("its guardrails are those of an earlier release")
        history.points = ChartPoints.from_plain(content["points"])
        history.uniform = UniformBaseline.from_plain(content["uniform"])
        history._detectors = [ChangeDetector.from_list(one) for one in content["detectors"]]
        history.contexts = RecentContexts.from_plain(content["contexts"])
        history.learner.restore(content["learner"])
        history._bandit = Bandit.from_json(content["bandit"])
        history.shadow = None if content["shadow"] is None else Shadow.from_plain(content["shadow"])
        return history


PLAIN_FIELDS = (
    "sequence", "name", "reward_window", "wall", "steps", "settled", "closed", "columns", "plays", "rewards",
    "_point_steps", "_point_forgetting", "_point_plays", "time", "sticky_for", "for_units",
)  # fmt: skip
