"""Learning: which rewards of a log the policy of a bandit has learned, and when.

With a default reward, "no click" is known at the end of the reward window only, and a click much earlier. A policy that
learned both as soon as they are known would overestimate every arm. So decisions are held: the policy learns them in
their order, by events of kind `learn`, when nearly all rewards that will come have come.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dynabandit.bandit import Bandit
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import LEARN, EventRow, HeldDecision, Settlement
from dynabandit.stats import settling_age

AT_ONCE = "at-once"  # a reward is learned when it arrives, the default reward at the end of the window
HELD = "held"  # a decision is learned at the end of its window
SETTLED = "settled"  # a decision is learned at the settling age, by which nearly all other rewards have come

Learned = tuple[Any, ...]  # column, reward, step of the decision and, if the policy needs it, the context


class EventLog(Protocol):
    """What learning reads from a log; a `Store` has these methods."""

    def decision_bodies(self, bandit: int, steps: Sequence[int]) -> dict[int, str | None]:
        """Return the bodies of the decisions of some steps."""
        ...

    def held_decisions(self, bandit: int, after: int, to: int, before: int) -> Iterable[HeldDecision]:
        """Return the decisions after one step and up to another, with their rewards before a sequence number."""
        ...

    def settlement_pages(self, bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
        """Return pages of the events of the kinds reward, close and learn between two sequence numbers."""
        ...


class Observation(NamedTuple):
    """A reward that a policy learns; `value` is None if the window of the decision ended without one."""

    column: int
    value: float | None
    step: int  # of the decision
    is_late: bool = False  # whether the decision was learned before, with the default reward
    chosen: int | None = None  # the column that the decision chose, if the reward is for another one of its ranking


class Learner:
    """Which decisions of a bandit were learned: with the rule `held` or `settled`, all up to step `learned_to`.

    `age` is the age in seconds at which decisions were learned last, at first the reward window. Up to step `final_to`
    the lift has counted all decisions; with the rule `settled` it counts a decision when its window ends.
    """

    def __init__(self) -> None:
        self.rule = AT_ONCE
        self.default: float | None = None
        self.learned_to = 0
        self.final_to = 0
        self.age: float | None = None

    @classmethod
    def of_new_bandit(cls, body: dict[str, Any]) -> "Learner":
        """Return the learner of a bandit, given the body of the event that creates it."""
        learner = cls()
        learner.rule = body.get("learn", AT_ONCE)  # 0.1.0 had no other rule
        learner.default = body["default_reward"]
        learner.age = None if learner.rule == AT_ONCE else body["reward_window"]
        return learner

    def at_start(self, learned_to: int = 0) -> "Learner":
        """Return a learner with the same rule that has learned nothing yet, or only the decisions up to a step."""
        other = Learner()
        other.rule, other.default, other.age, other.learned_to = self.rule, self.default, self.age, learned_to
        return other

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue with the attributes that were saved; releases without `final_to` counted what was learned."""
        vars(self).update({"final_to": saved["learned_to"], **saved})

    def held(self, step: int) -> int:
        """Return how many decisions are held after a step."""
        return 0 if self.rule == AT_ONCE else step - self.learned_to

    def observations(self, event: EventRow | Settlement, log: EventLog) -> Sequence[Observation]:
        """Return what the policy learns from an event of the kinds reward, close and learn, which is the next one."""
        if event.kind == LEARN:
            body = json.loads(event.body or "{}")
            found = log.held_decisions(event.bandit, self.learned_to, body["to"], event.sequence)
            self.learned_to, self.age = body["to"], body["age"]
            skipped = set(body.get("skip", ()))  # whose activation was deferred
            return [self._held_observation(one, None if one.step in skipped else self.default) for one in found]
        assert event.arm is not None
        assert event.settles is not None
        chosen = chosen_column(event.body)
        if self.rule == AT_ONCE:
            return (Observation(event.arm, event.value, event.settles, chosen=chosen),)
        if event.settles > self.learned_to or event.value is None or event.value == self.default:
            return ()  # still held, or learned already
        return (Observation(event.arm, event.value, event.settles, is_late=True, chosen=chosen),)

    def final_observations(
        self, event: EventRow, learned: Sequence[Observation], log: EventLog
    ) -> Sequence[Observation]:
        """Return the observations of decisions whose last reward is known since an event: the lift counts these.

        They are those that the policy learned, except with the rule `settled`, whose events of kind `learn` also have
        the last step whose window has ended (`final`), unless an earlier release wrote them.
        """
        if event.kind != LEARN:
            return [one for one in learned if not one.is_late]
        body, before = json.loads(event.body or "{}"), self.final_to
        self.final_to = body.get("final", body["to"])
        if "final" not in body:
            return learned
        skipped = set(body.get("skip", ()))
        found = log.held_decisions(event.bandit, before, self.final_to, event.sequence)
        return [self._held_observation(one, None if one.step in skipped else self.default) for one in found]

    def _held_observation(self, held: HeldDecision, default: float | None) -> Observation:
        if held.value is None:
            return Observation(held.arm, default, held.step)
        chosen = None if held.taken in (None, held.arm) else held.arm
        return Observation(held.arm if held.taken is None else held.taken, held.value, held.step, chosen=chosen)

    def learned_pages(
        self, log: EventLog, bandit: int, after: int, before: int, contextual: bool = False
    ) -> Iterator[list[Learned]]:
        """Return what the policy has learned between two sequence numbers of a log, in order, as `Bandit` takes it.

        A `contextual` policy also learns the context of each decision.
        """
        for page in self._learned_pages(log, bandit, after, before):
            if not contextual:
                yield page
                continue
            bodies = log.decision_bodies(bandit, [one[2] for one in page])
            yield [(*one, read_details(bodies[one[2]]).context or {}) for one in page]

    def _learned_pages(self, log: EventLog, bandit: int, after: int, before: int) -> Iterator[list[Learned]]:
        for page in log.settlement_pages(bandit, after, before):
            if self.rule == AT_ONCE:  # the same as below, but much faster
                yield [(arm, value, step) for _, _, _, step, arm, value, _ in page if value is not None]
            else:
                learned = (one for event in page for one in self.observations(event, log))
                yield [(one.column, one.value, one.step) for one in learned if one.value is not None]


