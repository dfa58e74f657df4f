"""Stored results of tasks: one file for each, named by a hash of its request. Incomplete files are never read."""

import errno
import hashlib
import io
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dynabandit.core.json_values import plain

Arrays = dict[str, np.ndarray]

MAGIC = "dynabandit-result-1"
SUFFIX = ".result"
DAMAGED = ".damaged"
PARTIAL = ".partial"
LEFT_BEHIND = 3600.0  # seconds after which a partial file belongs to no process that still runs


class StorageError(OSError):
    """A folder that cannot be written; the message says which and why."""


def request_key(request: Mapping[str, Any]) -> str:
    """Return the key of the result of a request, a hash; 10 and 10.0 give the same.

    Examples
    --------
    >>> request_key({"memory": 10, "seed": 1}) == request_key({"seed": 1, "memory": 10.0})
    True
    """
    text = json.dumps(_numbers(plain(request)), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [inner if type(inner) is int else _numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ResultStore:
    """A folder with one file per result.

    Parameters
    ----------
    folder
        Where the files are. It is created when the first result is saved, or by `prepare`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.damaged: list[Path] = []
        """Files that failed their checksum and were set aside."""

    def path(self, key: str) -> Path:
        """Return the file of the result with this key."""
        return self.folder / f"{key}{SUFFIX}"

    def prepare(self) -> None:
        """Create the folder, check that it can be written, and delete what a killed process left behind."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            oldest = time.time() - LEFT_BEHIND
            for partial in self.folder.glob(f"*{PARTIAL}"):
                if partial.stat().st_mtime < oldest:
                    partial.unlink(missing_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()

    def load(self, key: str) -> Arrays | None:
        """Return a result, or None if there is none; a damaged file is renamed and ignored."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _decode(content, key)
        except ValueError:
            aside = path.with_suffix(DAMAGED)
            with writing(self.folder):
                os.replace(path, aside)
            self.damaged.append(aside)
            return None

    def save(self, key: str, arrays: Arrays, request: Mapping[str, Any]) -> None:
        """Store a result: after a crash of the machine it is there completely or not at all."""
        content = _encode(arrays, key, request)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # Named before it is created, so that Ctrl-C at any moment can delete it
            name = self.folder / f"{key[:16]}-{secrets.token_hex(4)}{PARTIAL}"
            try:
                with open(name, "xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self.path(key))
            except BaseException:
                name.unlink(missing_ok=True)
                raise
            _sync(self.folder)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete some results."""
        with writing(self.folder):
            for key in keys:
                self.path(key).unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an error of the system about a failed write into a message that names the folder."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = f"{reason} (no room for another file)"
        raise StorageError(f"cannot write into {folder}: {reason}") from error


def _encode(arrays: Arrays, key: str, request: Mapping[str, Any]) -> bytes:
    """Return a line with the checksum of the rest, a line that describes the result, then the arrays."""
    body = io.BytesIO()
    description = {"address": key, "arrays": list(arrays), "request": plain(request)}
    body.write(json.dumps(description, sort_keys=True).encode() + b"\n")
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    content = body.getvalue()
    return f"{MAGIC} {hashlib.sha256(content).hexdigest()}\n".encode() + content


def _decode(content: bytes, key: str) -> Arrays:
    head, _, rest = content.partition(b"\n")
    if head != f"{MAGIC} {hashlib.sha256(rest).hexdigest()}".encode():
        raise ValueError("the checksum does not match")
    body = io.BytesIO(rest)
    description = json.loads(body.readline())
    if description["address"] != key:
        raise ValueError("the file is named after another result than the one that it holds")
    return {name: np.load(body, allow_pickle=False) for name in description["arrays"]}


def _sync(folder: Path) -> None:
    """Make a rename durable; only POSIX systems can open a folder for that."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
