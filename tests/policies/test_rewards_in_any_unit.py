"""The policies for normal rewards, counts, revenue and heavy tails: against their oracles, and in other units."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.draws import beta, gamma
from dynabandit.core.streams import SCORE, SECOND, Stream, normal_pair, words
from dynabandit.policies.base import Policy
from dynabandit.policies.memories.adaptive import LOG_ZERO
from dynabandit.policies.memories.mixture import poisson_likelihood
from oracles import aff_normal, aff_poisson_ts, aff_revenue_ts, mix_ts, normal_ts, robust_ucb
from tools.driver import Driver

TOLERANCE = 1e-7
History = list[tuple[int, float]]
Score = Callable[[Any, History, int, int, int, Stream], float]


def noise(role: int, step: int, arm: int, source: Stream) -> float:
    return float(normal_pair(words(source, role, step, arm, 0))[0])


def normal_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    center, scale, freedom = normal_ts.posterior(history, arm)
    number = noise(SECOND, step, arm, source)
    if math.isinf(freedom):
        return center + scale * number
    return center + scale * number / math.sqrt(2 * gamma(freedom / 2, source, SCORE, step, arm) / freedom)


def aff_normal_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    mean, variance = aff_normal.law(history, arm, arms, policy.step_size, policy.floor)
    return mean + math.sqrt(variance) * noise(SCORE, step, arm, source)


def aff_normal_ucb_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    return aff_normal.upper_bound(history, arm, arms, policy.step_size, policy.floor, policy.confidence)


def aff_poisson_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    shape, rate = aff_poisson_ts.posterior(history, arm, arms, policy.step_size, policy.floor, policy.prior)
    return gamma(shape, source, SCORE, step, arm) / rate


def aff_revenue_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    laws = aff_revenue_ts.laws(history, arm, arms, policy.step_size, policy.floor, policy.prior_weight)
    conversion = beta(laws.a, laws.b, source, SCORE, step, arm)
    return conversion * math.exp(laws.center + laws.deviation * noise(SECOND, step, arm, source) + laws.variance / 2)


def robust_ucb_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    return robust_ucb.score(history, arm, policy.window, policy.confidence, policy.exploration)


mix_learnt = functools.lru_cache(maxsize=2)(mix_ts.learnt)  # all arms of a step need the same


def mix_estimate(
    policy: Any, history: Sequence[tuple[int, float | None]], arm: int, arms: int, law: mix_ts.Law
) -> tuple[float, float, float]:
    """Mean, size of the draw and noise of an arm; the reward None is a play without an amount."""
    rewards = tuple((step, played, reward) for step, (played, reward) in enumerate(history, start=1))
    beliefs, errors = mix_learnt(rewards, arms, policy, law)
    step = len(history) + 1
    idle = step - 1 - max((decided for decided, played, _ in rewards if played == arm), default=0)
    prior_mean = mix_ts.mean_of_all(rewards, law)
    return *mix_ts.estimate(beliefs.get(arm), prior_mean, step, idle, arms, policy), errors.of(arm)


def mix_normal_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    first = history[0][1] if history else 0.0
    mean, size, variance = mix_estimate(policy, [(one, y - first) for one, y in history], arm, arms, mix_ts.NORMAL)
    return max(mean + math.sqrt(variance / size) * noise(SCORE, step, arm, source), mean)


def mix_poisson_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    mean, size, _ = mix_estimate(policy, history, arm, arms, mix_ts.POISSON)
    return max(gamma(size * mean, source, SCORE, step, arm) / size, mean)


def mix_revenue_ts_score(policy: Any, history: History, arm: int, arms: int, step: int, source: Stream) -> float:
    converted = [(one, float(y > 0)) for one, y in history]
    conversion, weight, _ = mix_estimate(policy, converted, arm, arms, mix_ts.BERNOULLI)
    first = next((y for _, y in history if y > 0), 1.0)
    amounts = [(one, math.log(y / first) if y > 0 else None) for one, y in history]
    mean, size, variance = mix_estimate(policy, amounts, arm, arms, mix_ts.NORMAL)
    p = beta(weight * conversion, weight * (1 - conversion), source, SCORE, step, arm)
    drawn = mean + math.sqrt(variance / size) * noise(SECOND, step, arm, source)
    return max(p * math.exp(drawn + variance / 2), conversion * math.exp(mean + variance / 2))


ORACLES: dict[str, Score] = {
    "mix-normal-ts": mix_normal_ts_score,
    "mix-poisson-ts": mix_poisson_ts_score,
    "mix-revenue-ts": mix_revenue_ts_score,
    "normal-ts": normal_ts_score,
    "aff-normal-ts": aff_normal_ts_score,
    "aff-normal-ucb": aff_normal_ucb_score,
    "aff-poisson-ts": aff_poisson_ts_score,
    "aff-revenue-ts": aff_revenue_ts_score,
    "robust-ucb": robust_ucb_score,
}
STEP_SIZES = st.sampled_from([0.0, 0.001, 0.05])
AFF = {"step_size": STEP_SIZES, "floor": st.sampled_from([0.0, 0.9]), "burn_in": st.sampled_from([0, 2])}
PRIORS = st.sampled_from([(1.0, 1.0), (0.5, 0.1), (3.0, 2.0)])
MIX = {
    "strength": st.sampled_from([0.5, 2.0]),
    "share": st.sampled_from([0.005, 0.3]),
    "idle": st.sampled_from([0.0, 0.2, 5.0]),
    "surplus": st.sampled_from([0.0, 0.1]),
    "burn_in": st.sampled_from([0, 2]),
}
PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "mix-normal-ts": MIX,
    "mix-poisson-ts": MIX,
    "mix-revenue-ts": MIX,
    "normal-ts": {"burn_in": st.sampled_from([0, 3])},
    "aff-normal-ts": AFF,
    "aff-normal-ucb": {**AFF, "confidence": st.sampled_from([0.01, 0.3])},
    "aff-poisson-ts": {**AFF, "prior": PRIORS},
    "aff-revenue-ts": {**AFF, "prior_weight": st.sampled_from([0.1, 2.0])},
    "robust-ucb": {
        "window": st.sampled_from([1, 3, 13, 100]),
        "confidence": st.sampled_from([0.001, 0.5]),
        "exploration": st.sampled_from([0.0, 1.0, 4.0]),
        "burn_in": st.sampled_from([0, 2]),
    },
}
each_policy = pytest.mark.parametrize("name", ORACLES)
each_policy_without_a_unit = pytest.mark.parametrize("name", [name for name in ORACLES if "poisson" not in name])


def rewards_for(name: str, steps: int, arms: int, seed: int) -> np.ndarray:
    """Rewards of the policy's domain whose mean jumps; those of the last arm are all equal for a while."""
    drawn = np.random.default_rng(seed)
    level = np.repeat(drawn.uniform(1.0, 8.0, (3, arms)), -(-steps // 3), axis=0)[:steps]
    if "poisson" in name:
        rewards = drawn.poisson(level).astype(float)
    elif "revenue" in name:
        rewards = np.where(drawn.random((steps, arms)) < 0.4, np.exp(drawn.normal(level)), 0.0)
    else:
        rewards = 1000.0 * drawn.normal(level - 4.0) ** 3
    rewards[: steps // 2, -1] = rewards[0, -1]
    return rewards


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int) -> None:
    rewards = rewards_for(policy.name, steps, arms, seed)
    driver = Driver(policy, arms, seed)
    history: History = []
    for step, arm in driver.play(rewards):
        if step > policy.burn_in * arms:
            score = ORACLES[policy.name]
            expected = [score(policy, history, one, arms, step, driver.random) for one in range(arms)]
            size = max(abs(value) for value in expected)
            np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE * size)
            assert max(expected) - expected[arm] <= TOLERANCE * size
        history.append((arm, float(rewards[step - 1, arm])))


@each_policy
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_score_and_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(st.fixed_dictionaries(PARAMETERS[name])))
    agrees_with_oracle(policy, data.draw(st.integers(2, 4)), 36, data.draw(st.integers(0, 2**32)))


