"""The files of a local decider: batches of decisions and rewards that wait until the service has stored them.

Each record is the body of one request, after its length and its CRC-32. A record that is incomplete, because the
process or the machine stopped while it was written, is cut off. Files are locked, so that several deciders can share a
folder: each has a file of its own, and a file that nobody has locked belongs to a decider that was killed. A file
begins with the secret of its decider, which the service wants with each batch. The files of release 0.2.0 have none.
"""

import contextlib
import fcntl
import hashlib
import os
import struct
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dynabandit.service.local_types import LocalBatch

HEADER = struct.Struct("<II")  # length and CRC-32 of the content
SUFFIX, REFUSED = ".unsent", ".refused"
SUFFIX_WITHOUT_SECRET = ".batches"  # deciders of release 0.2.0 adopt only these
SECRET_LENGTH = 32
MAX_CONTENT = 900_000  # bytes; the service takes requests of 1 MiB


class BatchRecord(NamedTuple):
    """Where a batch is in the file, and how many decisions and rewards it has."""

    place: int
    length: int
    size: int


class LocalLog:
    """An append-only file of batches, which is emptied when all of them were acknowledged.

    Acknowledgements are not stored: after a restart the batches of the file are sent again, which changes nothing.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._file = descriptor
        self._start = SECRET_LENGTH if path.suffix == SUFFIX else 0
        secret = os.pread(descriptor, self._start, 0).decode("latin-1")
        self.secret = secret if secret.isascii() and secret.isalnum() else None  # None also if the file is damaged
        self._lock = threading.Lock()
        self._batches: deque[BatchRecord] = deque()  # that are not acknowledged
        self.waiting = 0  # decisions and rewards that are not acknowledged
        self._size = self._start
        for content in self._read_all():
            self._note(content, size_of(msgspec.json.decode(content, type=LocalBatch)))
        os.ftruncate(self._file, self._size)

    @classmethod
    def create(cls, folder: Path, name: str, secret: str) -> "LocalLog":
        """Create a file without batches, given the secret of the decider, and lock it."""
        new, path = folder / f"{name}.new", folder / f"{name}{SUFFIX}"
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        lock(descriptor)
        try:
            os.pwrite(descriptor, secret.encode(), 0)  # the first batch syncs it
        except OSError:
            new.unlink()
            os.close(descriptor)
            raise
        os.rename(new, path)  # locked before others can see it
        sync_folder(folder)
        return cls(path, descriptor)

    @classmethod
    def adopt(cls, folder: Path, name: str) -> Iterator["LocalLog"]:
        """Open and lock the files whose names begin with `name` and whose deciders do not run any more."""
        for path in sorted((*folder.glob(f"{name}*{SUFFIX}"), *folder.glob(f"{name}*{SUFFIX_WITHOUT_SECRET}"))):
            with contextlib.suppress(FileNotFoundError):  # another decider was faster
                descriptor = os.open(path, os.O_RDWR)
                if not lock(descriptor):
                    os.close(descriptor)
                    continue
                log = cls(path, descriptor)
                if log.waiting:
                    yield log
                else:
                    log.close()

    def _read_all(self) -> Iterator[bytes]:
        """Return the contents of the complete records."""
        with open(os.dup(self._file), "rb") as file:
            file.seek(self._start)
            while len(header := file.read(HEADER.size)) == HEADER.size:
                length, checksum = HEADER.unpack(header)
                content = file.read(length)
                if length == 0 or len(content) < length or zlib.crc32(content) != checksum:
                    return
                yield content

    def _note(self, content: bytes, size: int) -> None:
        self._batches.append(BatchRecord(self._size + HEADER.size, len(content), size))
        self._size += HEADER.size + len(content)
        self.waiting += size

    def append(self, batches: Sequence[LocalBatch]) -> None:
        """Write batches, and return when they are durable; after an error none of them is in the file."""
        parts = [part for batch in batches for part in encoded(batch)]
        records = b"".join(HEADER.pack(len(one), zlib.crc32(one)) + one for one, _ in parts)
        with self._lock:
            try:
                written = 0
                while written < len(records):
                    written += os.pwrite(self._file, records[written:], self._size + written)
                os.fsync(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._size)
                raise
            for content, size in parts:
                self._note(content, size)

    def __len__(self) -> int:
        """Return how many batches are not acknowledged."""
        return len(self._batches)

    def first(self) -> bytes | None:
        """Return the first batch that is not acknowledged, as JSON."""
        with self._lock:
            if not self._batches:
                return None
            one = self._batches[0]
            return os.pread(self._file, one.length, one.place)

    def acknowledge(self) -> None:
        """Note that the service has stored the first batch."""
        with self._lock:
            self.waiting -= self._batches.popleft().size
            if not self._batches:
                os.ftruncate(self._file, self._start)
                self._size = self._start

    def set_aside(self) -> Path:
        """Move the first batch, which the service refuses for good, to another file, as a line of JSON; return it."""
        refused = self.path.with_suffix(REFUSED)
        with open(refused, "ab") as file:
            file.write((self.first() or b"") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.acknowledge()
        return refused

    def close(self) -> None:
        """Close the file; without batches that wait it is removed."""
        if not self._batches:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


def default_folder(url: str, bandit: str) -> Path:
    """Return the folder for the files of a bandit's deciders."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "dynabandit" / hashlib.sha256(f"{url} {bandit}".encode()).hexdigest()[:16]


def encoded(batch: LocalBatch) -> Iterator[tuple[bytes, int]]:
    """Return a batch as JSON, and its number of decisions and rewards; as several if it is too long for a request."""
    content, half = msgspec.json.encode(batch), len(batch.decisions) // 2
    if len(content) <= MAX_CONTENT or half == 0:
        yield content, size_of(batch)
    else:
        decisions = batch.decisions
        yield from encoded(msgspec.structs.replace(batch, decisions=decisions[:half], rewards=[]))
        yield from encoded(msgspec.structs.replace(batch, first=batch.first + half, decisions=decisions[half:]))


def size_of(batch: LocalBatch) -> int:
    """Return how many decisions and rewards a batch has."""
    return len(batch.decisions) + len(batch.rewards)


def lock(descriptor: int) -> bool:
    """Lock a file until it is closed or its process ends; return whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
