"""The tables: versions, migrations, databases of other programs, and the index of changes."""

import contextlib
import lzma
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from typer.testing import CliRunner

from dynabandit.service.command_line import app
from dynabandit.service.domain.events import KINDS
from dynabandit.service.domain.names import public_id
from dynabandit.service.export import arm_names
from dynabandit.service.local_types import LocalBatch, LocalDecision
from dynabandit.service.projections.log_follower import LogFollower, Overview
from dynabandit.service.service import Service
from dynabandit.service.stores import SqliteStore, Store, open_store
from dynabandit.service.stores.due_decisions import open_decisions
from dynabandit.service.stores.histories import saved_history
from dynabandit.service.stores.schema import TABLES, VERSION, migration
from dynabandit.service.verify import verify
from tools.harness import captured_log, failed_command, running, status_of, talking

STORE_OF_0_1_0 = Path(__file__).parents[2] / "golden" / "service-0.1.0.db.xz"
STORE_BEFORE_0_2_0 = STORE_OF_0_1_0.with_name("service-0.2.0.dev.db.xz")  # with contexts, rankings and a shadow


def version(store: Store) -> int:
    statement = "PRAGMA user_version" if isinstance(store, SqliteStore) else "SELECT version FROM schema_version"
    found: int = store.rows(statement)[0][0]
    return found


def set_version(store: Store, number: int) -> None:
    is_sqlite = isinstance(store, SqliteStore)
    store.write(
        [(f"PRAGMA user_version = {number}" if is_sqlite else f"UPDATE schema_version SET version = {number}", ())]
    )


