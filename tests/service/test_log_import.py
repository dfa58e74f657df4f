"""Imports of old logs: exact replays, interrupted imports that continue, and errors that change nothing."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynabandit import offline
from dynabandit.cli.commands import app
from dynabandit.service import api_types, log_import
from dynabandit.service.clock import Clock
from dynabandit.service.compaction import compact
from dynabandit.service.domain.changes import create
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import settle_due
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, WriteConflictError
from dynabandit.service.export import decisions, parquet_pieces
from dynabandit.service.stores import open_store
from dynabandit.service.verify import verify

ROWS = 60
COLUMNS = ("--arm", "shown", "--reward", "click", "--time", "at", "--propensity", "p")
HOURS = [hour % 24 for hour in range(ROWS)]
ARMS = ["red", "green", "blue"]


@pytest.fixture
def old_log(tmp_path: Path) -> Path:
    path = tmp_path / "old.csv"
    rows = (f"{1000 + n},{ARMS[(n + n // 7) % 3]},{int(n % 5 == 0)},{HOURS[n]},0.{n % 4 + 1}" for n in range(ROWS))
    path.write_text("\n".join(["at,shown,click,hour,p", *rows, ""]))
    return path


def run_import(path: Path, url: str, *options: str, code: int = 0) -> str:
    given = ["import", str(path), "--bandit", "b", "--store", url, *COLUMNS, "--policy", "ts", *options]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.promise(250, 251)
@pytest.mark.parametrize("options", [(), ("--policy", "lin-ucb", "--feature", "hour")])
def test_an_imported_log_is_the_start_of_a_bandit(old_log: Path, sqlite_url: str, options: tuple[str, ...]) -> None:
    said = run_import(old_log, sqlite_url, *options)
    assert f"imported {ROWS} decisions with rewards into bandit 'b'" in said
    assert ("features: hour (number)" in said) == bool(options)
    store = open_store(sqlite_url)
    work = UnitOfWork(store, Clock())
    state = work.named("b")
    events = list(store.log(state.bandit_number, 1))
    made, rewarded = events[::2], events[1::2]
    assert [state.bandit.names[one.arm or 0] for one in made] == [ARMS[(n + n // 7) % 3] for n in range(ROWS)]
    assert [one.value for one in rewarded] == [float(n % 5 == 0) for n in range(ROWS)]
    assert [one.value for one in made] == [float(f"0.{n % 4 + 1}") for n in range(ROWS)]
    assert [one.wall for one in made] == [1000 + n for n in range(ROWS)]
    if options:
        assert [json.loads(one.body or "")["context"]["hour"] for one in made] == HOURS
    decide(work, "b", api_types.Decide(context={"hour": 3.0} if options else None))
    store.commit(*work.batch())
    [found] = verify(store)
    assert (found.problem, found.imported, found.steps, found.hashes) == (None, ROWS, ROWS + 1, 1)
    exported = list(itertools.chain.from_iterable(decisions(store, state.bandit_number, 20)))
    assert [(one.propensity, one.replayed) for one in exported[:ROWS]] == [(one.value, False) for one in made]
    assert exported[ROWS].replayed
    [compacted] = compact(store, before=2e12, now=0.0)
    assert (compacted.problem, compacted.removed) == (None, 2 * ROWS)
    assert verify(store)[0].problem is None
    store.close()


@pytest.mark.promise(250)
def test_the_parquet_export_of_a_bandit_can_be_imported_with_its_contexts(old_log: Path, sqlite_url: str) -> None:
    run_import(old_log, sqlite_url, "--policy", "lin-ucb", "--feature", "hour")
    store = open_store(sqlite_url)
    path = old_log.with_suffix(".parquet")
    path.write_bytes(b"".join(parquet_pieces(store, store.find_log("b", None), 20)))
    given = ["import", str(path), "--bandit", "copy", "--store", sqlite_url, "--policy", "lin-ucb", "--time", "wall"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    assert "features: hour (number)" in result.output
    original, copied = (
        [one._replace(bandit=0, time=0.0) for one in store.log(store.find_log(name, None), 1)] for name in ("b", "copy")
    )
    assert copied == original
    store.close()


@pytest.mark.promise(252)
@pytest.mark.parametrize("store_name", ["sqlite", "postgres"])
def test_an_interrupted_import_continues_and_gives_the_same_state(
    old_log: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, store_name: str, tmp_path: Path
) -> None:
    url = request.getfixturevalue(f"{store_name}_url")
    monkeypatch.setattr(log_import, "ROWS_PER_COMMIT", 7)
    monkeypatch.setattr(log_import, "ROWS_PER_SNAPSHOT", 20)
    whole = run_import(old_log, f"sqlite:///{tmp_path}/whole.db", "--settings", '{"seed": 5}')
    monkeypatch.setattr(log_import, "_add", interrupted(log_import._add, after=4))
    assert "run the same command again" in run_import(old_log, url, "--settings", '{"seed": 5}', code=130)
    monkeypatch.undo()
    store = open_store(url)
    work = UnitOfWork(store, Clock())
    with pytest.raises(ConflictError, match="28 of 60 decisions are imported"):
        decide(work, "b", api_types.Decide())
    assert "imported 32 decisions" in run_import(old_log, url, "--settings", '{"seed": 5}')
    again = run_import(old_log, url, "--settings", '{"seed": 5}')
    assert "imported 0 decisions" in again
    assert whole.splitlines()[1:] == again.splitlines()[1:]
    [found] = verify(store)
    other = open_store(f"sqlite:///{tmp_path}/whole.db")
    [expected] = verify(other)
    assert (found.problem, expected.problem) == (None, None)
    assert (found.state_hash, found.events) == (expected.state_hash, expected.events)
    for one in (store, other):
        one.close()


def interrupted(function: Any, after: int) -> Any:
    """Return a function that is interrupted at a later call."""
    calls = itertools.count()

    def call(*given: Any) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt
        function(*given)

    return call


@pytest.mark.promise(251)
def test_imported_decisions_are_held_and_learned_like_others(old_log: Path, sqlite_url: str) -> None:
    settings = {"reward_window": 30.0, "default_reward": 0.0, "holdout": {"share": 0.2}}
    run_import(old_log, sqlite_url, "--settings", json.dumps(settings))
    store, clock = open_store(sqlite_url), Clock()
    work = UnitOfWork(store, clock)
    number = work.named("b").bandit_number
    assert work.state(number).learner.held(ROWS) == ROWS
    clock.advance_to(1000.0)
    while settle_due(work, number):
        pass
    store.commit(*work.batch())
    assert work.state(number).learner.held(ROWS) == 0
    [found] = verify(store)
    assert (found.problem, found.state_hash) == (None, work.state(number).state_hash())
    holdout = work.state(number).monitoring.lift
    assert holdout is not None
    assert holdout.rewards(in_holdout=False) == 0, "imported decisions have no random group"
    store.close()


@pytest.mark.promise(252)
def test_another_file_or_other_options_do_not_continue_an_import(old_log: Path, sqlite_url: str) -> None:
    run_import(old_log, sqlite_url)
    store = open_store(sqlite_url)
    before = [(one.name, one.state_hash) for one in verify(store)]
    assert "was not imported from this file" in run_import(old_log, sqlite_url, "--policy", "ucb", code=2)
    old_log.write_text(old_log.read_text().replace("1000,red,1", "1000,red,0"))
    assert "was not imported from this file" in run_import(old_log, sqlite_url, code=2)
    assert [(one.name, one.state_hash) for one in verify(store)] == before
    store.close()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--policy", "nonsense"), "nonsense"),
        (("--settings", "{"), "--settings must be JSON"),
        (("--settings", '{"arms": ["a", "b"]}'), "--settings must be an object without arms, rewards"),
        (("--settings", '{"reward_window": -1}'), "reward_window must be a number above 0"),
        (("--reward", "hour"), "rows cannot be used"),
        (("--store", "mysql://x"), "mysql"),
        (("--bandit", "x" * 201), "name must have 1 to 200 characters"),
    ],
)
def test_what_is_wrong_creates_nothing(old_log: Path, sqlite_url: str, options: tuple[str, ...], problem: str) -> None:
    assert problem in run_import(old_log, sqlite_url, *options, code=2)
    if Path(sqlite_url.removeprefix("sqlite:///")).exists():
        store = open_store(sqlite_url)
        assert verify(store) == []
        store.close()


def test_a_store_that_is_served_is_refused(old_log: Path, sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.prepare()
    assert "is served by another process" in run_import(old_log, sqlite_url, code=1)
    store.close()


def test_creating_an_imported_bandit_again_gives_it(old_log: Path, sqlite_url: str) -> None:
    run_import(old_log, sqlite_url)
    store = open_store(sqlite_url)
    asked = api_types.Create(arms=sorted(ARMS), policy="ts", rewards="bounded")
    assert create(UnitOfWork(store, Clock()), "b", asked)[1] is False
    store.close()


def test_two_imports_at_the_same_time_are_noticed(old_log: Path, sqlite_url: str) -> None:
    run_import(old_log, sqlite_url)
    store = open_store(sqlite_url)
    work = UnitOfWork(store, Clock())
    rows = list(log_import._rows(offline.read(old_log, arm="shown", reward="click")))
    with pytest.raises(WriteConflictError, match="another process imports the same file"):
        log_import._add(work, work.named("b").bandit_number, 0, rows)
    store.close()
