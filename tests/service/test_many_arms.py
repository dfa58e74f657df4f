"""What the service does in other threads for bandits with many arms; the tests call few arms many."""

import contextlib
import threading
from concurrent.futures import wait
from typing import Any
from unittest import mock

import msgspec
import pytest

from dynabandit.bandit import Bandit, serialization
from dynabandit.service import api_types, loading, snapshots
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain import bandit_state, unit_of_work
from dynabandit.service.domain.changes import set_shadow
from dynabandit.service.domain.local_bandit import LocalBandit
from dynabandit.service.domain.local_decisions import store_batch
from dynabandit.service.domain.names import public_id
from dynabandit.service.domain.steps import finish
from dynabandit.service.http import responses
from dynabandit.service.local_types import LocalBatch, LocalDecision, LocalReward
from dynabandit.service.stores import Snapshot, open_store
from tools.harness import ARMS, assert_replay_agrees, captured_log, running, talking
from tools.shop import Shop
from tools.trees_of_few_arms import trees_from
from tools.waiting import PATIENCE


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "LARGE_STATE_ARMS", 2)
    monkeypatch.setattr(serialization, "MANY_COLUMNS", 2)
    monkeypatch.setattr(loading, "LARGE_SNAPSHOT", 0)
    monkeypatch.setattr(loading, "LARGE_TREE", 2)
    monkeypatch.setattr(responses, "ENCODED_ARMS", 2)


@pytest.mark.usefixtures("_few_are_many")
def test_large_states_are_saved_loaded_and_shown_by_other_threads(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[str]] = {}

    def noted(name: str, function: Any) -> Any:
        def run(*arguments: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread().name.rsplit("_", 1)[0])
            return function(*arguments)

        return run

    monkeypatch.setattr(snapshots, "SNAPSHOT_EVERY", 10)
    monkeypatch.setattr(snapshots, "snapshot_of", noted("save", unit_of_work.snapshot_of))
    monkeypatch.setattr(loading, "read_snapshot", noted("load", unit_of_work.read_snapshot))
    monkeypatch.setattr(Bandit, "build_tree", noted("build", Bandit.build_tree))
    with trees_from(2):
        with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
            client.create("b", ARMS, "ts", seed=1)
            assert http.put("/v1/bandits/b", json={"arms": ARMS, "policy": "ts", "seed": 1}).status_code == 200
            assert http.put("/v1/bandits/c", json={"arms": ["a", "a"]}).status_code == 422
            for made in client.decide_many("b", 12):
                client.reward(made.decision, 1)
            client.change_arm("b", "red", paused=True)
            assert "red" not in {client.decide("b").arm for _ in range(5)}
            before = client.state("b")
            assert [arm.arm for arm in before.arms] == ARMS
        with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
            client.decide("b")
            client.change_arm("b", "red", paused=False)
            assert len({client.decide("b").arm for _ in range(20)}) == 3
        assert_replay_agrees(sqlite_url)
    assert threads["save"] == {"dynabandit-encode"}
    assert threads["load"] == threads["build"] == {"dynabandit-snapshot"}


