import json
import math
from typing import Any

import numpy as np
import pytest

from dynabandit.features import ArmFeatures

ARMS = {"red": {"price": 1.0, "brand": "x"}, "green": {"price": 3.0, "brand": "y"}}
KINDS = {
    "price": {"kind": "number", "required": True},
    "brand": {"kind": "category", "values": ["x"], "required": True},
}
CONTEXT = np.array([1.0, 0.5, 2.0])


def test_the_vector_of_an_arm_has_context_arm_and_products() -> None:
    both = ArmFeatures.of(["red", "green"], ARMS, KINDS)
    assert both.vectors.tolist() == [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    combined = both.combined(CONTEXT, np.array([1, 0]))
    assert combined.shape == (2, both.dimension(3)) == (2, 12)
    assert combined[0].tolist() == [1.0, 0.5, 2.0, 1.0, 0.0, 1.0, 0.5, 2.0, 0.0, 0.0, 0.5, 2.0]
    assert combined[1].tolist() == [1.0, 0.5, 2.0, -1.0, 1.0, 0.0, -0.5, -2.0, 0.5, 2.0, 0.0, 0.0]


def test_products_are_optional_and_include_the_first_column_unless_it_is_constant() -> None:
    plain = ArmFeatures.of(["red", "green"], ARMS, KINDS, interactions=False)
    assert plain.combined(CONTEXT, np.array([0])).tolist() == [[1.0, 0.5, 2.0, -1.0, 1.0, 0.0]]
    assert plain.dimension(3) == 6
    without = ArmFeatures.of(["red", "green"], ARMS, KINDS, constant=False)
    assert without.combined(CONTEXT, np.array([0])).shape == (1, without.dimension(3)) == (1, 15)


def test_a_number_that_is_equal_for_the_first_arms_tells_later_arms_apart() -> None:
    arms = ArmFeatures.of(["red", "green"], {"red": {"price": 7.0}, "green": {"price": 7.0}})
    for price in (7.0, 9.0, 4.5, 100.0):
        arms.add(str(price), {"price": price})
    assert arms.vectors[:, 0].tolist() == [0.0, 0.0, 0.0, 2.0, -2.5, 5.0]
    missing = ArmFeatures.of(["red", "green"], {"red": {}, "green": {}}, {"price": "number"})
    missing.add("blue", {"price": 2.0})
    assert missing.vectors.tolist() == [[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]]


def test_ready_features_are_taken_by_the_names_of_arms() -> None:
    both = ArmFeatures.of(["red", "green"], ARMS, KINDS)
    swapped = both.for_arms(["green", "red"], constant=False)
    assert np.array_equal(swapped.vectors, both.vectors[::-1])
    assert (both.dimension(3), swapped.dimension(3)) == (12, 15)
    for wrong in (["red"], ["red", "blue"], ["red", "green", "blue"]):
        with pytest.raises(
            ValueError, match=r"arm_features must have features of the arms 'red'.*, got 'red', 'green'"
        ):
            both.for_arms(wrong, constant=True)
    restored = ArmFeatures.from_json(both.to_json())
    with pytest.raises(ValueError, match="arm_features must have features of 3 arms, got 2"):
        restored.for_arms(["red", "green", "blue"], constant=True)


def test_a_new_arm_uses_the_statistics_of_the_first_arms_and_json_keeps_them() -> None:
    both = ArmFeatures.of(["red", "green"], ARMS, KINDS)
    copy = both.copy()
    both.add("blue", {"price": 5.0, "brand": "z"})
    assert both.vectors[2].tolist() == [3.0, 0.0, 1.0]
    assert len(copy.vectors) == 2
    again = ArmFeatures.from_json(json.loads(json.dumps(both.to_json())))
    again.add("last", {"price": 2.0, "brand": "x"})
    assert np.array_equal(again.vectors[:3], both.vectors)
    assert again.vectors[3].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("arms", "kind", "message"),
    [
        ([], TypeError, "arm_features must be a mapping from arms to their features, got []"),
        ({**ARMS, "blue": {}}, ValueError, "arm_features has features of an unknown arm 'blue'. Arms: 'red', 'green'"),
        ({"red": {"price": 1.0}}, ValueError, "arm_features must have a mapping with the features of arm 'green', got"),
        ({**ARMS, "green": {"price": "3"}}, TypeError, "arm 'green': feature 'price' must be a finite number, got '3'"),
        ({**ARMS, "green": {"prize": 3}}, ValueError, "arm 'green': feature 'price' is required"),
        ({**ARMS, "green": {"price": 3, "cost": 3}}, ValueError, "arm 'green': unknown feature 'cost'."),
    ],
)
def test_bad_features_name_the_arm(arms: Any, kind: type[Exception], message: str) -> None:
    kinds = {**KINDS, "brand": "category"}
    with pytest.raises(kind) as caught:
        ArmFeatures.of(["red", "green"], arms, kinds)
    assert message in str(caught.value)
    both = ArmFeatures.of(["red", "green"], ARMS, kinds)
    with pytest.raises(ValueError, match="arm 'blue': feature 'price' is required"):
        both.add("blue", {})
    assert len(both.vectors) == 2


@pytest.mark.parametrize(
    ("price", "kind", "message"),
    [
        (None, ValueError, "arm_features of arm 'red' must have a value of feature 'price', because the first arm"),
        (math.nan, ValueError, "arm 'red': feature 'price' must be a finite number, got nan"),
    ],
)
def test_bad_features_of_the_first_arm_name_it(price: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        ArmFeatures.of(["red", "green"], {**ARMS, "red": {"price": price, "brand": "x"}})
    assert message in str(caught.value)


def test_interactions_must_be_a_boolean() -> None:
    with pytest.raises(TypeError, match="interactions must be True or False, got 1"):
        ArmFeatures.of(["red", "green"], ARMS, KINDS, interactions=1)  # type: ignore[arg-type]
