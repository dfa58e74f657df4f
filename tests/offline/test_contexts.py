"""Logs with features: reading, replays and the reward model."""

import abc
import dataclasses
import json
import math
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional, Union
from unittest import mock

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynabandit as db
from dynabandit import offline
from dynabandit.core.streams import REPLAY, stream, uniform
from dynabandit.features import PARQUET_KEY, FeatureEncoder
from dynabandit.offline import replay_loop, reward_model
from dynabandit.offline.contexts import read_value
from dynabandit.offline.log import Logged
from dynabandit.policies.auto import RECOMMENDED_WITH_FEATURES
from dynabandit.policies.memories import regression_kernels
from tools.obp_wheel import functions, obp

__all__ = ["obp"]

KINDS = {
    "hour": "number",
    "country": "category",
    "returning": {"kind": "boolean", "required": True},
    "vector": {"kind": "vector", "size": 2},
}
TABLE: dict[str, list[Any]] = {
    "arm": ["a", "b", "a", "b"],
    "reward": [1, 0, 0, 1],
    "hour": [18, 3.5, None, 7],
    "country": ["NO", None, "SE", "NO"],
    "returning": [True, False, True, False],
    "vector": [[0.5, 1.0], [0.0, 2.0], None, [1.0, 1.0]],
}


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Replay without compiled code."""
    with (
        mock.patch.object(replay_loop, "_compiled_play", replay_loop.make_play),
        mock.patch.object(reward_model, "_compiled_predict", reward_model.make_predict),
    ):
        yield


def all_features(log: offline.Log) -> np.ndarray:
    return np.concatenate([chunk.features[:, 0] for chunk in log.chunks()])


@pytest.mark.parametrize("batch", [8192, 3])
def test_csv_parquet_and_data_frames_have_the_features_of_a_bandit(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynabandit.offline.readers.BATCH", batch)
    encoder, expected = FeatureEncoder(KINDS), []
    for row in range(4):
        context = {name: TABLE[name][row] for name in KINDS}
        expected.append(encoder.encode(context))
        encoder.learn(context)
    frame = pandas.DataFrame(TABLE)
    frame.to_parquet(tmp_path / "log.parquet")
    frame["vector"] = [None if one is None else json.dumps(one) for one in TABLE["vector"]]
    frame.to_csv(tmp_path / "log.csv", index=False)
    logs = [
        offline.read(tmp_path / "log.csv", features=KINDS),
        offline.read(tmp_path / "log.parquet", features=KINDS),
        offline.from_columns(TABLE, features=KINDS),
        offline.from_columns(pandas.DataFrame(TABLE), features=FeatureEncoder(KINDS)),
    ]
    for log in logs:
        for _ in range(2):  # a log is read again for each replay
            assert np.array_equal(all_features(log), np.array(expected))
        assert log.context == (encoder.dimension, False)


def test_features_without_a_column_are_taken_from_the_contexts_that_the_service_exports(tmp_path: Path) -> None:
    expected = all_features(offline.from_columns(TABLE, features=KINDS))
    contexts = [{name: TABLE[name][row] for name in KINDS} for row in range(4)]
    texts = {"arm": TABLE["arm"], "reward": TABLE["reward"], "context": [json.dumps(one) for one in contexts]}
    pandas.DataFrame(texts).to_csv(tmp_path / "log.csv", index=False)
    logs = [
        offline.from_columns({**texts, "context": contexts}, features=KINDS),
        offline.from_columns({**texts, "returning": TABLE["returning"]}, features=KINDS),
        offline.read(tmp_path / "log.csv", features=KINDS),
        offline.read(tmp_path / "log.csv", features=list(KINDS)),
    ]
    for log in logs[:3]:
        assert np.array_equal(all_features(log), expected)
    assert logs[3].features is not None
    assert [one.kind for one in logs[3].features.features] == ["number", "category", "boolean", "vector"]
    for wrong in ("{", "3", "[1]"):
        with pytest.raises(
            ValueError, match=f"row 2, column 'context': must be an object in JSON, got '{re.escape(wrong)}'"
        ):
            offline.from_columns({**texts, "context": ["{}", wrong, "{}", "{}"]}, features=["hour"])
    contexts[2]["hour"] = "noon"
    with pytest.raises(ValueError, match="row 3, column 'context': must be a finite number, got 'noon'"):
        offline.from_columns({**texts, "context": contexts}, features=KINDS)


def test_a_parquet_file_that_declares_its_features_may_use_the_names_of_other_columns(tmp_path: Path) -> None:
    """A bandit may have a feature named time or propensity, and the export has columns of these names."""
    times = ['{"time": 1, "propensity": 5}', '{"time": 2}', '{"time": 3}', None]
    table = pa.table({"arm": TABLE["arm"], "reward": TABLE["reward"], "time": [7.0, 8.0, 8.0, 9.0], "context": times})
    features = {"time": {"kind": "number", "standardise": False}, "propensity": "number"}
    pq.write_table(table.replace_schema_metadata({PARQUET_KEY: json.dumps(features)}), tmp_path / "log.parquet")
    log = offline.read(tmp_path / "log.parquet", time="time")
    assert (log.first_time, log.last_time, log.has_propensities) == (7.0, 9.0, False)
    assert all_features(log)[:, 1].tolist() == [1.0, 2.0, 3.0, 0.0]


def test_the_first_row_decides_the_kinds_of_names(tmp_path: Path) -> None:
    vectors = [None if one is None else json.dumps(one) for one in TABLE["vector"]]
    frame = pandas.DataFrame({**TABLE, "vector": vectors})
    frame.to_csv(tmp_path / "log.csv", index=False)
    for log in (
        offline.read(tmp_path / "log.csv", features=list(KINDS)),
        offline.from_columns(TABLE, features=list(KINDS)),
    ):
        assert log.features is not None
        assert [one.kind for one in log.features.features] == ["number", "category", "boolean", "vector"]
    with pytest.raises(ValueError, match="feature 'hour' is missing in the first context"):
        offline.from_columns({**TABLE, "hour": [None, 1, 2, 3]}, features=["hour"])


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("18", "number", 18.0), ("18", "category", "18"), ("true", "category", "true"), ("[1]", "category", "[1]"),
        (18.0, "category", 18), (1.5, "category", 1.5), (18.0, "number", 18.0), ("True", "boolean", True),
        ("0", "boolean", False), (1, "boolean", True), (0.0, "boolean", False), (2, "boolean", 2),
        ("1", None, 1.0), ("FALSE", None, False), ("[1, 2.5]", "vector", [1, 2.5]), ("", "category", ""),
        (math.nan, "number", None), (None, None, None), ("nan", None, None), (" NaN ", "number", None),
        ("nan", "boolean", None), ("nan", "vector", None), ("nan", "category", "nan"),
        (np.float32("nan"), "number", None), (np.float32(18), "category", 18),
    ],
)  # fmt: skip
def test_values_of_files_are_read_by_their_kind(value: Any, kind: str | None, expected: Any) -> None:
    found = read_value(value, kind)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hour", "noon", "row 2, column 'hour': must be a finite number, got 'noon'"),
        ("hour", math.inf, "row 2, column 'hour': must be a finite number, got inf"),
        ("returning", None, "row 2, column 'returning': is missing, but required, got None"),
        ("returning", "perhaps", "row 2, column 'returning': must be True or False, got 'perhaps'"),
        ("vector", [1.0], r"row 2, column 'vector': must be a list of 2 finite numbers, got \[1.0\]"),
        ("vector", "[1, 2", r"row 2, column 'vector': must be a list of 2 finite numbers, got '\[1, 2'"),
        ("country", 1.5, "row 2, column 'country': must be a string or a whole number, got 1.5"),
    ],
)
def test_a_bad_value_of_a_feature_is_a_bad_row_and_changes_no_statistics(name: str, value: Any, message: str) -> None:
    table = {**TABLE, name: [TABLE[name][0], value, *TABLE[name][2:]]}
    with pytest.raises(ValueError, match=message):
        offline.from_columns(table, features=KINDS)
    skipped = offline.from_columns(table, features=KINDS, skip_bad=True)
    without = offline.from_columns({key: [one[0], *one[2:]] for key, one in TABLE.items()}, features=KINDS)
    assert np.array_equal(all_features(skipped), all_features(without))


def test_columns_of_features_must_exist_and_have_no_other_role() -> None:
    with pytest.raises(ValueError, match=r"has no column 'hours' for the feature 'hours'. Did you mean 'hour'"):
        offline.from_columns(TABLE, features=["hours"])
    with pytest.raises(ValueError, match="feature 'arm' and arm must be different columns"):
        offline.from_columns(TABLE, features=["arm"])


def clicks(rows: int, seed: int = 1) -> tuple[offline.Log, np.ndarray]:
    """Return a log of unequal random decisions, in which the best arm depends on the context, and the mean rewards."""
    generator = np.random.default_rng(seed)
    returning, hour = generator.random(rows) < 0.5, generator.integers(24, size=rows)
    chances = np.where(returning, 0.3, 0.6)
    arms = (generator.random(rows) < chances).astype(int)
    means = np.where(returning[:, None], [0.9, 0.3], [0.2, 0.7])
    rewards = (generator.random(rows) < means[np.arange(rows), arms]).astype(float)
    table = {"arm": arms, "reward": rewards, "hour": hour, "returning": returning}
    table["propensity"] = np.where(arms == 1, chances, 1.0 - chances)
    return offline.from_columns(table, features=["hour", "returning"]), means


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("learn", ["accepted", "all"])
def test_a_replay_is_a_bandit_with_the_same_contexts(learn: str) -> None:
    log, _ = clicks(120)
    policy = db.policy("lin-ucb", discount=0.98)
    found = offline.replay(log, policy, replications=1, draws=1, seed=3, learn=learn)
    assert log.features is not None
    encoder = FeatureEncoder({"x": {"kind": "vector", "size": 5, "required": True}}, constant=False)
    bandit = db.Bandit(policy, ["0", "1"], seed=3, features=encoder)
    bandit._choice_law = None  # a replay draws for every policy
    models = [
        regression_kernels.initial(5, reward_model.LOGISTIC.kind, reward_model.REGRESSION_PARAMS) for _ in range(2)
    ]
    rows, overall, ips, dr, accepted = [0, 0], [0.0, 0.0], [], [], 0
    (chunk,) = log.chunks()
    for row, (arm, value, propensity) in enumerate(zip(chunk.arms, chunk.rewards, chunk.propensities, strict=True), 1):
        x = chunk.features[row - 1, 0]
        chances = bandit.propensities({"x": x}, draws=1)
        expected = [
            1.0 / (1.0 + math.exp(-models[one][2:7] @ x)) if rows[one] else overall[1] / max(overall[0], 1)
            for one in (0, 1)
        ]
        weight = chances[str(arm)] / propensity
        ips.append(weight * value)
        dr.append(sum(chances[str(one)] * expected[one] for one in (0, 1)) + weight * (value - expected[arm]))
        chosen = bandit.copy().choose({"x": x})
        is_accepted = chosen == str(arm) and uniform(stream(3), REPLAY, row, 0) < log.least_propensity / propensity
        accepted += is_accepted
        if is_accepted or learn == "all":
            bandit.play_column(int(arm), {"x": x})
            bandit.reward(str(arm), float(value))
        else:
            bandit._step += 1  # a row that is not learned from is a step without a play
        reward_model.LOGISTIC.learn(models[arm], x, value, 0.0, (row, row), reward_model.REGRESSION_PARAMS)
        rows[arm] += 1
        overall[0] += 1
        overall[1] += value
    assert found.accepted == accepted
    assert found.ips.value == pytest.approx(np.mean(ips))
    assert found.dr.value == pytest.approx(np.mean(dr))


@pytest.mark.usefixtures("interpreted")
def test_context_is_worth_what_the_true_means_say() -> None:
    log, means = clicks(600)
    found = offline.replay(log, "lin-ucb", replications=1, draws=1, learn="all")
    best = float(means.max(axis=1).mean())
    assert found.dr.low < best < found.dr.high + 0.03  # it still learns at first
    assert found.dr.low > float(means.mean(axis=0).max()), "no arm is that good for all"
    assert found.dr.high - found.dr.low < 0.8 * (found.ips.high - found.ips.low)
    blind = offline.replay(log, "uniform", replications=1, draws=10)
    assert blind.dr.low < float(means.mean()) < blind.dr.high
    assert blind.dr.high - blind.dr.low < found.ips.high - found.ips.low


@pytest.mark.usefixtures("interpreted")
def test_auto_and_advice_use_the_features() -> None:
    log, _ = clicks(200)
    found = offline.replay(log, "auto", replications=1, draws=1)
    assert found.policy.name == RECOMMENDED_WITH_FEATURES
    advice = offline.advise(log, ["uniform", "lin-ucb"], replications=1, draws=1)
    assert advice.leader.name == "lin-ucb"
    with mock.patch("dynabandit.offline.advice.candidates", return_value=["uniform", "auto"]) as candidates:
        advice = offline.advise(log, replications=1, draws=1)
    candidates.assert_called_once_with(log.domain, contextual=True)
    assert {one.policy.name for one in advice.candidates} == {"uniform", found.policy.name}
    labels = {one.name for one in offline.candidates(log.domain, contextual=True)}
    assert labels >= {"lin-ucb", "ts"}
    assert "lin-ucb" not in {one.name for one in offline.candidates(log.domain)}
    with pytest.raises(ValueError, match="policy 'lin-ucb' decides by features: give features="):
        offline.replay(offline.from_columns({"arm": [0, 1], "reward": [0, 1]}), "lin-ucb")


@pytest.mark.usefixtures("interpreted")
def test_rewards_in_other_units_have_a_linear_model() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=300)
    arms = generator.integers(2, size=300)
    table = {"arm": arms, "reward": 1000.0 * np.where(arms == 1, x, -x), "x": x}
    log = offline.from_columns(table, rewards="normal", features={"x": {"kind": "number", "standardise": False}})
    model = reward_model.RewardModel(2, log.domain, log.context)
    (chunk,) = log.chunks()
    expected = model.predict(chunk)
    truth = 1000.0 * np.stack([-x, x], axis=1)
    assert np.abs(expected - truth)[100:].mean() < 20.0
    again = model.predict(Logged(chunk.arms[:1], chunk.rewards[:1], chunk.propensities[:1], chunk.features[:1]))
    assert again[0] == pytest.approx(truth[0], abs=20.0)


@pytest.mark.usefixtures("interpreted")
def test_estimates_are_those_of_open_bandit_pipeline(obp: Path) -> None:
    scope: dict[str, Any] = {"np": np, "dataclass": dataclasses.dataclass, "ABCMeta": abc.ABCMeta}
    scope.update(abstractmethod=abc.abstractmethod, Dict=dict, Optional=Optional, Union=Union)
    scope["torch"] = types.SimpleNamespace(Tensor=type("Tensor", (), {}))
    names = ("InverseProbabilityWeighting", "SelfNormalizedInverseProbabilityWeighting", "DoublyRobust")
    functions(obp / "ope" / "estimators.py", {"BaseOffPolicyEstimator", *names}, scope)
    log, _ = clicks(150)
    (chunk,) = log.chunks()
    expected = reward_model.RewardModel(2, log.domain, log.context).predict(chunk)
    player = replay_loop.Player(
        db.policy("lin-ucb"), log.arms, least=log.least_propensity, replications=1, draws=1, log_clock=True,
        learn_all=True, seed=1, features=log.features,
    )  # fmt: skip
    chosen, before = np.zeros((150, 2)), np.zeros(2)
    for row in range(150):
        player.play(Logged(*(part[row : row + 1] for part in chunk)), expected[row : row + 1])
        chosen[row], before = player.shares - before, player.shares.copy()
    found = offline.replay(log, "lin-ucb", replications=1, draws=1, seed=1, learn="all")
    position = np.zeros(150, dtype=int)
    for name, own in zip(names, (found.ips, found.snips, found.dr), strict=True):
        rewards = scope[name]()._estimate_round_rewards(
            reward=chunk.rewards, action=chunk.arms, position=position, pscore=chunk.propensities,
            action_dist=chosen[:, :, None], estimated_rewards_by_reg_model=expected[:, :, None],
        )  # fmt: skip
        assert own.value == pytest.approx(rewards.mean()), name