@pytest.mark.promise(95)
def test_a_store_of_0_1_0_is_migrated_when_it_is_served_and_read_as_it_is_before(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(lzma.decompress(STORE_OF_0_1_0.read_bytes()))
    url = f"sqlite:///{tmp_path}/store.db"
    assert CliRunner().invoke(app, ["keys", "list", "--store", url]).exit_code == 0
    with contextlib.closing(open_store(url)) as store:
        store.create_tables()
        assert version(store) == 1, "the old release can still open it"
        names = [row.name for row in store.bandits()]
    served = open_store(url)
    served.prepare()  # as `dynabandit serve` does before it listens
    with running(served) as server, talking(server.url) as (client, _):
        assert [one.name for one in client.bandits()] == names
        first = next(iter(client.events("with-aff-ots"))).change or {}
        again = {key: first[key] for key in ("parameters", "reward_window", "default_reward")}
        client.create("with-aff-ots", first["arms"], seed=first["seed"], **again)  # with the default of that time
        for name in ("with-aff-ots", "with-ts"):  # the draws of Thompson sampling have changed since
            before = client.state(name)
            assert client.decide(name).step == before.step + 1
            assert [event.kind for event in client.events(name, after=before.sequence)] == ["policy", "decision"]
    with contextlib.closing(open_store(url)) as store:
        assert version(store) == VERSION
        assert saved_history(store, 0) is None, "the table of histories exists"
    said = CliRunner().invoke(app, ["verify", "--store", url])
    assert (said.exit_code, said.output.count(" 340 decisions made by 0.1.0, rewards agree")) == (0, 30)


@pytest.mark.promise(64, 105, 182)
def test_a_store_from_before_the_draws_changed_is_replayed_with_the_decisions_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(lzma.decompress(STORE_BEFORE_0_2_0.read_bytes()))
    url = f"sqlite:///{tmp_path}/store.db"
    with contextlib.closing(open_store(url)) as store:
        before = {one.name: one for one in verify(store)}
    assert {one.problem for one in before.values()} == {None}
    assert all(one.made_by == {"0.2.0.dev": one.steps} and one.hashes == 0 for one in before.values())
    context: dict[str, Any] = {"context": {"hour": 3, "returning": True}}
    asked = {"context": context, "held": {"unit": "new"}, "ranked": {"rank": 2}, "shadowed": {}, "auto": {}}
    with running(open_store(url)) as server, talking(server.url) as (client, http):
        for name, given in asked.items():
            client.reward(client.decide(name, **given).decision, 1)
            assert [one.replayed for one in client.export(name, draws=2)] == [False] * before[name].steps + [True]
        decisions = LocalBatch(
            id=client.state("local").id, decider="0" * 16, first=1, base=9, decisions=[LocalDecision(0)] * 3
        )
        answer = http.post("/v1/bandits/local/local-decisions", json=msgspec.to_builtins(decisions))
        assert answer.json()["step"] == 3, "made by a local decider before the upgrade and sent after it"
    with contextlib.closing(open_store(url)) as store:
        after = {one.name: one for one in verify(store)}
    for name, one in after.items():
        added = 3 if name == "local" else int(name in asked)
        assert (one.problem, one.made_by) == (None, before[name].made_by)
        assert (one.steps, one.local_taken) == (before[name].steps + added, 3 if name == "local" else 0)


def test_live_pages_wait_until_the_store_is_migrated(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(lzma.decompress(STORE_OF_0_1_0.read_bytes()))
    served = open_store(f"sqlite:///{tmp_path}/store.db")
    service, page = Service(served), Overview()
    follower = LogFollower(service)  # not started: it reads the log when told to
    with captured_log("projections.log_follower") as lines, contextlib.closing(served.reader()) as store:
        with follower.following(page):
            follower._update(store)
            assert follower.page_data(page) is None
            service.writer._prepare()
            follower._update(store)
            assert follower.page_data(page) is not None
    served.close()
    assert lines == [], "it read no history that the earlier release had saved"


@pytest.mark.promise(107)
def test_decisions_of_0_1_0_keep_their_unsigned_ids(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(lzma.decompress(STORE_OF_0_1_0.read_bytes()))
    url = f"sqlite:///{tmp_path}/store.db"
    with contextlib.closing(open_store(url)) as store:
        number = store.find("with-aff-ots")
        assert number is not None
        [(keyed,)] = store.rows("SELECT step FROM events WHERE bandit = ? AND key = '3'", (number,))
        [(last,)] = store.rows("SELECT max(step) FROM events WHERE bandit = ?", (number,))
        open_steps = [step for step, _ in open_decisions(store, number, 0, 1_000_000)]
    before = public_id(number)
    for _ in range(2):  # also after another start
        with running(open_store(url)) as server, talking(server.url) as (client, _):
            assert client.decide_many("with-aff-ots", 34, key="3")[0].decision == f"{before}-{keyed}"
            assert status_of(client.reward, f"{before}-{open_steps.pop()}", 1) == 200
            new = client.decide("with-aff-ots")
            assert new.step > last
            assert status_of(client.reward, f"{before}-{new.step}", 1) == 404, "a new decision has a signed id only"
            assert status_of(client.reward, new.decision, 1) == 200
            logged = {event.step: event.decision for event in client.events("with-aff-ots") if event.kind == "decision"}
            assert (logged[last], logged[new.step]) == (f"{before}-{last}", new.decision)


def test_migrations_from_every_version_lead_to_the_same_tables(tmp_path: Path) -> None:
    schemas = []
    for first in range(1, VERSION + 1):
        path = tmp_path / f"{first}.db"
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            for statement in migration("sqlite", 0)[: len(migration("sqlite", 0)) - len(migration("sqlite", first))]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {first}")
        with contextlib.closing(open_store(f"sqlite:///{path}")) as store:
            store.prepare()
            assert version(store) == VERSION
            schemas.append(sorted(store.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")))
    assert all(schema == schemas[0] for schema in schemas)
    assert set(TABLES) <= {name for name, _ in schemas[0]}


def test_a_database_is_migrated_too(postgres_url: str) -> None:
    with contextlib.closing(open_store(postgres_url)) as store:
        store.create_tables()
        later = TABLES[TABLES.index("histories") :]
        store.write([(f"DROP TABLE {name}", ()) for name in later])
        store.write([(f"ALTER TABLE keys DROP COLUMN {name}", ()) for name in ("namespace", "requests_per_second")])
        store.write([("INSERT INTO bandits (number, name, deleted) VALUES (5, 'a', 0), (6, 'b', 0), (7, 'c', 1)", ())])
        decision = "INSERT INTO events (bandit, sequence, kind, step, time, wall) VALUES (?, ?, 'decision', ?, 0, 0)"
        store.write([(decision, (bandit, step, step)) for bandit in (5, 7) for step in (1, 2)])
        set_version(store, 1)
        store.create_tables()
        assert version(store) == 1
        store.prepare()
        assert (version(store), saved_history(store, 0)) == (VERSION, None)
        assert store.rows("SELECT * FROM unsigned_ids ORDER BY bandit") == [(5, 2), (7, 2)]
        assert len(store.rows("SELECT value FROM signing_secret")[0][0]) == 32


@pytest.mark.promise(96)
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["verify"], ["keys", "list"]])
def test_a_store_of_a_later_release_is_left_alone(store_url: str, command: list[str]) -> None:
    with contextlib.closing(open_store(store_url)) as store:
        store.create_tables()
        set_version(store, 99)
        problem = failed_command(*command, "--store", store_url)
        assert f"has schema version 99, but this release reads versions up to {VERSION}: upgrade dynabandit" in problem
        assert version(store) == 99


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["verify"], ["keys", "list"]])
def test_a_database_with_tables_of_something_else_is_left_alone(postgres_url: str, command: list[str]) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE keys (door TEXT)")
        problem = failed_command(*command, "--store", postgres_url)
        assert "must be a database of its own, but has tables of something else: 'keys'" in problem
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("keys",)]


def test_a_file_of_something_else_is_left_as_it_was(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = (tmp_path / "other.db").read_bytes()
    with contextlib.closing(open_store(f"sqlite:///{tmp_path}/other.db")) as store:
        with pytest.raises(ValueError, match="is a database of something else"):
            store.create_tables()
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    assert len((tmp_path / "other.db").read_bytes()) == len(before)


class RecordingStore(SqliteStore):
    """A store that remembers its statements."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.statements: list[tuple[str, Sequence[Any]]] = []

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.statements.append((statement, values))
        return super().rows(statement, values)


def test_changes_are_found_without_reading_the_events_between_them(tmp_path: Path) -> None:
    with contextlib.closing(RecordingStore(str(tmp_path / "store.db"))) as store:
        store.create_tables()
        store.statements.clear()
        store.events(1, 0, 10, KINDS["change"])
        arm_names(store, 1)
        asked = list(store.statements)
        plans = [str(store.rows(f"EXPLAIN QUERY PLAN {statement}", values)) for statement, values in asked]
    assert ["INDEX events_changes" in plan for plan in plans] == [True, True]
    assert not any("sequence>?)" in plan.replace("kind=? AND sequence>?)", "") for plan in plans)
