"""The state of a bandit as its events make it, using the library's own `Bandit`."""

import copy
import hashlib
import json
from collections import Counter
from typing import Any

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.core.json_values import plain
from dynabandit.service.domain.applied_changes import apply_change
from dynabandit.service.domain.arm_choice import choose_arms, first_probabilities, place_propensities
from dynabandit.service.domain.deciders import Deciders
from dynabandit.service.domain.decision_details import NO_DETAILS, DecisionDetails, read_details, write_details
from dynabandit.service.domain.events import (
    ACTIVATE,
    CREATE,
    DECISION,
    DELETE,
    KINDS,
    LEARN,
    METRIC,
    POLICY,
    REWARD,
    SHADOW,
    EventRow,
)
from dynabandit.service.domain.learning import (
    AT_ONCE,
    SETTLED,
    EventLog,
    Learner,
    SettlingAge,
    bodies_of,
    chosen_column,
    teach,
)
from dynabandit.service.domain.monitoring import Monitoring
from dynabandit.service.domain.open_decisions import OpenDecisions
from dynabandit.service.domain.settings import Settings
from dynabandit.service.domain.shadow import Shadow, restarted
from dynabandit.service.domain.steps import Steps, finish
from dynabandit.service.errors import ReplayMismatchError, unreadable

# What reading a damaged event or snapshot may raise; none of them is an error of the store
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
SNAPSHOT_FORMAT = "dynabandit.service.state"
# The last release that decided by rules 1, by rules 2 and so on, up to the rules before those of this release. Append
# the latest release when policies draw or decide otherwise: its decisions are then taken from the log. Append a
# migration, too, so that earlier releases do not open the store.
# Rules 1 are not named in events and snapshots. Rules 2: decisions whose reward is in flight count. Rules 3: Beta and
# gamma draws take fewer random numbers, and draws of many arms are made in a tree. Rules 4: for Thompson sampling, too,
# decisions of an arm without any reward count.
EARLIER_RELEASES = ("0.1.0", "0.2.0.dev", "0.2.0")
RULES = len(EARLIER_RELEASES) + 1
RULES_WITH_PENDING_PLAYS = 2
RULES_WITH_ASSUMED_ZEROS = 4
# Raised when snapshots hold something else although policies decide as before: those of earlier releases are then
# neither read nor compared, and logs are replayed. 1: guardrails without a range are tested in batches.
SNAPSHOT_CONTENT = 1
HASH_PREFIX = f"{RULES}.{SNAPSHOT_CONTENT}:"


