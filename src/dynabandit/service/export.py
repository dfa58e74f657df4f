"""Exports of the log: events, and decisions with the propensities that a replay computes."""

import importlib.util
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from dynabandit.service.api_types import Event, Exported
from dynabandit.service.domain.bandit_state import RULES, RULES_WITH_PENDING_PLAYS
from dynabandit.service.domain.decision_details import read_details
from dynabandit.service.domain.events import CLOSE, DECISION, EventRow, HeldDecision, Settlement, api_event
from dynabandit.service.domain.learning import Log
from dynabandit.service.domain.log_start import state_at_start
from dynabandit.service.errors import InvalidValueError, StreamInterruptedError
from dynabandit.service.stores import Store

PIECE_ROWS = 1_000  # only one piece of the export is in memory
PIECE_SECONDS = 0.5  # then another export has its turn
MAX_DRAWS = 20_000_000  # per decision, times arms: the default for the largest bandit, which takes a second or two
Item = TypeVar("Item")
IsWanted = Callable[[], bool]


class InterruptibleLog:
    """A log whose reader may leave while it is read."""

    def __init__(self, log: Log, is_wanted: IsWanted) -> None:
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
            raise StreamInterruptedError
        yield item


def check_draws(store: Store, number: int, draws: int) -> None:
    """Raise an error if a bandit has too many arms for this many draws per decision."""
    arms = len(store.arm_names(number))
    if draws * arms > MAX_DRAWS:
        raise InvalidValueError(f"draws must be at most {MAX_DRAWS // arms} with {arms} arms, got {draws}")


def page_of_events(store: Store, number: int, after: int, limit: int, kinds: Sequence[str] = ()) -> list[Event]:
    """Return a page of the events after a sequence number."""
    names, ids = store.arm_names(number), store.decision_ids()
    return [api_event(event, names, ids) for event in store.events(number, after, limit, kinds)]


def event_lines(store: Store, number: int, after: int, kinds: Sequence[str] = ()) -> Iterator[bytes]:
    """Return the events after a sequence number as NDJSON."""
    while page := page_of_events(store, number, after, PIECE_ROWS, kinds):
        yield msgspec.json.Encoder().encode_lines(page)
        after = page[-1].sequence


def decisions(store: Store, number: int, draws: int, is_wanted: IsWanted = lambda: True) -> Iterator[list[Exported]]:
    """Replay a log and return its decisions in pieces; a piece may be empty, because each takes a limited time.

    When `is_wanted` returns false the replay ends with `StreamInterruptedError`.

    The propensity of a decision is the share of the same arm among `draws` other draws from the state that decided
    and the decision itself; it is therefore never 0. Its standard error is at most 1 / (2 sqrt(draws)), and 0 for a
    policy that decides without randomness. Imported decisions have the propensity of their file; without one, all arms
    are assumed to have been equally likely, as for other logs.
    """
    state = state_at_start(store, number, InterruptibleLog(store, is_wanted))
    piece: list[Replayed] = []
    until = time.monotonic() + PIECE_SECONDS
    for row in _while_wanted(store.log(number, state.sequence), is_wanted):
        is_current = state.rules == RULES
        counts = state.rules >= RULES_WITH_PENDING_PLAYS
        details = read_details(row.body if row.kind == DECISION else None)
        is_imported = (row.step or 0) <= state.settings.imported
        before = (
            state.bandit.propensities(details.context, draws, counts, among=details.among)
            if row.kind == DECISION and not is_imported
            else {}
        )
        state.apply(row)
        if row.kind == DECISION and is_imported:
            arm, equal = state.bandit.names[row.arm or 0], 1.0 / len(state.bandit.names)
            piece.append(Replayed(row, arm, equal if row.value is None else row.value, replayed=False))
        elif row.kind == DECISION:
            arm = state.bandit.names[row.arm or 0]
            propensity = (before.get(arm, 0.0) * draws + 1.0) / (draws + 1.0)
            piece.append(Replayed(row, arm, propensity, is_current))
        if len(piece) == PIECE_ROWS or time.monotonic() >= until:
            yield _with_rewards(store, number, state.bandit.names, piece)
            piece, until = [], time.monotonic() + PIECE_SECONDS
    yield _with_rewards(store, number, state.bandit.names, piece)


def _with_rewards(store: Store, number: int, names: Sequence[str], piece: list[Replayed]) -> list[Exported]:
    """Join decisions with their rewards."""
    if not piece:
        return []
    ids = store.decision_ids()
    outcomes = store.outcomes(number, piece[0].row.step or 0, piece[-1].row.step or 0)
    found = []
    for row, arm, propensity, replayed in piece:
        step = row.step or 0
        kind, value, rewarded = outcomes.get(step, (None, None, row.arm))
        decision = ids.make(number, step)
        one = Exported(step, decision, arm, propensity, value, kind == CLOSE, row.time, row.wall, replayed)
        ranking = read_details(row.body).ranking
        if ranking is not None and rewarded is not None:
            one.ranking = [names[column] for column in ranking]
            if rewarded != row.arm:
                one.reward, one.taken_reward = None, value
                one.taken, one.position = names[rewarded], ranking.index(rewarded) + 1
        found.append(one)
    return found


def decision_lines(store: Store, number: int, draws: int, is_wanted: IsWanted = lambda: True) -> Iterator[bytes]:
    """Return the decisions as NDJSON."""
    for piece in decisions(store, number, draws, is_wanted):
        yield msgspec.json.Encoder().encode_lines(piece)


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def parquet_pieces(store: Store, number: int, draws: int, is_wanted: IsWanted = lambda: True) -> Iterator[bytes]:
    """Return the decisions as the pieces of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {
        "step": pa.int64(), "decision": pa.string(), "arm": pa.string(), "propensity": pa.float64(),
        "reward": pa.float64(), "closed": pa.bool_(), "time": pa.float64(), "wall": pa.float64(),
        "replayed": pa.bool_(), "ranking": pa.list_(pa.string()), "taken": pa.string(), "position": pa.int64(),
        "taken_reward": pa.float64(),
    }  # fmt: skip
    schema = pa.schema(list(kinds.items()))
    target = io.BytesIO()
    with pq.ParquetWriter(target, schema) as writer:
        for piece in decisions(store, number, draws, is_wanted):
            if piece:
                columns = {field: [getattr(one, field) for one in piece] for field in kinds}
                writer.write_table(pa.table(columns, schema=schema))
            yield _take(target)
    yield _take(target)


def _take(target: io.BytesIO) -> bytes:
    """Take what was written since the last call; the Parquet writer counts the bytes itself."""
    piece = target.getvalue()
    target.seek(0)
    target.truncate()
    return piece
