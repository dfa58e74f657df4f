"""The file of a local decider: what was appended is there after a crash, and nothing else."""

import os
from pathlib import Path

import msgspec
import pytest

from dynabandit.client.local_log import LocalLog
from dynabandit.service.local_types import LocalBatch, LocalDecision, LocalReward

DECIDER, SECRET = "0123456789abcdef", "0123456789abcdef" * 2


def batch(first: int, decisions: int = 2) -> LocalBatch:
    reward = LocalReward(DECIDER, first, 1.0)
    some = [LocalDecision(arm) for arm in range(decisions)]
    return LocalBatch(id="000000000011", decider=DECIDER, first=first, base=7, decisions=some, rewards=[reward])


def contents(folder: Path) -> list[LocalBatch]:
    """What a decider that starts after a crash finds."""
    [log] = LocalLog.adopt(folder, "b-")
    assert log.secret == SECRET
    found = []
    while (one := log.first()) is not None:
        found.append(msgspec.json.decode(one, type=LocalBatch))
        log.acknowledge()
    log.close()
    return found


def crash(log: LocalLog) -> bytes:
    """End as a killed process does: the lock is gone, the file stays. Return its bytes."""
    os.close(log._file)
    return log.path.read_bytes()


def test_batches_are_found_after_a_crash_in_their_order(tmp_path: Path) -> None:
    log = LocalLog.create(tmp_path, "b-1", SECRET)
    log.append([batch(1), batch(3)])
    log.append([batch(5)])
    assert (log.waiting, len(log)) == (9, 3)
    assert list(LocalLog.adopt(tmp_path, "b-")) == [], "a file in use is not taken"
    crash(log)
    assert contents(tmp_path) == [batch(1), batch(3), batch(5)]
    assert list(tmp_path.iterdir()) == [], "a file without batches that wait is removed"


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_an_incomplete_record_is_cut_off(tmp_path: Path, damage: str) -> None:
    log = LocalLog.create(tmp_path, "b-1", SECRET)
    log.append([batch(1)])
    whole = log._size
    log.append([batch(3)])
    path, content = log.path, crash(log)
    for place in range(whole, len(content)):
        if damage == "cut":
            path.write_bytes(content[:place])
        else:
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        [again] = LocalLog.adopt(tmp_path, "b-")
        assert again.first() == msgspec.json.encode(batch(1))
        assert len(again) == 1
        again.append([batch(3)])  # it continues after the last complete record
        assert crash(again) == content


def test_a_batch_that_is_too_long_for_a_request_becomes_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.client.local_log.MAX_CONTENT", 200)
    log, long = LocalLog.create(tmp_path, "b-1", SECRET), batch(7, decisions=30)
    log.append([long])
    assert log.waiting == 31
    crash(log)
    parts = contents(tmp_path)
    assert len(parts) > 2
    assert [one for part in parts for one in part.decisions] == long.decisions
    steps = [step for part in parts for step in range(part.first, part.first + len(part.decisions))]
    assert steps == list(range(7, 37))
    assert [part.rewards for part in parts] == [[]] * (len(parts) - 1) + [long.rewards], "after all decisions"


def test_an_acknowledged_file_is_emptied_and_used_again(tmp_path: Path) -> None:
    log = LocalLog.create(tmp_path, "b-1", SECRET)
    log.append([batch(1), batch(3)])
    log.acknowledge()
    assert log.path.stat().st_size > 0, "one batch still waits"
    log.acknowledge()
    assert (log.path.read_text(), log.waiting, log.first()) == (SECRET, 0, None)
    log.append([batch(5)])
    crash(log)
    assert contents(tmp_path) == [batch(5)]


def test_after_a_failed_write_nothing_of_it_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LocalLog.create(tmp_path, "b-1", SECRET)
    log.append([batch(1)])

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            log.append([batch(3)])
    assert log.waiting == 3
    log.append([batch(5)])
    crash(log)
    assert contents(tmp_path) == [batch(1), batch(5)]


def test_batches_are_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, synced = LocalLog.create(tmp_path, "b-1", SECRET), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    log.append([batch(1)])
    assert synced == [len(SECRET) + len(msgspec.json.encode(batch(1))) + 8]
