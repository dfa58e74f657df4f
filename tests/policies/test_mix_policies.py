"""Policies with a mixture of memories against a literal implementation, interpreted, on the same randomness."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import dynabandit as db
from dynabandit.choosing.choose_arm import make_choose, new_workspace
from dynabandit.core import precision
from dynabandit.policies import resolved
from dynabandit.policies.base import Policy, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.memories import mixture
from dynabandit.policies.memories.mixture import COUNT, MEAN, SIZE, TOTAL, WEIGHT
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules.ucb import UCB
from dynabandit.validation import REWARD_DOMAINS
from oracles import mix_ts
from tools.driver import Driver
from tools.interpreted import interpreted

TOLERANCE = 1e-9


def agrees_with_oracle(
    policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False, late: int = 0
) -> None:
    """Compare the shapes of every arm and the choice at each step; up to `late` steps pass before a reward arrives."""
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]], -(-steps // 4), axis=0)[:steps]
    values = means if fractions else (drawn.random((steps, arms)) < means).astype(float)
    arrivals = drawn.integers(0, late + 1, steps)
    driver = Driver(policy, arms, seed)
    rewards: list[tuple[int, int, float]] = []  # (step of the decision, arm, reward)
    on_their_way: list[tuple[int, int]] = []  # (step of the decision, arm)

    def expected(_state: PolicyState, arm: int, step: Step, _params: Any) -> tuple[float, float]:
        return mix_ts.posterior(beliefs, rewards, arm, step.number, driver.last_played, policy)

    choose = make_choose(driver.functions._replace(posterior=expected))
    space = new_workspace(driver.functions, arms, 1)
    for number in range(1, steps + 1):
        beliefs, step = mix_ts.learnt(rewards, arms, policy)[0], driver.step(number)
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


@settings(max_examples=10, deadline=None, derandomize=True)
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
    agrees_with_oracle(db.policy("mix-ts", **parameters), arms, 40, seed % 2**32, fractions=fractions, late=late)


@pytest.mark.parametrize(("arms", "steps", "late"), [(3, 100, 0), (12, 60, 5)])
def test_longer_runs_and_pruned_draws_of_mix_ts_agree_with_the_oracle(arms: int, steps: int, late: int) -> None:
    agrees_with_oracle(db.policy("mix-ts"), arms, steps, seed=42, late=late)


def test_single_precision_has_the_size_of_an_arm_whose_mean_is_near_one() -> None:
    """The variance of the mixture is not computed as a small difference of two numbers near 1."""
    driver = Driver(db.policy("mix-ts", share=0), arms=2)
    driver.memory[TOTAL:COUNT, 0], driver.memory[COUNT:WEIGHT, 0] = 9990.0, 10_000.0
    driver.memory[WEIGHT:MEAN, 0] = [*[1e-6] * 7, 1.0 - 7e-6]
    driver.shared[:2] = 999.0, 1000.0
    single = driver.state._replace(memory=driver.memory.astype(np.float32), shared=driver.shared.astype(np.float32))
    memory: Any = type(driver.params.memory)(*map(np.float32, driver.params.memory))
    params = driver.params._replace(memory=memory)
    driver.functions.learn(driver.state, 0, Reward(1.0, 1, 1), driver.params)
    one: Any = np.float32(1.0)
    precision.single(driver.functions.learn)(single, 0, Reward(one, 1, 1), params)
    assert driver.memory[SIZE, 0] > 5000
    assert single.memory[SIZE, 0] == pytest.approx(driver.memory[SIZE, 0], rel=0.01)


def test_a_strong_prior_takes_no_digits_from_the_size_of_an_arm() -> None:
    driver = Driver(db.policy("mix-ts", strength=1e6), arms=2).feed(0, 1.0)  # all memories have one reward
    found = driver.policy.belief(driver.memory[:, 0], driver.shared)
    assert found.effective_size == pytest.approx(1e6 + 1, rel=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, 7.0, 30.0, 31.0, 200.0])
@pytest.mark.parametrize(("share", "size"), [(0.5, 2.0), (1.1, 9.0), (1.0, 1e6)])
def test_the_likelihood_of_a_count_is_relative_to_a_poisson_law_with_the_mean_of_the_count(
    value: float, share: float, size: float
) -> None:
    """Up to 30 it is negative binomial; above, the law is normal, and so is the Poisson law."""
    mean = share * max(value, 1.0)
    if value <= 30:
        expected = stats.nbinom.pmf(value, mean * size, size / (size + 1)) / stats.poisson.pmf(value, value)
    else:
        law, reference = stats.norm(mean, math.sqrt(mean * (1 + 1 / size))), stats.norm(value, math.sqrt(value))
        expected = law.pdf(value) / reference.pdf(value)
    assert mixture.poisson_likelihood(value, mean, size, 0.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("value", "exponent"), [(3.0, -0.5), (32.7, -59.405), (-300.0, -60.0)])
def test_the_exponent_of_a_normal_likelihood_is_at_least_minus_60(value: float, exponent: float) -> None:
    likelihood = mixture.normal_likelihood(value, 0.0, 2.0, 6.0)
    assert math.log(likelihood) == pytest.approx(exponent - 0.5 * math.log(1.5), abs=1e-12)


def test_mix_ts_believes_the_mean_and_the_size_of_its_mixture() -> None:
    policy = db.policy("mix-ts", strength=3, idle=0)
    driver, rewards = Driver(policy, arms=3), [(1, 0, 1.0), (2, 0, 0.5), (3, 1, 1.0), (4, 0, 0.0)]
    assert driver.shared.tolist() == [0.0, 0.0, *[1 / 8] * 8]
    for step, arm, reward in rewards:
        driver.learn(arm, step, reward)
    oracle, _ = mix_ts.learnt(rewards, 3, policy)
    for arm in (0, 1):
        mean, size, rate = oracle[arm]
        found = policy.belief(driver.memory[:, arm], driver.shared)
        assert found == pytest.approx((mean, mean * (1 - mean), 1 - rate, size), rel=1e-12)
        assert all(type(part) is float for part in found)
    mean = mix_ts.mean_of_all(rewards)  # of an arm without rewards
    assert policy.belief(driver.memory[:, 2], driver.shared) == pytest.approx((mean, mean * (1 - mean), 1.0, 3.0))


def history_and_beliefs(name: str, values: list[tuple[int, float]]) -> list[Belief]:
    driver = Driver(db.policy(name), arms=3)
    for step, (arm, value) in enumerate(values, start=1):
        driver.learn(arm, step, value)
    return [driver.policy.belief(driver.memory[:, arm], driver.shared) for arm in range(3)]


def test_mix_normal_ts_and_mix_poisson_ts_believe_the_mean_and_the_size_of_their_mixtures() -> None:
    values = [(0, 7.0), (0, 5.0), (1, 9.0), (0, 6.0)]  # the third arm is never played
    counts = [(step, arm, value) for step, (arm, value) in enumerate(values, start=1)]
    normal, poisson = db.policy("mix-normal-ts"), db.policy("mix-poisson-ts")
    arms, noise = mix_ts.learnt([(step, arm, value - 7) for step, arm, value in counts], 3, normal, mix_ts.NORMAL)
    found = history_and_beliefs("mix-normal-ts", values)
    for arm in (0, 1):
        mean, size, rate = arms[arm]
        assert found[arm] == pytest.approx((7 + mean, noise.of(arm), 1 - rate, size), rel=1e-9)
    assert found[2] == pytest.approx((math.nan, 0.0, 1.0, 0.0), nan_ok=True)
    arms, _ = mix_ts.learnt(counts, 3, poisson, mix_ts.POISSON)
    found = history_and_beliefs("mix-poisson-ts", values)
    for arm in (0, 1):
        mean, size, rate = arms[arm]
        assert found[arm] == pytest.approx((mean, mean, 1 - rate, size), rel=1e-9)
    usual = mix_ts.mean_of_all(counts, mix_ts.POISSON)
    assert found[2] == pytest.approx((usual, usual, 1.0, 0.5))


@pytest.mark.parametrize(("unit", "last"), [(8.0, 0.0), (0.08, 0.05)])
def test_mix_revenue_ts_believes_the_conversion_times_the_mean_of_log_normal_amounts(unit: float, last: float) -> None:
    values = [(0, unit), (0, 0.0), (0, unit / 4), (1, last)]
    policy = db.policy("mix-revenue-ts")
    converted = [(step, arm, float(value > 0)) for step, (arm, value) in enumerate(values, start=1)]
    logs = [(step, arm, math.log(v / unit) if v > 0 else None) for step, (arm, v) in enumerate(values, start=1)]
    conversions, _ = mix_ts.learnt(converted, 3, policy)
    amounts, noise = mix_ts.learnt(logs, 3, policy, mix_ts.NORMAL)
    found = history_and_beliefs("mix-revenue-ts", values)
    for arm in range(3):
        p, size, rate = conversions.get(arm, (mix_ts.mean_of_all(converted), 0.5, 0.0))
        center = amounts[arm].mean if arm in amounts else mix_ts.mean_of_all(logs, mix_ts.NORMAL)
        mean = unit * p * math.exp(center + noise.of(arm) / 2)
        second = unit**2 * p * math.exp(2 * center + 2 * noise.of(arm))
        assert found[arm] == pytest.approx((mean, second - mean**2, 1 - rate, size), rel=1e-9)
    nothing, _, unknown = history_and_beliefs("mix-revenue-ts", [(0, 0.0)])
    assert (nothing.mean, nothing.variance) == (0.0, 0.0)
    assert math.isnan(unknown.mean)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("mix-normal-ts", db.reward_law("normal")),
        ("mix-poisson-ts", db.reward_law("counts")),
        ("mix-revenue-ts", db.reward_law("revenue", conversion=0.9, log_deviation=0.5)),
    ],
)
def test_a_mixture_of_memories_follows_a_change_of_the_best_arm(name: str, law: Any) -> None:
    environment = db.environment("piecewise", starts=[1, 101], means=[[0.9, 0.2], [0.2, 0.9]], rewards=law)
    with interpreted():
        run = db.simulate(name, environment, horizon=200, replications=3, seed=4, keep=("arms",))
    assert run.arms is not None
    assert (run.arms[:, 50:100] == 0).mean() > 0.7
    assert (run.arms[:, 170:] == 1).mean() > 0.5


@pytest.mark.parametrize(
    ("rewards", "name"),
    [
        ("bernoulli", "mix-ts"),
        ("bounded", "mix-ts"),
        ("counts", "mix-poisson-ts"),
        ("revenue", "mix-revenue-ts"),
        ("normal", "mix-normal-ts"),
    ],
)
def test_every_reward_law_has_a_recommended_policy(rewards: str, name: str) -> None:
    assert resolved("auto", REWARD_DOMAINS[rewards]) == name


@dataclass(frozen=True, kw_only=True)
class MixUCB(Preset):
    """A bound of the mean of a mixture.

    Examples
    --------
    """

    name = "mix-ucb"
    made_of = mixture.Mixture, UCB


def test_a_bound_of_a_mixture_counts_its_size_which_shrinks_while_the_arm_is_idle() -> None:
    driver = Driver(db.policy(MixUCB, idle=3), arms=2).feed(0, 1.0, 0.0, 1.0, 1.0)
    driver.last_played[0] = 4
    mean, size, rate = driver.memory[[MEAN, SIZE, mixture.RATE], 0]
    for number in (5, 9):
        left = max(size / (1 + 3 / 2 * rate * (number - 5)), 1.0)
        found = driver.functions.score(driver.state, 0, driver.step(number), driver.params)
        assert found == pytest.approx(mean + math.sqrt(2 * math.log(number - 1) / left), rel=1e-12)
    assert not driver.functions.static_index
