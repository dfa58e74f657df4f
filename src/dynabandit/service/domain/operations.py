"""The desk: what each call does to the states and the log, before the writer commits it.

Everything here runs in the writer's thread. Rows that a batch adds are not in the store yet, so whatever a later
call of the same batch may ask of the store is kept here as well, until the commit.
"""

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.domain.bandit_state import DAMAGE, State, change_arm
from dynabandit.service.domain.events import ARM, CLOSE, CREATE, DELETE, POLICY, REWARD, Row, Settled
from dynabandit.service.domain.names import ID_BITS, decision_id, public_id
from dynabandit.service.domain.warm_start import Warming, check_size
from dynabandit.service.errors import Conflict, Differs, Refused
from dynabandit.service.stores import Snapshot, Store

__all__ = ["MOST_DRAWS", "SNAPSHOT_EVERY", "Desk", "view"]

SNAPSHOT_EVERY = 10_000  # events
MOST_DRAWS = 10_000_000  # in a call: arms times decisions, which is about a second
SWEEP_PAGE = 500  # decisions whose window is looked at in one transaction


class Desk:
    """The states of all bandits in use, and the rows of the batch at hand."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.states: dict[int, State] = {}
        self._names: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Forget the batch."""
        self.rows: list[Row] = []
        self.created: list[tuple[int, str]] = []
        self.deleted: list[int] = []
        self.erased: list[int] = []
        self._settled: dict[tuple[int, int], tuple[str, float | None]] = {}
        self._keyed: dict[tuple[int, str], list[Row]] = {}

    def drop(self) -> None:
        """Forget the batch and every state: the log is the truth, and is read again."""
        self.clear()
        self.states.clear()
        self._names.clear()

    # Finding bandits

    def number(self, name: str) -> int | None:
        """Return the number of the bandit with this name."""
        number = self._names.get(name)
        if number is None:
            number = self.store.find(name)
            if number is not None:
                self._names[name] = number
        return number

    def named(self, name: str) -> State:
        """Return the state of a bandit by its name, or refuse."""
        number = self.number(name)
        if number is None:
            raise Refused(404, f"there is no bandit {name!r}")
        state = self.state(number)
        if state.deleted:  # by another process, since the name was looked up
            del self._names[name]
            raise Conflict(f"bandit {name!r} was deleted meanwhile")
        return state

    def state(self, number: int) -> State:
        """Return the state of a bandit; what is not at hand comes from a snapshot and the log after it."""
        state = self.states.get(number)
        if state is None:
            state = self._load(number)
            self.states[number] = state
        return state

    def _load(self, number: int) -> State:
        state = self._caught_up(self._restored(number, 0) or State(number, self.store.rewards_before))
        if state.sequence == 0:
            raise Differs(self.store.name_of(number), 1, "the log is empty")
        return state

    def _restored(self, number: int, sequence: int) -> State | None:
        """Return the state of the latest snapshot, unless there is none of that event or a later one."""
        snapshot = self.store.snapshot(number)
        if snapshot is None or snapshot.body is None or snapshot.sequence < sequence:
            return None
        try:
            state = State.from_json(number, snapshot.body, self.store.rewards_before)
            whole = state.state_hash() == snapshot.state_hash
        except DAMAGE:
            whole = False
        if not whole:
            raise Differs(self.store.name_of(number), snapshot.sequence, "the snapshot does not have its own hash")
        return state

    def catch_up(self, number: int) -> None:
        """Take in what the log has beyond a state."""
        self.states[number] = self._caught_up(self.states[number])

    def _caught_up(self, state: State) -> State:
        for row in self.store.log(state.number, state.sequence):
            if row.kind == POLICY:  # a snapshot comes with it, which saves learning all rewards again
                restored = self._restored(state.number, row.sequence)
                if restored is not None:
                    return self._caught_up(restored)
            state.apply(row)
        self.clock.reach(state.time)
        return state

    def snapshot(self, number: int) -> Snapshot:
        """Return a snapshot of a state, which must have no rows in the batch at hand."""
        state = self.state(number)
        return Snapshot(state.sequence, state.state_hash(), state.to_json())

    def _now(self, state: State) -> float:
        return max(self.clock.now(), state.time)

    # Calls

    def create(self, name: str, asked: api_types.Create) -> tuple[int, State]:
        """Create a bandit: 201 and its state, 200 where the same one is there, refused where another is."""
        body = {"name": name, **msgspec.to_builtins(asked)}
        number = self.number(name)
        if number is not None:
            state = self.named(name)  # or there is no log to compare with
            there = json.loads(self.store.events(number, 0, 1)[0].body or "{}")
            if there.pop("drawn"):
                there["seed"] = None
            if there != body:
                other = ", ".join(key for key in body if there.get(key) != body[key])
                raise Refused(409, f"bandit {name!r} is there already, created from another body: other {other}")
            return 200, state
        body["drawn"] = body["seed"] is None
        if body["drawn"]:
            body["seed"] = secrets.randbits(63)
        try:
            check_size(body["policy"], body["parameters"])
            Bandit(body["policy"], body["arms"], seed=body["seed"], **body["parameters"])
        except (TypeError, ValueError) as error:
            raise Refused(422, str(error)) from None
        state = State(secrets.randbits(ID_BITS), self.store.rewards_before)
        self.rows.append(state.add(CREATE, self.clock.now(), time.time(), body=json.dumps(body)))
        self.created.append((state.number, name))
        self.states[state.number] = state
        return 201, state

    def decide(self, state: State, count: int, key: str | None) -> list[api_types.Decision]:
        """Make decisions, or give again those that the key gave before."""
        if key is not None:
            before = self._keyed.get((state.number, key)) or self.store.keyed(state.number, key)
            if before:
                if len(before) != count:
                    raise Refused(
                        409, f"count must be {len(before)}, as when this Idempotency-Key came first, got {count}"
                    )
                return _decisions(state, before)
        if count > 1 and count * len(state.bandit.names) > MOST_DRAWS:
            arms = len(state.bandit.names)
            raise Refused(422, f"count must be at most {max(1, MOST_DRAWS // arms)} with {arms} arms, got {count}")
        try:
            now, wall = self._now(state), time.time()
            rows = [state.decide(now, wall, key, str(count) if count > 1 and key is not None else None)]
        except ValueError as error:  # before the first choice: nothing has changed
            raise Refused(409, str(error)) from None
        rows += [state.decide(now, wall) for _ in range(count - 1)]
        if key is not None:
            self._keyed[state.number, key] = rows
        self.rows += rows
        return _decisions(state, rows)

    def reward(self, number: int, step: int, value: float) -> None:
        """Count a reward once, or refuse."""
        value += 0.0  # no negative zero, which a store need not give back
        state = self.known(number, step)
        found = self._decision(state, step)
        if found is None:
            raise _no_decision(number, step)
        if found.kind is None and self._late(state, found.time):
            self._close(state, step, found.arm)
            raise _late(state, step)
        if found.kind is None:
            now, wall = self._now(state), time.time()
            self.rows.append(state.add(REWARD, now, wall, settles=step, arm=found.arm, value=value))
            self._settled[number, step] = (REWARD, value)
        elif found.kind == CLOSE:
            raise _late(state, step)
        elif found.value != value:
            id = decision_id(public_id(number), step)  # noqa: A001
            raise Refused(409, f"decision {id!r} has the reward {found.value:g} already, got {value:g}")

    def known(self, number: int, step: int = 0) -> State:
        """Return the state of the bandit of a decision, or refuse where it is not there any more."""
        if number not in self.states:
            found = self.store.bandit(number)
            if found is None or found.deleted:
                raise _no_decision(number, step)
        state = self.state(number)
        if state.deleted:
            raise _no_decision(number, step)
        return state

    def _decision(self, state: State, step: int) -> Settled | None:
        at_hand = state.open.get(step)
        if at_hand is not None:
            return Settled(*at_hand, None, None)
        if step > state.bandit.step:
            return None
        settled = self._settled.get((state.number, step))
        if settled is not None:
            return Settled(-1, 0.0, *settled)
        return self.store.decision(state.number, step)

    def _late(self, state: State, decided: float) -> bool:
        window = state.settings.reward_window
        return window is not None and self._now(state) - decided > window

    def _close(self, state: State, step: int, column: int) -> None:
        value = state.settings.default_reward
        if value is not None:
            value += 0.0
        now, wall = self._now(state), time.time()
        self.rows.append(state.add(CLOSE, now, wall, settles=step, arm=column, value=value))
        self._settled[state.number, step] = (CLOSE, value)

    def sweep(self, state: State) -> bool:
        """Close decisions whose window has ended; return whether there may be more of them."""
        window = state.settings.reward_window
        if state.deleted or window is None:
            state.due_at = float("inf")
            return False
        now = self._now(state)
        page = self.store.decisions_after(state.number, state.settled_to, SWEEP_PAGE)
        for step, column, decided, settled in page:
            if not settled:
                if now - decided <= window:
                    state.due_at = decided + window
                    return False
                self._close(state, step, column)
            state.settled_to = step
        state.due_at = 0.0 if len(page) == SWEEP_PAGE else now + window  # what is decided later ends later
        return len(page) == SWEEP_PAGE

    def add_arm(self, state: State, arm: str) -> bool:
        """Add an arm, and return whether that changed anything: the same arm again does not."""
        if arm in state.bandit.active:
            return False
        if len(state.bandit.names) >= api_types.MOST_ARMS:
            raise Refused(
                409, f"a bandit must have at most {api_types.MOST_ARMS} arms, with retired ones, got one more"
            )
        return self._change(state, {"arm": arm, "add": True})

    def change_arm(self, state: State, arm: str, change: api_types.ChangeArm) -> bool:
        """Pause, resume, retire or limit an arm, and return whether that changed anything.

        What is so already is left out: a share that is set again would be counted from here on.
        """
        if arm not in state.bandit.active:
            if change.retired and arm in state.bandit.names:
                return False
            raise Refused(404, f"there is no arm {arm!r}")
        least, most = state.bandit.shares(arm)
        there = {"paused": state.bandit.paused(arm), "min_share": least, "max_share": most, "retired": False}
        asked = {name: value for name, value in msgspec.to_builtins(change).items() if value not in (None, there[name])}
        return self._change(state, {"arm": arm, **asked}) if asked else False

    def _change(self, state: State, body: dict[str, Any]) -> bool:
        try:
            change_arm(state.bandit.copy(), body)
        except (TypeError, ValueError) as error:
            raise Refused(409, str(error)) from None
        self.rows.append(state.add(ARM, self._now(state), time.time(), body=json.dumps(body)))
        return True

    def set_policy(self, state: State, asked: api_types.SetPolicy, warming: Warming | None = None) -> bool:
        """Go on with another policy, warmed by all rewards so far, and return whether it is another one.

        What `warming` has learnt already need not be learnt here, where all other calls wait.
        """
        if warming is None or not warming.fits(state):
            warming = Warming(state, asked)
        if warming.bandit.policy == state.bandit.policy:
            return False
        warming.feed(self.store, state.sequence)
        body = json.dumps({"policy": asked.policy, "parameters": asked.parameters})
        self.rows.append(state.swap(self._now(state), time.time(), body, warming.bandit_of(state)))
        return True

    def delete(self, state: State) -> None:
        """Delete a bandit; its log stays."""
        self.rows.append(state.add(DELETE, self._now(state), time.time()))
        self.deleted.append(state.number)
        self._names.pop(state.settings.name, None)

    def erase(self, number: int, name: str) -> None:
        """Leave nothing of a bandit, whether it was deleted before or not, and whether its log can be read or not."""
        self.erased.append(number)
        if self._names.get(name) == number:
            del self._names[name]


