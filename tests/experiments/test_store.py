import errno
import os

import numpy as np
import pytest

from dynabandit.experiments.store import StorageError, Store, plain, request_key

ARRAYS = {"regret": np.arange(6.0).reshape(2, 3), "correct": np.array([1, 2, 3])}
REQUEST = {"policy": "ucb", "parameters": {"prior": (2.0, 2.0)}}
KEY = request_key(REQUEST)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    store.prepare()
    store.save(KEY, ARRAYS, REQUEST)
    return store


def assert_kept(store):
    found = store.load(KEY)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def names(store):
    return sorted(path.name for path in store.folder.iterdir())


def test_a_result_comes_back_bit_for_bit(store):
    assert_kept(store)
    assert names(store) == [f"{KEY}.result"]


def test_what_was_never_saved_is_not_there(store):
    assert store.load("0" * 64) is None


def test_an_address_depends_on_what_is_asked_and_not_on_how_it_is_written():
    assert request_key({"a": 1, "b": [2.0, 3]}) == request_key({"b": (2, np.float64(3.0)), "a": 1.0})
    assert request_key({"times": np.arange(3)}) == request_key({"times": [0, 1, 2]})
    assert request_key({"a": 1}) != request_key({"a": 1.5})
    assert request_key({"a": "1"}) != request_key({"a": 1})
    assert request_key({"a": True}) != request_key({"a": 1})
    assert request_key({"a": None}) != request_key({})


def test_plain_values_are_those_of_json():
    assert plain({"a": (1, [np.float64(2.5)]), "b": np.eye(2)}) == {"a": [1, [2.5]], "b": [[1.0, 0.0], [0.0, 1.0]]}


@pytest.mark.parametrize("cut", [0, 1, 40, 90, 200, -1])
def test_a_file_that_was_cut_short_is_set_aside_and_does_not_count(store, cut):
    path = store.path(KEY)
    path.write_bytes(path.read_bytes()[:cut])
    assert store.load(KEY) is None
    assert names(store) == [f"{KEY}.damaged"]
    assert [one.name for one in store.damaged] == [f"{KEY}.damaged"]
    store.save(KEY, ARRAYS, REQUEST)
    assert_kept(store)


def test_any_flipped_bit_is_noticed(store):
    path = store.path(KEY)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert store.load(KEY) is None, f"a flipped bit in byte {place} went unnoticed"


def test_a_file_under_the_name_of_another_does_not_count(store):
    other = "1" * 64
    os.replace(store.path(KEY), store.path(other))
    assert store.load(other) is None


def test_a_half_written_file_never_counts(store, monkeypatch):
    def crash(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save("2" * 64, ARRAYS, REQUEST)
    assert names(store) == [f"{KEY}.result"]


def test_content_is_on_disk_before_it_gets_its_name(store, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("replace"), replace(*paths))[1])
    store.save("2" * 64, ARRAYS, REQUEST)
    assert calls == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_what_a_killed_process_left_behind_is_dropped_once_it_is_old(store):
    old, new = store.folder / "a.partial", store.folder / "b.partial"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.prepare()
    assert not old.exists()
    assert new.exists()  # it may belong to a process that is still writing


def test_forgetting_deletes_only_what_is_named(store):
    store.save("3" * 64, ARRAYS, REQUEST)
    store.delete(["3" * 64, "4" * 64])
    assert names(store) == [f"{KEY}.result"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write into .*file.store: Not a directory"):
        Store(tmp_path / "file" / "store").prepare()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="Permission denied"):
        Store(tmp_path / "store").prepare()


def test_a_full_disk_leaves_earlier_results_alone(store, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device \(no room"):
        store.save("2" * 64, ARRAYS, REQUEST)
    monkeypatch.undo()
    assert names(store) == [f"{KEY}.result"]
    assert_kept(store)
