"""Replay: the log gives every decision and the state again, bit for bit, and says where it does not."""

import contextlib
import io
import json
import re
import shlex
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynabandit as db
from dynabandit.policies import POLICIES
from dynabandit.service import api_types
from dynabandit.service.clock import Clock
from dynabandit.service.commands import app
from dynabandit.service.domain import changes
from dynabandit.service.domain.bandit_state import MAX_OPEN
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import close_expired, reward
from dynabandit.service.domain.unit_of_work import SNAPSHOT_EVERY, UnitOfWork
from dynabandit.service.export import decisions
from dynabandit.service.keys import Keyring
from dynabandit.service.stores import open_store
from dynabandit.service.verify import verify
from ready import READY
from service.harness import assert_replay_agrees, process, running, talking, wait_for

ARMS = ["red", "green", "blue"]
PARAMETERS = {"d-ucb": {"discount": 0.99}, "sw-ucb": {"window": 50}, **READY}
USABLE = [name for name, kind in POLICIES.items() if not kind.informed]


class Bench:
    """A unit of work with a store and no HTTP, for long histories."""

    def __init__(self, url: str, policy: str = "aff-ots", parameters: dict | None = None) -> None:
        self.store = open_store(url)
        self.store.prepare()
        self.work = UnitOfWork(self.store, Clock(lambda: 0.0))
        asked = api_types.Create(arms=ARMS, policy=policy, parameters=parameters or {}, seed=11)
        self.state, _ = self.commit(lambda: changes.create(self.work, "b", asked))
        self.number = self.state.number

    def commit(self, work):
        self.store.begin([])
        result = work()
        self.store.commit(self.work.events, self.work.created, self.work.deleted)
        self.work.clear()
        return result

    def learn(self, steps: int, late: int = 0) -> None:
        made = self.commit(lambda: decide(self.work, "b", steps, None))
        rng = np.random.default_rng(self.state.sequence)
        order = made if not late else [made[i] for i in rng.permutation(len(made))]

        def rewards() -> None:
            for one in order:
                reward(self.work, self.number, one.step, float(rng.random() < (0.7 if one.arm == "blue" else 0.3)))

        self.commit(rewards)

    def replayed_hash(self) -> str:
        return UnitOfWork(self.store, Clock(lambda: 0.0)).state(self.number).state_hash()


@pytest.mark.parametrize("policy", USABLE)
def test_every_policy_replays_bit_for_bit_with_late_rewards_and_changes(sqlite_url, policy):
    bench = Bench(sqlite_url, policy, PARAMETERS.get(policy))
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
    bench = Bench(store_url)
    bench.learn(100)
    bench.store.save_snapshot(bench.number, bench.work.snapshot(bench.number))
    bench.learn(30)
    from_snapshot = bench.replayed_hash()
    bench.store.write([("DELETE FROM snapshots", ())])
    assert bench.replayed_hash() == from_snapshot == bench.state.state_hash()
    bench.store.close()


def test_the_service_saves_snapshots_and_keeps_the_hash_of_old_ones(store_url, monkeypatch):
    monkeypatch.setattr("dynabandit.service.writer.SNAPSHOT_EVERY", 50)
    store = open_store(store_url)
    with running(store) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        for _ in range(6):
            client.decide_many("b", 50)
    reader = open_store(store_url)
    number = reader.find("b")
    hashes = reader.snapshot_hashes(number)
    bodies = reader.rows("SELECT count(*) FROM snapshots WHERE body IS NOT NULL")[0][0]
    reader.close()
    assert len(hashes) >= 5
    assert bodies == 2
    assert_replay_agrees(store_url)


