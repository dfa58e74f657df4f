"""The baselines with upper confidence bounds against literal implementations of their papers.

The oracle follows the history that the compiled policy made. Scores are compared to 1e-7 as in test_against_oracle.py;
two scores closer than that count as a tie.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.streams import EXPLORE, EXPLORED_ARM, uniform
from dynabandit.policies.base import Policy
from oracles import upper_bounds
from tools.driver import Driver

TOLERANCE = 1e-7
BASELINES = list(upper_bounds.BURN_IN)
EXPECTED = {"changes": st.sampled_from([1, 3]), "horizon": st.sampled_from([100, 5000])}
TEST = {
    "restart": st.sampled_from(["local", "global"]),
    "scale": st.sampled_from([0.0, 0.3, 1.0, 50.0]),
    "delta": st.sampled_from([0.001, 0.3, 1.0]),
    "every": st.sampled_from([1, 3, 10]),
    "spacing": st.sampled_from([1, 2, 10]),
    "capacity": st.sampled_from([2, 4, 8, 128]),
}
OWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "kl-ucb": {"loglog": st.sampled_from([0.0, 0.5, 3.0])},
    "d-kl-ucb": EXPECTED | {"discount": st.sampled_from([None, 0.5, 0.9, 0.999, 1.0])},
    "sw-kl-ucb": EXPECTED | {"window": st.sampled_from([None, 1, 2, 7, 1000])},
    "glr-kl-ucb": EXPECTED | TEST | {"schedule": st.sampled_from(["growing", "constant"])},
    "glr-kl-ucb-diminishing": {"horizon": EXPECTED["horizon"]} | TEST,
    "cusum-ucb": EXPECTED
    | {
        "drift": st.sampled_from([0.0, 0.05, 0.3]),
        "reference_plays": st.sampled_from([1, 4, 10]),
        "threshold": st.sampled_from([None, 0.53, 2.03]),  # sums of tenths do not reach it by rounding
        "exploration": st.sampled_from([None, 0.0, 0.3, 1.0]),
    },
    "m-ucb": EXPECTED
    | {
        "window": st.sampled_from([2, 4, 10, 800]),
        "threshold": st.sampled_from([None, 0.5, 1.0, 3.0]),
        "exploration": st.sampled_from([None, 0.0, 0.2, 1.0]),
    },
    "oracle-restart": {"index": st.sampled_from(["kl-ucb", "ucb"]), "tolerance": st.sampled_from([0.0, 0.3])},
    "aff-kl-ucb": {
        "step_size": st.sampled_from([0.001, 0.01, 0.2, "variance-scaled"]),
        "floor": st.sampled_from([0.0, 0.6]),
        "confidence": st.sampled_from([0.001, 0.05, 1.0]),
    },
}

OWN["cusum-kl-ucb"] = OWN["cusum-ucb"]
OWN["m-kl-ucb"] = OWN["m-ucb"]


def path_of(arms: int, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means in four pieces, the third all 0, one arm of the fourth as in the first; and rewards drawn from them."""
    drawn = np.random.default_rng(seed)
    pieces = drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]]
    pieces[3, 0] = pieces[0, 0]
    means = np.repeat(pieces, -(-steps // 4), axis=0)[:steps]
    return means, (drawn.random((steps, arms)) < means).astype(float)


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int) -> None:
    means, rewards = path_of(arms, steps, seed)
    driver = Driver(policy, arms, seed, interpreted=False)
    given_parameters = {name: value for name, value in policy.parameters.items() if value is not None}
    history: list[tuple[int, float]] = []
    for step, arm in driver.play(rewards, means.tolist()):
        if step > policy.burn_in * arms:
            check_step(driver, history, arm, given_parameters, means[:step].tolist())
        history.append((arm, float(rewards[step - 1, arm])))


def check_step(
    driver: Driver, history: list[tuple[int, float]], arm: int, given_parameters: dict[str, Any], means: Any
) -> None:
    name, arms, step = driver.policy.name, driver.arms, len(history) + 1
    forced = upper_bounds.FORCED[name](history, arms, given_parameters) if name in upper_bounds.FORCED else None
    if forced is not None:
        assert arm == forced
        return
    if name == "oracle-restart":
        expected = upper_bounds.oracle_restart(history, arms, given_parameters, means)
    else:
        expected = upper_bounds.SCORES[name](history, arms, given_parameters)
    np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
    if name.startswith("cusum") and uniform(driver.random, EXPLORE, step, 0) < upper_bounds.cusum_exploration(
        given_parameters
    ):
        assert arm == int(uniform(driver.random, EXPLORED_ARM, step, 0) * arms)
        return
    first = max(expected)
    assert expected[arm] == first or first - expected[arm] < TOLERANCE


@pytest.mark.parametrize("name", BASELINES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_score_and_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(st.fixed_dictionaries(OWN[name])))
    arms, seed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 2**32))
    steps = 40 if name == "aff-kl-ucb" else 80  # its oracle is slow
    agrees_with_oracle(policy, arms, steps, seed)


@pytest.mark.parametrize("name", BASELINES)
def test_with_the_parameters_of_the_paper_a_long_run_agrees_with_the_oracle(name: str) -> None:
    tuned = db.policy(name).tuned(switches=3, horizon=300)
    agrees_with_oracle(tuned, arms=3, steps=100 if name == "aff-kl-ucb" else 300, seed=42)


@pytest.mark.parametrize("name", BASELINES)
def test_burn_in_is_that_of_the_oracle(name: str) -> None:
    assert db.policy(name).burn_in == upper_bounds.BURN_IN[name]
