"""Exports of the log: events, and decisions with their rewards and propensities."""

import importlib.util
import io
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.choosing.choice_probabilities import choice_of
from dynabandit.features import PARQUET_KEY
from dynabandit.service.api_types import Exported
from dynabandit.service.domain.bandit_state import (
    RULES,
    RULES_WITH_ASSUMED_ZEROS,
    RULES_WITH_PENDING_PLAYS,
    LoggedState,
)
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import ARM, CLOSE, CREATE, DECISION, EventRow, HeldDecision, Settlement, api_event
from dynabandit.service.domain.learning import EventLog
from dynabandit.service.domain.local_replay import LocalReplay
from dynabandit.service.domain.log_start import state_at_start
from dynabandit.service.errors import InvalidValueError, WorkInterruptedError
from dynabandit.service.stores import Store

DEFAULT_DRAWS = 200
PIECE_ROWS = 1_000  # only one piece of the export is in memory
PIECE_SECONDS = 0.5  # then another export has its turn
PAGE_BYTES = 4 << 20  # of events: a page ends with the event that exceeds them
PAGE_ROWS = 200  # of a page that are read at a time: each may have a large context
MAX_DRAWS = 20_000_000  # per decision, times arms: the default for the largest bandit, which takes a second or two
Item = TypeVar("Item")
IsWanted = Callable[[], bool]


