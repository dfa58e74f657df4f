"""Reads rows from CSV, Parquet or memory in batches, so that a file may be larger than memory."""

import codecs
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dynabandit.extras import import_extra
from dynabandit.features import PARQUET_KEY
from dynabandit.offline.rows import Columns, RawRows
from dynabandit.validation import listed, suggestion

BATCH = 8192  # rows
BUFFER = 1 << 20
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
PARQUET = (".parquet", ".pq")
MISSING = ("NAType", "NaTType")  # missing values in pandas
OTHER_FORMATS = {
    b"PAR1": "Parquet; give it a name that ends in .parquet",
    b"\x1f\x8b": "compressed; unpack it first",
    b"PK\x03\x04": "an archive; unpack it first, or save a table as CSV",
    b"{": "JSON; write it as CSV or Parquet, such as with format=parquet of the service's export",
    b"[{": "JSON; write it as CSV or Parquet",
}
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Source(Protocol):
    """Rows that can be read repeatedly."""

    name: str

    def header(self) -> list[str]:
        """Return the names of all columns; none if they cannot be read, which `read` then reports."""

    def features(self) -> dict[str, Any] | None:
        """Return the features of contexts that the source itself declares."""

    def read(self, columns: Columns) -> Iterator[RawRows]:
        """Yield all rows in batches."""


def open_file(path: str | Path, encoding: str = "utf-8", separator: str = ",") -> Source:
    """Return the source for a file: Parquet for .parquet and .pq, else CSV."""
    path = Path(path)
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise ValueError(f"{path} is a pipe or a device, and a log is read several times: write it to a file first")
    return ParquetFile(path) if path.suffix.lower() in PARQUET else CsvFile(path, encoding, separator)


def find_columns(columns: Columns, header: Sequence[str], name: str) -> dict[str, int]:
    """Return the index of the column of each role, or raise an error that lists the columns."""
    found = {}
    known = listed(header)
    for role, column in columns.named():
        if column not in header:
            raise ValueError(
                f"{name} has no column {column!r} for the {role}.{suggestion(column, header)} Its columns: {known}"
            )
        if header.count(column) > 1:
            raise ValueError(
                f"{name} has {header.count(column)} columns named {column!r}, and only one can be the {role}"
            )
        found[role] = header.index(column)
    return found


class CsvFile:
    """A CSV file whose first line names the columns.

    It is read with the csv module because pyarrow.csv, from an optional dependency, knows neither the lines of bad rows
    nor what is missing in a row that is too short.
    """

    def __init__(self, path: Path, encoding: str = "utf-8", separator: str = ",") -> None:
        try:
            "a".encode(encoding, "surrogateescape")
        except (LookupError, UnicodeError):
            raise ValueError(f"encoding must be one that Python knows, such as latin-1, got {encoding!r}") from None
        if len(separator) != 1:
            raise ValueError(f"separator must be one character, got {separator!r}")
        self.path, self.encoding, self.separator = path, encoding, separator
        self.name = str(path)

    def header(self) -> list[str]:
        """Return the names of all columns, or none if the first line cannot be read."""
        try:
            with self.path.open(encoding=self._checked_encoding(), errors="surrogateescape", newline="") as file:
                return next(csv.reader(file, delimiter=self.separator), [])
        except (csv.Error, UnicodeError):
            return []

    def features(self) -> None:
        """Return None: a CSV file declares no features."""

    def read(self, columns: Columns) -> Iterator[RawRows]:
        """Yield all rows in batches; undecodable bytes stay visible in their values."""
        encoding = self._checked_encoding()
        with self.path.open(encoding=encoding, errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, delimiter=self.separator)
            try:
                header = next(reader, None)
                if not header:
                    raise ValueError(f"{self.name} is empty: its first line must name the columns")
                yield from self._rows(reader, find_columns(columns, header, self.name))
            except (csv.Error, UnicodeDecodeError) as error:
                raise ValueError(f"{self.name} cannot be read near line {reader.line_num}: {error}") from None

    def _rows(self, reader: Any, indices: dict[str, int]) -> Iterator[RawRows]:
        first, lines = 1, []
        values: dict[str, list[Any]] = {role: [] for role in indices}
        for row in reader:
            if not row:  # a blank line
                continue
            lines.append(reader.line_num)
            for role, index in indices.items():
                values[role].append(row[index] if index < len(row) and row[index] != "" else None)
            if len(lines) == BATCH:
                yield RawRows(first, lines, dict(values))
                first, lines, values = first + BATCH, [], {role: [] for role in indices}
        if lines:
            yield RawRows(first, lines, dict(values))

    def _checked_encoding(self) -> str:
        with self.path.open("rb") as file:
            start = file.read(4)
        plain = codecs.lookup(self.encoding).name == "utf-8"
        for mark, encoding in BYTE_ORDER_MARKS.items():
            if plain and start.startswith(mark):
                raise ValueError(f"{self.name}, row 1: the file is {encoding}, not utf-8; give encoding {encoding}")
        for mark, what in OTHER_FORMATS.items():
            if start.startswith(mark):
                raise ValueError(f"{self.name} must be CSV with a line of column names, but is {what}")
        return "utf-8-sig" if plain else self.encoding


