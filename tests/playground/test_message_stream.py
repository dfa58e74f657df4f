"""What the playground shows is what the simulator computes."""

import json
import subprocess
import sys

import numpy as np
import pytest

import dynabandit as db
from dynabandit import experiments
from dynabandit.playground import python, read, toml
from dynabandit.playground.message_stream import messages

QUERY = "v=1&environment=case-1&arms=3&policies=ucb;aff-ots:step_size=0.01&horizon=400&replications=9&seed=4"
DRAWN = f"v=1&environment=drawn&arms=2&drawn={'5' * 30 + 'o' * 30}.{'P' * 60}&policies=ts&horizon=300&replications=4"


def of_kind(kind, found):
    return [one for one in found if one["kind"] == kind]


@pytest.fixture(scope="module")
def found():
    return list(messages(read(QUERY)))


@pytest.fixture(scope="module")
def runs():
    policies = [db.policy("ucb"), db.policy("aff-ots", step_size=0.01)]
    return db.compare(
        policies, db.environment("case-1", arms=3), horizon=400, replications=9, seed=4, keep=("arms", "rewards")
    )


def test_the_last_curves_are_the_simulators_own(found, runs):
    last = of_kind("regret", found)[-1]
    assert last["done"] == 9
    for curve, run in zip(last["curves"], runs.values(), strict=True):
        assert np.allclose(curve["mean"], run.regret.mean(axis=0), atol=1e-5)
        half = 1.96 * run.regret.std(axis=0, ddof=1) / 3
        assert np.allclose(np.subtract(curve["high"], curve["low"]), 2 * half, rtol=1e-3, atol=1e-4)
    assert found[-1]["totals"] == [run.total_regret.mean() for run in runs.values()]


def test_curves_do_not_depend_on_how_the_replications_were_cut(found):
    slow = iter(range(10**6))
    again = list(messages(read(QUERY), now=lambda: float(next(slow))))
    assert len(of_kind("regret", again)) == 9
    assert len(of_kind("regret", found)) < 9
    assert again[-1] == found[-1]
    assert of_kind("regret", again)[-1] == of_kind("regret", found)[-1]
    assert of_kind("beliefs", again) == of_kind("beliefs", found)


def test_beliefs_of_the_first_replication_are_put_together_from_the_pieces(found, runs):
    times = np.array(of_kind("path", found)[0]["times"])
    for place, run in enumerate(runs.values()):
        pieces = [one for one in of_kind("beliefs", found) if one["policy"] == place]
        expected = db.simulation.trace(run, times=times)
        assert [one["first"] for one in pieces] == np.cumsum(
            [0, *(len(one["mean"][0]) for one in pieces[:-1])]
        ).tolist()
        for field in ("mean", "forgetting"):
            together = np.hstack([np.array(one[field], dtype=float) for one in pieces])
            assert np.allclose(together, getattr(expected, field).T, atol=1e-5, equal_nan=True)
        shares = np.hstack([one["share"] for one in pieces])
        assert np.allclose(shares.sum(axis=0), 1.0, atol=1e-4)


def test_of_many_arms_those_that_were_played_most_are_shown():
    query = "v=1&environment=case-3&arms=20&policies=ucb;eps-greedy&horizon=500&replications=1"
    shown = of_kind("path", messages(read(query)))[0]["shown"]
    runs = db.compare(["ucb", "eps-greedy"], db.environment("case-3", arms=20), horizon=500, seed=1, keep="arms")
    plays = sum(np.bincount(run.arms[0], minlength=20) for run in runs.values())
    assert len(shown) == 5
    assert sorted(plays[shown], reverse=True) == sorted(plays, reverse=True)[:5]


@pytest.mark.parametrize("query", [QUERY, DRAWN])
def test_the_program_it_writes_prints_the_same_numbers(query):
    trial = read(query)
    done = subprocess.run([sys.executable, "-c", python(trial)], capture_output=True, text=True, check=True)
    labels = of_kind("start", messages(trial))[0]["policies"]
    totals = list(messages(trial))[-1]["totals"]
    expected = [f"{label}: mean total regret {total:.2f}" for label, total in zip(labels, totals, strict=True)]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("query", [QUERY, DRAWN])
def test_dynabandit_run_takes_the_toml_and_gives_the_same_numbers(query, tmp_path):
    trial = read(query)
    file = tmp_path / "trial.toml"
    file.write_text(toml(trial))
    command = [sys.executable, "-m", "dynabandit", "run", str(file), "--out", str(tmp_path / "out")]
    subprocess.run(command, capture_output=True, text=True, check=True)
    results = db.Results.load(tmp_path / "out" / experiments.RESULTS)
    totals = [run.regret[:, -1].mean() for run in results.runs]
    assert totals == pytest.approx(list(messages(trial))[-1]["totals"], rel=1e-12)


def test_a_worker_writes_a_line_for_each_message_and_ends_with_its_input():
    worker = [sys.executable, "-m", "dynabandit.playground"]
    with subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(QUERY + "\n")
        process.stdin.flush()
        lines = [json.loads(line) for line in process.stdout]
        assert lines[-1]["kind"] == "end"
        assert process.wait() == 0
    heavy = QUERY.replace("horizon=400", "horizon=100000").replace("replications=9", "replications=500")
    with subprocess.Popen(worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(heavy + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["kind"] == "start"
        process.stdin.close()
        assert process.wait(timeout=120) == 1


def test_replications_that_keep_much_do_not_run_all_at_once():
    trial = read("v=1&policies=f-dsw-ts:window=800000&horizon=60&replications=14")
    done = [one["done"] for one in of_kind("regret", messages(trial, now=lambda: 0.0))]
    assert done == [1, 2, 4, 8, 12, 14]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems count memory in other ways")
def test_the_process_of_a_trial_has_an_end_to_its_memory():
    code = """
import numpy, os
from dynabandit.playground import __main__ as process
process.main()
try:
    numpy.zeros(process.MOST_BYTES + process.STACK_BYTES * os.cpu_count(), numpy.uint8)
except MemoryError:
    print("no more")
"""
    told = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("no more\n", "")
