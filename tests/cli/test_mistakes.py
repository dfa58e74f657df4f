"""Mistakes on the command line: each gets a message of one or two lines that names it, and never a traceback."""

import contextlib
import gzip
import io
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pyarrow
import pyarrow.parquet
import pytest
import typer.main

from dynabandit.cli import commands, run_errors
from dynabandit.service.stores import open_store
from tools.command_line import COMMAND, call_main, invoke, without
from tools.waiting import PATIENCE

MOST_LINES = 2  # of a message of ours
BAD_INPUT, FAILED = 2, 1
SPEC = """
[[experiments]]
id = "mine"
environment = "case-1"
policies = ["ucb"]
"""
ROWS = "arm,reward\n" + "a,1\nb,0\n" * 20
DEEP = "[" * 20_000
UNREADABLE = "/proc/self/mem"  # a file that not even root can read from its start


def spec(key: str, value: str) -> str:
    return SPEC + f"{key} = {value}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with one thing wrong with each."""
    here = tmp_path_factory.mktemp("mistakes")
    texts = {
        "good.toml": SPEC,
        "broken.toml": SPEC + "horizon = \n",
        "key.toml": spec("replication", "3"),
        "type.toml": spec("horizon", '"long"'),
        "huge.toml": spec("replications", "99999999999"),
        "deep.toml": f"title = {DEEP}",
        "empty.toml": "",
        "good.csv": ROWS,
        "empty.csv": "",
        "header.csv": "arm,reward\n",
        "one-arm.csv": "arm,reward\n" + "a,1\n" * 30,
        "short.csv": "arm,reward\na,1\nb,0\n",
        "negative.csv": ROWS + "a,-1\n",
        "columns.csv": ROWS.replace("reward", "revard"),
        "wide.csv": ",".join(f"column {place}" for place in range(1000)) + "\n",
        "log.ndjson": '{"arm": "a", "reward": 1}\n',
        "list.json": '[{"arm": "a", "reward": 1}]\n',
        "text.parquet": ROWS,
        "text.db": "this is no database, but long enough to look like one" * 100,
    }
    for name, text in texts.items():
        (here / name).write_text(text, encoding="utf-8")
    (here / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    (here / "log.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    (here / "folder").mkdir()
    table = pyarrow.table({"arm": ["a", "b"], "score": [1, 0]})
    for name in ("columns.parquet", "parquet.csv"):
        pyarrow.parquet.write_table(table, here / name)
    for name, version in (("other.db", 0), ("versioned.db", 1)):
        with sqlite3.connect(here / name) as connection:
            connection.execute("CREATE TABLE recipes (name TEXT)")
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
    store = open_store(f"sqlite:///{here}/good.db")
    store.create_tables()
    store.close()
    return here


COMPARE = ["compare", "--env", "case-1"]
REPLAY = ["--policy", "ts"]

# What is typed, the exit status, and what the message must say
MISTAKES: dict[str, tuple[list[str], int, str]] = {
    # Specs
    "no file": (["run", "god.toml"], 2, "cannot read god.toml: No such file or directory"),
    "a folder for a spec": (["run", "folder"], 2, "cannot read folder: Is a directory"),
    "a spec that cannot be read": (["run", UNREADABLE], 2, f"cannot read {UNREADABLE}: Input/output error"),
    "no TOML": (["run", "broken.toml"], 2, "broken.toml: Invalid value (at line 6, column 11)"),
    "a key that is not known": (
        ["run", "key.toml"],
        2,
        "key.toml: experiments[0].replication: unknown key 'replication'. Did you mean 'replications'?",
    ),
    "text for a number in a spec": (
        ["run", "type.toml"],
        2,
        "type.toml: experiments[0]: horizon must be a whole number of at least 1 and at most 4294967295, got 'long'",
    ),
    "a huge number in a spec": (
        ["run", "huge.toml"],
        2,
        "experiments[0]: replications must be a whole number of at least 1 and at most 4294967295, got 99",
    ),
    "deep lists in a spec": (["run", "deep.toml"], 2, "deep.toml: lists and tables must be nested less deeply"),
    "an empty spec": (["run", "empty.toml"], 2, "empty.toml: there must be something to run"),
    "a spec in another encoding": (["run", "latin.toml"], 2, "latin.toml: must be TOML in UTF-8"),
    "a figure that is not there": (["run", "good.toml", "--only", "god"], 2, "unknown figure 'god'. Did you mean"),
    # Numbers
    "a number below zero": ([*COMPARE, "--replications", "-3", "ucb"], 2, "replications must be a whole number"),
    "a number that is too large": ([*COMPARE, "--horizon", "9" * 30, "ucb"], 2, "horizon must be a whole number"),
    "a seed that is too large": ([*COMPARE, "--seed", "9" * 30, "ucb"], 2, "at most 18446744073709551615, got 999"),
    "no number": ([*COMPARE, "--horizon", "many", "ucb"], 2, "--horizon"),
    "half a step": ([*COMPARE, "--horizon", "10.5", "ucb"], 2, "--horizon"),
    "no threads": ([*COMPARE, "--jobs", "-1", "ucb"], 2, "--jobs must be a whole number of at least 1, got -1"),
    # Policies and environments as text
    "no environment": (["compare", "ucb"], 2, "--env"),
    "no policy": (["compare", "--env", "case-1"], 2, "POLICY"),
    "a negative delay": ([*COMPARE, "ucb", "--delay", "fixed:steps=-1"], 2, "--delay: steps must be a whole number"),
    "an empty environment": (["compare", "--env", "", "ucb"], 2, "--env: unknown environment ''. Known: "),
    "an empty policy": ([*COMPARE, ""], 2, "unknown policy ''. Known: "),
    "a policy that is not known": ([*COMPARE, "aff-uts"], 2, "unknown policy 'aff-uts'. Did you mean 'aff-"),
    "a parameter without a name": ([*COMPARE, "dts:=3"], 2, "must be name:parameter=value"),
    "a parameter of another kind": ([*COMPARE, "dts:memory=1979-05-27"], 2, "memory must be a number in (0, inf)"),
    "a parameter that is not a number": (
        [*COMPARE, "dts:memory=nan"],
        2,
        "memory must be a number in (0, inf), got nan",
    ),
    "a parameter without end": (
        [*COMPARE, "eps-greedy:epsilon=1e999"],
        2,
        "epsilon must be a number in [0, 1], got inf",
    ),
    "a parameter that is a table": ([*COMPARE, "ucb:burn_in={}"], 2, "burn_in must be a whole number"),
    "a parameter with too many digits": ([*COMPARE, f"ucb:burn_in={'9' * 5000}"], 2, "burn_in must be a whole number"),
    "rows of different lengths": (["compare", "--env", "fixed:means=[[0.1], [0.2, 0.3]]", "ucb"], 2, "means must hold"),
    "a parameter that is deep": ([*COMPARE, f"dts:memory={DEEP}"], 2, "lists must be nested less deeply"),
    "a prior that is no pair": ([*COMPARE, "ts:prior=[1]"], 2, "prior must be a pair of positive numbers"),
    "a mean above 1": (
        ["compare", "--env", "fixed:means=[0.1, 2]", "ucb"],
        2,
        "means[1] must be a number in [0, 1], got 2",
    ),
    "an environment without its parameters": (
        ["compare", "--env", "fixed", "ucb"],
        2,
        "environment 'fixed' needs means",
    ),
    # The leaderboard
    "a policy not on the leaderboard": (
        ["leaderboard", "--policy", "ucv"],
        2,
        "unknown policy 'ucv'. Did you mean 'ucb'?",
    ),
    "a world not on the leaderboard": (
        ["leaderboard", "--environment", "case-11"],
        2,
        "unknown environment of the leaderboard 'case-11'. Did you mean 'case-1'?",
    ),
    "a leaderboard of yardsticks": (["leaderboard", "--policy", "best-arm"], 2, "does not know the true means"),
    "a leaderboard without replications": (["leaderboard", "--replications", "0"], 2, "replications must be"),
    # Where and how to run
    "a backend that is not known": ([*COMPARE, "--backend", "gpu", "ucb"], 2, "unknown backend 'gpu'"),
    "a precision that is not known": ([*COMPARE, "--precision", "half", "ucb"], 2, "unknown precision 'half'"),
    "an address that is none": (
        [*COMPARE, "--cluster", "scheduler", "ucb"],
        2,
        "cluster must be 'local' or an address",
    ),
    "an out that is a file": (
        [*COMPARE, "--out", "good.toml", "ucb"],
        1,
        "cannot write into good.toml/store: Not a directory",
    ),
    "an out that nobody may write": ([*COMPARE, "--out", "/proc/out", "ucb"], 1, "cannot write into /proc/out/store: "),
    # Logs
    "no log": (["replay", "none.csv", *REPLAY], 2, "there is no file none.csv"),
    "a folder for a log": (["advise", "folder"], 2, "folder is a folder; name a file in it"),
    "a device for a log": (["replay", "/dev/null", *REPLAY], 2, "/dev/null is a pipe or a device"),
    "a log that cannot be read": (["replay", UNREADABLE, *REPLAY], 1, "Input/output error"),
    "an empty log": (["replay", "empty.csv", *REPLAY], 2, "empty.csv is empty: its first line must name the columns"),
    "a log without rows": (["advise", "header.csv"], 2, "header.csv must have rows below the names of its columns"),
    "a log with one arm": (["replay", "one-arm.csv", *REPLAY], 2, "must have at least 2 different arms, got 'a'"),
    "a log too short for advice": (
        ["advise", "short.csv"],
        2,
        "short.csv must have at least 20 rows for advice, got 2",
    ),
    "a reward below zero": (
        ["replay", "negative.csv", *REPLAY],
        2,
        "column 'reward': must be a number in [0, 1], got '-1'",
    ),
    "a column that is not there": (
        ["replay", "columns.csv", *REPLAY],
        2,
        "columns.csv has no column 'reward' for the reward. Did you mean 'revard'? Its columns: 'arm', 'revard'",
    ),
    "a thousand columns": (["replay", "wide.csv", *REPLAY], 2, "'column 19' and 980 more"),
    "one column for two things": (["replay", "good.csv", "--arm", "reward", *REPLAY], 2, "must be different columns"),
    "NDJSON": (["replay", "log.ndjson", *REPLAY], 2, "log.ndjson must be CSV with a line of column names, but is JSON"),
    "JSON": (["replay", "list.json", *REPLAY], 2, "list.json must be CSV with a line of column names, but is JSON"),
    "a packed log": (["replay", "log.csv.gz", *REPLAY], 2, "but is compressed; unpack it first"),
    "Parquet under another name": (["replay", "parquet.csv", *REPLAY], 2, "give it a name that ends in .parquet"),
    "no Parquet": (["replay", "text.parquet", *REPLAY], 2, "text.parquet cannot be read as Parquet: "),
    "a column that Parquet has not": (["advise", "columns.parquet"], 2, "columns.parquet has no column 'reward'"),
    "a separator that is too long": (["replay", "good.csv", "--separator", ";;", *REPLAY], 2, "separator must be one"),
    "an encoding that is not known": (
        ["replay", "good.csv", "--encoding", "utf-9", *REPLAY],
        2,
        "encoding must be one",
    ),
    "a clock that is not known": (["replay", "good.csv", "--clock", "row", *REPLAY], 2, "unknown clock 'row'"),
    "too large a clip": (["replay", "good.csv", "--clip", "2", *REPLAY], 2, "clip must be a number in [0, 1], got 2.0"),
    "no draws": (["replay", "good.csv", "--draws", "0", *REPLAY], 2, "draws must be a whole number of at least 1"),
    "huge draws": (
        ["replay", "good.csv", "--draws", "9" * 20, *REPLAY],
        2,
        "draws must be a whole number of at least 1",
    ),
    "one policy to choose from": (["advise", "good.csv", *REPLAY], 2, "policies must hold at least 2 different ones"),
    "a policy that only a simulation can tell": (["replay", "good.csv", "--policy", "best-arm"], 2, "the true means"),
    # The service
    "no role": (["keys", "create"], 2, "--role"),
    "a role that is not known": (["keys", "create", "--role", "amin"], 2, "unknown role 'amin'. Did you mean 'admin'?"),
    "a note that is no text": (["keys", "create", "--role", "read", "--note", "\udcff"], 2, "--note must be text"),
    "a key in place of its id": (["keys", "revoke", "dyna_12_secret"], 2, "not the key itself"),
    "a key that is not there": (["keys", "revoke", "12", "--store", "sqlite:///good.db"], 2, "there is no key '12'"),
    "no such store": (["verify", "--store", "sqlite:///none.db"], 2, "store sqlite:///none.db does not exist"),
    "a log that is not there": (["import", "none.csv", "--bandit", "b"], 2, "none.csv"),
    "an age without a unit": (["compact", "--before", "90"], 2, "--before must be an age such as 90d, 12w or 36h"),
    "a port that is none": (["serve", "--port", "70000"], 2, "--port"),
    "a host that is none": (["serve", "--port", "0", "--host", "no such host"], 1, "cannot listen on port 0 of host"),
    "patience without end": (
        ["serve", "--port", "0", "--patience", "inf"],
        2,
        "--patience must be a number in [0.1, inf)",
    ),
}

STORES = {
    "another database": ("mysql://x", 2, "store must start with sqlite:/// or postgresql://"),
    "no file": ("sqlite:///", 2, "store must name a file"),
    "memory": ("sqlite:///:memory:", 2, "store must name a file"),
    "a folder": ("sqlite:///folder", 2, "got the folder folder"),
    "no SQLite": ("sqlite:///text.db", FAILED, "store sqlite:///text.db: file is not a database"),
    "not ours": ("sqlite:///other.db", FAILED, "is a database of something else, with the tables 'recipes'"),
    "not ours, but with a version": ("sqlite:///versioned.db", FAILED, "is a database of something else"),
    "no address": ("postgresql://[bad", 2, "store must be like postgresql://user@host/name"),
}
USES = {
    "serve": ["serve", "--port", "0"],
    "verify": ["verify"],
    "keys list": ["keys", "list"],
    "keys create": ["keys", "create", "--role", "read"],
    "keys revoke": ["keys", "revoke", "12"],
}
CASES = MISTAKES | {
    f"{use} with a store: {what}": ([*words, "--store", url], status, message)
    for use, words in USES.items()
    for what, (url, status, message) in STORES.items()
}
for use, words in USES.items():  # what makes a store fails to, what reads one does not find it
    status = FAILED if use in ("serve", "keys create") else 2
    CASES[f"{use} where nobody may write"] = ([*words, "--store", "sqlite:////proc/none.db"], status, "/proc/none.db")


@pytest.mark.parametrize(("arguments", "status", "message"), CASES.values(), ids=CASES.keys())
def test_a_mistake_gets_a_message_that_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, message: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    done = invoke(*arguments)
    assert isinstance(done.exception, SystemExit), f"it would show a traceback of {done.exception!r}"
    assert done.exit_code == status, done.output
    assert message in done.stderr
    assert done.stdout == ""
    if not done.stderr.startswith("Usage:"):
        assert done.stderr.startswith("dynabandit: ")
        assert len(done.stderr.splitlines()) <= MOST_LINES, done.stderr
    left = {path.name for path in folder.iterdir()} - {*before, *(f"{name}.lock" for name in before)}
    assert left == set(), "nothing is written"


@pytest.mark.parametrize("use", ["verify", "keys list", "keys create", "keys revoke"])
def test_a_database_that_does_not_answer_is_named_without_its_password(use: str) -> None:
    done = invoke(*USES[use], "--store", "postgresql://me:secret@127.0.0.1:1/x?application_name=y")
    assert isinstance(done.exception, SystemExit)
    assert "store postgresql://127.0.0.1:1/x: " in done.stderr
    assert "Connection refused" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("arguments", [[*COMPARE, "ucb"], ["replay", "good.csv", *REPLAY], ["advise", "good.csv"]])
def test_too_little_memory_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.chdir(folder)
    monkeypatch.setattr("dynabandit.experiments.run", fail)
    monkeypatch.setattr("dynabandit.offline.replay", fail)
    monkeypatch.setattr("dynabandit.offline.advise", fail)
    done = invoke(*arguments)
    assert (done.exit_code, done.stderr) == (1, "dynabandit: this takes more memory than there is\n")


@pytest.mark.parametrize("module", run_errors.REPORTING)
def test_the_packages_of_a_report_are_checked_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = invoke(*COMPARE, "--out", str(tmp_path / "out"), "ucb")
    needed = f"dynabandit: this needs {module}, which is not installed: pip install 'dynabandit[lab]'\n"
    assert (done.exit_code, done.stderr) == (1, needed)
    assert not (tmp_path / "out").exists()


def test_every_command_is_among_the_mistakes() -> None:
    group: Any = typer.main.get_command(commands.app)
    assert set(group.commands) - {arguments[0] for arguments, _, _ in CASES.values()} == {"list", "paper"}


@pytest.mark.parametrize("arguments", [["serve", "--port", "0"], ["keys", "list"], ["verify", "--store", "x"]])
def test_without_the_extra_the_service_says_what_to_install(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert without(monkeypatch, "starlette")(arguments) == 1
    message = "dynabandit: this needs starlette, which is not installed: pip install 'dynabandit[serve]'\n"
    assert capsys.readouterr().err == message


# The standard output of a whole process, replaced in this one


@pytest.mark.parametrize("arguments", [["list"], ["--version"], ["keys", "create", "--role", "read"], ["--help"]])
def test_a_full_disk_under_the_output_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        status = call_main(monkeypatch, arguments, full)
    assert status == "dynabandit: cannot write to the standard output: No space left on device"


@pytest.mark.parametrize("arguments", [["list"], ["keys", "list"]])  # typer flushes its output, `print` does not
def test_a_reader_that_closes_the_pipe_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("keys", "create", "--role", "read").exit_code == 0
    read, write = os.pipe()
    os.close(read)
    with contextlib.suppress(BrokenPipeError), open(write, "w", encoding="utf-8") as pipe:
        assert call_main(monkeypatch, arguments, pipe) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["list"], ["--version"]])
def test_a_closed_output_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert call_main(monkeypatch, arguments, None) == 0
    sys.stdout.close()  # the null device, which stays open until a process ends
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_a_name_that_no_terminal_can_show_is_shown_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    Path(odd).write_text(ROWS, encoding="utf-8")
    shown = io.BytesIO()
    ascii_only = io.TextIOWrapper(shown, encoding="ascii", errors="strict")
    assert call_main(monkeypatch, ["replay", odd, "--policy", "ts", "--replications", "1"], ascii_only) == 0
    assert b"\\udcff.csv: 40 rows, 2 arms" in shown.getvalue()


# Real processes, which real shells and signals act on


def test_a_shell_sees_no_error_when_a_reader_closes_the_pipe() -> None:
    line = f"{sys.executable} -m dynabandit list | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Policies\n", "")


def serve(folder: Path, stdout: IO[str] | int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--store", f"sqlite:///{folder}/x.db"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_service_that_cannot_print_where_it_listens_logs_it_and_serves_until_ctrl_c(tmp_path: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = serve(tmp_path, stdout=full)
    assert process.stderr is not None
    said = json.loads(process.stderr.readline())
    assert (said["event"], said["problem"]) == ("cannot print where it listens", "[Errno 28] No space left on device")
    host, _, port = said["address"].rpartition(":")
    socket.create_connection((host, int(port))).close()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert [json.loads(line)["event"] for line in errors.splitlines()][-1] == "stopped"
    assert process.returncode in (0, 130)
