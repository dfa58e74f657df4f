"""Ratios, ranks, intervals and delays of the leaderboard, from data made by hand."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynabandit.leaderboard.board import Board, BoardEntry, summarise
from dynabandit.leaderboard.detection_delay import detection_delay
from dynabandit.leaderboard.environments import make_trials
from dynabandit.leaderboard.standings import as_markdown, incomplete, standings, tuned_standings
from dynabandit.results import Run

FAMILIES = {"one-2": "one", "one-10": "one", "two": "two"}
REGRET = {"a": (10.0, 40.0, 10.0), "b": (20.0, 20.0, 20.0), "told": (1.0, 1.0, 1.0)}


def entry(trial: str, policy: str, regret: float, form: str = "practical") -> BoardEntry:
    blocks = [0.5 * regret, 1.5 * regret] * 2
    return BoardEntry(trial, policy, form, "", 400, 1, regret, 0.1, [regret] * 5, blocks, [regret], "abc")


def board() -> Board:
    entries = [
        entry(trial, policy, regret[i], "oracle" if policy == "told" else "practical")
        for i, trial in enumerate(FAMILIES)
        for policy, regret in REGRET.items()
    ]
    trials = {name: {"family": family, "arms": 2, "horizon": 10} for name, family in FAMILIES.items()}
    return Board(version="1", trials=trials, entries=entries, delays={"a": 7.0, "b": None}, microseconds={"a": 0.25})


def test_sizes_are_averaged_and_families_count_once() -> None:
    rows = {row.policy: row for row in standings(board())}
    # a: ratios 1 and 2 in family one, 1 in family two; b: 2 and 1, and 2
    assert rows["a"].ratio.value == pytest.approx(math.exp((0.5 * math.log(2.0) + 0.0) / 2))
    assert rows["b"].ratio.value == pytest.approx(math.exp((0.5 * math.log(2.0) + math.log(2.0)) / 2))
    assert rows["a"].worst == pytest.approx(2.0)
    assert rows["a"].worst_in == "one-10"
    assert (rows["a"].rank.value, rows["b"].rank.value) == (1.25, 1.75)  # they tie in family one
    assert (rows["a"].delay, rows["b"].delay, rows["a"].microseconds) == (7.0, None, 0.25)


def test_oracle_policies_are_neither_ranked_nor_the_best_policy() -> None:
    rows = standings(board())
    assert [row.policy for row in rows] == ["a", "b", "told"]
    assert rows[-1].ratio.value == pytest.approx(
        math.exp((math.log(1 / 10) + math.log(1 / 20)) / 4 + math.log(0.1) / 2)
    )
    assert math.isnan(rows[-1].rank.value)


def test_intervals_contain_the_value_and_come_from_families_and_replications() -> None:
    row = next(row for row in standings(board()) if row.policy == "b")
    assert row.ratio.low < row.ratio.value < row.ratio.high
    # The groups of replications are paired: only families make a difference, of sqrt(2) and of 2
    assert [row.ratio.low, row.ratio.high] == pytest.approx([math.sqrt(2.0), 2.0])
    noisy = board()
    noisy.entries = [
        replace(one, blocks=[0.5, 39.5, 20.0, 20.0]) if (one.policy, one.trial) == ("b", "two") else one
        for one in noisy.entries
    ]
    assert next(row for row in standings(noisy) if row.policy == "b").ratio.high > 2.2
    noisy.entries = [replace(one, blocks=[10.0]) if one.policy == "a" else one for one in noisy.entries]
    assert next(row for row in standings(noisy) if row.policy == "b").ratio.high > 2.2, "a has too few groups"


def test_a_policy_that_has_not_run_everywhere_has_no_row() -> None:
    some = board()
    some.entries += [entry(trial, "c", 5.0) for trial in FAMILIES if trial != "two"]
    assert [row.policy for row in standings(some)] == ["a", "b", "told"]
    assert [row.ratio for row in standings(some)] == [row.ratio for row in standings(board())]
    assert incomplete(some) == ["c"]
    assert "have not run in all environments: c" in as_markdown(some)


def test_an_environment_in_which_few_policies_ran_does_not_count() -> None:
    more = board()
    more.trials["late"] = {"family": "late", "arms": 2, "horizon": 10}
    more.entries.append(entry("late", "a", 1.0))
    assert standings(more) == standings(board())
    assert "Left out, because few policies have run in them: late." in as_markdown(more)


def test_the_best_tuned_form_counts_in_each_environment() -> None:
    told = board()
    tuned = [entry("one-10", "a", 5.0, "tuned"), replace(entry("one-10", "a", 30.0, "tuned"), settings="x=1")]
    told.entries += [*tuned, entry("two", "a", 11.0, "tuned")]
    (row,) = tuned_standings(told)
    # ratios 1 and 5 / 20 in family one, and 1 in family two, where the practical form is better
    assert row.ratio.value == pytest.approx(math.exp(0.5 * math.log(0.25) / 2))
    assert standings(told) == standings(board())
    told.keep_best_tuned()
    assert [one.mean for one in told.entries if one.form == "tuned"] == [5.0, 11.0]


def test_the_table_shows_every_column() -> None:
    text = as_markdown(board())
    assert text.startswith("2 policies in 3 environments of 2 families.\n")
    assert "| `a` | 1.19 | 1.00 to 1.41 | 2.00 | one-10 | 1.2 | 1.0 to 1.5 | 7 | 0.25 | 400 |  |" in text
    assert "| `told` | 0.08 | " in text
    assert "| `b` | 1.68 | 1.41 to 2.00 | 2.00 | one-2 | 1.8 | 1.5 to 2.0 | never |  | 400 |  |" in text
    assert "| oracle |  |  |" in text


def test_an_empty_board_and_no_regret_at_all_make_no_nan() -> None:
    assert standings(Board()) == []
    still = board()
    still.entries = [replace(one, mean=0.0, blocks=[0.0] * 4) for one in still.entries]
    assert {row.ratio.value for row in standings(still)} == {1.0}
    assert "nan" not in as_markdown(still)


def test_a_board_is_saved_and_merged(tmp_path: Path) -> None:
    whole, first, second = board(), board(), board()
    first.entries = [one for one in whole.entries if one.policy == "a"]
    second.entries = [replace(one, mean=1.0) for one in first.entries] + whole.entries
    whole.save(tmp_path / "whole.json")
    assert standings(Board.load(tmp_path / "whole.json")) == standings(whole)
    first.merge(second)
    assert sorted(one.key for one in first.entries) == sorted(one.key for one in whole.entries)
    (tmp_path / "whole.json").write_text("{}")
    with pytest.raises(ValueError, match=r"whole\.json must be a file that `dynabandit leaderboard` wrote"):
        Board.load(tmp_path / "whole.json")


def recorded(times: range, correct: np.ndarray, regret: np.ndarray) -> Run:
    return Run(
        experiment="x", environment="piecewise", arms=10, environment_parameters={}, label="a(changes=1)", policy="a",
        parameters={}, horizon=times[-1], seed=1, times=np.array(times), regret=regret, correct=correct,
    )  # fmt: skip


@pytest.mark.parametrize(("spacing", "expected"), [(1, 7.0), (10, 70.0)])
def test_the_delay_counts_steps_until_half_of_the_plays_go_to_the_new_best_arm(spacing: int, expected: float) -> None:
    times, correct = range(50, 50 + 151 * spacing, spacing), np.zeros(151)
    correct[3] = 1.0  # once, by a timetable
    assert detection_delay(recorded(times, correct, np.zeros((4, 151)))) is None
    correct[7:] = 0.5
    assert detection_delay(recorded(times, correct, np.zeros((4, 151)))) == expected


def test_a_summary_has_the_mean_its_error_quantiles_groups_and_a_curve() -> None:
    regret = np.outer(np.arange(1.0, 101.0), [0.5, 1.0])
    found = summarise(
        recorded(range(1, 3), np.zeros(2), regret), make_trials()["pb-1"], "a", "practical", "0123456789abcdef"
    )
    assert (found.trial, found.policy, found.settings, found.code) == ("pb-1", "a", "changes=1", "0123456789ab")
    assert (found.replications, found.mean, found.curve) == (100, 50.5, [25.25, 50.5])
    assert found.error == 2.9
    assert found.quantiles[2] == 50.5
    assert found.blocks == [5.5 + 10 * group for group in range(10)]