@each_policy_without_a_unit
def test_all_rewards_times_a_power_of_two_give_the_same_choices_bit_for_bit(name: str) -> None:
    rewards = rewards_for(name, 90, 3, seed=5)
    runs = {}
    for factor in (1.0, 2.0**-40, 2.0**70):
        driver = Driver(db.policy(name), arms=3, seed=2)
        scores = [
            (arm, driver.scores / (1.0 if "revenue" in name else factor)) for _, arm in driver.play(rewards * factor)
        ]
        runs[factor] = [(arm, score.tobytes()) for arm, score in scores]
    assert runs[1.0] == runs[2.0**-40] == runs[2.0**70]


@each_policy_without_a_unit
def test_all_rewards_times_a_constant_give_the_same_choices(name: str) -> None:
    rewards = rewards_for(name, 90, 3, seed=6)
    chosen = [[arm for _, arm in Driver(db.policy(name), arms=3, seed=3).play(rewards * f)] for f in (1.0, 0.01, 1e30)]
    assert chosen[0] == chosen[1] == chosen[2]


def test_all_rewards_of_mix_normal_ts_plus_a_constant_give_the_same_choices() -> None:
    rewards = rewards_for("mix-normal-ts", 90, 3, seed=6).round()  # so that a shift rounds nothing
    chosen = [
        [arm for _, arm in Driver(db.policy("mix-normal-ts"), arms=3, seed=3).play(rewards + shift)]
        for shift in (0.0, 1e6, -(2.0**40))
    ]
    assert chosen[0] == chosen[1] == chosen[2]


