"""The state of a bandit: a replay of its events gives it again, bit for bit."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynabandit.bandit import Bandit
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.command_line import app
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import EARLIER_RELEASES, HASH_PREFIX, RULES
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.open_decisions import MAX_OPEN
from dynabandit.service.domain.rewards import reward
from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY, UnitOfWork
from dynabandit.service.stores import open_store
from dynabandit.service.verify import verify
from tools.harness import (
    ARMS,
    DirectWriter,
    assert_replay_agrees,
    copied_store,
    learn,
    running,
    status_of,
    talking,
)
from tools.ready import READY, TRIED

PARAMETERS: dict[str, Any] = {"d-ucb": {"discount": 0.99}, "sw-ucb": {"window": 50}, **READY}


@pytest.mark.promise(62)
@pytest.mark.parametrize("policy", TRIED)
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
    writer.store.save_snapshot(writer.bandit_number, writer.work.snapshot(writer.bandit_number))
    writer.learn(30)
    from_snapshot = writer.replayed_hash()
    writer.store.write([("DELETE FROM snapshots", ())])
    assert writer.replayed_hash() == from_snapshot == writer.state.state_hash()
    writer.store.close()


@pytest.mark.promise(70)
def test_what_is_kept_in_memory_does_not_grow_with_the_log(sqlite_url: str) -> None:
    writer = DirectWriter(sqlite_url, "ucb")
    for _ in range(MAX_OPEN // 1000 + 3):
        writer.commit(lambda: decide(writer.work, "b", api_types.Decide(1000)))
    assert len(writer.state.open) == MAX_OPEN
    first = writer.store.decision(writer.bandit_number, 1)
    assert first is not None
    assert first.kind is None
    writer.commit(lambda: reward(writer.work, writer.bandit_number, 1, 1.0))
    settled = writer.store.decision(writer.bandit_number, 1)
    assert settled is not None
    assert settled.value == 1.0, "decisions that are not in memory are in the store"
    assert writer.replayed_hash() == writer.state.state_hash()
    writer.store.close()


@pytest.mark.promise(85)
def test_snapshots_come_often_enough_to_bound_recovery() -> None:
    assert SNAPSHOT_EVERY <= 10_000


@pytest.mark.promise(62)
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


PRIOR = {"burn_in": 0, "prior": [2.0, 2.0]}


def old_store(url: str, folder: Path) -> str:
    """A copy of a store as release 0.1.0 would have left it if it had chosen the next arm in every decision."""
    return copied_store(
        url,
        folder,
        "UPDATE events SET body = json_remove(body, '$.rules') WHERE kind IN ('create', 'policy')",
        "UPDATE events SET arm = (arm + 1) % 3 WHERE kind IN ('decision', 'reward')",
        "UPDATE snapshots SET state_hash = substr(state_hash, 3)",
    )


@pytest.fixture
def old_url(sqlite_url: str, tmp_path: Path) -> str:
    """A store with 30 decisions of older rules, before and after a change of policy, and a snapshot at each."""
    writer = DirectWriter(sqlite_url, "ucb")
    for _ in range(2):
        writer.learn(15)
        writer.store.save_snapshot(writer.bandit_number, writer.work.snapshot(writer.bandit_number))
        writer.commit(lambda: changes.set_policy(writer.work, "b", api_types.SetPolicy("ts")))
    writer.store.close()
    return old_store(sqlite_url, tmp_path)


@pytest.mark.promise(64, 97, 105)
def test_decisions_of_older_rules_are_taken_from_the_log_and_later_ones_are_made_again(old_url: str) -> None:
    with contextlib.closing(open_store(old_url)) as store:
        [before] = verify(store)
    assert (before.problem, before.steps, before.made_by, before.hashes) == (None, 30, {"0.1.0": 30}, 0)
    with running(open_store(old_url)) as server, talking(server.url) as (client, _):
        for arm in ARMS:
            client.change_arm("b", arm, paused=True)
        assert status_of(client.decide, "b") == 409
        assert client.state("b").sequence == before.events + 3, "a refused decision adopts no rules"
        for arm in ARMS:
            client.change_arm("b", arm, paused=False)
        logged = client.state("b").sequence
        learned = [arm.mean for arm in client.state("b").arms]
        learn(client, "b", 10)
        change, decision = list(client.events("b", after=logged))[:2]
        assert change.change == {"policy": "ts", "parameters": PRIOR, "rules": RULES, "continues": True}
        assert (change.kind, decision.kind, decision.step) == ("policy", "decision", 31)
        assert sum(event.kind == "policy" for event in client.events("b")) == 2, "rules are adopted once"
        exported = list(client.export("b", draws=10))
        assert [one.replayed for one in exported] == [False] * 30 + [True] * 10
        assert [one.mean for one in client.state("b").arms] != learned
    with contextlib.closing(open_store(old_url)) as store:
        [after] = verify(store)
    assert (after.problem, after.steps, after.made_by) == (None, 40, {"0.1.0": 30})
    assert after.hashes > 0, "snapshots of this release are compared"


@pytest.mark.promise(64)
def test_a_log_names_the_release_of_each_part_after_several_changes_of_the_rules(
    old_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(open_store(old_url)) as server, talking(server.url) as (client, _):
        learn(client, "b", 10)
    (tmp_path / "next").mkdir()
    changed = "UPDATE events SET arm = (arm + 1) % 3 WHERE step > 30 OR settles > 30"  # as if these draws had changed
    url = copied_store(old_url, tmp_path / "next", changed)
    for module in ("bandit_state", "changes", "decisions"):
        monkeypatch.setattr(f"dynabandit.service.domain.{module}.RULES", RULES + 1)
    for module in ("domain.bandit_state", "domain.unit_of_work", "verify"):
        monkeypatch.setattr(f"dynabandit.service.{module}.HASH_PREFIX", f"{RULES + 1}:")
    monkeypatch.setattr("dynabandit.service.verify.EARLIER_RELEASES", (*EARLIER_RELEASES, "0.3.0"))
    with running(open_store(url)) as server, talking(server.url) as (client, _):
        assert client.decide("b").step == 41
        changes_of_rules = [event.change for event in client.events("b") if "continues" in (event.change or {})]
        assert [one["rules"] for one in changes_of_rules if one] == [RULES, RULES + 1]
    said = CliRunner().invoke(app, ["verify", "--store", url]).output
    assert "30 decisions made by 0.1.0, rewards agree, 10 decisions made by 0.3.0, rewards agree" in said


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("arm = (arm + 1) % 3 WHERE step = 32", "the log chose arm"),
        ("arm = (arm + 1) % 3 WHERE step = 10", "but the decision took column"),
        ("arm = 3 WHERE step = 10", "it cannot be read: ValueError: column must be"),
        ("arm = NULL WHERE step = 10", "it cannot be read: ValueError: column must be"),
    ],
)
def test_damage_before_and_after_an_upgrade_is_reported(
    old_url: str, tmp_path: Path, damage: str, problem: str
) -> None:
    with running(open_store(old_url)) as server, talking(server.url) as (client, _):
        client.decide_many("b", 3)
    (tmp_path / "damaged").mkdir()
    with contextlib.closing(
        open_store(copied_store(old_url, tmp_path / "damaged", f"UPDATE events SET {damage}"))
    ) as store:
        [found] = verify(store)
    assert problem in str(found.problem)


def test_adopting_rules_learns_no_reward_again(old_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(open_store(old_url)) as store:
        state = UnitOfWork(store, Clock(lambda: 0.0)).state(store.find_log("b", None))
        learned = state.bandit.state_hash()
        monkeypatch.setattr(Bandit, "swapped", None)
        state.adopt_rules(0.0, 0.0)
    assert (state.rules, state.bandit.state_hash()) == (RULES, learned)


def test_a_snapshot_of_an_earlier_release_is_replaced_when_the_service_stops(old_url: str) -> None:
    with running(open_store(old_url)) as server, talking(server.url) as (client, _):
        sequence = client.state("b").sequence
    with contextlib.closing(open_store(old_url)) as store:
        snapshot = store.snapshot(store.find_log("b", None))
    assert snapshot is not None
    assert (snapshot.sequence, snapshot.state_hash[: len(HASH_PREFIX)]) == (sequence, HASH_PREFIX)
