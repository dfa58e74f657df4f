import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynabandit.core.json_values import plain
from dynabandit.experiments.result_store import ResultStore, StorageError, request_key

ARRAYS = {"regret": np.arange(6.0).reshape(2, 3), "correct": np.array([1, 2, 3])}
REQUEST = {"policy": "ucb", "parameters": {"prior": (2.0, 2.0)}}
KEY = request_key(REQUEST)


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    store = ResultStore(tmp_path / "store")
    store.prepare()
    store.save(KEY, ARRAYS, REQUEST)
    return store


def assert_stored(store: ResultStore) -> None:
    found = store.load(KEY)
    assert found is not None
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def names(store: ResultStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


def test_a_result_comes_back_bit_for_bit(store: ResultStore) -> None:
    assert_stored(store)
    assert names(store) == [f"{KEY}.result"]


def test_what_was_never_saved_is_not_there(store: ResultStore) -> None:
    assert store.load("0" * 64) is None


def test_a_key_depends_on_the_request_and_not_on_how_it_is_written() -> None:
    assert request_key({"a": 1, "b": [2.0, 3]}) == request_key({"b": (2, np.float64(3.0)), "a": 1.0})
    assert request_key({"times": np.arange(3)}) == request_key({"times": [0, 1, 2]})
    assert request_key({"a": 1}) != request_key({"a": 1.5})
    assert request_key({"a": "1"}) != request_key({"a": 1})
    assert request_key({"a": True}) != request_key({"a": 1})
    assert request_key({"a": None}) != request_key({})


def test_plain_values_are_those_of_json() -> None:
    assert plain({"a": (1, [np.float64(2.5)]), "b": np.eye(2)}) == {"a": [1, [2.5]], "b": [[1.0, 0.0], [0.0, 1.0]]}


@pytest.mark.parametrize("cut", [0, 1, 40, 90, 200, -1])
def test_a_file_that_was_cut_short_is_set_aside_and_does_not_count(store: ResultStore, cut: int) -> None:
    path = store.path(KEY)
    path.write_bytes(path.read_bytes()[:cut])
    assert store.load(KEY) is None
    assert names(store) == [f"{KEY}.damaged"]
    assert [one.name for one in store.damaged] == [f"{KEY}.damaged"]
    store.save(KEY, ARRAYS, REQUEST)
    assert_stored(store)


def test_any_flipped_bit_is_noticed(store: ResultStore) -> None:
    path = store.path(KEY)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert store.load(KEY) is None, f"a flipped bit in byte {place} went unnoticed"


def test_a_file_under_the_name_of_another_does_not_count(store: ResultStore) -> None:
    other = "1" * 64
    os.replace(store.path(KEY), store.path(other))
    assert store.load(other) is None


def test_a_half_written_file_never_counts(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save("2" * 64, ARRAYS, REQUEST)
    assert names(store) == [f"{KEY}.result"]


def test_content_is_on_disk_before_it_gets_its_name(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def spied(name: str, function: Any) -> Any:
        return lambda *arguments: calls.append(name) or function(*arguments)  # type: ignore[func-returns-value]

    monkeypatch.setattr(os, "fsync", spied("fsync", fsync))
    monkeypatch.setattr(os, "replace", spied("replace", replace))
    store.save("2" * 64, ARRAYS, REQUEST)
    assert calls == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_what_a_killed_process_left_behind_is_dropped_once_it_is_old(store: ResultStore) -> None:
    old, new = store.folder / "a.partial", store.folder / "b.partial"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.prepare()
    assert not old.exists()
    assert new.exists()  # it may belong to a process that is still writing


def test_delete_deletes_only_what_is_named(store: ResultStore) -> None:
    store.save("3" * 64, ARRAYS, REQUEST)
    store.delete(["3" * 64, "4" * 64])
    assert names(store) == [f"{KEY}.result"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write into .*file.store: Not a directory"):
        ResultStore(tmp_path / "file" / "store").prepare()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        ResultStore(tmp_path / "store").prepare()


def test_a_full_disk_leaves_earlier_results_alone(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device \(no room"):
        store.save("2" * 64, ARRAYS, REQUEST)
    monkeypatch.undo()
    assert names(store) == [f"{KEY}.result"]
    assert_stored(store)