def damaged(url: str, statement: str) -> str:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    with connection:
        connection.execute(statement)
    connection.close()
    result = CliRunner().invoke(app, ["verify", "--store", url])
    assert result.exit_code == 1, result.output
    return result.output


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE events SET arm = (arm + 1) % 3 WHERE step = 31", "event 62: the log chose arm"),
        ("DELETE FROM events WHERE sequence = 20", "event 21: sequence 20 is missing"),
        ("UPDATE events SET value = 1 - value WHERE settles = 3", "event"),
        ("UPDATE events SET step = 1000 WHERE step = 40", "the log has step 1000, the replay step 40"),
        ("UPDATE events SET body = '{' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        ("UPDATE events SET body = '[]' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        ("UPDATE events SET body = '{}' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        ("UPDATE events SET value = 'x' WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET settles = 'x' WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET time = 'x' WHERE step = 3", "event 6: it cannot be read"),
        ("UPDATE events SET kind = 'arm', body = NULL WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET arm = 1000000 WHERE settles = 3", "event 7: it rewards column 1000000"),
        ("UPDATE events SET kind = CAST(x'ff' AS TEXT) WHERE settles = 3", "event 7: it holds text that is not UTF-8"),
        ("UPDATE events SET key = CAST(x'ff' AS TEXT) WHERE step = 3", "event 6: it holds text that is not UTF-8"),
        ("UPDATE bandits SET name = x'62ff'", r"bandit 'b\udcff', event 1: it creates 'b'"),
    ],
)
def test_verify_says_where_log_and_replay_first_differ(sqlite_url, damage, said):
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, seed=1)
        for _ in range(40):
            decision = client.decide("b")
            client.reward(decision.decision, decision.arm == "blue")
    good = CliRunner().invoke(app, ["verify", "--store", sqlite_url])
    assert (good.exit_code, "agrees" in good.output) == (0, True)
    assert said in damaged(sqlite_url, damage)


def test_a_bandit_whose_log_differs_is_not_served_and_the_others_are(sqlite_url):
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        for name in ("bad", "good"):
            client.create(name, ARMS, seed=1)
            client.decide_many(name, 20)
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE events SET arm = (arm + 1) % 3 WHERE step = 9 AND bandit = (SELECT number FROM"
                           " bandits WHERE name = CAST('bad' AS BLOB))")  # fmt: skip
        connection.execute("DELETE FROM snapshots")
    connection.close()
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        assert http.post("/v1/bandits/bad/decisions", json={}).status_code == 500
        assert client.decide("good").step == 21


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM snapshots",  # and the log is read from its first event
        "UPDATE snapshots SET body = '{'",
        "UPDATE snapshots SET body = '[]'",
        "UPDATE snapshots SET body = CAST(x'ff' AS TEXT)",
    ],
)
def test_a_log_that_cannot_be_read_does_not_keep_the_windows_of_others_open(sqlite_url, clock, damage):
    with running(open_store(sqlite_url), clock=clock) as server, talking(server.url) as (client, _):
        for name in ("bad", "good"):
            client.create(name, ARMS, seed=1, reward_window=10)
            client.decide_many(name, 5)
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    bad = "bandit = (SELECT number FROM bandits WHERE name = CAST('bad' AS BLOB))"
    with connection:
        connection.execute(f"UPDATE events SET body = '{{' WHERE kind = 'create' AND {bad}")
        connection.execute(f"{damage} WHERE {bad}")
    connection.close()
    with running(open_store(sqlite_url), clock=clock) as server, talking(server.url) as (client, http):
        assert http.get("/v1/bandits/bad").status_code == 500
        clock.seconds += 11
        wait_for(lambda: client.state("good").sequence == 11)


@pytest.fixture
def wounded(sqlite_url, clock):
    """A service beside two bandits with windows; a test says what to damage before it starts again."""
    with running(open_store(sqlite_url), clock=clock) as server, talking(server.url) as (client, _):
        for name in ("bad", "good"):
            client.create(name, ARMS, seed=1, reward_window=10)
            client.decide_many(name, 5)

    @contextlib.contextmanager
    def restart(*damage):
        with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
            for statement in damage:
                connection.execute(statement)
        with running(open_store(sqlite_url), clock=clock) as server, talking(server.url) as (client, http):
            yield client, http

    return restart


BAD = "bandit = (SELECT number FROM bandits WHERE name = CAST('bad' AS BLOB))"


