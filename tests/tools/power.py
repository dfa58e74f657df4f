"""A file layer that forgets what was not synced: what a disk holds after the power went out.

Every file that SQLite writes has a twin that only a sync brings up to date. A power cut is a copy of the twins; of
the writes since the last sync any part may have reached the disk, in any order, so a cut may add some of them.
"""

import random
import threading
from pathlib import Path
from typing import Any

import apsw


class Disk:
    """The files as the disk has them for sure, and the writes that it may still have in its cache."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.safe: dict[str, bytearray] = {}
        self.unsynced: dict[str, list[tuple[int, bytes | None]]] = {}  # (offset, data), or (size, None)
        self.syncs = 0

    def write(self, name: str, offset: int, data: bytes) -> None:
        with self.lock:
            self.unsynced.setdefault(name, []).append((offset, bytes(data)))

    def truncate(self, name: str, size: int) -> None:
        with self.lock:
            self.unsynced.setdefault(name, []).append((size, None))

    def sync(self, name: str) -> None:
        with self.lock:
            self.syncs += 1
            content = self.safe.setdefault(name, bytearray())
            for change in self.unsynced.pop(name, []):
                _apply(content, *change)

    def delete(self, name: str) -> None:
        with self.lock:
            self.safe.pop(name, None)
            self.unsynced.pop(name, None)

    def cut(self, chance: random.Random, survive: float) -> dict[str, bytes]:
        """Return the files after a power cut now; each unsynced write survives with this probability."""
        with self.lock:
            files = {name: bytearray(content) for name, content in self.safe.items()}
            for name, changes in self.unsynced.items():
                for change in changes:
                    if chance.random() < survive:
                        _apply(files.setdefault(name, bytearray()), *change)
            return {name: bytes(content) for name, content in files.items()}


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(b"\0" * (offset - len(content)))
    content[offset : offset + len(data)] = data


class ForgetfulVFS(apsw.VFS):
    """SQLite's own file layer, with a `Disk` that watches."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.disk = disk
        self.name = name
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> "ForgetfulFile":  # noqa: N802 - SQLite's name for it
        return ForgetfulFile(self.disk, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self.disk.delete(Path(name).name)
        super().xDelete(name, sync)


class ForgetfulFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.file = Path(name.filename() if isinstance(name, apsw.URIFilename) else (name or "temporary")).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self.disk.write(self.file, offset, data)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self.disk.truncate(self.file, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self.disk.sync(self.file)
