"""What was acknowledged survives a power cut; without syncing it would not."""

import os
import random
import threading
import uuid
from pathlib import Path

import apsw
import pytest

from dynabandit.client import Client
from dynabandit.service.stores import SqliteStore, open_store
from dynabandit.service.stores.unit_table import find_units, unit_hash
from tools.harness import ARMS, PRODUCT, Running, assert_replay_agrees, visitor
from tools.power import Disk, ForgetfulVFS
from tools.waiting import PATIENCE, wait_for

Cut = tuple[dict[str, tuple[str, float | None]], dict[str, bytes]]  # what was acknowledged, and the disk
CUTS = 60 if os.environ.get("DYNABANDIT_LONG_FAULTS") else 6


def forgetful_store(path: Path, disk: Disk, *more: str) -> tuple[SqliteStore, ForgetfulVFS]:
    vfs = ForgetfulVFS(f"forgetful-{uuid.uuid4().hex}", disk)
    # Python's layer offers SQLite no shared memory, which WAL needs unless one connection has the file for itself
    settings = ("PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", *more)
    store = SqliteStore(
        str(path),
        connect=lambda name: apsw.Connection(name, vfs=vfs.name),
        errors=(apsw.Error, OSError),
        constraint_errors=(apsw.ConstraintError,),
        settings=settings,
    )
    return store, vfs


def cut_under_load(folder: Path, survive: float, *settings: str) -> list[Cut]:
    """Serve under load and cut the power again and again; return what was acknowledged before each cut."""
    disk = Disk()
    store, _vfs = forgetful_store(folder / "store.db", disk, *settings)
    server = Running(store)
    chance, over = random.Random(1), threading.Event()
    acknowledged: dict[str, tuple[str, float | None]] = {}  # key -> decision, reward

    def call(number: int) -> None:
        with Client(server.url, timeout=PATIENCE, tries=1) as client:
            turn = 0
            while not over.is_set():
                turn += 1
                key = f"{number}-{turn}"
                decision = client.decide("b", key=key, **visitor(key, turn))
                acknowledged[key] = (decision.decision, None)
                client.reward(decision.decision, turn % 2)
                acknowledged[key] = (decision.decision, float(turn % 2))

    cuts = []
    with Client(server.url, timeout=PATIENCE) as client:
        client.create("b", ARMS, seed=1, **{**PRODUCT, "policy": "ts"})
    callers = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(4)]
    for caller in callers:
        caller.start()
    for _ in range(CUTS):
        enough = len(acknowledged) + chance.randrange(5, 25)
        wait_for(lambda enough=enough: len(acknowledged) >= enough)  # type: ignore[misc]
        known = dict(acknowledged)  # before the cut, so that all of it must be there after it
        cuts.append((known, disk.cut(chance, survive)))
    over.set()
    for caller in callers:
        caller.join(PATIENCE)
        assert not caller.is_alive()
    server.stop()
    return cuts


def lost(cut: Cut, folder: Path) -> int:
    """Start from what the disk held and count the acknowledged decisions and rewards that are not there."""
    known, files = cut
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    store = open_store(f"sqlite:///{folder}/store.db")
    store.prepare()
    number = store.find("b")
    rows = [] if number is None else list(store.log(number))
    decided = {row.key: row.step for row in rows if row.step is not None}
    rewarded = {row.settles: row.value for row in rows if row.settles is not None}
    assert len(rewarded) == sum(row.settles is not None for row in rows)
    units = {key: find_units(store, [(number or 0, unit_hash(key))]) for key in known}
    store.close()
    missing = 0
    for key, (decision, reward) in known.items():
        step = int(decision.split("-")[1])
        missing += decided.get(key) != step
        missing += [row.step for row in units[key].values()] != [step]
        missing += reward is not None and rewarded.get(step) != reward
    if number is not None:
        assert_replay_agrees(f"sqlite:///{folder}/store.db")
    return missing


@pytest.mark.promise(24, 92)
@pytest.mark.parametrize("survive", [0.0, 0.5], ids=["cache lost", "cache half written"])
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, survive: float) -> None:
    cuts = cut_under_load(tmp_path, survive, "PRAGMA synchronous=FULL")
    assert [lost(cut, tmp_path / f"cut{number}") for number, cut in enumerate(cuts)] == [0] * len(cuts)


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_this_test_would_notice_a_missing_sync(tmp_path: Path, synchronous: str) -> None:
    # With NORMAL a checkpoint syncs the file, and a cut soon after that would lose nothing
    cuts = cut_under_load(tmp_path, 0.0, f"PRAGMA synchronous={synchronous}", "PRAGMA wal_autocheckpoint=0")
    losses = [lost(cut, tmp_path / f"cut{number}") for number, cut in enumerate(cuts)]
    assert min(losses) > 0


@pytest.mark.promise(24)
def test_the_store_as_shipped_syncs_every_commit(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "store.db"))
    store.prepare()
    assert store.rows("PRAGMA synchronous") == [(2,)], "FULL"
    assert store.rows("PRAGMA journal_mode") == [("wal",)]
    store.close()
