"""Damaged logs: verify reports the first difference, and the service serves all other bandits."""

import contextlib
import re
import shlex
import shutil
import sqlite3
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from dynabandit.client import Client
from dynabandit.service.command_line import app
from dynabandit.service.domain.bandit_state import HASH_PREFIX
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.keys import new_key
from dynabandit.service.stores import open_store
from dynabandit.service.verify import verify
from tools.harness import (
    ARMS,
    DirectWriter,
    ManualClock,
    Running,
    assert_replay_agrees,
    captured_log,
    copied_store,
    failed_command,
    running,
    talking,
)
from tools.waiting import wait_for

BAD = "bandit = (SELECT number FROM bandits WHERE name = CAST('bad' AS BLOB))"


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a bandit of 40 decisions, each rewarded at once."""
    url = f"sqlite:///{tmp_path_factory.mktemp('whole')}/store.db"
    writer = DirectWriter(url)
    for _ in range(40):
        writer.learn(1)
    writer.store.close()
    good = CliRunner().invoke(app, ["verify", "--store", url])
    assert (good.exit_code, "agrees   'b': 81 events, 40 steps" in good.output) == (0, True)
    return url


@pytest.mark.promise(63)
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE events SET arm = (arm + 1) % 3 WHERE step = 31", "event 62: the log chose arm"),
        ("DELETE FROM events WHERE sequence = 20", "event 21: sequence 20 is missing"),
        ("UPDATE events SET value = 1 - value WHERE settles = 3", "event"),
        ("UPDATE events SET step = 1000 WHERE step = 40", "the log has step 1000, the replay step 40"),
        ("UPDATE events SET body = '{' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        (
            """UPDATE events SET body = replace(body, '"parameters": {}', '"parameters": {"prior": [1e-300, 1]}')
            WHERE kind = 'create'""",
            "each number in prior must be a number in [1e-12, 1e+12], got 1e-300; change the policy with the release",
        ),
        ("UPDATE events SET body = '[]' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        ("UPDATE events SET body = '{}' WHERE kind = 'create'", "bandit 'b', event 1: it cannot be read"),
        ("UPDATE events SET value = 'x' WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET settles = 'x' WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET time = 'x' WHERE step = 3", "event 6: it cannot be read"),
        ("UPDATE events SET kind = 'arm', body = NULL WHERE settles = 3", "event 7: it cannot be read"),
        ("UPDATE events SET kind = 'other' WHERE settles = 3", "event 7: unknown kind 'other'"),
        ("UPDATE events SET arm = 1000000 WHERE settles = 3", "event 7: it rewards column 1000000"),
        ("UPDATE events SET arm = (arm + 1) % 3 WHERE settles = 3", "but the decision took column"),
        ("UPDATE events SET kind = CAST(x'ff' AS TEXT) WHERE settles = 3", "event 7: it holds text that is not UTF-8"),
        ("UPDATE events SET key = CAST(x'ff' AS TEXT) WHERE step = 3", "event 6: it holds text that is not UTF-8"),
        ("UPDATE bandits SET name = x'62ff'", r"bandit 'b\udcff', event 1: it creates 'b'"),
    ],
)
def test_verify_reports_the_first_difference(whole_store: str, tmp_path: Path, damage: str, problem: str) -> None:
    assert problem in failed_command("verify", "--store", copied_store(whole_store, tmp_path, damage))


@pytest.mark.promise(63)
def test_verify_compares_snapshots(whole_store: str, tmp_path: Path) -> None:
    snapshot = f"INSERT INTO snapshots SELECT number, {{}}, '{HASH_PREFIX}not its hash', NULL FROM bandits"
    for sequence, problem in ((40, "event 40: the state that was saved here is not"), (99, "event 82: a state was")):
        url = copied_store(whole_store, tmp_path, snapshot.format(sequence))
        assert problem in failed_command("verify", "--store", url)


@pytest.mark.promise(41, 63)
def test_verify_covers_deleted_bandits(client: Client, server: Running) -> None:
    client.create("b", ARMS)
    client.decide_many("b", 10)
    client.delete("b")
    client.create("b", ARMS)
    with contextlib.closing(server.store.reader()) as store:
        assert sorted(one.events for one in verify(store)) == [1, 12]


@pytest.fixture(scope="module")
def two_bandits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the bandits "bad" and "good", of 5 open decisions each."""
    url = f"sqlite:///{tmp_path_factory.mktemp('two')}/store.db"
    with running(open_store(url), clock=ManualClock()) as server, talking(server.url) as (client, _):
        for name in ("bad", "good"):
            client.create(name, ARMS, seed=1, reward_window=10)
            client.decide_many(name, 5)
    return url


