"""Choices by the values of features, as the live page shows them."""

import json
from typing import Any

import numpy as np

from dynabandit.features import FeatureEncoder
from dynabandit.service.projections.recent_contexts import MAX_DECISIONS, RecentContexts

FEATURES = FeatureEncoder(
    {"hour": "number", "day": "number", "country": "category", "taste": {"kind": "vector", "size": 2}}
).features


def values(recent: RecentContexts, name: str) -> list[tuple[Any, ...]]:
    return [tuple(one.values()) for one in recent.by_feature(FEATURES)[name]]


def test_numbers_are_grouped_and_rare_categories_combined() -> None:
    recent = RecentContexts()
    for step in range(30):
        recent.add(
            step, step // 10, {"hour": float(step), "day": step % 3, "country": f"c{min(step, 7)}", "taste": [1, 2]}
        )
    assert [one[:3] for one in values(recent, "hour")] == [
        ("below 10", 10, {0: 1.0}),
        ("10 to 20", 11, {1: 10 / 11, 2: 1 / 11}),
        ("above 20", 9, {2: 1.0}),
    ]
    assert [one[:2] for one in values(recent, "day")] == [("0", 10), ("1", 10), ("2", 10)]
    countries = [one[:2] for one in values(recent, "country")]
    assert countries[0] == ("c7", 23)
    assert countries[-1] == ("other values", 3)
    assert len(countries) == 6
    assert set(recent.by_feature(FEATURES)) == {"hour", "day", "country"}


def test_rewards_are_of_the_decisions_that_are_kept() -> None:
    recent = RecentContexts()
    rng = np.random.default_rng(1)
    for step in range(MAX_DECISIONS + 10):
        recent.add(step, int(rng.integers(2)), {"country": "NO" if step % 2 else None})
    for step in (3, MAX_DECISIONS, MAX_DECISIONS + 1, MAX_DECISIONS + 3):
        recent.reward(step, float(step % 4))  # that of step 3 is not kept
    norway, missing = values(recent, "country")
    assert (norway[0], norway[1], norway[3]) == ("NO", MAX_DECISIONS // 2, (1.0 + 3.0) / 2)
    assert (missing[0], missing[1], missing[3]) == ("missing", MAX_DECISIONS // 2, 0.0)
    again = RecentContexts.from_plain(json.loads(json.dumps(recent.to_plain())))
    assert again.by_feature(FEATURES) == recent.by_feature(FEATURES)
