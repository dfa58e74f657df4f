"""The log for other tools: events as lines, and decisions with propensities that a replay computes."""

import importlib.util
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from dynabandit.service.api_types import Exported
from dynabandit.service.domain.bandit_state import State
from dynabandit.service.domain.events import CLOSE, DECISION, Row
from dynabandit.service.domain.names import decision_id, public_id
from dynabandit.service.errors import Interrupted, Refused
from dynabandit.service.service import find_log, shown_events
from dynabandit.service.stores import Store

__all__ = ["check_draws", "decision_lines", "decisions", "event_lines", "has_parquet", "parquet_pieces"]

ROWS = 1_000  # a piece of the export; what a piece needs is all that is kept in memory
PIECE_SECONDS = 0.5  # then another export has its turn
MOST_DRAWS = 20_000_000  # for a decision, times arms: the default for the largest bandit, and a second or two
Item = TypeVar("Item")


def _always() -> bool:
    return True


def _while_wanted(items: Iterable[Item], wanted: Callable[[], bool]) -> Iterator[Item]:
    for item in items:
        if not wanted():
            raise Interrupted
        yield item


def check_draws(store: Store, name: str, id: str | None, draws: int) -> None:  # noqa: A002
    """Refuse an export of a bandit that is not there, or for which it would draw too often."""
    arms = len(store.arm_names(find_log(store, name, id)))
    if draws * arms > MOST_DRAWS:
        raise Refused(422, f"draws must be at most {MOST_DRAWS // arms} with {arms} arms, got {draws}")


def event_lines(
    store: Store,
    name: str,
    id: str | None,  # noqa: A002
    after: int,
    kinds: Sequence[str] = (),
) -> Iterator[bytes]:
    """Return the events after a sequence number as NDJSON."""
    number = find_log(store, name, id)
    while page := store.events(number, after, ROWS, kinds):
        yield msgspec.json.Encoder().encode_lines(list(shown_events(store, number, page)))
        after = page[-1].sequence


def decisions(store: Store, number: int, draws: int, wanted: Callable[[], bool] = _always) -> Iterator[list[Exported]]:
    """Replay a log and return its decisions, a piece at a time; a piece may be empty, because none takes long.

    Where `wanted` says no the replay ends with `Interrupted`.

    The propensity of a decision counts how often, in `draws` other draws from the very state that decided and in
    the decision itself, the same arm was chosen; it is therefore never 0. Its standard error is at most
    1 / (2 sqrt(draws)), and 0 for a policy that decides without chance.
    """
    state = State(number, lambda *before: _while_wanted(store.rewards_before(*before), wanted))
    piece: list[tuple[Row, str, float]] = []
    until = time.monotonic() + PIECE_SECONDS
    for row in _while_wanted(store.log(number), wanted):
        before = state.bandit.propensities(draws) if row.kind == DECISION else {}
        state.apply(row)
        if row.kind == DECISION:
            arm = state.bandit.names[row.arm or 0]
            piece.append((row, arm, (before[arm] * draws + 1.0) / (draws + 1.0)))
        if len(piece) == ROWS or time.monotonic() >= until:
            yield _settled(store, number, piece)
            piece, until = [], time.monotonic() + PIECE_SECONDS
    yield _settled(store, number, piece)


def _settled(store: Store, number: int, piece: list[tuple[Row, str, float]]) -> list[Exported]:
    """Join decisions with what became of them."""
    if not piece:
        return []
    public = public_id(number)
    outcomes = store.outcomes(number, piece[0][0].step or 0, piece[-1][0].step or 0)
    found = []
    for row, arm, propensity in piece:
        step = row.step or 0
        kind, value = outcomes.get(step, (None, None))
        decision = decision_id(public, step)
        found.append(Exported(step, decision, arm, propensity, value, kind == CLOSE, row.time, row.wall))
    return found


def decision_lines(
    store: Store,
    name: str,
    id: str | None,  # noqa: A002
    draws: int,
    wanted: Callable[[], bool] = _always,
) -> Iterator[bytes]:
    """Return the decisions as NDJSON."""
    for piece in decisions(store, find_log(store, name, id), draws, wanted):
        yield msgspec.json.Encoder().encode_lines(piece)


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def parquet_pieces(
    store: Store,
    name: str,
    id: str | None,  # noqa: A002
    draws: int,
    wanted: Callable[[], bool] = _always,
) -> Iterator[bytes]:
    """Return the decisions as the pieces of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds: dict[str, Any] = {
        "step": pa.int64(), "decision": pa.string(), "arm": pa.string(), "propensity": pa.float64(),
        "reward": pa.float64(), "closed": pa.bool_(), "time": pa.float64(), "wall": pa.float64(),
    }  # fmt: skip
    schema = pa.schema(list(kinds.items()))
    target = io.BytesIO()
    with pq.ParquetWriter(target, schema) as writer:
        for piece in decisions(store, find_log(store, name, id), draws, wanted):
            if piece:
                columns = {field: [getattr(one, field) for one in piece] for field in kinds}
                writer.write_table(pa.table(columns, schema=schema))
            yield _taken(target)
    yield _taken(target)


def _taken(target: io.BytesIO) -> bytes:
    """Take what was written since the last time; the writer remembers where it is by itself."""
    piece = target.getvalue()
    target.seek(0)
    target.truncate()
    return piece