@pytest.mark.parametrize(("column", "paths"), [("kind", ["", "/events"]), ("body", ["", "/events", "/export"])])
def test_text_that_is_not_utf_8_damages_the_log_it_stands_in_and_no_other(wounded, clock, column, paths):
    change = f"UPDATE events SET {column} = CAST(x'7bff7d' AS TEXT) WHERE sequence = 1 AND {BAD}"
    with wounded(change, f"DELETE FROM snapshots WHERE {BAD}") as (client, http):
        for path in paths:
            answer = http.get(f"/v1/bandits/bad{path}")
            assert (answer.status_code, "event 1 of this bandit's log" in answer.text) == (500, True), path
        assert http.post("/v1/bandits/bad/decisions", json={}).status_code == 500
        assert client.decide("good").step == 6
        clock.seconds += 11
        wait_for(lambda: client.state("good").sequence == 13)
        wait_for(lambda: http.get("/readyz").status_code == 200)
        assert [one.name for one in client.bandits()] == ["bad", "good"]
        assert not client.delete("bad", erase=True).log_kept


def test_a_name_that_is_not_utf_8_hides_no_other_bandit(wounded, clock):
    with wounded("UPDATE bandits SET name = x'67ff' WHERE name = CAST('bad' AS BLOB)") as (client, http):
        client.create("z", ARMS, seed=1)
        assert [one.name for one in client.bandits()] == ["good", "g\ufffd", "z"]
        names, after = [], ""
        while after is not None:
            page = http.get("/v1/bandits", params={"after": after, "limit": 1}).json()
            names.append([one["name"] for one in page["bandits"]])
            after = page["next"]
        assert names == [["good"], ["g\ufffd", "z"], []]
        clock.seconds += 11
        wait_for(lambda: client.state("good").sequence == 11)


@pytest.mark.parametrize("column", ["role", "digest"])
def test_a_key_that_is_not_utf_8_opens_nothing_and_locks_nobody_out(sqlite_url, column):
    create = ["keys", "create", "--role", "admin", "--store", sqlite_url]
    bad, good = (CliRunner().invoke(app, create).output.strip() for _ in range(2))
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(f"UPDATE keys SET {column} = CAST(x'61ff' AS TEXT) WHERE id = ?", (bad.split("_")[1],))
    listed = CliRunner().invoke(app, ["keys", "list", "--store", sqlite_url])
    assert (listed.exit_code, len(listed.output.splitlines())) == (0, 2)
    with contextlib.closing(open_store(sqlite_url)) as store:
        ring = Keyring(store.api_keys())
    assert ring.find(f"Bearer {bad}") is None
    assert ring.find(f"Bearer {good}") is not None


def test_what_is_kept_in_memory_does_not_grow_with_the_log(sqlite_url):
    bench = Bench(sqlite_url)
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


def test_export_has_every_decision_with_its_reward_and_propensity(server, clock):
    with talking(server.url) as (client, http):
        client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=1, reward_window=10)
        for _ in range(60):
            decision = client.decide("b")
            client.reward(decision.decision, decision.arm == "blue")
        client.decide("b")
        lines = http.get("/v1/bandits/b/export", params={"draws": 2000}).text.splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["step"] for row in rows] == list(range(1, 62))
        logged = {event.step: event for event in client.events("b") if event.kind == "decision"}
        assert all(row["arm"] == logged[row["step"]].arm for row in rows)
        assert rows[-1]["reward"] is None
        assert all(row["reward"] == (row["arm"] == "blue") for row in rows[:-1])
        assert [row["propensity"] for row in rows[:3]] == [1.0] * 3, "the burn-in leaves nothing to chance"
        # 2001 draws: a share of 2/3 or 1/6 is off by 0.06 with probability under 1e-8
        for row in rows[3:]:
            expected = 1 - 0.5 + 0.5 / 3 if row["arm"] == "blue" else 0.5 / 3
            assert abs(row["propensity"] - expected) < 0.06
        pq = pytest.importorskip("pyarrow.parquet")
        content = http.get("/v1/bandits/b/export", params={"draws": 2000, "format": "parquet"}).content
        assert pq.read_table(io.BytesIO(content)).to_pylist() == rows


