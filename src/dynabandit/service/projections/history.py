"""The history of a bandit in a few hundred points, kept up to date one event at a time.

The log is the truth; this is a fold of it that is made beside the service, in its own time, and that nothing but a page
depends on. Its size does not grow with the log: when there are too many points, each two become one.
"""

import json
import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.service.domain.bandit_state import RewardsBefore, apply_to_bandit
from dynabandit.service.domain.events import ARM, CLOSE, CREATE, DECISION, POLICY, EventRow
from dynabandit.service.projections.uniform_baseline import Uniform
from dynabandit.stats.change_detection import Change, ChangeDetector

__all__ = [
    "CLOSED", "COUNT", "FORGETTING", "GATHERED", "MEAN", "MOST_ARMS", "MOST_POINTS", "PLAYS", "REST", "REST_VARIANCE",
    "SIZE", "STEP", "TOTAL", "WALL", "History", "Intervention",
]  # fmt: skip

FORMAT = 2
MOST_POINTS = 300
MOST_ARMS = 50  # that have curves of their own; the arms after them only count together
MOST_CHANGES = 100
MOST_RETIRED = 20  # arms that are still shown, the latest ones
MOST_EVENTS = 30  # the latest ones, for people
FINE_ARMS = 1_000  # with more arms than this the first points are of several decisions
LOOK_AT_FORGETTING = 4  # rewards of an arm: a dip lasts longer

WHOLE, EACH = 7, 5
# Of each point, numbers of the whole bandit, all of them totals from the beginning
STEP, WALL, COUNT, TOTAL, CLOSED, REST, REST_VARIANCE = range(WHOLE)
# Of each point and arm: plays since the point before, and at its end what was believed and what choosing at random
# would have played
PLAYS, MEAN, SIZE, FORGETTING, GATHERED = range(EACH)


class Intervention(NamedTuple):
    """What people did to the bandit after `step` decisions: to the arm of a column, or to the policy.

    `did` says what: `policy` its new name, `added`, `paused`, `resumed` or `retired` true, `limits` the least and the
    most share from then on.
    """

    step: int
    wall: float
    column: int | None
    did: dict[str, Any]