@pytest.mark.parametrize("size", [2.0, 20.0, 1e6])
def test_large_counts_have_the_normal_likelihood_of_the_same_moments(size: float) -> None:
    """Relative to a memory that predicts the count, the two forms agree where one takes over from the other."""
    for mean in (25.0, 30.0, 36.0):
        ratios = [poisson_likelihood(y, mean, size, 0.0) / poisson_likelihood(y, y, size, 0.0) for y in (30.0, 31.0)]
        exact = mix_ts.negative_binomial(30, mean, size, 0.0) / mix_ts.negative_binomial(30, 30, size, 0.0)
        assert ratios[0] == pytest.approx(exact, rel=1e-6)
        exact = mix_ts.negative_binomial(31, mean, size, 0.0) / mix_ts.negative_binomial(31, 31, size, 0.0)
        assert ratios[1] == pytest.approx(exact, rel=0.15)
        assert ratios[1] != pytest.approx(exact, rel=1e-9) or mean == 31.0


@pytest.mark.parametrize(("name", "outlier"), [("mix-normal-ts", 1e100), ("mix-poisson-ts", 2.0**53)])
def test_a_reward_that_no_memory_expects_leaves_finite_scores(name: str, outlier: float) -> None:
    driver = Driver(db.policy(name), arms=2).feed(0, 3.0, 4.0, 3.0, 4.0).feed(1, 2.0, 5.0)
    driver.feed(0, outlier).feed(1, 3.0, outlier, 0.0)
    driver.choose(20)
    assert np.isfinite(driver.scores).all()
    assert np.isfinite(driver.memory).all()


@pytest.mark.parametrize("name", ["aff-normal-ts", "aff-poisson-ts", "aff-revenue-ts"])
def test_an_arm_starts_with_forgetting_factors_of_one_and_zeros(name: str) -> None:
    driver = Driver(db.policy(name), arms=2)
    for slot in driver.policy.slots:
        factor = slot.endswith("forgetting") and not slot.endswith("log_forgetting")
        assert driver.slot(slot).tolist() == [1.0 if factor else 0.0] * 2


def test_an_idle_arm_of_aff_poisson_ts_keeps_the_weight_of_one_count_after_lambda_fell_to_zero() -> None:
    driver = Driver(db.policy("aff-poisson-ts"), arms=2)
    driver.slot("w")[0], driver.slot("m")[0], driver.slot("log_forgetting")[0] = 1.0, 4.0, LOG_ZERO
    driver.last_played[0] = 1
    score = driver.functions.score(driver.state, 0, driver.step(9), driver.params)
    assert score == gamma(0.5 + 4.0, driver.random, SCORE, 9, 0) / (0.1 + 1.0)


@pytest.mark.parametrize("name", ["aff-normal-ucb", "robust-ucb"])
def test_a_variance_of_1e_20_times_the_squared_mean_is_rounding_error(name: str) -> None:
    """Then the variance of the rewards of all arms, here about 1, takes its place."""
    for deviation, rounding in ((0.95e-10, True), (1.05e-10, False)):
        driver = Driver(db.policy(name), arms=2).feed(0, 1.0 - deviation, 1.0, 1.0 + deviation).feed(1, 0.0, 2.0)
        score = driver.functions.score(driver.state, 0, driver.step(6), driver.params)
        assert (abs(float(score) - 1.0) > 0.01) is rounding
        own = 0.0 if rounding else deviation**2
        assert driver.slot("own_variance").tolist() == pytest.approx([own, 2.0], rel=1e-4, abs=0.0)


@pytest.mark.parametrize("policy", [db.policy("aff-normal-ucb", step_size=0), db.policy("robust-ucb")])
def test_pending_plays_count_in_the_bonus(policy: Policy) -> None:
    driver = Driver(policy, arms=3)
    driver.feed(0, 1.0, 3.0, 2.0, 4.0).feed(1, 5.0, 6.0)
    step = driver.step(20)
    for arm, (mean, size) in enumerate([(2.5, 4.0), (5.5, 2.0), (3.5, 1.0)]):  # the third arm has the mean of all
        bonus = driver.functions.score(driver.state, arm, step, driver.params) - mean
        waiting = driver.state._replace(pending=np.full(3, 3))
        later = driver.functions.score(waiting, arm, step, driver.params) - mean
        assert later == pytest.approx(bonus * math.sqrt(size / (size + 3)), rel=1e-3)
