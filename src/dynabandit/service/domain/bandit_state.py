"""The fold: a bandit's log in, its state out, through the very `Bandit` of the library."""

import copy
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dynabandit.bandit import Bandit
from dynabandit.service.domain.events import ARM, CLOSE, CREATE, DECISION, DELETE, POLICY, REWARD, Row
from dynabandit.service.errors import Differs

__all__ = ["DAMAGE", "MOST_OPEN", "RewardsBefore", "Settings", "State", "change_arm"]

# What reading a damaged row or snapshot may raise; an error of the store is none of them
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
MOST_OPEN = 20_000  # decisions whose arm is kept at hand; the store knows the others
SNAPSHOT_FORMAT = "dynabandit.service.state"

RewardsBefore = Callable[[int, int], Iterable[tuple[int, float]]]
"""(bandit, sequence) -> the (column, reward) pairs before that sequence, in order."""


class Settings(NamedTuple):
    """What a bandit was created with, besides its policy and arms."""

    name: str
    reward_window: float | None
    default_reward: float | None


class State:
    """A bandit as its log has it up to `sequence`.

    Every change is a row, which `apply` takes in again in a replay. What is kept beside the `Bandit` is bounded:
    `open` holds the latest decisions without a reward, and `settled_to` says up to which step every decision
    has its reward or none for ever.
    """

    def __init__(self, number: int, rewards_before: RewardsBefore) -> None:
        self.number = number
        self.sequence = 0
        self.time = 0.0
        self.deleted = False
        self.settled_to = 0
        self.due_at = 0.0  # no window ends before this time
        self.open: dict[int, tuple[int, float]] = {}  # step -> column, time
        self.settings = Settings("", None, None)
        self._rewards_before = rewards_before
        self._bandit: Bandit | None = None

    @property
    def bandit(self) -> Bandit:
        """The bandit of the library."""
        assert self._bandit is not None, "a log begins with the event that creates the bandit"
        return self._bandit

    def apply(self, row: Row) -> None:
        """Take in the next row of the log; raise `Differs` where it is not what the state leads to, or damaged."""
        try:
            self._take_in(row)
        except DAMAGE as error:
            raise self._differs(row, f"it cannot be read: {type(error).__name__}: {str(error)[:200]}") from error

    def _take_in(self, row: Row) -> None:
        if row.sequence != self.sequence + 1:
            raise self._differs(row, f"sequence {self.sequence + 1} is missing")
        if (self._bandit is None) != (row.kind == CREATE) or self.deleted:
            raise self._differs(row, f"no {row.kind!r} can come here")
        if row.kind == DECISION:
            self._apply_decision(row)
        elif row.kind in (REWARD, CLOSE):
            self._apply_settlement(row)
        else:
            self._apply_change(row)
        self._reached(row)

    def _reached(self, row: Row) -> None:
        self.sequence = row.sequence
        self.time = max(self.time, row.time)

    def decide(self, now: float, wall: float, key: str | None = None, body: str | None = None) -> Row:
        """Make the next decision and return its row."""
        column = self.bandit.choose_column()
        step = self.bandit.step
        row = Row(self.number, self.sequence + 1, DECISION, step, None, column, None, now, wall, key, body)
        self._note_open(step, column, now)
        self._reached(row)
        return row

    def swap(self, now: float, wall: float, body: str, bandit: Bandit) -> Row:
        """Go on with a bandit whose policy has learnt from all rewards so far, and return the row."""
        row = Row(self.number, self.sequence + 1, POLICY, None, None, None, None, now, wall, None, body)
        self._bandit = bandit
        self._reached(row)
        return row

    def add(
        self,
        kind: str,
        now: float,
        wall: float,
        settles: int | None = None,
        arm: int | None = None,
        value: float | None = None,
        body: str | None = None,
    ) -> Row:
        """Add any other event and return its row."""
        row = Row(self.number, self.sequence + 1, kind, None, settles, arm, value, now, wall, None, body)
        self._take_in(row)
        return row

    def _differs(self, row: Row, problem: str) -> Differs:
        return Differs(self.settings.name, row.sequence, problem)

    def _apply_decision(self, row: Row) -> None:
        bandit = self.bandit
        if row.step != bandit.step + 1:
            raise self._differs(row, f"the log has step {row.step}, the replay step {bandit.step + 1}")
        column = bandit.choose_column()
        if column != row.arm:
            names, logged = bandit.names, row.arm if row.arm is not None else -1
            there = names[logged] if 0 <= logged < len(names) else f"number {logged}"
            raise self._differs(row, f"the log chose arm {there!r}, the replay {names[column]!r}")
        self._note_open(row.step, column, row.time)

    def _note_open(self, step: int, column: int, time: float) -> None:
        """Keep the arm of a decision at hand."""
        if len(self.open) >= MOST_OPEN:
            del self.open[next(iter(self.open))]
        self.open[step] = (column, time)

    def _apply_settlement(self, row: Row) -> None:
        if row.settles is None or row.arm is None or not 1 <= row.settles <= self.bandit.step:
            raise self._differs(row, f"it settles step {row.settles}, which was not decided")
        if not 0 <= row.arm < len(self.bandit.names):  # compiled code does not look
            raise self._differs(row, f"it rewards column {row.arm}, of {len(self.bandit.names)}")
        at_hand = self.open.pop(row.settles, None)
        if at_hand is not None and at_hand[0] != row.arm:
            raise self._differs(row, f"it rewards column {row.arm}, but the decision took column {at_hand[0]}")
        if row.value is not None:
            self.bandit.reward_column(row.arm, float(row.value), row.settles)

    def _apply_change(self, row: Row) -> None:
        body = json.loads(row.body or "{}")
        if row.kind == CREATE:
            self.settings = Settings(body["name"], body["reward_window"], body["default_reward"])
            self._bandit = Bandit(body["policy"], body["arms"], seed=body["seed"], **body["parameters"])
        elif row.kind == ARM:
            change_arm(self.bandit, body)
        elif row.kind == POLICY:
            warm = self._rewards_before(self.number, row.sequence)
            self._bandit = self.bandit.swapped(body["policy"], warm, **body["parameters"])
        elif row.kind == DELETE:
            self.deleted = True
        else:
            raise self._differs(row, f"unknown kind {row.kind!r}")

    def state_hash(self) -> str:
        """Return a hash of the state and of how far the log was read."""
        rest = [self.bandit.state_hash(), *self.settings, self.sequence, self.deleted]
        return hashlib.sha256(json.dumps(rest).encode()).hexdigest()

    def copy(self) -> "State":
        """Return a state that no later event changes, without the decisions at hand."""
        other = copy.copy(self)
        other._bandit = self.bandit.copy()
        other.open = {}
        return other

    def to_json(self) -> str:
        """Return a snapshot."""
        content = {
            "format": SNAPSHOT_FORMAT,
            "sequence": self.sequence,
            "time": self.time,
            "deleted": self.deleted,
            "settled_to": self.settled_to,
            "settings": self.settings._asdict(),
            "bandit": self.bandit.to_json(),
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, number: int, text: str, rewards_before: RewardsBefore) -> "State":
        """Return the state that `to_json` wrote."""
        content = json.loads(text)
        if content.get("format") != SNAPSHOT_FORMAT:
            raise ValueError(f"a snapshot must have format {SNAPSHOT_FORMAT!r}, got {content.get('format')!r}")
        state = cls(number, rewards_before)
        state.sequence = content["sequence"]
        state.time = content["time"]
        state.deleted = content["deleted"]
        state.settled_to = content["settled_to"]
        state.settings = Settings(**content["settings"])
        state._bandit = Bandit.from_json(content["bandit"])
        return state


def change_arm(bandit: Bandit, body: dict[str, Any]) -> None:
    """Do to an arm what the body of an event says."""
    name = body["arm"]
    if body.get("add"):
        bandit.add_arm(name)
    if "min_share" in body or "max_share" in body:
        least, most = bandit.shares(name)
        bandit.limit_arm(name, body.get("min_share", least), body.get("max_share", most))
    if "paused" in body:
        (bandit.pause_arm if body["paused"] else bandit.resume_arm)(name)
    if body.get("retired"):
        bandit.remove_arm(name)
