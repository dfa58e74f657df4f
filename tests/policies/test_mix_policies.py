"""Policies with a mixture of memories against a literal implementation, interpreted, on the same randomness."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from driver import Driver
from dynabandit.policies.base import Policy, PolicyState, Reward, Step
from dynabandit.policies.choose_arm import make_choose, new_workspace
from oracles import mix_ts

TOLERANCE = 1e-9


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False, late: int = 0):
    """Compare the shapes of every arm and the choice at each step; up to `late` steps pass before a reward arrives."""
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]], -(-steps // 4), axis=0)[:steps]
    values = means if fractions else (drawn.random((steps, arms)) < means).astype(float)
    arrivals = drawn.integers(0, late + 1, steps)
    driver, rewards = Driver(policy, arms, seed), []
    on_their_way: list[tuple[int, int]] = []  # (step of the decision, arm)

    def expected(_state: PolicyState, arm: int, step: Step, _params: Any) -> tuple[float, float]:
        return mix_ts.posterior(beliefs, rewards, arm, step.number, driver.last_played, policy)

    choose = make_choose(driver.functions._replace(posterior=expected))
    space = new_workspace(driver.functions, arms, 1)
    for number in range(1, steps + 1):
        beliefs, step = mix_ts.learnt(rewards, arms, policy), driver.step(number)
        for arm in range(arms):
            found = driver.functions.posterior(driver.state, arm, step, driver.params)
            np.testing.assert_allclose(found, expected(driver.state, arm, step, None), rtol=TOLERANCE)
        arm = driver.choose(number)
        assert arm == choose(driver.state, number, driver.params, space, driver.random)
        driver.last_played[arm] = number
        on_their_way.append((number, arm))
        for decision, played in [(d, a) for d, a in on_their_way if d + arrivals[d - 1] == number]:
            on_their_way.remove((decision, played))
            rewards.append((decision, played, float(values[decision - 1, played])))
            driver.functions.learn(driver.state, played, Reward(rewards[-1][2], decision, number), driver.params)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_posterior_and_choice_of_mix_ts_is_that_of_the_oracle(data: st.DataObject) -> None:
    parameters = data.draw(
        st.fixed_dictionaries(
            {
                "strength": st.sampled_from([0.5, 2.0, 7.0]),
                "share": st.sampled_from([0.0, 0.01, 0.5, 1.0]),
                "shared_share": st.sampled_from([0.0, 0.003, 0.4, 1.0]),
                "sharpness": st.sampled_from([0.7, 1.0, 3.0]),
                "surplus": st.sampled_from([0.0, 0.05, 2.0]),
                "idle": st.sampled_from([0.0, 0.2, 5.0]),
            }
        )
    )
    arms, late, seed = data.draw(st.integers(2, 5)), data.draw(st.sampled_from([0, 3, 9])), data.draw(st.integers(0))
    fractions = data.draw(st.booleans())
    agrees_with_oracle(db.policy("mix-ts", **parameters), arms, 50, seed % 2**32, fractions=fractions, late=late)


@pytest.mark.parametrize(("arms", "steps", "late"), [(3, 130, 0), (12, 60, 5)])
def test_longer_runs_and_pruned_draws_of_mix_ts_agree_with_the_oracle(arms: int, steps: int, late: int) -> None:
    agrees_with_oracle(db.policy("mix-ts"), arms, steps, seed=42, late=late)