def _no_decision(number: int, step: int) -> Refused:
    return Refused(404, f"there is no decision {decision_id(public_id(number), step)!r}")


def _late(state: State, step: int) -> Refused:
    window, id = state.settings.reward_window, decision_id(public_id(state.number), step)  # noqa: A001
    return Refused(410, f"a reward of decision {id!r} must come within {window:g} seconds, and they are over")


def _decisions(state: State, rows: list[Row]) -> list[api_types.Decision]:
    public, names = public_id(state.number), state.bandit.names
    return [api_types.Decision(decision_id(public, row.step or 0), names[row.arm or 0], row.step or 0) for row in rows]


def view(state: State) -> Callable[[], api_types.BanditState]:
    """Copy a state now, and return what turns the copy into an answer, in any thread and in its own time."""
    state = state.copy()
    bandit, settings = state.bandit, state.settings

    def shown() -> api_types.BanditState:
        arms = []
        for name, arm in bandit.arms.items():
            least, most = bandit.shares(name)
            share = arm.plays / bandit.step if bandit.step else 0.0
            mean = None if arm.mean != arm.mean else arm.mean
            arms.append(api_types.ArmState(name, mean, *arm[1:6], share, arm.paused, least, most))
        return api_types.BanditState(
            name=settings.name,
            id=public_id(state.number),
            policy=bandit.policy.name,
            parameters=bandit.policy.parameters,
            reward_window=settings.reward_window,
            default_reward=settings.default_reward,
            seed=bandit.seed,
            step=bandit.step,
            sequence=state.sequence,
            state_hash=state.state_hash(),
            arms=arms,
        )

    return shown
