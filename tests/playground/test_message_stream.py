"""The playground shows what the simulator computes."""

import contextlib
import io
import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit import experiments
from dynabandit.playground import message_stream, python, read, toml
from dynabandit.playground.message_stream import Message, messages
from tools.waiting import PATIENCE

QUERY = "v=1&environment=case-1&arms=3&policies=ucb;ts:prior=[1,3]&horizon=400&replications=9&seed=4"
DRAWN = f"v=1&environment=drawn&arms=2&drawn={'5' * 30 + 'o' * 30}.{'P' * 60}&policies=ts&horizon=300&replications=4"


def of_kind(kind: str, found: Iterable[Message]) -> list[Message]:
    return [one for one in found if one["kind"] == kind]


@pytest.fixture(scope="module")
def found() -> list[Message]:
    return list(messages(read(QUERY), now=lambda: 0.0))


@pytest.fixture(scope="module")
def runs() -> dict[str, db.Simulation]:
    policies = [db.policy("ucb"), db.policy("ts", prior=(1, 3))]
    return db.compare(
        policies, db.environment("case-1", arms=3), horizon=400, replications=9, seed=4, keep=("arms", "rewards")
    )


def test_the_last_curves_are_those_of_the_simulator(found: list[Message], runs: dict[str, db.Simulation]) -> None:
    last = of_kind("regret", found)[-1]
    assert last["done"] == 9
    for curve, run in zip(last["curves"], runs.values(), strict=True):
        assert np.allclose(curve["mean"], run.regret.mean(axis=0), atol=1e-5)
        half = 1.96 * run.regret.std(axis=0, ddof=1) / 3
        assert np.allclose(np.subtract(curve["high"], curve["low"]), 2 * half, rtol=1e-3, atol=1e-4)
    assert found[-1]["totals"] == [run.total_regret.mean() for run in runs.values()]


def test_curves_do_not_depend_on_the_sizes_of_the_batches(found: list[Message]) -> None:
    slow = iter(range(10**6))
    again = list(messages(read(QUERY), now=lambda: float(next(slow))))
    assert len(of_kind("regret", again)) == 9
    assert [one["done"] for one in of_kind("regret", found)] == [1, 2, 4, 8, 9]
    assert again[-1] == found[-1]
    assert of_kind("regret", again)[-1] == of_kind("regret", found)[-1]
    assert of_kind("beliefs", again) == of_kind("beliefs", found)


def test_the_beliefs_are_those_of_the_first_replication(found: list[Message], runs: dict[str, db.Simulation]) -> None:
    times = np.array(of_kind("path", found)[0]["times"])
    kinds = [one["kind"] for one in found]
    assert max(i for i, kind in enumerate(kinds) if kind == "beliefs") < kinds.index("regret")  # the page relies on it
    for shown, run in zip(of_kind("beliefs", found), runs.values(), strict=True):
        expected = db.simulation.trace(run, times=times)
        for field in ("mean", "forgetting"):
            rows = np.array(shown[field], dtype=float)
            assert np.allclose(rows, getattr(expected, field).T, atol=1e-5, equal_nan=True)
        assert np.allclose(np.sum(shown["share"], axis=0), 1.0, atol=1e-4)


def test_what_is_not_compiled_is_compiled_and_named_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(message_stream, "is_compiled", lambda policy, arms: policy.name == "ucb")
    monkeypatch.setattr(message_stream, "is_cached", lambda function: False)
    monkeypatch.setattr(message_stream, "compile_policy", lambda policy, arms: compiled.append(policy.name))
    found = messages(read("v=1&policies=ucb;ts;ts:burn_in=1;eps-greedy&horizon=60&replications=1"))
    texts = [one["text"] for one in itertools.islice(found, 1, 4)]
    assert [text.partition(":")[0] for text in texts] == [
        "compiling ts, 1 of 3", "compiling eps-greedy, 2 of 3", "compiling the environment, 3 of 3",
    ]  # fmt: skip
    assert compiled == ["ts", "eps-greedy"]


