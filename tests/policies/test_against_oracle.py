"""Every policy against the literal transcription of its definition, on the same rewards and randomness.

The oracle follows the history that the compiled policy made. At every step after the burn-in, every arm's score must
agree, and the chosen arm must be one with the oracle's largest score. Scores are compared to a relative 1e-7, because
the oracle adds the paper's sums in another order. Two scores closer than that count as a tie. With so few arms Thompson
sampling draws every arm; tests/core/test_largest_beta_draw.py shows that the pruned argmax has the same law. That
interpreted policies make the same choices is one of the checks (tests/test_checks.py).
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.draws import beta
from dynabandit.core.streams import EXPLORE, EXPLORED_ARM, SCORE, TIE, uniform
from dynabandit.policies.base import Policy
from oracles import paper as oracle
from tools.driver import Driver

TOLERANCE = 1e-7
PAPER = [name for name in db.policies.POLICIES if name in oracle.BURN_IN]
GREEDY = ("eps-greedy", "aff-d-greedy")


def parameters_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    step_size = st.sampled_from([0.0001, 0.001, 0.01, 0.2, "variance-scaled"])
    adaptive = {"step_size": step_size, "floor": st.sampled_from([0.0, 0.6])}
    prior = {"prior": st.sampled_from([(2.0, 2.0), (1.0, 3.0), (0.5, 0.5)])}
    memory = {"memory": st.sampled_from([1.0, 5.0, 7.5, 1000.0])}
    own: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "eps-greedy": {"epsilon": st.sampled_from([0.0, 0.3, 1.0])},
        "ucb": {},
        "ts": prior,
        "ots": prior,
        "d-ucb": {"discount": st.sampled_from([0.5, 0.9, 0.999, 1.0])},
        "sw-ucb": {"window": st.sampled_from([1, 2, 7, 1000])},
        "dts": prior | memory,
        "odts": prior | memory,
        "aff-d-greedy": adaptive | {"threshold": st.sampled_from([None, 0.0005, 1.0])},
        "aff-ucb1": adaptive | {"burn_in": st.sampled_from([1, 3])},
        "aff-ucb2": adaptive,
        "aff-ucb2-growing": adaptive,
        "aff-ts": adaptive | prior,
        "aff-ots": adaptive | prior,
        "aff-dts1": adaptive | prior | memory | {"burn_in": st.sampled_from([1, 3])},
        "aff-dts2": adaptive | prior | memory,
    }
    return st.fixed_dictionaries(own[name])


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int) -> None:
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]], -(-steps // 4), axis=0)[:steps]
    rewards = (drawn.random((steps, arms)) < means).astype(float)
    driver = Driver(policy, arms, seed, interpreted=False)
    history: list[tuple[int, float]] = []
    for step, arm in driver.play(rewards):
        if step > policy.burn_in * arms:

            def draw(a: float, b: float, of: int, step: int = step) -> float:
                return beta(a, b, driver.random, SCORE, step, of)

            expected = oracle.index(policy.name, history, arms, given_parameters(policy), draw)
            found = driver.scores if policy.functions.posterior is None else driver.drawn
            np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
            first = max(expected)
            best = [a for a in range(arms) if expected[a] == first or first - expected[a] < TOLERANCE]
            if policy.name in GREEDY:
                assert arm == greedy_choice(policy, driver, history, best, step)
            else:
                assert arm in best
        history.append((arm, float(rewards[step - 1, arm])))


def given_parameters(policy: Policy) -> dict[str, Any]:
    return {name: value for name, value in policy.parameters.items() if value is not None}


def greedy_choice(policy: Policy, driver: Driver, history: list[tuple[int, float]], best: list[int], step: int) -> int:
    """Return the arm of a greedy policy: a best one, unless its own rule or a coin sends it elsewhere."""
    tied = np.flatnonzero(driver.scores == driver.scores.max())
    leader = int(tied[int(uniform(driver.random, TIE, step, 0) * len(tied))])
    assert leader in best
    if policy.name == "eps-greedy":
        explores = uniform(driver.random, EXPLORE, step, 0) < policy.parameters["epsilon"]
    else:
        explores = oracle.explores(history, driver.arms, given_parameters(policy), leader)
    return int(uniform(driver.random, EXPLORED_ARM, step, 0) * driver.arms) if explores else leader


@pytest.mark.parametrize("name", PAPER)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_score_and_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(parameters_of(name)))
    arms, seed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 2**32))
    agrees_with_oracle(policy, arms, steps=60, seed=seed)


@pytest.mark.parametrize("name", PAPER)
def test_policy_agrees_with_its_oracle_on_a_long_run(name: str) -> None:
    discount, window = oracle.tuned_discount(3, 150), oracle.tuned_window(3, 150)
    told: dict[str, dict[str, Any]] = {"d-ucb": {"discount": discount}, "sw-ucb": {"window": window}}
    tuned = db.policy(name, **told.get(name, {}))
    agrees_with_oracle(tuned, arms=3, steps=150, seed=42)


@pytest.mark.parametrize("name", PAPER)
def test_burn_in_is_that_of_the_notes(name: str) -> None:
    assert db.policy(name).burn_in == oracle.burn_in(name)


def test_bernoulli_loss_agrees_with_the_oracle_inside_a_policy() -> None:
    agrees_with_oracle(db.policy("aff-ts", loss="bernoulli", step_size=0.01), 3, 80, seed=3)


def test_a_long_idle_arm_of_d_ucb_keeps_its_order_past_the_underflow_of_its_count() -> None:
    # 0.5^1100 underflows. The arm that waited longest must come first, and nothing may become NaN.
    policy = db.policy("d-ucb", discount=0.5)
    driver = Driver(policy, 3, seed=1, interpreted=False)
    for arm in (0, 1, *[2] * 1500):
        driver.feed(arm, 1.0)
    driver.choose(1503)
    assert not np.isnan(driver.scores).any()
    assert driver.scores[0] >= driver.scores[1] > driver.scores[2]
    assert math.isfinite(driver.scores[2])
