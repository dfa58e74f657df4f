"""The log for other tools: events as lines, and decisions with propensities that a replay computes."""

import importlib.util
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dynabandit.service.events import CLOSE, DECISION, Row
from dynabandit.service.fold import State
from dynabandit.service.names import decision_id, public_id
from dynabandit.service.service import find_log, shown_events
from dynabandit.service.stores import Store
from dynabandit.service.types import Exported

__all__ = ["decision_lines", "decisions", "event_lines", "has_parquet", "parquet_pieces"]

ROWS = 1_000  # a piece of the export; what a piece needs is all that is kept in memory


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


def decisions(store: Store, number: int, draws: int) -> Iterator[list[Exported]]:
    """Replay a log and return its decisions, a piece at a time.

    The propensity of a decision counts how often, in `draws` other draws from the very state that decided and in
    the decision itself, the same arm was chosen; it is therefore never 0. Its standard error is at most
    1 / (2 sqrt(draws)), and 0 for a policy that decides without chance.
    """
    state = State(number, store.rewards_before)
    piece: list[tuple[Row, str, float]] = []
    for row in store.log(number):
        before = state.bandit.propensities(draws) if row.kind == DECISION else {}
        state.apply(row)
        if row.kind == DECISION:
            arm = state.bandit.names[row.arm or 0]
            piece.append((row, arm, (before[arm] * draws + 1.0) / (draws + 1.0)))
        if len(piece) == ROWS:
            yield _settled(store, number, piece)
            piece = []
    if piece:
        yield _settled(store, number, piece)


def _settled(store: Store, number: int, piece: list[tuple[Row, str, float]]) -> list[Exported]:
    """Join decisions with what became of them."""
    public = public_id(number)
    outcomes = store.outcomes(number, piece[0][0].step or 0, piece[-1][0].step or 0)
    found = []
    for row, arm, propensity in piece:
        step = row.step or 0
        kind, value = outcomes.get(step, (None, None))
        decision = decision_id(public, step)
        found.append(Exported(step, decision, arm, propensity, value, kind == CLOSE, row.time, row.wall))
    return found


def decision_lines(store: Store, name: str, id: str | None, draws: int) -> Iterator[bytes]:  # noqa: A002
    """Return the decisions as NDJSON."""
    for piece in decisions(store, find_log(store, name, id), draws):
        yield msgspec.json.Encoder().encode_lines(piece)


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def parquet_pieces(store: Store, name: str, id: str | None, draws: int) -> Iterator[bytes]:  # noqa: A002
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
        for piece in decisions(store, find_log(store, name, id), draws):
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
