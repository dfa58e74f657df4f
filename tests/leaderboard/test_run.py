"""Runs of the leaderboard: in parts, interrupted, merged, and its command."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dynabandit.cli.commands import app
from dynabandit.leaderboard.board import FILE, Board
from dynabandit.leaderboard.contextual_environments import QUICK_CONTEXTUAL
from dynabandit.leaderboard.run import QUICK_POLICIES, SLOW, Selection
from dynabandit.leaderboard.standings import standings
from dynabandit.leaderboard.step_times import estimate_seconds, measured_times, time_steps
from dynabandit.leaderboard.tuned_forms import PathFacts, tunable, tuned_forms
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, policy

SMALL = "--policy sw-ucb --policy uniform --environment pb-1 --environment pb-2 --replications 4 --horizon 60 --jobs 1"


def names(selection: Selection) -> list[str]:
    return [one.name for one in selection.chosen()]


def command(out: Path, *more: str) -> str:
    done = CliRunner().invoke(app, ["leaderboard", *SMALL.split(), "--no-timing", "--out", str(out), *more])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_run_that_was_stopped_continues_and_parts_are_merged(tmp_path: Path) -> None:
    told = command(tmp_path / "whole")
    assert re.search(r"2 policies in 3 environments with 4 replications, .* about \d+ seconds on 1 threads", told)
    begun = command(tmp_path / "stopped", "--minutes", "0")
    assert "2 environments are left" in begun
    assert list(Board.load(tmp_path / "stopped" / FILE).trials) == ["pb-1"]
    command(tmp_path / "stopped")
    for part in "12":
        command(tmp_path / part, "--part", f"{part}/2")
    merge = [word for part in "12" for word in ("--merge", str(tmp_path / part))]
    assert CliRunner().invoke(app, ["leaderboard", *merge, "--out", str(tmp_path / "both")]).exit_code == 0
    whole, stopped, both = (Board.load(tmp_path / name / FILE) for name in ("whole", "stopped", "both"))
    assert whole == stopped
    whole.keep_best_tuned()
    assert sorted(both.entries, key=lambda one: one.key) == sorted(whole.entries, key=lambda one: one.key)
    assert both.delays == whole.delays
    for name in ("leaderboard.md", "leaderboard.html"):
        assert (tmp_path / "both" / name).exists()


def test_slow_policies_and_tuned_forms_have_fewer_replications() -> None:
    work = Selection(policies=["sw-ucb", "d-ts"], environments=["pb-1"], replications=5000).make_work()
    assert {(job.policy.name, job.form, job.replications) for job in work[0].jobs} == {
        ("sw-ucb", "practical", 5000), ("sw-ucb", "tuned", 500), ("d-ts", "practical", 500), ("d-ts", "tuned", 100),
    }  # fmt: skip
    assert [job.replications for job in work[1].jobs] == [1000, 100]
    assert "sw-ucb(changes=4)" in [job.policy.label for job in work[0].jobs]
    without = Selection(policies=["sw-ucb"], environments=["pb-1"], tuned=False).make_work()
    assert [job.policy.label for job in without[0].jobs] == ["sw-ucb(changes=1, horizon=doubling)"]


def test_parameters_are_those_that_were_asked_for_and_each_such_policy_has_a_row(tmp_path: Path) -> None:
    asked = ["sw-ts(window=200)", "hoeffding + discount(discount=0.99)", "sw-ts"]
    lines = ["ts + window:window=200", "hoeffding + discount:discount=0.99", "sw-ts"]
    [trial, _] = Selection(policies=lines, environments=["pb-1"], replications=4).make_work()
    by_row = {label: {job.policy.label for job in trial.jobs if job.asked == label} for label in asked}
    assert by_row[asked[0]] == {asked[0]}
    assert {asked[0], "sw-ts(window=1000)"} < by_row["sw-ts"]  # 200 is a window that is tried for it, too
    command(tmp_path, "--policy", "sw-ucb:window=20", "--no-tuned")
    board = Board.load(tmp_path / FILE)
    assert {row.policy for row in standings(board)} == board.delays.keys() == {"sw-ucb", "sw-ucb(window=20)", "uniform"}
    assert {one.settings for one in board.entries} == {"", "changes=1, horizon=doubling"}


def test_the_policies_that_are_named_exist() -> None:
    assert {*SLOW, *QUICK_POLICIES, *measured_times()} <= POLICIES.keys()


def test_a_quick_look_has_few_policies_with_ten_arms_each() -> None:
    selection = Selection(quick=True, replications=20)
    assert names(selection) == list(QUICK_POLICIES)
    assert {one.trial.environment.arms for one in selection.make_work()} == {10}
    assert not any(one.trial.delay for one in selection.make_work())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": ["best-arm"]}, "at least one that does not know the true means"),
        ({"policies": ["ucbb"]}, "unknown policy 'ucbb'"),
        ({"replications": 0}, "replications must be a whole number of at least 1"),
        ({"environments": ["fixed"]}, "unknown environment of the leaderboard 'fixed'"),
    ],
)
def test_unknown_names_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Selection(**wrong).make_work()


def test_contextual_policies_run_where_they_can_learn_from_the_rewards() -> None:
    selection = Selection(contextual=True, environments=QUICK_CONTEXTUAL, replications=3, horizon=40, tuned=False)
    assert names(selection) == [*CONTEXTUAL_POLICIES, "mix-normal-ts", "uniform"]
    quick = Selection(contextual=True, quick=True)
    assert set(names(quick)) < set(names(selection))
    assert [one.trial.id for one in quick.make_work()] == [*QUICK_CONTEXTUAL, "one-change"]
    work = {one.trial.id: one for one in selection.make_work()}
    assert list(work) == [*QUICK_CONTEXTUAL, "one-change"]
    linear, logistic = ({job.policy.name for job in work[name].jobs} for name in ("still-4x5", "logistic-flip-4x5"))
    assert logistic == set(names(selection))
    assert {"lin-ucb", "uniform"} <= linear <= logistic
    clicks = Selection(contextual=True, policies=["ts"], environments=["logistic", "flip"], horizon=40).make_work()
    assert [one.trial.id for one in clicks] == ["logistic-flip-4x5", "logistic-turn-shared-10x5"]
    with pytest.raises(ValueError, match="unknown policy 'lin-ucb'"):
        Selection(policies=["lin-ucb"]).chosen()


def test_fixed_discounts_are_the_tuned_forms_of_a_contextual_policy() -> None:
    labels = [one.label for one in tuned_forms("lin-ucb", PathFacts(breakpoints=0, variation=1.0))]
    assert labels[0] == "lin-ucb(discount=0.97)"
    assert labels[-1] == "lin-ucb(discount=0.9997)"
    assert tunable("lin-ucb")


def test_a_part_without_policies_runs_nothing() -> None:
    assert Selection(policies=["ucb"], part=(2, 2)).make_work() == []


def test_the_estimate_grows_with_steps_and_arms_and_knows_new_policies() -> None:
    few, many, more = (
        estimate_seconds([(name, arms, 1e9)], 1) for name, arms in (("ts", 2), ("ts", 100), ("newer", 100))
    )
    assert 0.0 < few < many
    assert more > 0.0
    assert {"uniform", "ts"} <= measured_times().keys()


def test_a_step_takes_some_time() -> None:
    assert time_steps([policy("uniform")], horizon=100)["uniform"] > 0.0
