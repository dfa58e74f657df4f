import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dynabandit.features import FeatureEncoder

KINDS = {
    "hour": {"kind": "number", "required": True},
    "country": "category",
    "returning": "boolean",
    "embedding": {"kind": "vector", "size": 2},
}
CONTEXT = {"hour": 18, "country": "NO", "returning": True, "embedding": [0.5, -1.0]}
KNOWN = "Features: 'hour' (number, required), 'country' (category), 'returning' (boolean), 'embedding' (vector)"


def columns(encoder: FeatureEncoder, context: dict[str, Any]) -> dict[str, float]:
    """Return the columns that are not 0, by their description."""
    vector = encoder.encode(context)
    return {name: value for name, value in zip(encoder.columns, vector.tolist(), strict=True) if value}


def test_each_kind_has_its_columns_after_the_constant() -> None:
    encoder = FeatureEncoder({**KINDS, "country": {"kind": "category", "values": ["NO", "SE"]}})
    assert columns(encoder, CONTEXT) == {
        "1": 1.0, "country=NO": 1.0, "returning": 1.0, "embedding 0": 0.5, "embedding 1": -1.0
    }  # fmt: skip
    assert columns(encoder, {**CONTEXT, "country": "DK", "returning": np.False_}) == {
        "1": 1.0, "country other": 1.0, "embedding 0": 0.5, "embedding 1": -1.0
    }  # fmt: skip
    assert encoder.dimension == len(encoder.columns) == 1 + 1 + 4 + 2 + 3


@pytest.mark.parametrize("missing", [{}, dict.fromkeys(("country", "returning", "embedding"))])
def test_missing_values_have_a_column_of_their_own(missing: dict[str, Any]) -> None:
    encoder = FeatureEncoder({**KINDS, "price": "number"})
    found = columns(encoder, {"hour": 1, **missing})
    assert found == {
        "1": 1.0, "country missing": 1.0, "returning missing": 1.0, "embedding missing": 1.0, "price missing": 1.0
    }  # fmt: skip


def test_new_values_of_a_hashed_category_need_no_new_column() -> None:
    encoder = FeatureEncoder({"country": {"kind": "category", "columns": 3, "required": True}})
    vectors = np.array([encoder.encode({"country": value}) for value in "abcdefghijklmnopqrstuvwxyz"])
    assert vectors.shape == (26, 4)
    assert np.all(vectors[:, 1:].sum(axis=1) == 1.0)
    assert np.all(vectors.sum(axis=0) > 0.0)
    assert np.array_equal(encoder.encode({"country": 17}), encoder.encode({"country": "17"}))


def test_names_of_a_hashed_mapping_have_a_column_and_a_sign() -> None:
    encoder = FeatureEncoder({"user": {"kind": "hashed", "columns": 64, "required": True}}, constant=False)

    def encoded(**values: Any) -> np.ndarray:
        return encoder.encode({"user": values})

    names = [f"name {i}" for i in range(2000)]
    ones = np.array([encoded(**{name: 1}) for name in names])
    assert np.all(np.abs(ones).sum(axis=1) == 1.0)
    # 2,000 uniform columns and fair signs: each bound is more than five standard deviations away
    assert np.all(np.abs(np.abs(ones).sum(axis=0) - 2000 / 64) < 5.5 * math.sqrt(2000 / 64))
    assert abs(ones.sum()) < 5.5 * math.sqrt(2000)
    assert np.array_equal(encoded(a=0.5, b="x", c=None), 0.5 * encoded(a=True) + encoded(b="x"))
    assert not np.array_equal(encoded(b="x"), encoded(b="y"))
    assert np.allclose(encoded(a=-20), -(1 + math.log(20)) * encoded(a=1))
    assert not encoded(a=False).any()


@pytest.mark.parametrize("value", ["x", ["x"], {1: 2}, {"a": math.nan}, {"a": 10**400}, {"a": [1]}, {"a": 1e101}])
def test_a_bad_hashed_mapping_is_an_error(value: Any) -> None:
    valid = "feature 'user' must be a mapping from names to finite numbers, booleans or strings, got "
    with pytest.raises((TypeError, ValueError), match=valid):
        FeatureEncoder({"user": "hashed"}).encode({"user": value})


