"""Import: a bandit that starts from the decisions and rewards of another system, which become events of its log."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dynabandit.offline import Log
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decision_details import ContextValues, DecisionDetails
from dynabandit.service.domain.events import REWARD
from dynabandit.service.domain.names import clean_name, public_id
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, WriteConflictError
from dynabandit.service.stores import Store

ROWS_PER_COMMIT = 2_000
ROWS_PER_SNAPSHOT = 100_000  # after an interruption, fewer rows than this are replayed
HASHED_BYTES = 1 << 20  # that are read at a time


class ImportedRow(NamedTuple):
    """A decision that was made elsewhere, with its reward."""

    arm: str
    reward: float
    propensity: float | None
    time: float | None
    context: ContextValues | None


class Imported(NamedTuple):
    """The bandit that was imported; an earlier run, which was interrupted, had imported some of its rows."""

    id: str
    policy: str
    rows: int
    earlier: int


def import_log(
    store: Store,
    name: str,
    log: Log,
    asked: api_types.Create,
    source: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Create a bandit and add the rows of a log as decisions and rewards, or continue an interrupted import.

    `source` identifies the file and how it is read. `progress` is called with the number of imported rows and of all
    rows.
    """
    work = UnitOfWork(store, Clock())
    work.clock.advance_to(store.latest_time())
    state = _find_or_create(work, name, asked, source, log.rows)
    bandit_number, earlier = state.bandit_number, state.bandit.step
    rows = itertools.islice(_rows(log), earlier, None)
    done = earlier
    while batch := list(itertools.islice(rows, ROWS_PER_COMMIT)):
        work.clock.now()
        _add(work, bandit_number, done, batch)
        done += len(batch)
        if done % ROWS_PER_SNAPSHOT < len(batch) or done == log.rows:
            store.save_snapshot(bandit_number, work.snapshot(bandit_number))
        progress(done, log.rows)
    store.save_time(work.clock.now())
    return Imported(public_id(bandit_number), state.bandit.policy.name, log.rows, earlier)


def source_of(path: Path, options: dict[str, Any]) -> str:
    """Return a hash of a file and of the options with which it is read."""
    found = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    with path.open("rb") as file:
        while content := file.read(HASHED_BYTES):
            found.update(content)
    return found.hexdigest()


def _find_or_create(work: UnitOfWork, name: str, asked: api_types.Create, source: str, rows: int) -> LoggedState:
    bandit_number = work.find(name)
    if bandit_number is None:
        name = clean_name(name)
        new = changes.prepare(name, asked, {"imported": rows, "imported_from": source})
        state, _ = changes.create(work, name, asked, new)
        work.store.commit(*work.batch())
        work.clear()
        return state
    [first] = work.store.events(bandit_number, 0, 1)
    if json.loads(first.body or "{}").get("imported_from") != source:
        raise ConflictError(
            f"bandit {name!r} is there already, and was not imported from this file with these options: "
            "name another one with --bandit, or delete it first"
        )
    return work.named(name)


def _rows(log: Log) -> Iterator[ImportedRow]:
    for parsed in log.parsed():
        contexts: list[ContextValues | None] = (
            list(parsed.contexts) if log.features is not None else [None] * len(parsed.arm)
        )
        columns = (
            [None] * len(parsed.arm) if one is None else one.tolist() for one in (parsed.propensity, parsed.time)
        )
        yield from map(ImportedRow._make, zip(parsed.arm, parsed.reward.tolist(), *columns, contexts, strict=True))


def _add(work: UnitOfWork, bandit_number: int, done: int, rows: list[ImportedRow]) -> None:
    """Add rows in one commit, after `done` others."""
    begun = work.store.begin({bandit_number: work.state(bandit_number).sequence})
    if work.store.shared:
        if bandit_number not in begun.events:
            raise WriteConflictError("the bandit was deleted meanwhile")
        work.catch_up(bandit_number, begun.events[bandit_number], lambda: True)
    state = work.state(bandit_number)
    if state.bandit.step != done:
        raise WriteConflictError("another process imports the same file")
    columns = {name: column for column, name in enumerate(state.bandit.names)}
    now, uncounted = work.now(state), state.settings.holdout is not None
    for row in rows:
        wall = work.clock.wall() if row.time is None else row.time
        details = DecisionDetails(context=row.context, uncounted=uncounted)
        column = columns[clean_name(row.arm)]
        decision = state.take(column, now, wall, None, details, row.propensity)
        reward = state.append(REWARD, now, wall, settles=decision.step, arm=column, value=row.reward + 0.0)
        work.events += (decision, reward)
    work.store.commit(*work.batch())
    work.clear()