def test_of_many_arms_those_that_were_played_most_are_shown() -> None:
    query = "v=1&environment=case-1&arms=20&policies=ucb;eps-greedy&horizon=500&replications=1"
    shown = of_kind("path", messages(read(query)))[0]["shown"]
    runs = db.compare(["ucb", "eps-greedy"], db.environment("case-1", arms=20), horizon=500, seed=1, keep="arms")
    plays = np.zeros(20, dtype=int)
    for run in runs.values():
        assert run.arms is not None
        plays += np.bincount(run.arms[0], minlength=20)
    assert len(shown) == 5
    assert sorted(plays[shown], reverse=True) == sorted(plays, reverse=True)[:5]


@pytest.mark.parametrize("query", [QUERY, DRAWN])
def test_the_exported_program_and_spec_give_the_same_numbers(query: str, tmp_path: Path) -> None:
    trial = read(query)
    shown = list(messages(trial))
    labels, totals = shown[0]["policies"], shown[-1]["totals"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python(trial), {})  # what a user would run in a file
    expected = [f"{label}: mean total regret {total:.2f}" for label, total in zip(labels, totals, strict=True)]
    assert printed.getvalue().splitlines() == expected
    results = experiments.run(experiments.loads(toml(trial)), tmp_path)
    assert [run.total_regret.mean() for run in results] == pytest.approx(totals, rel=1e-12)


# The process, but it never sends the end of a run
HELD = """
import threading
from dynabandit.playground import __main__ as process
messages = process.messages
def held(*arguments, **options):
    for message in messages(*arguments, **options):
        if message["kind"] == "end":
            threading.Event().wait()
        yield message
process.messages = held
process.main()
"""


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Start a process with QUERY as its first line of input, and provide it with its messages."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(QUERY + "\n")
        process.stdin.flush()
        yield process, process.stdout


def test_the_process_writes_one_message_per_line() -> None:
    with started("-m", "dynabandit.playground") as (process, lines):
        kinds = [json.loads(line)["kind"] for line in lines]
        assert (kinds[0], kinds[-1]) == ("start", "end")
        assert process.wait(timeout=PATIENCE) == 0


def test_the_process_ends_with_its_input() -> None:
    with started("-c", HELD) as (process, lines):
        assert any(json.loads(line)["kind"] == "regret" for line in lines)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 1


def test_replications_that_need_much_memory_do_not_run_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = read("v=1&policies=ts&horizon=60&replications=14")
    monkeypatch.setattr("dynabandit.playground.message_stream.MOST_NUMBERS", 4 * sum(trial.numbers))
    done = [one["done"] for one in of_kind("regret", messages(trial, now=lambda: 0.0))]
    assert done == [1, 2, 4, 8, 12, 14]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems count memory in other ways")
def test_the_memory_of_the_process_is_limited() -> None:
    code = """
import numpy, os
from dynabandit.core.process_limits import STACK_BYTES
from dynabandit.playground import __main__ as process
process.main()
try:
    numpy.zeros(process.MOST_BYTES + STACK_BYTES * os.cpu_count(), numpy.uint8)
except MemoryError:
    print("no more")
"""
    done: Any = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("no more\n", "")


def test_with_features_the_true_means_are_averages_and_contextual_policies_have_no_estimates() -> None:
    query = "v=1&environment=logistic-drift&arms=3&policies=ts;lin-ucb&horizon=360&replications=1&seed=4"
    found = list(messages(read(query)))
    path = db.environment("logistic-drift", arms=3).path(360, seed=4)
    (shown,) = of_kind("path", found)
    assert np.allclose(np.transpose(shown["truth"]), path.reshape(180, 2, 3).mean(axis=1), atol=1e-5)
    beliefs = {number: [one for one in of_kind("beliefs", found) if one["policy"] == number] for number in (0, 1)}
    assert all(value is not None for one in beliefs[0] for row in one["mean"] for value in row)
    assert all(value is None for one in beliefs[1] for row in one["mean"] for value in row)
    assert np.allclose(np.sum(beliefs[1][0]["share"], axis=0), 1.0, atol=1e-4)
