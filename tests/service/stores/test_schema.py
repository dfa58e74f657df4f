"""The tables: versions, migrations, databases of other programs, and the index of changes."""

import contextlib
import sqlite3

import psycopg
import pytest
from typer.testing import CliRunner

from dynabandit.service.commands import app
from dynabandit.service.domain.events import KINDS
from dynabandit.service.stores import open_store
from service.harness import failed_command


def test_a_store_of_a_later_release_is_left_alone(sqlite_url):
    store = open_store(sqlite_url)
    store.create_tables()
    store.write([("PRAGMA user_version = 99", ())])
    store.close()
    for command in (["serve", "--port", "0"], ["verify"], ["keys", "list"]):
        assert "schema version 99" in failed_command(*command, "--store", sqlite_url)


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["verify"], ["keys", "list"]])
def test_a_database_with_tables_of_something_else_is_left_alone(postgres_url, command):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE keys (door TEXT)")
        done = CliRunner().invoke(app, [*command, "--store", postgres_url])
        assert done.exit_code == 1
        assert "must be a database of its own, but has tables of something else: 'keys'" in done.stderr
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("keys",)]


def test_a_file_of_something_else_is_left_as_it_was(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = (tmp_path / "other.db").read_bytes()
    store = open_store(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(ValueError, match="is a database of something else"):
        store.create_tables()
    store.close()
    with sqlite3.connect(tmp_path / "other.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    connection.close()
    assert len((tmp_path / "other.db").read_bytes()) == len(before)


def test_changes_are_found_without_reading_what_lies_between_them(sqlite_url):
    asked = []
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.create_tables()
        rows = store.rows
        store.rows = lambda *statement: asked.append(statement) or rows(*statement)
        store.events(1, 0, 10, KINDS["change"])
        store.arm_names(1)
        plans = [str(rows(f"EXPLAIN QUERY PLAN {statement}", values)) for statement, values in asked]
    assert ["INDEX events_changes" in plan for plan in plans] == [True, True]
    assert not any("sequence>?)" in plan.replace("kind=? AND sequence>?)", "") for plan in plans)