def chosen_column(body: str | None) -> int | None:
    """Return the column that a decision chose, from the body of a reward for another one of its ranking."""
    return None if body is None else json.loads(body)["chosen"]


class SettlingAge:
    """The age by which nearly all rewards other than the default arrive, estimated from the log up to event `read_to`.

    It only says when decisions are to be learned, which an event then records; no replay depends on it.
    """

    def __init__(self) -> None:
        self.read_to = 0
        self.bins: list[float] = []

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue with the attributes that were saved, or read the log again if an earlier release saved them."""
        if len(saved["bins"]) == settling_age.SIZE:
            vars(self).update(saved)

    def seconds(self, window: float, now: float) -> float:
        """Return the settling age at a time, at first the window."""
        return settling_age.settling_age(self.bins, now, window) if self.bins else window

    def next_look(self, now: float) -> float:
        """Return when the settling age may be known while it is the window, although no more rewards come."""
        if not self.bins or self.bins[settling_age.COUNT] < settling_age.FEWEST:
            return math.inf
        observed = now - self.bins[settling_age.ORIGIN]
        return now + max(1.0, 0.25 * observed)  # few looks in a long window

    def add(self, rewards: Iterable[tuple[int, float, float, float]], default: float | None, window: float) -> None:
        """Add the next rewards of the log, each as (sequence, value, time of the decision, age in seconds)."""
        if not self.bins:
            self.bins = [0.0] * settling_age.SIZE
            settling_age.start(self.bins, window)
        for sequence, value, decided, age in rewards:
            if value != default:
                settling_age.observe(self.bins, decided, age, window)
            self.read_to = sequence


def bodies_of(
    bandit_number: int, observations: Iterable[Observation], log: EventLog, known: Mapping[int, str | None] = {}
) -> dict[int, str | None]:
    """Return the bodies of the decisions that are learned, by step; some may be `known`, the log has the others."""
    missing = [one.step for one in observations if one.value is not None and one.step not in known]
    return {**log.decision_bodies(bandit_number, missing), **known}


def teach(bandit: Bandit, observations: Iterable[Observation], bodies: Mapping[int, str | None]) -> None:
    """Let a bandit learn observations; a contextual policy needs the bodies of their decisions."""
    columns, contextual = len(bandit.names), bandit.policy.functions.contextual
    for column, value, step, is_late, chosen in observations:
        if not 0 <= column < columns or not 0 <= (chosen or 0) < columns:  # compiled code does not check its indices
            raise ValueError(f"column must be one of {columns}, got {column} and {chosen}")
        if value is None:
            bandit.close_column(column, step)
        else:
            context = read_details(bodies[step]).context or {} if contextual else None
            bandit.reward_column(column, float(value), step, not is_late, context, chosen)