@pytest.mark.usefixtures("_few_are_many")
def test_no_snapshot_of_a_large_state_is_left_out(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, may_encode, failures = Shop(sqlite_url, policy="ucb"), threading.Event(), list[str]()

    def encoded(state: bandit_state.LoggedState) -> Snapshot:
        assert may_encode.wait(PATIENCE)
        if failures:
            raise ArithmeticError(failures.pop())
        return unit_of_work.snapshot_of(state)

    def saved() -> list[int]:
        return sorted(shop.store.snapshot_hashes(shop.bandit_number))

    def finish() -> None:
        may_encode.set()
        wait(saver._encoding.values())
        saver.save_encoded()

    monkeypatch.setattr(snapshots, "snapshot_of", encoded)
    saver = snapshots.SnapshotSaver(shop.work, lambda error: failures.append("told"))
    saver.save(shop.bandit_number)
    shop.decide()
    saver.save(shop.bandit_number)  # a change of policy
    finish()
    finish()
    assert (saved(), len(saver._encoding)) == ([1, 2], 0)
    shop.decide()
    failures.append("the memory is full")
    saver.save(shop.bandit_number)
    finish()
    assert (saved(), failures) == ([1, 2], ["told"])
    saver.save_all(lambda: True)
    assert saved() == [1, 2, 3]
    shop.store.close()


def test_decisions_in_a_tree_are_replayed_from_the_log_and_from_snapshots(sqlite_url: str) -> None:
    with trees_from(2), contextlib.closing(open_store(sqlite_url)):
        shop = Shop(sqlite_url, policy="mix-ts")
        for step in range(12):
            made = shop.decide(
                **({"rank": 2} if step % 3 == 0 else {"among": ["red", "blue"]} if step % 5 == 0 else {})
            )
            shop.reward(made, float(step % 2))
            if step == 6:
                shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
        saved, other = shop.state.state_hash(), unit_of_work.UnitOfWork(shop.store, shop.clock)
        assert '"cells"' in shop.state.bandit.to_json()
        assert other.state(shop.bandit_number).state_hash() == saved
        assert [other.state(shop.bandit_number).bandit.choose() for _ in range(5)] == [
            shop.state.bandit.choose() for _ in range(5)
        ]
        shop.store.close()
        assert_replay_agrees(sqlite_url)


def test_a_decision_that_fails_changes_no_tree(sqlite_url: str) -> None:
    with trees_from(2), mock.patch("dynabandit.choosing.draw_search.USUAL_VISITS", 0.5):
        shop = Shop(sqlite_url, policy="mix-ts")
        for _ in range(6):
            shop.decide()
        before = shop.state.bandit.state_hash()
        with mock.patch.object(bandit_state, "place_propensities", side_effect=ArithmeticError):
            with pytest.raises(ArithmeticError):
                finish(shop.state.decide(0.0, 0.0))
        assert shop.state.bandit.state_hash() == before
        shop.store.close()


def test_a_shadow_chooses_once_for_each_local_decision(sqlite_url: str) -> None:
    with trees_from(2), mock.patch("dynabandit.choosing.draw_search.USUAL_VISITS", 0.5):
        shop = Shop(sqlite_url, policy="ts")
        shop.run(lambda: set_shadow(shop.work, "b", api_types.SetPolicy("mix-ts")))
        decider = "0123456789abcdef"
        for first in (1, 4, 7):
            local = LocalBandit(shop.state.bandit, shop.bandit_number, None, decider, shop.state.sequence)
            steps = range(first, first + 3)
            batch = LocalBatch(
                id=public_id(shop.bandit_number),
                decider=decider,
                first=first,
                base=local.base,
                decisions=[LocalDecision(local.decide(step, None, None)[0]) for step in steps],
                rewards=[LocalReward(decider, step, float(step % 2)) for step in steps],
            )
            shop.run(lambda batch=batch: finish(store_batch(shop.work, "b", batch)))
        shop.assert_replays()
        assert '"cells"' in shop.state.shadow.bandit.to_json()
        shop.store.close()


@pytest.mark.usefixtures("_few_are_many")
def test_a_tree_that_cannot_be_built_in_advance_is_logged_and_built_by_the_next_decision(sqlite_url: str) -> None:
    with trees_from(2):
        shop = Shop(sqlite_url, policy="ts")
        shop.decide()
        shop.state.bandit.pause_arm("red")
        loader = loading.Loader(shop.work)
        with captured_log("loading") as logs:
            with mock.patch.object(shop.state.bandit._tree, "_choose", side_effect=ArithmeticError):
                loader.build_trees(shop.state)
                while loader:
                    loader.step()
        loader.stop()
        assert [line["event"] for line in logs if line["log_level"] == "error"] == ["building a tree failed"]
        assert shop.state.bandit.choose() != "red"
        shop.store.close()


def test_a_large_bandit_is_encoded_in_parts(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(sqlite_url, policy="ucb")
    view = responses.bandit_view(shop.state, DeciderContacts())()
    whole = msgspec.json.encode(view)
    for count in (1, 2, 3, 10):
        monkeypatch.setattr(responses, "ENCODED_ARMS", count)
        assert msgspec.json.encode(responses.encoded_view(view)) == whole
    shop.store.close()
