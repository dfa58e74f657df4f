"""Decisions in the caller's own process, from a copy of the bandit's state that is kept up to date."""

import contextlib
import math
import os
import random
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.client.base import RETRY_STATUSES, Call, ServiceError, bandit_path
from dynabandit.client.batch_sender import BatchSender
from dynabandit.client.local_log import SECRET_LENGTH, default_folder
from dynabandit.client.sync_client import Client
from dynabandit.core.json_values import plain
from dynabandit.service import field_types
from dynabandit.service.api_types import Decision
from dynabandit.service.domain.bandit_state import RULES
from dynabandit.service.domain.deciders import decider_of
from dynabandit.service.domain.decision_details import check_context_size
from dynabandit.service.domain.holdout import Holdout
from dynabandit.service.domain.local_bandit import LocalBandit, local_id
from dynabandit.service.domain.names import clean_name, read_public_id
from dynabandit.service.local_state_cache import MAX_AGE
from dynabandit.service.local_types import LocalBatch, LocalDecision, LocalReward, LocalState
from dynabandit.validation import integer, number

OPEN: "weakref.WeakSet[LocalDecider]" = weakref.WeakSet()
MAX_UNWRITTEN = 1_000_000  # decisions and rewards that wait in memory while the local file cannot be written


class LocalDecider:
    """Decides for a bandit of the service inside this process, also while the service cannot be reached.

    It follows the state of the bandit and decides from the latest one, with a random stream of its own. Decisions and
    rewards are written to a file in `folder` and sent to the service in batches, each exactly once. The policy learns
    in the service, and the next state brings what it has learned. Safe for threads; after a fork, make a new one.

    Parameters
    ----------
    url
        Where the service is, such as ``"http://127.0.0.1:8000"``.
    bandit
        The name of the bandit.
    folder
        Where the files are; several deciders of one bandit may share it. By default a folder for this bandit under
        `XDG_STATE_HOME` or ``~/.local/state``.
    key
        An API key with the role `decide`, if the service needs one.
    refresh_seconds
        How often the state is asked for and batches are sent: while the service answers, a change, such as a paused
        arm, takes effect after at most so many seconds and the time of some requests.
    flush_seconds
        How often decisions and rewards are written to the file.
    max_staleness
        The age of the state in seconds beyond which `decide` raises `ServiceError`; by default there is none.
    timeout
        Seconds to wait for a response of the service.

    Examples
    --------
    >>> import dynabandit
    >>> def show_banners(count: int) -> None:
    ...     with dynabandit.LocalDecider("http://127.0.0.1:8000", "banner") as decider:
    ...         for _ in range(count):
    ...             decision = decider.decide()
    ...             decider.reward(decision.decision, 1)
    """

    def __init__(
        self,
        url: str,
        bandit: str,
        folder: str | Path | None = None,
        key: str | None = None,
        *,
        refresh_seconds: float = 1.0,
        flush_seconds: float = 0.05,
        max_staleness: float = math.inf,
        timeout: float = 10.0,
    ) -> None:
        self.name, secret = bandit, secrets.token_hex(SECRET_LENGTH // 2)
        self.id = decider_of(secret)
        self._refresh_seconds = number("refresh_seconds", refresh_seconds, 0.0, threading.TIMEOUT_MAX, open_low=True)
        flush_seconds = number("flush_seconds", flush_seconds, 0.0, threading.TIMEOUT_MAX, open_low=True)
        self._max_staleness = max_staleness
        if max_staleness != math.inf:
            self._max_staleness = number("max_staleness", max_staleness, 0.0, math.inf, open_low=True)
        self._client = Client(url, key, timeout, tries=1)
        self._folder = default_folder(url, bandit) if folder is None else Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._problems: dict[str, str] = {}  # why the latest write to the file, or exchange with the service, failed
        self._lock = threading.Lock()  # of all that decisions and rewards change
        self._writing = threading.Lock()  # one thread writes to the file at a time
        self._talking = threading.Lock()  # one thread talks to the service at a time
        self._closing = threading.Event()
        self._step, self._unwritten = 0, list[LocalBatch]()
        self._units: dict[str, tuple[float, int, Decision]] = {}  # until when, column; the oldest first
        self._current_at = -math.inf  # when the state was known to be current
        self._adopt(self._first_state())
        self._sender = BatchSender(self._client, bandit, self._folder, self._state.id, self.id, secret)
        repeated = (("file", self._write, flush_seconds), ("service", self._exchange, self._refresh_seconds))
        self._threads = [
            threading.Thread(target=self._repeat, args=arguments, name=f"dynabandit {bandit}", daemon=True)
            for arguments in repeated
        ]
        for thread in self._threads:
            thread.start()
        OPEN.add(self)

    # Decisions and rewards

    def decide(self, context: Mapping[str, Any] | None = None, unit: str | None = None) -> Decision:
        """Return a decision, which is durable after `flush`; that also happens every `flush_seconds`.

        Parameters
        ----------
        context
            The values of the features, by name, if the bandit has features.
        unit
            Whom the decision is for, such as a user: the decision is kept for as long as the bandit says.

        Returns
        -------
        Decision
            The arm, and the id for `reward`; its `step` counts the decisions of this decider.
        """
        given = None if context is None else checked_context(context)
        unit = None if unit is None else checked_unit(unit)
        with self._lock:
            self._check_usable()
            kept = None if unit is None else self._kept(unit)
            if kept is not None:
                return kept
            batch, step = self._open_batch(), self._step + 1
            column, holdout = self._choose(step, given, unit)
            self._step = step
            batch.decisions.append(LocalDecision(column, given, unit, holdout))
            decision = Decision(local_id(self.id, step), self._names[column], step, None, False, holdout)
            if unit is not None and self._state.sticky_for is not None:
                self._units[unit] = time.monotonic() + self._state.sticky_for, column, decision
            return decision

    def decide_many(self, count: int) -> list[Decision]:
        """Return several decisions."""
        return [self.decide() for _ in range(integer("count", count, 1))]

    def _choose(self, step: int, context: dict[str, Any] | None, unit: str | None) -> tuple[int, bool]:
        try:
            return self._local.decide(step, context, unit)
        except ValueError as error:
            if len(self._local.bandit.available_columns()) == 0:  # every arm is paused
                raise ServiceError(409, str(error)) from None
            raise

    def _kept(self, unit: str) -> Decision | None:
        """Return the decision that a unit keeps, and forget units whose time is over."""
        now = time.monotonic()
        while self._units and next(iter(self._units.values()))[0] <= now:
            del self._units[next(iter(self._units))]
        if unit not in self._units:
            return None
        _, column, decision = self._units[unit]
        if self._local.bandit.is_available(column):
            return msgspec.structs.replace(decision, repeated=True)
        del self._units[unit]  # its arm was paused or retired
        return None

    def reward(self, decision: str, reward: float) -> None:
        """Take the reward of a decision of this or another local decider of the same bandit.

        Parameters
        ----------
        decision
            The id of the decision, `Decision.decision`.
        reward
            The reward.
        """
        decider, _, step = decision.partition("-")
        value = self._local.bandit.rewards.check(reward)
        if not (step.isascii() and step.isdecimal()):
            raise ValueError(f"decision must be the id of a local decision, got {decision!r}")
        given = {"decider": decider, "step": int(step), "reward": value}
        item = checked("decision", given, LocalReward)
        with self._lock:
            self._check_open()
            self._open_batch().rewards.append(item)

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise ServiceError(0, "this LocalDecider is closed, or was made before a fork: make a new one")

    def _check_usable(self) -> None:
        self._check_open()
        if self._max_staleness < math.inf and self.staleness > self._max_staleness:
            age = f"the state of bandit {self.name!r} is {self.staleness:.1f} seconds old"
            raise ServiceError(0, f"{age}, and max_staleness is {self._max_staleness:g}: {self.problem}")

    def _open_batch(self) -> LocalBatch:
        """Return the batch to which the next decision and the next reward belong."""
        batch = self._unwritten[-1] if self._unwritten else None
        if batch is not None and batch.base == self._local.base and has_room(batch):
            return batch
        if len(self._unwritten) * field_types.MAX_DECISIONS >= MAX_UNWRITTEN:
            raise OSError(f"the local file {self._sender.log.path} cannot be written: {self.problem}")
        batch = LocalBatch(id=self._state.id, decider=self.id, first=self._step + 1, base=self._local.base)
        self._unwritten.append(batch)
        return batch

    # What callers can see

    @property
    def staleness(self) -> float:
        """Seconds since the state was known to be current; infinite if it is from an earlier run."""
        return time.monotonic() - self._current_at

    @property
    def waiting(self) -> int:
        """Decisions and rewards that the service has not stored yet."""
        with self._lock:
            unwritten = sum(len(batch.decisions) + len(batch.rewards) for batch in self._unwritten)
        return unwritten + self._sender.waiting

    @property
    def problem(self) -> str | None:
        """Why the file could not be written, or the service did not answer, the last time; None if all is well."""
        return "; ".join(filter(None, (*self._problems.values(), self._sender.refused))) or None

    @property
    def rejected(self) -> int:
        """Rewards that the service did not count: they were late or unknown, or another one came first."""
        return self._sender.rejected

    # The local file and the service

    def flush(self) -> None:
        """Return when all decisions and rewards so far are durable in the local file."""
        self._write()

    def sync(self) -> None:
        """Return when the service has stored all decisions and rewards so far, and the state includes them."""
        self._write()
        with self._talking:
            self._sender.send_all(math.inf)
            self._refresh()

    def _write(self) -> bool:
        with self._writing:
            with self._lock:
                batches, self._unwritten = self._unwritten, []
            try:
                if batches:
                    self._sender.log.append(batches)
            except BaseException:
                with self._lock:
                    self._unwritten = batches + self._unwritten
                raise
            return False

    def _exchange(self) -> bool:
        """Ask for the state and send batches, for `refresh_seconds`; return whether more batches wait.

        In this order the service can give many deciders the same state: it has their batches of the last time.
        """
        with self._talking:
            try:
                self._refresh()
            finally:
                is_complete = self._sender.send_all(time.monotonic() + self._refresh_seconds)
            return not is_complete

    def _refresh(self) -> None:
        asked_at = time.monotonic()
        state = self._ask_for_state(self._state.sequence, self._sender.sent_to, self.waiting)
        if state.id != self._state.id:
            raise ServiceError(409, f"bandit {self.name!r} was deleted, and another one has its name now")
        if state.bandit is not None:
            self._adopt(state)
        self._current_at = asked_at - MAX_AGE

    def _ask_for_state(self, after: int, at_least: int, waiting: int) -> LocalState:
        query = {"after": str(after), "at_least": str(at_least), "decider": self.id, "waiting": str(waiting)}
        state = self._client._send(Call("GET", bandit_path(self.name, "local-state"), LocalState, query=query))
        if state.rules != RULES:
            raise ServiceError(409, f"the service decides by rules {state.rules}, this release by rules {RULES}")
        return state

    def _first_state(self) -> LocalState:
        """Return the state of the service, or that of an earlier run if the service does not answer."""
        asked_at = time.monotonic()
        try:
            state = self._ask_for_state(0, 0, 0)
            self._current_at = asked_at - MAX_AGE
            return state
        except ServiceError as error:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                saved = msgspec.json.decode((self._folder / "state.json").read_bytes(), type=LocalState)
                if error.status in (0, *RETRY_STATUSES) and saved.name == self.name and saved.rules == RULES:
                    self._problems["service"] = str(error)
                    return saved
            raise

    def _adopt(self, state: LocalState) -> None:
        """Decide from another state from now on, and keep it for a start without the service."""
        assert state.bandit is not None
        bandit, found, holdout = Bandit.from_json(state.bandit), read_public_id(state.id), state.holdout
        assert found is not None
        settings = None if holdout is None else Holdout(holdout.share, holdout.control)
        local = LocalBandit(bandit, found, settings, self.id, state.sequence, in_blocks=True)
        local.compile()  # here, and not at the first decision after a change of the policy
        new = self._folder / f"{self.id}.new"
        new.write_bytes(msgspec.json.encode(state))
        os.replace(new, self._folder / "state.json")
        with self._lock:
            self._state, self._local, self._names = state, local, list(bandit.names)

    def _repeat(self, place: str, work: Callable[[], bool], seconds: float) -> None:
        has_more = False
        while not self._closing.wait(0.0 if has_more else seconds * random.uniform(0.8, 1.0)):  # not all at once
            try:
                has_more = work()
                self._problems.pop(place, None)
            except Exception as error:  # the thread must go on, also after a state that this release cannot read
                has_more, self._problems[place] = False, str(error)

    def close(self) -> None:
        """Write what is left, send for `refresh_seconds`, and end; a later decider of this folder sends the rest."""
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
        for thread in self._threads:
            thread.join()
        try:
            self._write()
            with contextlib.suppress(ServiceError), self._talking:
                self._sender.send_all(time.monotonic() + self._refresh_seconds)
        finally:
            self._sender.close()
            self._client.close()

    def __enter__(self) -> "LocalDecider":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def has_room(batch: LocalBatch) -> bool:
    """Whether another decision and another reward fit into a batch."""
    return max(len(batch.decisions), len(batch.rewards)) < field_types.MAX_DECISIONS


def checked(argument: str, value: Any, kind: Any) -> Any:
    """Return a value that the service accepts, or raise an error."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{argument} is not valid: {error}, got {value!r:.200}") from None


def checked_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context as the service takes it, or raise an error."""
    found: dict[str, Any] = checked("context", plain(context), field_types.Context)
    try:
        check_context_size(found)
    except UnicodeEncodeError:
        raise ValueError(f"context must have text that UTF-8 can hold, got {found!r:.200}") from None
    return found


def checked_unit(unit: str) -> str:
    """Return a unit as the local file and the service take it, or raise an error."""
    if not isinstance(unit, str):
        raise TypeError(f"unit must be a string, got {unit!r:.200}")
    return clean_name(str.__str__(unit), "unit")  # msgspec cannot encode subclasses of str, such as NumPy's strings


def close_in_child() -> None:
    """After a fork, keep the child from making decisions under the ids of its parent."""
    for decider in OPEN:
        decider._lock, decider._closing = threading.Lock(), threading.Event()  # another thread may have had the lock
        decider._closing.set()


os.register_at_fork(after_in_child=close_in_child)
