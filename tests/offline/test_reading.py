"""Files as people have them: every fault is named by row and column."""

import datetime
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynabandit
from dynabandit import offline

ROLES: dict[str, Any] = {"arm": "shown", "reward": "clicked", "time": "at", "propensity": "p"}
HEADER = "at,shown,p,clicked"
GOOD = ["1,red,0.5,1", "2,blue,0.25,0", "2,red,0.5,0.5", "3,blue,1,1"]


def written(tmp_path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "log.csv"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def all_rows(log: offline.Log) -> list[tuple[str, float, float]]:
    return [
        (log.arms[arm], float(reward), float(propensity))
        for chunk in log.chunks()
        for arm, reward, propensity in zip(*chunk[:3], strict=True)
    ]


EXPECTED = [("red", 1.0, 0.5), ("blue", 0.0, 0.25), ("red", 0.5, 0.5), ("blue", 1.0, 1.0)]


def test_a_column_with_the_name_of_the_export_is_used_without_being_named(tmp_path: Path) -> None:
    path = written(tmp_path, "at,shown,propensity,clicked", *GOOD)
    frame = pandas.read_csv(path)
    frame.to_parquet(tmp_path / "log.parquet")
    roles: dict[str, Any] = {"arm": "shown", "reward": "clicked"}
    for log in (
        offline.read(path, **roles),
        offline.read(tmp_path / "log.parquet", **roles),
        offline.from_columns(frame, **roles),
    ):
        assert log.has_propensities
        assert not log.is_uniform
        assert all_rows(log) == EXPECTED
    other = offline.from_columns({**frame.to_dict("list"), "p": [1.0] * 4}, **roles, propensity="p")
    assert {row[2] for row in all_rows(other)} == {1.0}
    reward = offline.from_columns({"arm": ["a", "b"], "propensity": [1, 0]}, reward="propensity")
    assert (reward.has_propensities, reward.is_uniform) == (False, True)


def test_csv_parquet_and_data_frames_give_the_same_rows(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, *GOOD)
    frame = pandas.read_csv(path)
    frame.to_parquet(tmp_path / "log.parquet")
    found = [
        offline.read(path, **ROLES),
        offline.read(tmp_path / "log.parquet", **ROLES),
        offline.from_columns(frame, **ROLES),
        offline.from_columns(polars.DataFrame(frame.to_dict("list")), **ROLES),
        offline.from_columns(frame.to_dict("list"), **ROLES),
    ]
    for log in found:
        assert all_rows(log) == EXPECTED
        assert (log.rows, log.arms, log.least_propensity) == (4, ("blue", "red"), 0.25)
        assert log.plays.tolist() == [2, 2]
        assert log.rewards.tolist() == [1.0, 1.5]
        assert (log.first_time, log.last_time) == (1.0, 3.0)


def test_without_propensities_all_arms_are_equally_likely(tmp_path: Path) -> None:
    log = offline.read(written(tmp_path, HEADER, *GOOD), arm="shown", reward="clicked")
    assert {row[2] for row in all_rows(log)} == {0.5}
    assert not log.has_propensities


def test_times_may_be_dates_in_text_and_in_parquet(tmp_path: Path) -> None:
    start = datetime.datetime(2024, 5, 31, 12, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(seconds=n) for n in range(3)]
    table = {"at": moments, "arm": ["a", "b", "a"], "reward": [True, False, True]}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    text = written(
        tmp_path, "at,arm,reward", *(f"{at},{arm},{reward}" for at, arm, reward in zip(*table.values(), strict=True))
    )
    for unit in ("s", "ms", "us", "ns"):
        exact = pa.array(moments, pa.timestamp(unit, "UTC"))
        pq.write_table(pa.table({**table, "at": exact}), tmp_path / f"{unit}.parquet")
    for path in (text, *tmp_path.glob("*.parquet")):
        log = offline.read(path, time="at")
        assert log.first_time == start.timestamp()
        assert [reward for _, reward, _ in all_rows(log)] == [1.0, 0.0, 1.0]


def test_a_number_is_a_time_and_no_date_whatever_stands_beside_it() -> None:
    table = {"arm": ["a", "b", "a", "b"], "reward": [0, 1, 0, 1], "at": ["20240101", "20240102", "soon", "20240103"]}
    log = offline.from_columns(table, time="at", skip_bad=True)
    assert (log.first_time, log.last_time) == (20240101.0, 20240103.0)
    assert [bad.row for bad in log.bad.shown] == [3]


def test_what_pandas_has_for_a_missing_value_is_missing() -> None:
    frame = pandas.DataFrame({"arm": pandas.array(["a", None, "b"]), "reward": pandas.array([1, 0, None])})
    frame["at"] = pandas.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])
    frame = frame.convert_dtypes()
    with pytest.raises(ValueError, match="2 of 3 rows") as caught:
        offline.from_columns(frame, time="at")
    assert "row 2, column 'arm': is missing" in str(caught.value)
    assert "row 3, column 'reward': is missing" in str(caught.value)