@contextlib.contextmanager
def serving(url: str, clock: ManualClock) -> Iterator[tuple[Client, httpx.Client]]:
    with running(open_store(url), clock=clock) as server, talking(server.url) as both:
        yield both


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    "damage",
    [
        [f"UPDATE events SET arm = (arm + 1) % 3 WHERE step = 2 AND {BAD}", f"DELETE FROM snapshots WHERE {BAD}"],
        [f"UPDATE events SET body = '{{' WHERE kind = 'create' AND {BAD}", f"DELETE FROM snapshots WHERE {BAD}"],
        [f"UPDATE snapshots SET body = '[]' WHERE {BAD}"],
        [f"UPDATE snapshots SET body = CAST(x'ff' AS TEXT) WHERE {BAD}"],
    ],
    ids=["another arm", "no JSON", "snapshot of another type", "snapshot that is not UTF-8"],
)
def test_a_bandit_with_a_damaged_log_is_not_served_and_the_others_are(
    two_bandits: str, tmp_path: Path, clock: ManualClock, damage: list[str]
) -> None:
    with serving(copied_store(two_bandits, tmp_path, *damage), clock) as (client, http):
        assert http.post("/v1/bandits/bad/decisions", json={}).status_code == 500
        assert http.get("/v1/bandits/bad").status_code == 500
        assert client.decide("good").step == 6
        clock.seconds += 11
        wait_for(lambda: client.state("good").sequence == 13)


@pytest.mark.promise(6, 65, 109)
def test_a_bandit_with_a_damaged_log_rejects_only_its_own_rewards(
    two_bandits: str, tmp_path: Path, clock: ManualClock
) -> None:
    damage = f"UPDATE events SET arm = (arm + 1) % 3 WHERE step = 2 AND {BAD}", f"DELETE FROM snapshots WHERE {BAD}"
    url = copied_store(two_bandits, tmp_path, *damage)
    with contextlib.closing(open_store(url)) as store:
        bad, good = (store.decision_ids().make(store.find(name) or 0, 1) for name in ("bad", "good"))
    with running(open_store(url), clock=clock) as server, talking(server.url) as (client, http):
        results = client.reward_many([(bad, 1), (good, 1)])
        assert [one.status for one in results] == [500, 200]
        assert http.put(f"/v1/decisions/{bad}/reward", json={"reward": 1}).status_code == 500
        assert "event 3 of this bandit's log" in (results[0].problem or "")
        key, row = new_key("decide", namespace="shop")
        server.service.keyring.replace([row])
        server.service.needs_keys = True
        with talking(server.url, key) as (bound, http):
            assert [one.status for one in bound.reward_many([(bad, 1), (good, 1)])] == [404, 404]
            assert http.put(f"/v1/decisions/{bad}/reward", json={"reward": 1}).status_code == 404


def test_calls_for_a_damaged_bandit_leave_nothing_behind(two_bandits: str, tmp_path: Path, clock: ManualClock) -> None:
    """Neither in memory, by the traceback of the error that all of them get, nor a line of the log for each reward."""
    url = copied_store(two_bandits, tmp_path, f"UPDATE snapshots SET body = '[]' WHERE {BAD}")
    with contextlib.closing(open_store(url)) as store:
        bad = store.decision_ids().make(store.find("bad") or 0, 1)

    def frames(work: UnitOfWork) -> int:
        (error,) = work.damaged.values()
        return len(list(traceback.walk_tb(error.__traceback__)))

    with running(open_store(url), clock=clock) as server, talking(server.url) as (client, http):
        counts = []
        for _ in range(10):
            assert http.post("/v1/bandits/bad/decisions", json={}).status_code == 500
            counts.append(server.run_in_writer(frames))
        assert counts[1:] == counts[1:2] * 9
        with captured_log("http.status_codes") as lines:
            assert {one.status for one in client.reward_many([(bad, 1)] * 100)} == {500}
        assert len(lines) == 1