def test_hashes_are_the_same_in_every_release() -> None:
    hashed = FeatureEncoder({"user": {"kind": "hashed", "columns": 8, "required": True}}, constant=False)
    assert hashed.encode({"user": {"Ø": "x", "age": 0.5, "new": True}}).tolist() == [0, -0.5, 1, 0, 0, 0, -1, 0]
    encoder = FeatureEncoder({"country": "category"})
    assert [list(columns(encoder, {"country": one}))[1] for one in ("NO", "SE", "Ø")] == [
        "country 11", "country 9", "country 10"
    ]  # fmt: skip


def test_numbers_are_standardised_by_weighted_moments_of_earlier_contexts() -> None:
    forgetting = 0.9
    encoder = FeatureEncoder({"x": {"kind": "number", "forgetting": forgetting, "required": True}})
    values = np.random.default_rng(1).normal(5.0, 2.0, size=50)
    for count, value in enumerate(values):
        weights = forgetting ** np.arange(count)[::-1]
        expected = 0.0
        if count >= 2:
            mean = weights @ values[:count] / weights.sum()
            deviation = math.sqrt(weights @ (values[:count] - mean) ** 2 / weights.sum())
            expected = min(max((value - mean) / deviation, -5.0), 5.0)
        assert encoder.encode({"x": value})[1] == pytest.approx(expected, abs=1e-9)
        encoder.learn({"x": value})


def test_numbers_are_at_most_five_standard_deviations_away_and_constant_ones_are_zero() -> None:
    encoder = FeatureEncoder({"x": "number", "same": "number"})
    for value in (1.0, 2.0) * 20:
        encoder.learn({"x": value, "same": 0.1})
    far = encoder.encode({"x": 1e99, "same": 0.1})
    assert far[1] == 5.0
    assert encoder.encode({"x": -1e99})[1] == -5.0
    assert far[encoder.columns.index("same")] == 0.0


def test_what_is_left_of_a_forgotten_variance_is_no_variance() -> None:
    encoder = FeatureEncoder({"x": {"kind": "number", "forgetting": 0.5}})
    for value in [0.3] * 3 + [0.1] * 200:
        encoder.learn({"x": value})
    assert [encoder.encode({"x": value})[1] for value in (0.1, 0.2)] == [0.0, 0.0]


@pytest.mark.parametrize("value", [7, 7.0, np.float32(7), np.int8(7), Decimal(7), Fraction(7)])
def test_every_type_of_real_numbers_is_a_number(value: Any) -> None:
    encoder = FeatureEncoder({"x": {"kind": "number", "standardise": False}, "v": {"kind": "vector", "size": 1}})
    assert columns(encoder, {"x": value, "v": [value]}) == {"1": 1.0, "x": 7.0, "v": 7.0}


def test_a_number_can_be_used_as_it_is() -> None:
    encoder = FeatureEncoder({"x": {"kind": "number", "standardise": False, "required": True}}, constant=False)
    encoder.learn({"x": 100})
    assert encoder.encode({"x": 7}).tolist() == [7.0]
    with pytest.raises(ValueError, match=r"feature 'x' must be between -1e\+06 and 1e\+06, got 10000000.0; rescale it"):
        encoder.encode({"x": 1e7})


def test_a_number_outside_its_declared_range_is_refused() -> None:
    declaration = {"kind": "number", "low": -3, "high": 120.5, "required": True}
    encoder = FeatureEncoder({"x": declaration, "y": {"kind": "number", "low": 0}, "z": "number"})
    for x, y in ((-3, 0), (120.5, 1e100)):
        assert np.isfinite(encoder.encode({"x": x, "y": y})).all()
    for value, shown in ((120.6, "120.6"), (-3.1, "-3.1"), (1e100, r"1e\+100"), (1e101, r"1e\+101")):
        with pytest.raises(ValueError, match=rf"feature 'x' must be between -3 and 120.5, got {shown}\. Features: "):
            encoder.encode({"x": value})
    with pytest.raises(ValueError, match=r"feature 'y' must be between 0 and 1e\+100, got -1\. Features: "):
        encoder.encode({"x": 0, "y": -1})
    with pytest.raises(ValueError, match="feature 'x' must be a finite number, got nan"):
        encoder.encode({"x": math.nan})


def test_the_range_of_a_number_is_saved_and_without_one_nothing_new_is() -> None:
    encoder = FeatureEncoder({"x": {"kind": "number", "low": 0, "high": 7}, "y": {"kind": "number", "low": 0}})
    saved = encoder.to_json()
    assert [(one.get("low"), one.get("high")) for one in saved["features"].values()] == [(0.0, 7.0), (0.0, None)]
    with pytest.raises(ValueError, match="feature 'x' must be between 0 and 7, got 8"):
        FeatureEncoder.from_json(json.loads(json.dumps(saved))).encode({"x": 8})
    # Otherwise the states of bandits would have other hashes than those that earlier releases have saved
    plain = FeatureEncoder({"x": "number"}).to_json()["features"]["x"]
    assert plain == {"kind": "number", "required": False, "standardise": True, "forgetting": 0.99999}