class InterruptibleLog:
    """A log whose reader may leave while it is read."""

    def __init__(self, log: EventLog, is_wanted: IsWanted) -> None:
        self._log, self._is_wanted = log, is_wanted

    def held_decisions(self, bandit: int, after: int, to: int, before: int) -> Iterable[HeldDecision]:
        return self._log.held_decisions(bandit, after, to, before)

    def decision_bodies(self, bandit: int, steps: Sequence[int]) -> dict[int, str | None]:
        return self._log.decision_bodies(bandit, steps)

    def settlement_pages(self, bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
        return _while_wanted(self._log.settlement_pages(bandit, after, before), self._is_wanted)


class Replayed(NamedTuple):
    """A decision of the log, the probability of its arm, and whether the replay made it again."""

    row: EventRow
    arm: str
    propensity: float
    replayed: bool


def _while_wanted(items: Iterable[Item], is_wanted: IsWanted) -> Iterator[Item]:
    for item in items:
        if not is_wanted():
            raise WorkInterruptedError
        yield item


def arm_names(store: Store, bandit_number: int) -> list[str]:
    """Return the name of every arm by its index, retired ones included."""
    names: list[str] = []
    for event in store.log(bandit_number, kinds=(CREATE, ARM)):
        body = json.loads(event.body or "{}")
        names += body["arms"] if "arms" in body else [body["arm"]] if body.get("add") else []
    return names


def check_draws(store: Store, bandit_number: int, draws: int) -> None:
    """Raise an error if a bandit has too many arms for this many draws per decision."""
    arms = len(arm_names(store, bandit_number))
    if draws * arms > MAX_DRAWS:
        raise InvalidValueError(f"draws must be at most {MAX_DRAWS // arms} with {arms} arms, got {draws}")


def page_of_events(store: Store, bandit_number: int, after: int, limit: int, kinds: Sequence[str] = ()) -> list[bytes]:
    """Return a page of the events after a sequence number, as JSON: at most `limit`, fewer if they are large."""
    names, ids = arm_names(store, bandit_number), store.decision_ids()
    found, size = list[bytes](), 0
    for event in itertools.islice(store.log(bandit_number, after, kinds, min(limit, PAGE_ROWS)), limit):
        found.append(msgspec.json.encode(api_event(event, names, ids)))
        size += len(found[-1])
        if size >= PAGE_BYTES:
            break
    return found


def event_lines(store: Store, bandit_number: int, after: int, kinds: Sequence[str] = ()) -> Iterator[bytes]:
    """Return the events after a sequence number as NDJSON."""
    while page := page_of_events(store, bandit_number, after, PIECE_ROWS, kinds):
        yield b"".join(b"%b\n" % event for event in page)
        after = msgspec.json.decode(page[-1])["sequence"]


def decisions(
    store: Store, bandit_number: int, draws: int, is_wanted: IsWanted = lambda: True
) -> Iterator[list[Exported]]:
    """Replay a log and return its decisions in pieces; a piece may be empty, because each takes a limited time.

    When `is_wanted` returns false the replay ends with `WorkInterruptedError`.

    The propensity of a decision is the recorded one. Without one, in logs of earlier releases, for local decisions and
    where it is not known exactly, it is found by `_propensity`.
    """
    state = state_at_start(store, bandit_number, InterruptibleLog(store, is_wanted))
    local, piece = LocalReplay(store, state), list[Replayed]()
    until = time.monotonic() + PIECE_SECONDS
    for row in _while_wanted(store.log(bandit_number, state.sequence), is_wanted):
        if row.kind == DECISION:
            arm, bandit = state.bandit.names[row.arm or 0], local.bandit(state, row)
            propensity = _propensity(bandit or state.bandit, state, row, draws) if row.value is None else row.value
            is_imported = (row.step or 0) <= state.settings.imported
            is_replayed = local.check(state, row) and state.rules == RULES and not is_imported
            piece.append(Replayed(row, arm, propensity, is_replayed))
        state.apply(row)
        local.keep(state)
        if len(piece) == PIECE_ROWS or time.monotonic() >= until:
            yield _with_rewards(store, bandit_number, state.bandit.names, piece)
            piece, until = [], time.monotonic() + PIECE_SECONDS
    yield _with_rewards(store, bandit_number, state.bandit.names, piece)


def _propensity(bandit: Bandit, state: LoggedState, row: EventRow, draws: int) -> float:
    """Return the probability of a decision of a bandit without a recorded one, before it is applied to the state.

    It is exact for most policies (`Bandit.exact_propensities`); otherwise the share of the same arm among `draws` other
    draws from the state that decided and the decision itself, which is never 0. The standard error of the share is at
    most 1 / (2 sqrt(draws)).
    """
    holdout, details = state.settings.holdout, read_details(row.body)
    if (row.step or 0) <= state.settings.imported:  # all arms are assumed to be equally likely, as for other logs
        return 1.0 / len(bandit.names)
    column, choice = row.arm or 0, choice_of(bandit.policy.functions)
    has_draws = choice is None or choice.law is not None
    counts = state.rules >= (RULES_WITH_ASSUMED_ZEROS if has_draws else RULES_WITH_PENDING_PLAYS)
    arm, context, among = bandit.names[column], details.context, details.among
    exact = bandit.exact_propensities(context, among, count_pending=counts)
    found = 0.0 if exact is None else exact.get(arm, 0.0)
    if exact is None or (found == 0.0 and not details.holdout):
        share = bandit.propensities(context, draws, counts, among=among).get(arm, 0.0)
        found = share if details.holdout else (share * draws + 1.0) / (draws + 1.0)
    return found if holdout is None else holdout.marginal(found, column, bandit, among)


def _with_rewards(store: Store, bandit_number: int, names: Sequence[str], piece: list[Replayed]) -> list[Exported]:
    """Join decisions with their rewards."""
    if not piece:
        return []
    ids = store.decision_ids()
    outcomes = store.outcomes(bandit_number, piece[0].row.step or 0, piece[-1].row.step or 0)
    found = []
    for row, arm, propensity, replayed in piece:
        step, details = row.step or 0, read_details(row.body)
        kind, value, rewarded = outcomes.get(step, (None, None, row.arm))
        one = Exported(
            step=step,
            decision=ids.make(bandit_number, step),
            arm=arm,
            propensity=propensity,
            reward=value,
            closed=kind == CLOSE,
            time=row.time,
            wall=row.wall,
            replayed=replayed,
            context=details.context,
            unit=details.unit,
            holdout=details.holdout,
        )
        ranking = details.ranking
        if ranking is not None and rewarded is not None:
            one.ranking = [names[column] for column in ranking]
            if rewarded != row.arm:
                one.reward, one.taken_reward = None, value
                one.taken, one.position = names[rewarded], ranking.index(rewarded) + 1
        found.append(one)
    return found


def decision_lines(store: Store, bandit_number: int, draws: int, is_wanted: IsWanted = lambda: True) -> Iterator[bytes]:
    """Return the decisions as NDJSON."""
    for piece in decisions(store, bandit_number, draws, is_wanted):
        yield msgspec.json.Encoder().encode_lines(piece)


def declared_features(store: Store, bandit_number: int) -> dict[str, Any] | None:
    """Return the features that a bandit was created with."""
    [created] = store.events(bandit_number, 0, 1, (CREATE,))
    features: dict[str, Any] | None = json.loads(created.body or "{}").get("features")
    return features


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def parquet_pieces(store: Store, bandit_number: int, draws: int, is_wanted: IsWanted = lambda: True) -> Iterator[bytes]:
    """Return the decisions as the pieces of a Parquet file.

    A context is a text in JSON. The metadata of the file declare the features, as the bandit does, for `offline.read`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {
        "step": pa.int64(), "decision": pa.string(), "arm": pa.string(), "propensity": pa.float64(),
        "reward": pa.float64(), "closed": pa.bool_(), "time": pa.float64(), "wall": pa.float64(),
        "replayed": pa.bool_(), "context": pa.string(), "unit": pa.string(), "holdout": pa.bool_(),
        "ranking": pa.list_(pa.string()), "taken": pa.string(), "position": pa.int64(), "taken_reward": pa.float64(),
    }  # fmt: skip
    declared = declared_features(store, bandit_number)
    schema = pa.schema(list(kinds.items()), metadata=declared and {PARQUET_KEY: json.dumps(declared)})
    target = io.BytesIO()
    with pq.ParquetWriter(target, schema) as writer:
        for piece in decisions(store, bandit_number, draws, is_wanted):
            if piece:
                columns = {field: [getattr(one, field) for one in piece] for field in kinds}
                columns["context"] = [None if one is None else json.dumps(one) for one in columns["context"]]
                writer.write_table(pa.table(columns, schema=schema))
            yield _take(target)
    yield _take(target)


def read_decisions(store: Store, name: str) -> tuple[dict[str, list[Any]], dict[str, Any] | None]:
    """Return the decisions of a bandit as columns in memory, and its declared features."""
    bandit_number = store.find_log(name, None)
    rows = [row for piece in decisions(store, bandit_number, DEFAULT_DRAWS) for row in piece]
    found = {field: [getattr(row, field) for row in rows] for field in Exported.__struct_fields__}
    return found, declared_features(store, bandit_number)


def _take(target: io.BytesIO) -> bytes:
    """Take what was written since the last call; the Parquet writer counts the bytes itself."""
    piece = target.getvalue()
    target.seek(0)
    target.truncate()
    return piece