def test_arms_that_are_numbers_are_sorted_as_numbers() -> None:
    log = offline.from_columns({"arm": [10, 9, 2, "x"], "reward": [0, 0, 0, 0]})
    assert log.arms == ("2", "9", "10", "x")


BAD = {
    "reward above 1": ("2,red,0.5,1.5", "column 'clicked': must be a number in [0, 1], got '1.5'"),
    "reward below 0": ("2,red,0.5,-0.1", "column 'clicked': must be a number in [0, 1], got '-0.1'"),
    "no number": ("2,red,0.5,yes", "column 'clicked': must be a number in [0, 1], got 'yes'"),
    "NaN": ("2,red,0.5,nan", "column 'clicked': must be a number in [0, 1], got 'nan'"),
    "no reward": ("2,red,0.5,", "column 'clicked': is missing, got None"),
    "short": ("2,red", "column 'clicked': is missing, got None"),
    "no arm": ("2,,0.5,1", "column 'shown': is missing, got None"),
    "blank arm": ("2,  ,0.5,1", "column 'shown': must name an arm, got '  '"),
    "propensity of 0": ("2,red,0,1", "column 'p': must be the probability with which the arm was chosen, in (0, 1]"),
    "propensity above 1": ("2,red,2,1", "column 'p': must be the probability"),
    "earlier": ("0.5,red,0.5,1", "column 'at': is earlier than a row before it; sort the log by time, got '0.5'"),
    "no time": ("soon,red,0.5,1", "column 'at': must be a number or a date and time such as 2024-05-31T12:00:00"),
    "endless time": ("inf,red,0.5,1", "column 'at': must be a number or a date"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_is_named_by_row_and_column_and_skipped_only_on_request(
    line: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, HEADER, GOOD[0], line, *GOOD[1:])
    with pytest.raises(ValueError, match="1 of 5 rows cannot be used") as caught:
        offline.read(path, **ROLES)
    assert f"row 2 (line 3), {message}" in str(caught.value)
    log = offline.read(path, **ROLES, skip_bad=True)
    assert all_rows(log) == EXPECTED
    assert log.bad.count == 1


def test_many_bad_rows_are_counted_and_the_first_few_shown(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, *GOOD, *(f"{n},red,0.5,{n}" for n in range(10, 30)))
    with pytest.raises(ValueError, match="20 of 24 rows") as caught:
        offline.read(path, **ROLES)
    lines = str(caught.value).splitlines()
    assert [line for line in lines if "row 5 (line 6)" in line]
    assert lines[-1] == "  and 15 more"
    assert len(lines) == 7


def test_times_must_not_fall_between_chunks_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dynabandit.offline.readers.BATCH", 2)
    path = written(tmp_path, HEADER, *GOOD, "2.5,red,0.5,1", "4,red,0.5,1")
    log = offline.read(path, **ROLES, skip_bad=True)
    assert [bad.row for bad in log.bad.shown] == [5]
    assert log.rows == 5


def test_blank_lines_are_no_rows_and_quotes_may_hold_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, GOOD[0], "", '2,"two\nlines",0.25,0', "", "x,red,0.5,1")
    with pytest.raises(ValueError, match=re.escape("row 3 (line 7), column 'at'")):
        offline.read(path, **ROLES)


WRONG: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "empty": (b"", {}, "is empty: its first line must name the columns"),
    "only a header": (b"arm,reward\n", {}, "must have rows below the names of its columns, got none"),
    "missing column": (b"arm,rewards\na,1\n", {}, "has no column 'reward' for the reward. Did you mean 'rewards'?"),
    "column twice": (b"arm,arm,reward\na,b,1\n", {}, "has 2 columns named 'arm', and only one can be the arm"),
    "one column for two things": (b"arm,reward\n", {"arm": "reward"}, "reward and arm must be different columns"),
    "one arm": (b"arm,reward\na,1\na,0\n", {}, "column 'arm': a log must have at least 2 different arms, got 'a'"),
    "no usable row": (b"arm,reward\na,7\n", {"skip_bad": True}, "at least 2 different arms, got none in 0 usable"),
    "latin-1": ("arm,reward\nnaïve,1\nb,0\n".encode("latin-1"), {}, "row 1 (line 2), column 'arm': is not text in"),
    "utf-16": ("arm,reward\na,1\nb,0\n".encode("utf-16"), {}, "row 1: the file is utf-16, not utf-8; give encoding"),
    "unknown encoding": (b"arm,reward\n", {"encoding": "utf-9"}, "encoding must be one that Python knows"),
    "separator": (b"arm,reward\n", {"separator": "ab"}, "separator must be one character, got 'ab'"),
    "too long a field": (b"arm,reward\na,1\n" + b"b" * 200_000 + b",1\n", {}, "cannot be read near line 3"),
}


