"""The state of a bandit: a replay of its events gives it again, bit for bit."""

from typing import Any

import pytest

from dynabandit.policies import POLICIES
from dynabandit.service import api_types
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import MAX_OPEN
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import reward
from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY
from dynabandit.service.stores import open_store
from ready import READY
from service.harness import ARMS, DirectWriter, assert_replay_agrees, learn, running, talking

PARAMETERS: dict[str, Any] = {"d-ucb": {"discount": 0.99}, "sw-ucb": {"window": 50}, **READY}


USABLE = [name for name, kind in POLICIES.items() if not kind.informed]


@pytest.mark.parametrize("policy", USABLE)
def test_every_policy_replays_bit_for_bit_with_late_rewards_and_changes(sqlite_url: str, policy: str) -> None:
    writer = DirectWriter(sqlite_url, policy, PARAMETERS.get(policy))
    writer.learn(40)
    writer.learn(40, late=1)
    writer.commit(lambda: changes.add_arm(writer.work, "b", "new"))
    writer.learn(20, late=1)
    writer.commit(lambda: changes.change_arm(writer.work, "b", "red", api_types.ChangeArm(paused=True)))
    writer.commit(lambda: changes.change_arm(writer.work, "b", "blue", api_types.ChangeArm(max_share=0.5)))
    writer.learn(20)
    writer.commit(lambda: changes.set_policy(writer.work, "b", api_types.SetPolicy("aff-ts")))
    writer.learn(20, late=1)
    assert writer.replayed_hash() == writer.state.state_hash()
    writer.store.close()
    assert_replay_agrees(sqlite_url)


def test_a_snapshot_and_the_log_alone_give_the_same_state(store_url: str) -> None:
    writer = DirectWriter(store_url)
    writer.learn(100)
    writer.store.save_snapshot(writer.number, writer.work.snapshot(writer.number))
    writer.learn(30)
    from_snapshot = writer.replayed_hash()
    writer.store.write([("DELETE FROM snapshots", ())])
    assert writer.replayed_hash() == from_snapshot == writer.state.state_hash()
    writer.store.close()


def test_what_is_kept_in_memory_does_not_grow_with_the_log(sqlite_url: str) -> None:
    writer = DirectWriter(sqlite_url)
    for _ in range(MAX_OPEN // 1000 + 3):
        writer.commit(lambda: decide(writer.work, "b", 1000, None))
    assert len(writer.state.open) == MAX_OPEN
    first = writer.store.decision(writer.number, 1)
    assert first is not None
    assert first.kind is None
    writer.commit(lambda: reward(writer.work, writer.number, 1, 1.0))
    settled = writer.store.decision(writer.number, 1)
    assert settled is not None
    assert settled.value == 1.0, "decisions that are not in memory are in the store"
    assert writer.replayed_hash() == writer.state.state_hash()
    writer.store.close()


def test_snapshots_come_often_enough_to_bound_recovery() -> None:
    assert SNAPSHOT_EVERY <= 10_000


def test_a_restart_goes_on_bit_for_bit(store_url: str) -> None:
    hashes: list[str] = []
    for _ in range(2):
        with running(open_store(store_url)) as server, talking(server.url) as (client, _):
            client.create("b", ARMS, seed=4)
            if hashes:
                assert client.state("b").state_hash == hashes[-1]
            learn(client, "b", 25)
            hashes.append(client.state("b").state_hash)
    assert_replay_agrees(store_url)
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        arms = [event.arm for event in client.events("b") if event.kind == "decision"]
        client.create("unbroken", ARMS, seed=4)
        learn(client, "unbroken", 50)
        assert arms == [event.arm for event in client.events("unbroken") if event.kind == "decision"]
