"""The state of a bandit: a replay of its events gives it again, bit for bit."""

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

PARAMETERS = {"d-ucb": {"discount": 0.99}, "sw-ucb": {"window": 50}, **READY}


USABLE = [name for name, kind in POLICIES.items() if not kind.informed]


@pytest.mark.parametrize("policy", USABLE)
def test_every_policy_replays_bit_for_bit_with_late_rewards_and_changes(sqlite_url, policy):
    bench = DirectWriter(sqlite_url, policy, PARAMETERS.get(policy))
    bench.learn(40)
    bench.learn(40, late=1)
    bench.commit(lambda: changes.add_arm(bench.work, "b", "new"))
    bench.learn(20, late=1)
    bench.commit(lambda: changes.change_arm(bench.work, "b", "red", api_types.ChangeArm(paused=True)))
    bench.commit(lambda: changes.change_arm(bench.work, "b", "blue", api_types.ChangeArm(max_share=0.5)))
    bench.learn(20)
    bench.commit(lambda: changes.set_policy(bench.work, "b", api_types.SetPolicy("aff-ts")))
    bench.learn(20, late=1)
    assert bench.replayed_hash() == bench.state.state_hash()
    bench.store.close()
    assert_replay_agrees(sqlite_url)


def test_a_snapshot_and_the_log_alone_give_the_same_state(store_url):
    bench = DirectWriter(store_url)
    bench.learn(100)
    bench.store.save_snapshot(bench.number, bench.work.snapshot(bench.number))
    bench.learn(30)
    from_snapshot = bench.replayed_hash()
    bench.store.write([("DELETE FROM snapshots", ())])
    assert bench.replayed_hash() == from_snapshot == bench.state.state_hash()
    bench.store.close()


def test_what_is_kept_in_memory_does_not_grow_with_the_log(sqlite_url):
    bench = DirectWriter(sqlite_url)
    for _ in range(MAX_OPEN // 1000 + 3):
        bench.commit(lambda: decide(bench.work, "b", 1000, None))
    assert len(bench.state.open) == MAX_OPEN
    first = bench.store.decision(bench.number, 1)
    assert first.kind is None
    bench.commit(lambda: reward(bench.work, bench.number, 1, 1.0))
    assert bench.store.decision(bench.number, 1).value == 1.0, "the store knows what memory has let go"
    assert bench.replayed_hash() == bench.state.state_hash()
    bench.store.close()


def test_snapshots_come_often_enough_to_bound_recovery():
    assert SNAPSHOT_EVERY <= 10_000


def test_a_restart_goes_on_bit_for_bit(store_url):
    hashes, arms = [], []
    for _ in range(3):
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
        learn(client, "unbroken", 75)
        assert arms == [event.arm for event in client.events("unbroken") if event.kind == "decision"]