@pytest.mark.parametrize(("content", "options", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_file_that_is_no_log_is_refused_with_a_reason(
    content: bytes, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        offline.read(tmp_path / "log.csv", **options)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_another_encoding_is_read_where_it_is_named(encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward", "naïve,1", "b,0", encoding=encoding)
    assert offline.read(path, encoding="utf-8" if encoding == "utf-8-sig" else encoding).arms == ("b", "naïve")


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_text("arm,reward\n")
    with pytest.raises(ValueError, match=r"log.parquet cannot be read as Parquet"):
        offline.read(tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="there is no file"):
        offline.read(tmp_path / "none.csv")


def test_a_column_of_ids_is_no_column_of_arms() -> None:
    with pytest.raises(ValueError, match="at most 10000 different arms, got '10000' as one more"):
        offline.from_columns({"arm": range(10_001), "reward": np.zeros(10_001)})


def test_a_file_that_changes_under_a_replay_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward", "a,1", "b,0", "a,1")
    log = offline.read(path)
    written(tmp_path, "arm,reward", "a,1", "b,0", "a,1", "c,1")
    assert len(all_rows(log)) == 3
    written(tmp_path, "arm,reward", "a,1", "c,0", "a,1")
    with pytest.raises(ValueError, match="changed while it was read: it has a new arm 'c'"):
        all_rows(log)
    written(tmp_path, "arm,reward", "a,1")
    with pytest.raises(ValueError, match="changed while it was read: it lost 2 of 3 rows"):
        all_rows(log)


def test_unequal_shares_without_propensities_are_doubted() -> None:
    lopsided = offline.from_columns({"arm": ["a"] * 900 + ["b"] * 100, "reward": [0] * 1000})
    assert lopsided.doubts == [
        "without propensities all arms count as equally likely, but 'a' has 90.0% of the rows instead of about 50.0%"
    ]
    fair = offline.from_columns({"arm": ["a", "b"] * 500, "reward": [0] * 1000})
    assert fair.doubts == []
    wrong = offline.from_columns({"arm": ["a", "b"] * 500, "reward": [0] * 1000, "p": [1.0] * 1000}, propensity="p")
    assert wrong.doubts[0].startswith("1 / propensity has mean 1, but would have about 2")


BOUNDED = """
import resource, sys
from pathlib import Path
from dynabandit import offline

small, large = sys.argv[1:]
offline.replay(offline.read(small), "uniform", replications=1, draws=1)  # loads and compiles all that it needs
words = Path("/proc/self/statm").read_text().split()
limit = int(words[0]) * resource.getpagesize() + int(0.5 * Path(large).stat().st_size)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    Path(large).read_bytes()
except MemoryError:
    pass
else:
    sys.exit("the limit does not bind")
found = offline.replay(offline.read(large), "uniform", replications=1, draws=1)
print(found.log.rows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_larger_than_memory_is_replayed(kind: str, tmp_path: Path) -> None:
    rows, wide = 40_000, "x" * 4000
    table = pa.table({"arm": ["a", "b"] * (rows // 2), "reward": [0, 1] * (rows // 2), "wide": [wide] * rows})
    if kind == "csv":
        with (tmp_path / "large.csv").open("w") as file:
            file.write("arm,wide,reward\n")
            file.writelines(f"{'ab'[n % 2]},{wide},{n % 2}\n" for n in range(rows))
        (tmp_path / "small.csv").write_text("arm,wide,reward\na,x,0\nb,x,1\n")
    else:
        options = {"use_dictionary": False, "compression": "none", "row_group_size": 5000}
        pq.write_table(table, tmp_path / "large.parquet", **options)
        pq.write_table(table[:2], tmp_path / "small.parquet", **options)
    files = [str(tmp_path / f"{size}.{kind}") for size in ("small", "large")]
    settings = {**os.environ, "PYTHONPATH": str(Path(dynabandit.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", BOUNDED, *files], capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{rows}\n"


@pytest.mark.parametrize("encoding", ["rot13", "idna", "klingon"])
def test_an_encoding_that_is_none_for_text_is_refused(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(ValueError, match=f"encoding must be one that Python knows, such as latin-1, got '{encoding}'"):
        offline.read(written(tmp_path, HEADER, *GOOD), encoding=encoding, **ROLES)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.csv")
    with pytest.raises(ValueError, match="is a pipe or a device, and a log is read several times"):
        offline.read(tmp_path / "log.csv", **ROLES)