def test_propensities_estimate_a_policys_value_without_bias(sqlite_url):
    """Off-policy evaluation, the purpose of the export: the value of always playing blue, from a log of TS."""
    bench = Bench(sqlite_url, "ts")
    bench.learn(3000)
    rows = [row for piece in decisions(bench.store, bench.number, 100) for row in piece]
    weighted = [row.reward / row.propensity for row in rows if row.arm == "blue"]
    # Rewards of blue are 1 with probability 0.7; the seed is fixed, and 0.05 is about 3 standard errors
    assert abs(sum(weighted) / len(rows) - 0.7) < 0.05
    bench.store.close()


def test_propensities_know_shares_pauses_and_certainty():
    bandit = db.Bandit("ucb", ARMS, seed=1)
    for _ in range(30):
        arm = bandit.choose()
        bandit.reward(arm, arm == "blue")
    assert sorted(bandit.propensities(10).values()) == [0.0, 0.0, 1.0]
    bandit.limit_arm("red", min_share=0.25)
    mixed = bandit.propensities(10)
    assert mixed["red"] in (0.25, 1.0)
    assert sum(mixed.values()) == pytest.approx(1.0)
    bandit.pause_arm("green")
    assert set(bandit.propensities(10)) == {"red", "blue"}
    before = bandit.state_hash()
    bandit.propensities(10)
    assert bandit.state_hash() == before, "asking changes nothing"


def test_a_backup_taken_while_serving_is_whole(sqlite_url, tmp_path):
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        made = client.decide_many("b", 100)
        source = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        source.execute("VACUUM INTO ?", (str(tmp_path / "backup.db"),))
        source.close()
        client.decide_many("b", 100)
    backup = f"sqlite:///{tmp_path}/backup.db"
    assert_replay_agrees(backup)
    with running(open_store(backup)) as server, talking(server.url) as (client, _):
        assert client.state("b").step == 100
        client.reward(made[0].decision, 1)


def test_a_backup_is_restored_as_the_documentation_says(tmp_path):
    url = f"sqlite:///{tmp_path}/dynabandit.db"
    with process(url) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        client.decide_many("b", 100)
        with contextlib.closing(sqlite3.connect(tmp_path / "dynabandit.db")) as source:
            source.execute("VACUUM INTO ?", (str(tmp_path / "backup.db"),))
        client.decide_many("b", 100)
        server.kill()
    assert (tmp_path / "dynabandit.db-wal").stat().st_size > 0, "what it leaves behind must not reach the backup"
    text = Path(__file__).parents[3].joinpath("docs", "service.md").read_text()
    steps = re.findall(r"^\$ ((?:rm|cp) .*dynabandit\.db.*)$", text, re.MULTILINE)
    assert len(steps) == 2
    for step in steps:
        subprocess.run(shlex.split(step), cwd=tmp_path, check=True)
    assert_replay_agrees(url)
    with process(url) as server, talking(server.url) as (client, _):
        assert client.state("b").step == 100


def test_verify_covers_deleted_bandits(store_url):
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        client.decide_many("b", 10)
        client.delete("b")
        client.create("b", ARMS)
    store = open_store(store_url)
    assert sorted(one.events for one in verify(store)) == [1, 12]
    store.close()


def test_a_decision_is_closed_after_the_end_of_its_window_and_not_at_it(sqlite_url):
    store, now = open_store(sqlite_url), [0.0]
    store.prepare()
    work = UnitOfWork(store, Clock(lambda: now[0]))
    state, _ = changes.create(work, "b", api_types.Create(arms=ARMS, seed=1, reward_window=10, default_reward=0.5))
    decide(work, "b", 2, None)
    store.commit(work.events, work.created)
    work.clear()
    now[0] = 10.0
    close_expired(work, state.number)
    assert work.events == []
    now[0] = 10.001
    close_expired(work, state.number)
    assert [(row.kind, row.settles, row.value) for row in work.events] == [("close", 1, 0.5), ("close", 2, 0.5)]
    store.close()
