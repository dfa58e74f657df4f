"""Ranks, ratios and delays of the leaderboard, from results made by hand."""

import json
import math

import numpy as np
import pytest

from dynabandit.leaderboard.standings import as_json, as_markdown, standings
from dynabandit.results import Results, Run


def run(experiment: str, policy: str, regret: float, times: tuple[int, ...] = (100,), correct: float = 0.0) -> Run:
    shares = np.full(len(times), correct)
    return Run(
        experiment=experiment, environment="piecewise", arms=10, environment_parameters={}, label=policy,
        policy=policy, parameters={}, horizon=times[-1], seed=1, times=np.array(times),
        regret=np.full((4, len(times)), regret), correct=shares,
    )  # fmt: skip


def results() -> Results:
    regret = {"a": (10.0, 40.0), "b": (20.0, 20.0), "told": (0.0, 0.0)}
    runs = [run(world, name, values[i]) for i, world in enumerate(("w1", "w2")) for name, values in regret.items()]
    quick, never = (
        run("one-change", "a", 1.0, tuple(range(50, 201))),
        run("one-change", "b", 1.0, tuple(range(50, 201))),
    )
    quick.correct[7:] = 0.5
    never.correct[5] = 1.0  # once, by a timetable
    return Results([*runs, quick, never])


def test_ranks_and_ratios_are_over_environments_and_leave_oracle_policies_out() -> None:
    rows = {row.policy: row for row in standings(results(), oracles=["told"])}
    assert (rows["a"].rank, rows["b"].rank) == (1.5, 1.5)
    assert rows["a"].ratio == pytest.approx(math.sqrt(1.0 * 2.0))
    assert rows["b"].ratio == pytest.approx(math.sqrt(2.0 * 1.0))
    assert rows["a"].worst == pytest.approx(2.0)
    assert (rows["a"].wins, rows["b"].wins, rows["told"].wins) == (1, 1, 0)
    assert not rows["told"].ranked
    assert [row.policy for row in standings(results(), oracles=["told"])][-1] == "told"


def test_delay_counts_steps_until_half_of_the_plays_go_to_the_new_best_arm() -> None:
    rows = {row.policy: row for row in standings(results(), oracles=["told"])}
    assert rows["a"].delay == 7
    assert math.isnan(rows["b"].delay)


def test_table_and_json_say_the_same_and_hold_no_nan() -> None:
    rows = standings(results(), oracles=["told"], microseconds={"a": 0.25})
    text = as_markdown(rows, results())
    assert "| `a` | 1.5 | 1.41 | 2.00 | 1 | 7 | 0.25 |" in text
    assert "| `told` | oracle |" in text
    content = json.loads(as_json(rows, results()))
    assert content["mean_regret"]["w1"] == {"a": 10.0, "b": 20.0, "told": 0.0}
    assert content["standings"][0]["delay"] in (7.0, None)


def test_nothing_to_rank_gives_no_rows() -> None:
    assert standings(Results([])) == []


def test_an_environment_without_regret_and_one_policy_alone_are_written_without_nan_or_infinity() -> None:
    alone = Results([run("w1", "a", 0.0)])
    rows = standings(alone)
    assert "nan" not in as_markdown(rows, alone)
    assert json.loads(as_json(rows, alone))["critical_difference"] is None