class LoggedState:
    """The state of a bandit after event `sequence` of its log.

    What it holds besides the `Bandit` is bounded: `open` has the latest decisions without a reward, and every decision
    up to step `settled_to` has its reward or was closed.
    """

    def __init__(self, bandit_number: int, log: EventLog) -> None:
        self.bandit_number = bandit_number
        self.sequence = 0
        self.time = 0.0
        self.deleted = False
        self.settled_to = 0
        self.due_at = 0.0  # no window ends, and no decision is learned, before this time
        self.open = OpenDecisions()
        self.deferred: set[int] = set()  # steps whose default reward is not learned unless they are activated
        self.settings = Settings("", None, None)
        self.rules = RULES  # by which the latest decisions were made
        self.taken: Counter[int] = Counter()  # decisions that older rules made: they are taken from the log
        self.learner = Learner()
        self.settling = SettlingAge()
        self.monitoring = Monitoring()
        self.deciders = Deciders()
        self.shadow: Shadow | None = None
        self._log = log
        self._bandit: Bandit | None = None

    @property
    def bandit(self) -> Bandit:
        """The library's bandit."""
        assert self._bandit is not None, "a log begins with the event that creates the bandit"
        return self._bandit

    @property
    def bandits(self) -> list[Bandit]:
        """The library's bandit and, if there is one, that of the shadow policy."""
        return [self.bandit] if self.shadow is None else [self.bandit, self.shadow.bandit]

    # New events

    def decide(
        self,
        now: float,
        wall: float,
        key: str | None = None,
        asked: DecisionDetails = NO_DETAILS,
        places: int | None = None,
    ) -> Steps[EventRow]:
        """Make the next decision and return its event; with `places`, a ranking of so many arms, in steps."""
        bandit, *others = self.bandits
        with bandit.undone_by_errors(*others):
            holdout, computes = self.settings.holdout, asked.propensities is None
            choice = yield from choose_arms(
                bandit, self.bandit_number, holdout, asked, places or 1, propensity=computes
            )
            columns, probabilities = choice.columns, place_propensities(bandit, holdout, asked, choice)
            details = msgspec.structs.replace(asked, holdout=True) if choice.in_holdout else asked
            if self.shadow is not None:
                # the reward of a ranking may be for another arm
                known = first_probabilities(holdout, asked, choice) if places is None else None
                details = msgspec.structs.replace(details, shadow=self.shadow.choose(details, known))
            counts = not choice.in_holdout
            bandit.play_column(columns[0], asked.context, counts_for_shares=counts, vector=choice.vector)
        if places is not None:
            details = msgspec.structs.replace(details, ranking=columns, propensities=probabilities)
        sequence, step, arm, body = self.sequence + 1, bandit.step, columns[0], write_details(details)
        propensity = None if probabilities is None else probabilities[0] or None  # 0 is a rounding error
        event = EventRow(self.bandit_number, sequence, DECISION, step, None, arm, propensity, now, wall, key, body)
        self._advance(event)
        return event

    def take(
        self,
        column: int,
        now: float,
        wall: float,
        key: str | None,
        details: DecisionDetails,
        propensity: float | None = None,
    ) -> EventRow:
        """Add a decision that was made elsewhere, by a local decider or another system, and return its event."""
        if self.shadow is not None:
            details = msgspec.structs.replace(details, shadow=self.shadow.choose(details))
        sequence, step, body = self.sequence + 1, self.bandit.step + 1, write_details(details)
        event = EventRow(self.bandit_number, sequence, DECISION, step, None, column, propensity, now, wall, key, body)
        self._replay_decision(event)  # the shadow has chosen, and must not choose again
        self._advance(event)
        return event

    def create(self, now: float, wall: float, text: str, body: dict[str, Any], bandit: Bandit) -> EventRow:
        """Begin with a bandit that was made from the body of this first event, and return the event."""
        event = EventRow(self.bandit_number, 1, CREATE, None, None, None, None, now, wall, None, text)
        self._bandit = bandit
        self._note_change(event, body)
        self._advance(event)
        return event

    def adopt_rules(self, now: float, wall: float) -> EventRow:
        """Let the same policy, with what it has learned, decide by the rules of this release; return the event."""
        policy = self.bandit.policy
        body = {"policy": policy.name, "parameters": plain(policy.parameters), "rules": RULES, "continues": True}
        return self.append(POLICY, now, wall, body=json.dumps(body))

    def change_policy(self, now: float, wall: float, body: str, bandit: Bandit) -> EventRow:
        """Continue with a bandit whose new policy has learned all rewards so far, and return the event."""
        event = EventRow(self.bandit_number, self.sequence + 1, POLICY, None, None, None, None, now, wall, None, body)
        self._bandit, self.rules = bandit, RULES
        self.shadow = restarted(self.shadow)
        self._advance(event)
        return event

    def start_shadow(self, now: float, wall: float, body: str, bandit: Bandit) -> EventRow:
        """Let a bandit whose policy has learned all rewards so far be the shadow, and return the event."""
        event = EventRow(self.bandit_number, self.sequence + 1, SHADOW, None, None, None, None, now, wall, None, body)
        self.shadow = Shadow(bandit)
        self._advance(event)
        return event

    def append(
        self,
        kind: str,
        now: float,
        wall: float,
        *,
        settles: int | None = None,
        arm: int | None = None,
        value: float | None = None,
        key: str | None = None,
        body: str | None = None,
    ) -> EventRow:
        """Add any other event and return it."""
        event = EventRow(self.bandit_number, self.sequence + 1, kind, None, settles, arm, value, now, wall, key, body)
        self._apply(event)
        return event

    # Replay

    def apply(self, event: EventRow) -> None:
        """Apply the next event of the log; raise `ReplayMismatchError` where it is damaged or the state disagrees."""
        try:
            self._apply(event)
        except DAMAGE as error:
            raise unreadable(self.settings.name, event.sequence, error) from error

    def _apply(self, event: EventRow) -> None:
        kind = event.kind
        if event.sequence != self.sequence + 1:
            raise self._mismatch(event, f"sequence {self.sequence + 1} is missing")
        if (self._bandit is None) != (kind == CREATE) or self.deleted:
            raise self._mismatch(event, f"no {kind!r} can come here")
        if kind == DECISION:
            self._replay_decision(event)
            self._replay_shadow(event)
        elif kind in KINDS["reward"]:
            self._learn(event)
        elif kind == METRIC:
            self.monitoring.add_metric(event, self.bandit)
        elif kind == ACTIVATE:
            self.deferred.remove(json.loads(event.body or "{}")["step"])
        else:
            self._change(event)
        self._advance(event)

    def _change(self, event: EventRow) -> None:
        """Apply a change of the bandit."""
        if event.kind not in KINDS["change"]:
            raise self._mismatch(event, f"unknown kind {event.kind!r}")
        body = json.loads(event.body or "{}")
        self._bandit, self.shadow = apply_change(self._bandit, self.shadow, event, body, self.learner, self._log)
        self._note_change(event, body)

    def _note_change(self, event: EventRow, body: dict[str, Any]) -> None:
        """Apply a change to all but the policies."""
        if event.kind in (CREATE, POLICY):
            self.rules = body.get("rules", 1)
        if event.kind == CREATE:
            self.settings = Settings.of_new_bandit(body)
            self.learner = Learner.of_new_bandit(body)
        self.monitoring.change(event, body, self.bandit)
        self.deleted = event.kind == DELETE

    def _advance(self, event: EventRow) -> None:
        """Note an event that the bandit has seen."""
        if event.kind == DECISION:
            self.open.add(event)
            self.monitoring.count(event)
            if self.shadow is not None:
                self.shadow.see(event.arm or 0, read_details(event.body))
            if self.learner.age is not None:
                self.due_at = min(self.due_at, event.time + self.learner.age)
            if event.body is not None and '"deferred"' in event.body and read_details(event.body).deferred:
                self.deferred.add(event.step or 0)
        self.sequence = event.sequence
        self.time = max(self.time, event.time)

    def _mismatch(self, event: EventRow, problem: str) -> ReplayMismatchError:
        return ReplayMismatchError(self.settings.name, event.sequence, problem)

    def _replay_decision(self, event: EventRow) -> None:
        """Make a logged decision again and compare, or take it from the log if it was made by older rules."""
        bandit = self.bandit
        if event.step != bandit.step + 1:
            raise self._mismatch(event, f"the log has step {event.step}, the replay step {bandit.step + 1}")
        details, holdout = read_details(event.body), self.settings.holdout
        is_imported, is_local = event.step <= self.settings.imported, details.decider is not None
        if is_imported or is_local or self.rules < RULES:  # `LocalReplay` makes local ones again
            column = -1 if event.arm is None else event.arm
            bandit.play_column(column, details.context, counts_for_shares=not details.holdout)
            if is_local:
                self.deciders.note(details, event.time)
            if self.rules < RULES and not is_imported:
                self.taken[self.rules] += 1
            return
        logged = [-1 if event.arm is None else event.arm] if details.ranking is None else details.ranking
        choice = finish(choose_arms(bandit, self.bandit_number, holdout, details, len(logged), propensity=False))
        if choice.in_holdout != details.holdout:
            raise self._mismatch(event, f"the log has holdout {details.holdout}, the replay {choice.in_holdout}")
        for column, there in zip(choice.columns, logged, strict=True):
            if column != there:
                names = bandit.names
                name = names[there] if 0 <= there < len(names) else f"number {there}"
                raise self._mismatch(event, f"the log chose arm {name!r}, the replay {names[column]!r}")
        if event.arm != choice.columns[0]:
            raise self._mismatch(event, f"its arm {event.arm} is not the first of its ranking {choice.columns}")
        counts = not choice.in_holdout
        bandit.play_column(choice.columns[0], details.context, counts_for_shares=counts, vector=choice.vector)

    def _replay_shadow(self, event: EventRow) -> None:
        """Let the shadow choose again and compare, unless it chose by older rules."""
        if self.shadow is None or self.rules < RULES:
            return
        details = read_details(event.body)
        logged, again = (None if one is None else one.column for one in (details.shadow, self.shadow.choose(details)))
        if logged != again:
            raise self._mismatch(event, f"the log has column {logged} as the shadow's choice, the replay {again}")

    def _learn(self, event: EventRow) -> None:
        """Let the bandit learn what an event of the kinds reward, close and learn tells."""
        learner, before, final = self.learner, self.learner.learned_to, self.learner.final_to
        known = {} if event.kind == LEARN else self._settle(event)
        learned = learner.observations(event, self._log)
        counted = learner.final_observations(event, learned, self._log)
        if event.kind == LEARN:
            if len(learned) != learner.learned_to - before or learner.learned_to - before + len(counted) == 0:
                raise self._mismatch(event, f"it learns the decisions after step {before}, but some are missing")
            if len(counted) != learner.final_to - final:
                raise self._mismatch(event, f"the windows after step {final} have ended, but some are missing")
        has_lift = self.monitoring.lift is not None
        if self.bandit.policy.functions.contextual or has_lift or self.shadow is not None:
            known = bodies_of(self.bandit_number, learned, self._log, known)
        teach(self.bandit, learned, known)
        if has_lift:
            self.monitoring.learn(counted, bodies_of(self.bandit_number, counted, self._log, known), self.bandit)
        if self.shadow is not None:
            self.shadow.learn(learned, known)
        if event.kind == REWARD and self.learner.rule == SETTLED:
            self.due_at = 0.0  # the settling age may be shorter now

    def _settle(self, event: EventRow) -> dict[int, str | None]:
        """Check the decision that a reward or close belongs to, which is then no longer open; return its known body."""
        bandit, step, column = self.bandit, event.settles, event.arm
        if step is None or column is None or not 1 <= step <= bandit.step:
            raise self._mismatch(event, f"it settles step {step}, which was not decided")
        if not 0 <= column < len(bandit.names):
            raise self._mismatch(event, f"it rewards column {column}, of {len(bandit.names)}")
        self.deferred.discard(step)
        decided = self.open.end(step)
        if decided is None:
            return {}
        if decided.arm != (column if event.body is None else chosen_column(event.body)):
            raise self._mismatch(event, f"it rewards column {column}, but the decision took column {decided.arm}")
        return {step: decided.body}

    # Snapshots

    @property
    def saved_hash(self) -> str:
        """The hash of the state with its version, as stores keep it; older hashes say nothing about this state."""
        return f"{HASH_PREFIX}{self.state_hash()}"

    def state_hash(self) -> str:
        """Return a hash of the state and of how far the log was read."""
        held = [] if self.learner.rule == AT_ONCE else [self.learner.rule, self.learner.learned_to]
        rest = [self.bandit.state_hash(), *self.settings.hashed(), self.sequence, self.deleted, *held]
        rest += self.monitoring.to_plain()
        if self.deciders:
            rest.append(self.deciders.to_plain())
        if self.deferred:
            rest.append({"deferred": sorted(self.deferred)})
        if self.shadow is not None:
            rest.append({"shadow": self.shadow.hashed()})
        return hashlib.sha256(json.dumps(rest).encode()).hexdigest()

    def copy(self) -> "LoggedState":
        """Return a copy that later events do not change, without the open decisions."""
        other = copy.copy(self)
        other._bandit, other.learner = self.bandit.copy(), copy.copy(self.learner)
        other.open, other.deciders, other.monitoring = OpenDecisions(), Deciders(self.deciders), self.monitoring.copy()
        other.deferred, other.settling = self.deferred.copy(), copy.deepcopy(self.settling)
        other.shadow = None if self.shadow is None else self.shadow.copy()
        return other

    def to_json(self) -> str:
        """Return a snapshot."""
        content = {
            "format": SNAPSHOT_FORMAT,
            "sequence": self.sequence,
            "time": self.time,
            "deleted": self.deleted,
            "settled_to": self.settled_to,
            "rules": self.rules,
            "settings": self.settings._asdict(),  # a holdout as a list
            "learner": vars(self.learner),
            "settling": vars(self.settling),
            "bandit": self.bandit.to_json(),
            "monitoring": self.monitoring.to_plain(),
        }
        if self.deciders:
            content["deciders"] = self.deciders.to_plain()
        if self.deferred:
            content["deferred"] = sorted(self.deferred)
        if self.shadow is not None:
            content["shadow"] = self.shadow.to_plain()
        return json.dumps(content)

    @classmethod
    def from_json(cls, bandit_number: int, text: str, log: EventLog) -> "LoggedState":
        """Return the state that `to_json` wrote."""
        content = json.loads(text)
        if content.get("format") != SNAPSHOT_FORMAT:
            raise ValueError(f"a snapshot must have format {SNAPSHOT_FORMAT!r}, got {content.get('format')!r}")
        state = cls(bandit_number, log)
        for name in ("sequence", "time", "deleted", "settled_to", "rules"):
            setattr(state, name, content[name])
        state.settings = Settings.of_new_bandit(content["settings"])
        state.learner.restore(content["learner"])
        state.settling.restore(content["settling"])
        state.deciders = Deciders.from_plain(content.get("deciders", []))
        state.deferred = set(content.get("deferred", ()))
        state._bandit = Bandit.from_json(content["bandit"])
        state.monitoring = Monitoring.from_plain(content.get("monitoring", []))
        state.shadow = Shadow.from_plain(content["shadow"]) if "shadow" in content else None
        return state
