"""Runs are found by what they are, and what is missing is named."""

from dataclasses import replace

import numpy as np
import pytest

from dynabandit.paper import lookup
from dynabandit.paper.lookup import MissingResultError
from dynabandit.report.tables import summary
from dynabandit.results import Results
from tools.fakes import fake_paper, fake_run


def test_eps_greedy_stands_for_its_best_epsilon() -> None:
    runs = [fake_run("x", "eps-greedy", [mean, mean], parameters={"epsilon": e}) for e, mean in ((0.1, 3), (0.2, 1))]
    assert lookup.runs_by_policy(Results(runs), "x")["eps-greedy"].parameters == {"epsilon": 0.2}


def test_aff_ucb1_with_a_floor_is_another_policy() -> None:
    runs = [fake_run("x", "aff-ucb1", [1.0], parameters={"variance_floor": floor}) for floor in (0.0, 0.05)]
    found = lookup.runs_by_policy(Results(runs), "x")
    assert found["aff-ucb1"].parameters["variance_floor"] == 0.0
    assert found["aff-ucb1-floor"].parameters["variance_floor"] == 0.05


def test_two_forms_of_another_policy_are_not_mixed_up() -> None:
    runs = [fake_run("x", "d-ucb", [1.0], parameters={"discount": discount}) for discount in (0.9, 0.99)]
    with pytest.raises(MissingResultError, match="holds d-ucb in several forms"):
        lookup.runs_by_policy(Results(runs), "x")


def test_a_setting_may_be_none() -> None:
    runs = [fake_run("x", "d-ucb", [1.0], parameters={"discount": discount}) for discount in (None, 0.99)]
    assert lookup.run_at(Results(runs), "x", "d-ucb", "discount", None) is runs[0]
    with pytest.raises(MissingResultError, match=r"x has no d-ucb with discount = 0\.5"):
        lookup.run_at(Results(runs), "x", "d-ucb", "discount", 0.5)


def test_the_first_replications_keep_regret_and_correct_selections() -> None:
    run = fake_run("x", "ucb", [1.0, 2.0, 3.0], correct=lambda steps: np.full(len(steps), 1 / 3))
    (short,) = lookup.first_replications(Results([run]), 2)
    assert (short.total_regret == [1.0, 2.0]).all()
    assert (short.correct == 0.5).all()
    (shares_only,) = lookup.first_replications(Results([replace(run, correct_by_replication=None)]), 2)
    assert np.isnan(shares_only.correct).all()
    (same,) = lookup.first_replications(Results([run]), 3)
    assert same is run


def test_the_summary_has_a_row_for_each_run_and_one_for_eps_greedy() -> None:
    results = fake_paper().results()
    rows = [row for row in summary(lookup.shown_runs(results)) if row["experiment"] == "case-1-arms-2"]
    assert [row["policy"] for row in rows].count("eps-greedy") == 1
    assert not any("0.2" in row["policy"] for row in rows)
    assert len(rows) == 13
    assert set(rows[0]) == {"experiment", "arms", "policy", "mean", "low", "high", "difference", "baseline"}
    for row in rows:
        assert row["low"] < row["mean"] < row["high"]


def test_the_summary_of_other_experiments_hides_nothing() -> None:
    runs = [fake_run("mine", "eps-greedy", [1.0, 2.0], parameters={"epsilon": epsilon}) for epsilon in (0.1, 0.2)]
    assert len(summary(Results(runs))) == 2
