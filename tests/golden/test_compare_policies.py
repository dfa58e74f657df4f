"""`scripts/compare_policies.py` finds what differs between the records of two versions of the policies."""

import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_policies.py"
CASE = ("simulation", "2 arms")


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("compare_policies", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = loaded()


def found(before: Any, now: Any) -> list[str]:
    return [str(one) for one in script.differences(before, now, "here")]


def test_equal_records_do_not_differ() -> None:
    record = {
        (3, "slot 'mean'"): np.array([0.5, np.nan, np.inf]),
        (3, "chosen arm"): 1,
        (0, "rewards"): ("bounded", 0.0),
    }
    same = {key: record[key] for key in reversed(record)}  # the order of keys does not count
    same[3, "slot 'mean'"] = np.array([0.5, -np.nan, np.inf])  # all NaN are the same
    assert found(record, same) == []


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (0.1 + 0.2, 0.3, "0.30000000000000004 before, 0.3 now"),  # the last bit
        (0.0, -0.0, "0.0 before, -0.0 now"),
        (np.nan, 1.0, "nan before, 1.0 now"),
        (1, 1.0, "1 before, 1.0 now"),
        (None, 0, "None before, 0 now"),
        ([1, 2], [1, 2, 3], "[1, 2] before, [1, 2, 3] now"),
    ],
)
def test_values_that_differ_are_shown_with_all_digits(before: Any, now: Any, said: str) -> None:
    assert found(before, now) == [f"here: {said}"]


def test_the_first_number_of_an_array_that_differs_is_named() -> None:
    before, now = np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([[1.0, 5.0], [2.0, np.nan]])
    assert found(before, now) == ["here[0, 1]: nan before, 5.0 now (2 of 4 numbers differ)"]
    assert found(np.array([0.0, 1.0]), np.array([-0.0, 1.0])) == [
        "here[0]: 0.0 before, -0.0 now (1 of 2 numbers differ)"
    ]


def test_arrays_of_other_shapes_or_types_differ() -> None:
    told = "here: 'an array (2,) of float64' before, 'an array (3,) of float64' now"
    assert found(np.zeros(2), np.zeros(3)) == [told]
    assert len(found(np.zeros(2), np.zeros(2, dtype=np.int64))) == 1
    assert len(found(np.zeros(2), [0.0, 0.0])) == 1


def test_a_renamed_slot_is_missing_and_new() -> None:
    before, now = {(9, "slot 'a'"): np.zeros(2)}, {(9, "slot 'b'"): np.zeros(2)}
    assert [one.where for one in script.differences(before, now)] == ["step 9, slot 'a'", "step 9, slot 'b'"]


def test_the_first_differences_of_a_case_are_reported_and_the_others_counted() -> None:
    before, now = ({CASE: {(step, "chosen arm"): arm for step in range(1, 6)}} for arm in (0, 1))
    (report,) = script.compared("ucb", before, now)
    assert report.splitlines() == [
        "ucb, simulation, 2 arms:",
        *(f"  step {step}, chosen arm: 0 before, 1 now" for step in (1, 2, 3)),
        "  and 2 more",
    ]


def test_a_few_cases_of_a_policy_are_shown_and_all_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / side for side in script.SIDES]
    for arm, folder in enumerate(folders):
        folder.mkdir()
        cases = {("simulation", f"{arms} arms"): {(1, "chosen arm"): arm} for arms in range(2, 12)}
        (folder / "ucb.pickle").write_bytes(pickle.dumps(cases))
    assert script.compare_folders(folders, "gpu") == 10
    shown = capsys.readouterr().out
    assert shown.count("chosen arm: 0 before, 1 now") == script.FIRST_CASES
    assert f"gpu: ucb: {10 - script.FIRST_CASES} more cases differ" in shown
    assert "gpu: 1 policies, 10 cases, 10 values: 10 cases differ" in shown


def test_a_case_of_one_side_and_a_case_with_an_error_are_reported() -> None:
    error = {(0, "error"): "ValueError: horizon must be ..."}
    assert list(script.compared("ucb", {CASE: {}}, {})) == ["ucb, simulation, 2 arms: recorded only before"]
    (report,) = script.compared("ucb", {CASE: error}, {CASE: error})
    assert report.splitlines()[0] == "ucb, simulation, 2 arms: not recorded"


@pytest.mark.parametrize(
    ("before", "now", "different"),
    [(["ts", "ucb"], ["ts", "ucb"], 0), (["ts", "ucb"], ["ts"], 1), (["ts"], ["ts", "ucb"], 0), ([], ["ucb"], 1)],
)
def test_missing_policies_differ_and_new_ones_do_not(
    tmp_path: Path, before: list[str], now: list[str], different: int
) -> None:
    folders = [tmp_path / "before", tmp_path / "now"]
    for folder, policies in zip(folders, (before, now), strict=True):
        folder.mkdir()
        for policy in policies:
            (folder / f"{policy}.pickle").write_bytes(pickle.dumps({CASE: {(1, "chosen arm"): 0}}))
    assert script.compare_folders(folders, "interpreted") == different


def test_a_policy_is_recorded_without_errors(tmp_path: Path) -> None:
    sources = SCRIPT.parents[1] / "src"
    assert script.recorded(sources, "now", "interpreted", tmp_path, "0/1", ["w-swa"]) is None
    assert script.compare_folders([tmp_path, tmp_path], "interpreted") == 0  # cases that failed would count
    names = {what for found in script.read(tmp_path, "w-swa").values() for _, what in found}
    expected = {"chosen arm", "score of the next step", "slot 'plays'", "pending", "saved JSON", "exact propensities"}
    assert expected <= names


def test_a_recorder_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "failing.py"
    failing.write_text("import sys; sys.exit('no sources')")
    monkeypatch.setattr(script, "RECORDER", failing)
    (folder := tmp_path / "records").mkdir()
    error = script.recorded(tmp_path, "now", "interpreted", folder, "0/1", ["ucb"])
    assert error is not None
    assert "interpreted, now, part 0/1 failed" in error
    assert "no sources" in error