class History:
    """The history of one bandit, as its log has it up to `sequence`."""

    def __init__(self, number: int, rewards_before: RewardsBefore) -> None:
        self.number = number
        self.sequence = 0
        self.width = 1  # decisions of a point
        self.steps = 0
        self.settled = 0
        self.closed = 0
        self.wall = 0.0
        self.started = 0.0
        self.name = ""
        self.window: float | None = None
        self.deleted = False
        self.columns: dict[str, int] = {}  # of the arms that are not retired; a name may be used again
        self.paused: set[int] = set()
        self.plays: list[int] = []
        self.counts: list[int] = []
        self.totals: list[float] = []
        self.last: list[int] = []
        self.changes: deque[tuple[int, Change]] = deque(maxlen=MOST_CHANGES)
        self.interventions: deque[Intervention] = deque(maxlen=MOST_CHANGES)
        self.retired: deque[int] = deque(maxlen=MOST_RETIRED)
        self.latest: deque[EventRow] = deque(maxlen=MOST_EVENTS)
        self.points: list[list[float]] = []
        self.curves = np.zeros((0, EACH, 0))  # point, number, arm
        self.uniform = Uniform(0)
        self._detectors: list[ChangeDetector] = []
        self._lowest: list[float] = []  # of each tracked arm, the least forgetting factor since the last point
        self._recent: list[int] = []  # of each tracked arm, the plays since the last point
        self._in_point = 0
        self._bandit: Bandit | None = None
        self._rewards_before = rewards_before

    @property
    def bandit(self) -> Bandit:
        """The bandit of the library; it learns here, but does not decide."""
        assert self._bandit is not None, "a log begins with the event that creates the bandit"
        return self._bandit

    @property
    def tracked(self) -> int:
        """How many arms have curves."""
        return min(len(self.plays), MOST_ARMS)

    def apply(self, row: EventRow) -> None:
        """Take in the next row of the log."""
        if row.sequence <= self.sequence:
            return
        self.sequence = row.sequence
        self.wall = row.wall
        self.latest.append(row)
        if row.kind == DECISION:
            self._apply_decision(row.arm or 0)
        elif row.settles is not None:
            self._apply_settlement(row)
        else:
            self._apply_change(row)

    def _apply_decision(self, column: int) -> None:
        if self._in_point == self.width:
            self._end_point()
        self.steps += 1
        self._in_point += 1
        self.plays[column] += 1
        self.last[column] = self.steps
        if column < MOST_ARMS:
            self._recent[column] += 1

    def _apply_settlement(self, row: EventRow) -> None:
        column = row.arm or 0
        self.settled += 1
        self.closed += row.kind == CLOSE
        if row.value is None:
            return
        self._apply_to_bandit(row)
        self.counts[column] += 1
        self.totals[column] += row.value
        self.uniform.reward(column, row.value)
        if column >= MOST_ARMS:
            return
        change = self._detectors[column].add(row.value, self.steps, self.uniform.gathered(column))
        if change is not None:
            self.uniform.change(column, change)
            self.changes.append((column, change))
        if self.counts[column] % LOOK_AT_FORGETTING == 0:
            self._lowest[column] = min(self._lowest[column], self.bandit.belief(column).forgetting)

    def _apply_change(self, row: EventRow) -> None:
        body = json.loads(row.body or "{}")
        if row.kind == CREATE:
            self.name, self.started, self.window = body["name"], row.wall, body["reward_window"]
            self._apply_to_bandit(row)
            self.width = max(1, len(body["arms"]) // FINE_ARMS)
            for name in body["arms"]:
                self._add_arm(name)
        elif row.kind == ARM:
            self._apply_arm(row, body)
        elif row.kind == POLICY:
            self._apply_to_bandit(row)
            self._note(None, policy=body["policy"])
        else:
            self.deleted = True

    def _apply_to_bandit(self, row: EventRow) -> None:
        self._bandit = apply_to_bandit(self._bandit, row, self._rewards_before)

    def _apply_arm(self, row: EventRow, body: dict[str, Any]) -> None:
        name, did = body["arm"], self._done(body)
        self._apply_to_bandit(row)
        if body.get("add"):
            self._add_arm(name)
        column = self.columns[name]
        if "paused" in body:
            (self.paused.add if body["paused"] else self.paused.discard)(column)
        if body.get("retired"):
            del self.columns[name]
            self.retired.append(column)
        self.uniform.allow(column, column not in self.paused and not body.get("retired"))
        if did:
            self._note(column, **did)

    def _done(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what an event is about to change of an arm; what it only repeats is no news."""
        if body.get("add"):
            return {"added": True}
        did: dict[str, Any] = {}
        before = self.bandit.shares(body["arm"])
        limits = (body.get("min_share", before[0]), body.get("max_share", before[1]))
        if limits != before:
            did["limits"] = list(limits)
        if "paused" in body and body["paused"] != (self.columns[body["arm"]] in self.paused):
            did["paused" if body["paused"] else "resumed"] = True
        if body.get("retired"):
            did["retired"] = True
        return did

    def _note(self, column: int | None, **did: Any) -> None:
        self.interventions.append(Intervention(self.steps, self.wall, column, did))

    def _add_arm(self, name: str) -> None:
        self.columns[name] = len(self.plays)
        self.uniform.add_arm()
        self.plays.append(0)
        self.counts.append(0)
        self.totals.append(0.0)
        self.last.append(self.steps)
        if len(self.plays) <= MOST_ARMS:
            self._detectors.append(ChangeDetector())
            self._lowest.append(1.0)
            self._recent.append(0)
            blank = np.full((len(self.curves), EACH, 1), math.nan)
            blank[:, [PLAYS, GATHERED]] = 0.0
            self.curves = np.concatenate([self.curves, blank], axis=2)

    # Points

    def _now(self) -> tuple[list[float], np.ndarray]:
        """Return the point that ends here."""
        uniform = self.uniform
        rest = uniform.rest(self.tracked)
        whole = [self.steps, self.wall, uniform.count, uniform.total, self.closed, *rest]
        curve = np.full((EACH, self.tracked), math.nan)
        curve[PLAYS] = self._recent
        for column in range(self.tracked):
            belief = self.bandit.belief(column)
            low = min(self._lowest[column], belief.forgetting)
            curve[MEAN:, column] = belief.mean, belief.effective_size, low, uniform.gathered(column)
        return whole, curve

    def _end_point(self) -> None:
        whole, curve = self._now()
        self.points.append(whole)
        self.curves = np.concatenate([self.curves, curve[None]])
        self._in_point = 0
        self._recent = [0] * self.tracked
        self._lowest = [1.0] * self.tracked
        if len(self.points) == MOST_POINTS:
            self._halve()

    def _halve(self) -> None:
        """Make one point of each two: totals are those of the later one, plays add up, the lower dip stays."""
        self.width *= 2
        self.points = self.points[1::2]
        first, second = self.curves[::2], self.curves[1::2]
        merged = second.copy()
        merged[:, PLAYS] += first[:, PLAYS]
        merged[:, FORGETTING] = np.fmin(first[:, FORGETTING], second[:, FORGETTING])
        self.curves = merged

    def series(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all points, the one at hand included: (points, 7) and (points, 5, arms)."""
        if self.steps == 0:
            return np.zeros((0, WHOLE)), np.zeros((0, EACH, self.tracked))
        whole, curve = self._now()
        return np.array([*self.points, whole]), np.concatenate([self.curves, curve[None]])

    # Saving

    def to_json(self) -> str:
        """Return all there is to know; `from_json` goes on from it."""
        content = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in PLAIN},
            "paused": sorted(self.paused),
            "changes": [[column, *change] for column, change in self.changes],
            "interventions": [list(one) for one in self.interventions],
            "retired": list(self.retired),
            "latest": [list(row) for row in self.latest],
            "points": self.points,
            "curves": [[[None if math.isnan(x) else x for x in row] for row in one] for one in self.curves.tolist()],
            "uniform": self.uniform.to_dict(),
            "detectors": [detector.to_list() for detector in self._detectors],
            "bandit": self.bandit.to_json(),
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, number: int, text: str, rewards_before: RewardsBefore) -> "History":
        """Return the history that `to_json` wrote."""
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"a history must have format {FORMAT}, got {content['format']!r}")
        history = cls(number, rewards_before)
        for name in PLAIN:
            setattr(history, name, content[name])
        history.paused = set(content["paused"])
        history.changes.extend((column, Change(*change)) for column, *change in content["changes"])
        history.interventions.extend(Intervention(*one) for one in content["interventions"])
        history.retired.extend(content["retired"])
        history.latest.extend(EventRow(*row) for row in content["latest"])
        history.points = content["points"]
        history.curves = np.array(content["curves"], dtype=float).reshape(len(history.points), EACH, history.tracked)
        history.uniform = Uniform.from_dict(content["uniform"])
        history._detectors = [ChangeDetector.from_list(one) for one in content["detectors"]]
        history._bandit = Bandit.from_json(content["bandit"])
        return history


PLAIN = ("sequence", "name", "width", "steps", "settled", "closed", "wall", "started", "window", "deleted", "columns",
         "plays", "counts", "totals", "last", "_lowest", "_recent", "_in_point")  # fmt: skip