class ParquetFile:
    """A Parquet file; only the named columns are read."""

    def __init__(self, path: Path) -> None:
        self.parquet = import_extra("pyarrow.parquet", "lab")
        self.path = path
        self.name = str(path)

    def header(self) -> list[str]:
        """Return the names of all columns, or none if the file is not Parquet."""
        schema = self._schema()
        return [] if schema is None else list(schema.names)

    def features(self) -> dict[str, Any] | None:
        """Return the features in the metadata, where the service declares them."""
        schema = self._schema()
        declared = ((schema and schema.metadata) or {}).get(PARQUET_KEY.encode())
        return None if declared is None else json.loads(declared)

    def _schema(self) -> Any:
        lib = import_extra("pyarrow", "lab")
        try:
            return self.parquet.read_schema(self.path)
        except (lib.ArrowInvalid, lib.ArrowNotImplementedError, OSError):
            return None

    def read(self, columns: Columns) -> Iterator[RawRows]:
        """Yield all rows in batches."""
        lib = import_extra("pyarrow", "lab")
        try:
            with self.parquet.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False) as file:
                header = list(file.schema_arrow.names)
                find_columns(columns, header, self.name)
                first = 1
                names = dict(columns.named())
                for batch in file.iter_batches(BATCH, columns=list(names.values()), use_threads=False):
                    values: dict[str, Sequence[Any]] = {
                        role: _values(lib, batch.column(name)) for role, name in names.items()
                    }
                    yield RawRows(first, None, values)
                    first += batch.num_rows
        except (lib.ArrowInvalid, lib.ArrowNotImplementedError, OSError) as error:
            raise ValueError(f"{self.name} cannot be read as Parquet: {error}") from None


def _values(lib: Any, column: Any) -> list[Any]:
    """Return the values of a column; times as seconds, since those of Python have no nanoseconds."""
    if not lib.types.is_timestamp(column.type):
        return column.to_pylist()
    ticks = TICKS[column.type.unit]
    return [None if value is None else value / ticks for value in column.cast(lib.int64()).to_pylist()]


class Memory:
    """Columns in memory: a mapping from names to lists or arrays, or a data frame."""

    def __init__(self, table: Any, name: str = "the log", features: dict[str, Any] | None = None) -> None:
        self.table, self.name, self._features = table, name, features

    def header(self) -> list[str]:
        """Return the names of all columns."""
        return list(self.table.keys() if isinstance(self.table, Mapping) else self.table.columns)

    def features(self) -> dict[str, Any] | None:
        """Return the features that were declared with the table."""
        return self._features

    def read(self, columns: Columns) -> Iterator[RawRows]:
        """Yield all rows in batches."""
        find_columns(columns, self.header(), self.name)
        values = {role: _listed(self.table[name]) for role, name in columns.named()}
        lengths = {role: len(column) for role, column in values.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{self.name} must have columns of equal length, got {lengths}")
        for low in range(0, lengths["arm"], BATCH):
            yield RawRows(low + 1, None, {role: column[low : low + BATCH] for role, column in values.items()})


def _listed(column: Any) -> list[Any]:
    for convert in ("to_list", "tolist"):
        if hasattr(column, convert):
            column = getattr(column, convert)()
    return [None if type(value).__name__ in MISSING else value for value in column]