@pytest.mark.parametrize(("column", "paths"), [("kind", ["", "/events"]), ("body", ["", "/events", "/export"])])
def test_text_that_is_not_utf_8_damages_only_its_own_log(
    two_bandits: str, tmp_path: Path, clock: ManualClock, column: str, paths: list[str]
) -> None:
    change = f"UPDATE events SET {column} = CAST(x'7bff7d' AS TEXT) WHERE sequence = 1 AND {BAD}"
    url = copied_store(two_bandits, tmp_path, change, f"DELETE FROM snapshots WHERE {BAD}")
    with serving(url, clock) as (client, http):
        for path in paths:
            answer = http.get(f"/v1/bandits/bad{path}")
            assert (answer.status_code, "event 1 of this bandit's log" in answer.text) == (500, True), path
        assert client.decide("good").step == 6
        wait_for(lambda: http.get("/readyz").status_code == 200)
        assert [one.name for one in client.bandits()] == ["bad", "good"]
        assert not client.delete("bad", erase=True).log_kept


def test_a_name_that_is_not_utf_8_hides_no_other_bandit(two_bandits: str, tmp_path: Path, clock: ManualClock) -> None:
    damage = "UPDATE bandits SET name = x'67ff' WHERE name = CAST('bad' AS BLOB)"
    with serving(copied_store(two_bandits, tmp_path, damage), clock) as (client, http):
        client.create("z", ARMS, seed=1)
        assert [one.name for one in client.bandits()] == ["good", "g\ufffd", "z"]
        names: list[list[str]] = []
        after: str | None = ""
        while after is not None:
            page = http.get("/v1/bandits", params={"after": after, "limit": 1}).json()
            names.append([one["name"] for one in page["bandits"]])
            after = page["next"]
        assert names == [["good"], ["g\ufffd", "z"], []]
        clock.seconds += 11
        wait_for(lambda: client.state("good").sequence == 11)


@pytest.mark.promise(123)
def test_verify_reads_a_store_on_a_read_only_medium(whole_store: str, tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(medium)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a medium")
    try:
        (medium / "a # 100%?").mkdir()
        for name in ("whole", "changed"):
            shutil.copy(whole_store.removeprefix("sqlite:///"), medium / "a # 100%?" / f"{name}.db")
        (medium / "a # 100%?" / "changed.db-wal").write_bytes(b"changes")
        subprocess.run(["mount", "-o", "remount,ro", str(medium)], check=True)
        for command in ("verify", "keys list"):
            done = CliRunner().invoke(app, [*command.split(), "--store", f"sqlite:///{medium}/a # 100%?/whole.db"])
            assert done.exit_code == 0, done.output
        problem = failed_command("verify", "--store", f"sqlite:///{medium}/a # 100%?/changed.db")
        assert "changed.db-wal has changes: copy both to a writable folder" in problem
        url = f"sqlite:///{medium}/a # 100%?/whole.db"
        assert "cannot be opened: Read-only file system" in failed_command("serve", "--port", "0", "--store", url)
    finally:
        subprocess.run(["umount", str(medium)], check=True)


@pytest.mark.promise(94)
def test_a_backup_is_restored_as_the_documentation_says(tmp_path: Path) -> None:
    live, crashed = tmp_path / "live", tmp_path / "crashed"
    live.mkdir()
    with running(open_store(f"sqlite:///{live}/dynabandit.db")) as server, talking(server.url) as (client, _):
        client.create("b", ARMS)
        made = client.decide_many("b", 100)
        with contextlib.closing(sqlite3.connect(live / "dynabandit.db")) as source:
            source.execute("VACUUM INTO ?", (str(live / "backup.db"),))
        client.decide_many("b", 100)
        shutil.copytree(live, crashed)  # the files that kill -9 would leave
    assert (crashed / "dynabandit.db-wal").stat().st_size > 0, "what it leaves behind must not reach the backup"
    text = Path(__file__).parents[2].joinpath("docs", "service.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\$ ((?:rm|cp) .*dynabandit\.db.*)$", text, re.MULTILINE)
    assert len(steps) == 2
    for step in steps:
        subprocess.run(shlex.split(step), cwd=crashed, check=True)
    url = f"sqlite:///{crashed}/dynabandit.db"
    assert_replay_agrees(url)
    with running(open_store(url)) as server, talking(server.url) as (client, _):
        assert client.state("b").step == 100
        client.reward(made[0].decision, 1)