def test_encoding_changes_nothing_and_the_state_survives_json() -> None:
    encoder = FeatureEncoder(KINDS)
    for hour in (3.25, 7.5, 11.0):
        encoder.learn({**CONTEXT, "hour": hour})
    before = json.dumps(encoder.to_json())
    vector = encoder.encode(CONTEXT)
    assert json.dumps(encoder.to_json()) == before
    again, copy = FeatureEncoder.from_json(json.loads(before)), encoder.copy()
    assert np.array_equal(again.encode(CONTEXT), vector)
    encoder.learn(CONTEXT)
    assert json.dumps(copy.to_json()) == before != json.dumps(encoder.to_json())


def test_the_first_context_decides_the_kinds_of_names() -> None:
    names = FeatureEncoder(list(KINDS))
    assert names.is_open
    assert FeatureEncoder.from_json(names.to_json()).is_open
    fixed = names.fixed(CONTEXT)
    assert [one.kind for one in fixed.features] == ["number", "category", "boolean", "vector"]
    assert fixed.dimension == 1 + 2 + 17 + 2 + 3
    assert fixed.fixed({}) is fixed
    with pytest.raises(ValueError, match="feature 'country' is missing in the first context, which decides the kinds"):
        names.fixed({"hour": 1})
    with pytest.raises(
        ValueError, match=r"unknown feature 'hours'. Did you mean 'hour'[?] Features: 'hour', 'country'"
    ):
        names.fixed({"hours": 1})
    with pytest.raises(ValueError, match="feature 'hour' must be a finite number, got nan"):
        names.fixed({**CONTEXT, "hour": math.nan})
    with pytest.raises(ValueError, match="feature 'embedding' must be a list of 2 finite numbers"):
        names.fixed({**CONTEXT, "embedding": [0.5, math.nan]})
    with pytest.raises(TypeError, match=r"'hour' must be a boolean, a number, a string or a list of numbers, got {}"):
        names.fixed({**CONTEXT, "hour": {}})


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"hours": 1}, ValueError, "unknown feature 'hours'. Did you mean 'hour'?"),
        ({7: 1}, ValueError, "unknown feature 7."),
        ({"hour": None}, ValueError, "feature 'hour' is required, but it is missing."),
        ({"hour": "18"}, TypeError, "feature 'hour' must be a finite number, got '18'."),
        ({"hour": True}, TypeError, "feature 'hour' must be a finite number, got True."),
        ({"hour": [1.0]}, TypeError, "feature 'hour' must be a finite number, got [1.0]."),
        ({"hour": np.ones(1)}, TypeError, "feature 'hour' must be a finite number, got array([1.])."),
        ({"hour": math.nan}, ValueError, "feature 'hour' must be a finite number, got nan."),
        (
            {"hour": np.datetime64("2026-01-01")},
            TypeError,
            "feature 'hour' must be a finite number, got np.datetime64(",
        ),
        ({"hour": np.complex128(1)}, TypeError, "feature 'hour' must be a finite number, got np.complex128(1+0j)."),
        ({"hour": 1j}, TypeError, "feature 'hour' must be a finite number, got 1j."),
        ({"hour": Decimal("sNaN")}, TypeError, "feature 'hour' must be a finite number, got Decimal('sNaN')."),
        ({"embedding": [1, np.complex128(1)]}, TypeError, "must be a list of 2 finite numbers, got [1, np.complex"),
        ({"embedding": [1, np.datetime64("2026-01-01")]}, TypeError, "must be a list of 2 finite numbers, got [1, np."),
        ({"hour": -math.inf}, ValueError, "feature 'hour' must be a finite number, got -inf."),
        ({"hour": 10**400}, ValueError, "feature 'hour' must be a finite number, got 1000"),
        ({"hour": 1e101}, ValueError, "feature 'hour' must be between -1e+100 and 1e+100, got 1e+101; rescale it."),
        ({"country": 1.5}, TypeError, "feature 'country' must be a string or a whole number, got 1.5."),
        ({"country": True}, TypeError, "feature 'country' must be a string or a whole number, got True."),
        ({"returning": 1}, TypeError, "feature 'returning' must be True or False, got 1."),
        ({"returning": "yes"}, TypeError, "feature 'returning' must be True or False, got 'yes'."),
        (
            {"embedding": [1.0]},
            ValueError,
            "feature 'embedding' must be a list of 2 finite numbers, got 1 numbers: [1.0].",
        ),
        ({"embedding": 1.0}, TypeError, "feature 'embedding' must be a list of 2 finite numbers, got 1.0."),
        ({"embedding": "ab"}, TypeError, "feature 'embedding' must be a list of 2 finite numbers, got 'ab'."),
        ({"embedding": [1, "2"]}, TypeError, "feature 'embedding' must be a list of 2 finite numbers, got [1, '2']."),
        ({"embedding": [[1, 2]]}, TypeError, "feature 'embedding' must be a list of 2 finite numbers, got [[1, 2]]."),
        ({"embedding": [1, math.nan]}, ValueError, "must be a list of 2 finite numbers, got [1, nan]."),
        ({"embedding": [1, math.inf]}, ValueError, "must be a list of 2 finite numbers, got [1, inf]."),
        ({"embedding": [1, 1e7]}, ValueError, "must be between -1e+06 and 1e+06, got [1, 10000000.0]; rescale it."),
    ],
)
def test_a_bad_value_is_named_with_the_known_features(
    change: dict[Any, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        FeatureEncoder(KINDS).encode({**CONTEXT, **change})
    assert message in str(caught.value)
    assert str(caught.value).endswith(KNOWN)


@pytest.mark.parametrize(
    ("features", "kind", "message"),
    [
        ("hour", TypeError, "features must be a list of names, or a mapping from names to kinds, got 'hour'"),
        (7, TypeError, "features must be a list of names"),
        (["hour", "hour"], ValueError, "features must have different names, got 'hour' twice"),
        (["hour", ""], TypeError, "the name of a feature must be a string that is not empty, got ''"),
        ({"hour": "numbr"}, ValueError, "unknown kind of feature 'hour': 'numbr'. Did you mean 'number'?"),
        ({"hour": {"required": True}}, ValueError, "unknown kind of feature 'hour': None."),
        ({"hour": {"kind": "number", "require": True}}, TypeError, "feature 'hour' has no parameter 'require'."),
        ({"hour": {"kind": "number", "forgetting": 0}}, ValueError, "forgetting of feature 'hour' must be a number in"),
        ({"hour": {"kind": "number", "standardise": 1}}, TypeError, "standardise of feature 'hour' must be True or"),
        ({"hour": {"kind": "boolean", "required": 1}}, TypeError, "required of feature 'hour' must be True or False"),
        ({"hour": {"kind": "number", "low": "0"}}, TypeError, "low of feature 'hour' must be a number in [-1e+100,"),
        ({"hour": {"kind": "number", "high": math.nan}}, ValueError, "high of feature 'hour' must be a number in"),
        ({"hour": {"kind": "number", "low": 24, "high": 0}}, ValueError, "low of feature 'hour' must be below 0, got"),
        ({"hour": {"kind": "number", "low": 24, "high": 24}}, ValueError, "low of feature 'hour' must be below 24,"),
        (
            {"hour": {"kind": "number", "high": 1e7, "standardise": False}},
            ValueError,
            "high of feature 'hour' must be a number in [-1e+06, 1e+06], got 10000000.0",
        ),
        ({"e": "vector"}, TypeError, 'feature \'e\' needs a size: {"kind": "vector", "size": 16}'),
        ({"e": {"kind": "vector", "size": 0}}, ValueError, "size of feature 'e' must be a whole number of at least 1"),
        ({"c": {"kind": "category", "columns": 0}}, ValueError, "columns of feature 'c' must be a whole number"),
        ({"c": {"kind": "category", "values": "ab"}}, TypeError, "values of feature 'c' must be a list of strings"),
        ({"c": {"kind": "category", "values": ["a", "a"]}}, ValueError, "values of feature 'c' must be different"),
        ({"c": {"kind": "category", "values": ["a"], "columns": 2}}, ValueError, "values or columns, not both"),
    ],
)  # fmt: skip
def test_a_bad_declaration_is_an_error(features: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        FeatureEncoder(features)
    assert message in str(caught.value)


def test_a_context_must_be_a_mapping() -> None:
    with pytest.raises(TypeError, match="context must be a mapping from the names of features to their values, got 7"):
        FeatureEncoder(KINDS).encode(7)
