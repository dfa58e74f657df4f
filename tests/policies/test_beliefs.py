"""What each policy says of an arm after four rewards, by the formula of its estimator worked out by hand."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.estimators import AdaptiveForgetting, UnitFreeForgetting
from dynabandit.policies import POLICIES, Policy, PolicyFunctions, PolicyState, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.whole.changepoint_thompson import RATES
from oracles import changepoint_ts
from tools.driver import Driver

HISTORY = [(0, 1.0), (0, 0.5), (1, 1.0), (0, 0.0)]  # the third arm is never played
ARMS = 3
AVERAGING = (
    "eps-greedy", "ucb", "kl-ucb", "glr-kl-ucb", "glr-kl-ucb-diminishing", "cusum-ucb", "m-ucb",
    "cusum-kl-ucb", "m-kl-ucb", "r-bocpd-ucb", "ad-switch",
    "exp3-s", "rexp3", "oracle-restart", "uniform", "best-arm", "normal-ts", "robust-ucb", "raw-ucb", "fewa",
    "sw-ucb-sharp", "borl",
)  # fmt: skip
MIXED = [name for name in POLICIES if name.startswith("mix-")]  # in test_mix_policies.py
BAYESIAN = [name for name, kind in POLICIES.items() if kind.functions.posterior is not None and name not in MIXED]
OWN_LAW = {"aff-poisson-ts", "aff-revenue-ts"}
ADAPTIVE = [name for name in POLICIES if name.startswith("aff-") and name not in {*BAYESIAN, *OWN_LAW}]


def beliefs(name: str, history: list[tuple[int, float]] | None = None, **parameters: Any) -> list[Belief]:
    driver = Driver(db.policy(name, **parameters), ARMS)
    for arm, reward in HISTORY if history is None else history:
        driver.feed(arm, reward)
    return [driver.policy.belief(driver.memory[:, arm], driver.shared) for arm in range(ARMS)]


def same(found: list[Belief], expected: list[tuple[float, float, float, float]]) -> None:
    for belief, numbers in zip(found, expected, strict=True):
        assert all(type(part) is float for part in belief)
        assert tuple(belief) == pytest.approx(numbers, rel=1e-12, abs=1e-15, nan_ok=True)


def beta(a: float, b: float, forgetting: float) -> tuple[float, float, float, float]:
    """A Beta(a, b) law has the mean a / (a + b); a reward with this mean p has the variance p (1 - p)."""
    return a / (a + b), a * b / (a + b) ** 2, forgetting, a + b


@pytest.mark.parametrize("name", AVERAGING)
def test_the_sample_mean_counts_every_reward_alike(name: str) -> None:
    # 1, 0.5 and 0: the squared distances from 0.5 add up to 0.5, over 3 - 1
    given: dict[str, Any] = {"horizon": 100, "changes": 1} if db.policy(name).needs_horizon else {}
    same(beliefs(name, **given), [(0.5, 0.25, 1.0, 3.0), (1.0, 0.0, 1.0, 1.0), (math.nan, 0.0, 1.0, 0.0)])
    same(beliefs(name, HISTORY[:2], **given)[:1], [(0.75, 0.125, 1.0, 2.0)])


@pytest.mark.parametrize("name", ["sw-ucb", "sw-kl-ucb"])
def test_a_window_of_three_has_lost_the_first_reward(name: str) -> None:
    # 0.5 and 0: 2 (0.25)^2 over 2 - 1
    same(beliefs(name, window=3), [(0.25, 0.125, 1.0, 2.0), (1.0, 0.0, 1.0, 1.0), (math.nan, 0.0, 1.0, 0.0)])


def test_robust_ucb_has_as_many_rewards_as_its_window() -> None:
    found = beliefs("robust-ucb", [(0, 1.0), (0, 0.5), (0, 0.5), (1, 1.0)], window=2)
    assert [one.effective_size for one in found] == [2.0, 1.0, 0.0]
    assert found[0].mean == pytest.approx(0.5)


def test_a_posterior_is_believed_as_it_is_at_the_first_step_of_an_arm_alone() -> None:
    seen: list[Any] = []

    def posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        shapes = [part.shape for part in (state.memory, state.last_played, step.features)]
        seen.append((shapes, arm, step.number, step.arms, step.common, step.table.tolist(), params, step.random))
        return 1.0, 3.0

    @dataclass(frozen=True, kw_only=True)
    class Bayesian(Policy):
        name = "bayesian"
        slots = ("one", "two")
        functions = PolicyFunctions(
            start=lambda *_: None,
            learn=lambda *_: None,
            posterior=posterior,
            common=lambda state, number, params: 10.0 * number,
            table=lambda arms, horizon: np.array([arms, horizon]),
        )

        def params(self, arms: int) -> int:
            return arms

    same([Bayesian().belief(np.array([5.0, 6.0]), np.zeros(1))], [beta(1.0, 3.0, 1.0)])
    assert seen == [([(2, 1), (1,), (0,)], 0, 1, 1, 10.0, [1, 1], 1, (0, 0, 0))]


def posterior_beliefs(driver: Driver, number: int) -> list[tuple[float, float, float]]:
    """The mean of the law that a score is drawn from at a step, the variance of a reward with this mean, and a + b."""
    found = []
    posterior = driver.policy.functions.posterior
    assert posterior is not None
    for arm in range(ARMS):
        a, b = posterior(driver.state, arm, driver.step(number), driver.params)
        found.append((a / (a + b), a * b / (a + b) ** 2, a + b))
    return found


@pytest.mark.parametrize("name", BAYESIAN)
@pytest.mark.parametrize("history", [[], HISTORY])
def test_a_policy_believes_the_posterior_that_it_draws_from(name: str, history: list[tuple[int, float]]) -> None:
    given: dict[str, Any] = {"horizon": 100, "changes": 1} if db.policy(name).needs_horizon else {}
    driver = Driver(db.policy(name, prior=(1, 3), **given), ARMS)
    for arm, reward in history:
        driver.feed(arm, reward)
    driver.state.last_played[:] = 6  # no arm is idle at step 7: idle times discount what AFF-TS draws from
    for arm, (mean, variance, size) in enumerate(posterior_beliefs(driver, 7)):
        found = driver.policy.belief(driver.memory[:, arm], driver.shared)
        assert (found.mean, found.variance, found.effective_size) == pytest.approx((mean, variance, size), rel=1e-12)
        assert history or found.mean == 0.25


def test_an_idle_arm_is_still_believed_what_its_rewards_said() -> None:
    driver = Driver(db.policy("aff-ots", step_size=0.2), ARMS)
    for arm, reward in HISTORY:
        driver.feed(arm, reward)
    before = driver.policy.belief(driver.memory[:, 0], driver.shared)
    driver.state.last_played[:] = 6
    assert posterior_beliefs(driver, 1000)[0][2] < before.effective_size
    assert driver.policy.belief(driver.memory[:, 0], driver.shared) == before


@pytest.mark.parametrize("name", ["ts", "ots"])
def test_the_posterior_of_thompson_sampling_has_its_prior(name: str) -> None:
    same(beliefs(name), [beta(2 + 1.5, 2 + 1.5, 1.0), beta(2 + 1, 2, 1.0), beta(2, 2, 1.0)])


@pytest.mark.parametrize("name", ["aff-ts", "aff-ots", "aff-dts1", "aff-dts2"])
def test_the_forgetting_of_adaptive_thompson_sampling_is_that_of_its_estimator(name: str) -> None:
    estimator = AdaptiveForgetting(step_size=0.2).update(1.0).update(0.5).update(0.0)
    assert [one.forgetting for one in beliefs(name, step_size=0.2)] == [estimator.forgetting, 1.0, 1.0]


def test_the_posterior_of_sw_ts_is_that_of_its_window() -> None:
    expected = [beta(1 + 0.5, 3 + 1.5, 1.0), beta(1 + 1, 3, 1.0), beta(1, 3, 1.0)]
    same(beliefs("sw-ts", window=3, prior=(1, 3)), expected)


# With a discount of 0.5, the rewards of the first arm weigh 1/8, 1/4 and 1, that of the second 1/2
COUNT, TOTAL, SQUARES = 1 / 8 + 1 / 4 + 1, 1 / 8 + 0.5 / 4, 1 / 8 + 0.25 / 4


@pytest.mark.parametrize("name", ["d-ucb", "d-kl-ucb"])
def test_a_discount_weighs_rewards_by_the_number_of_those_since(name: str) -> None:
    mean = TOTAL / COUNT
    first = (mean, SQUARES / COUNT - mean * mean, 0.5, COUNT)
    same(beliefs(name, discount=0.5), [first, (1.0, 0.0, 0.5, 0.5), (math.nan, 0.0, 0.5, 0.0)])


def test_an_arm_of_d_ucb_whose_count_is_gone_keeps_its_mean() -> None:
    found = beliefs("d-ucb", [(0, 0.25), *[(1, 1.0)] * 1500], discount=0.5)
    same(found[:1], [(0.25, 0.0, 0.5, 0.0)])


def test_an_arm_of_d_ucb_that_weighs_less_than_one_reward_has_a_variance() -> None:
    # The common scale is multiplied into the arms at the 333rd reward, and the count falls below 1
    found = beliefs("d-ucb", [(1, 1.0)] * 329 + [(0, 1.0), (0, 0.0)] + [(1, 1.0)] * 4, discount=0.5)
    same(found[:1], [(1 / 3, 2 / 9, 0.5, 1 / 16 + 1 / 32)])


def test_rounding_makes_no_variance_of_d_ucb_negative() -> None:
    for percent in range(100):
        found = beliefs("d-ucb", [(0, percent / 100)] * 5, discount=0.9)[0]
        assert 0.0 <= found.variance < 1e-15


def test_the_posterior_of_d_ts_fades_but_not_its_prior() -> None:
    expected = [beta(1 + TOTAL, 3 + COUNT - TOTAL, 0.5), beta(1 + 0.5, 3, 0.5), beta(1, 3, 0.5)]
    same(beliefs("d-ts", discount=0.5, prior=(1, 3)), expected)


def test_the_belief_of_f_dsw_ts_is_its_hot_posterior() -> None:
    expected = [beta(1 + 0.5, 3 + 1.5, 0.5), beta(1 + 1, 3, 0.5), beta(1, 3, 0.5)]
    same(beliefs("f-dsw-ts", discount=0.5, window=2, prior=(1, 3)), expected)


def test_the_memory_of_dts_is_full_once_a_and_b_add_up_to_it() -> None:
    shrink = 5 / 6
    a, b = (3 + 0.5) * shrink, (2 + 0.5) * shrink
    a, b = a * shrink, (b + 1) * shrink
    same(beliefs("dts", memory=5), [beta(a, b, shrink), beta(3, 2, shrink), beta(2, 2, 1.0)])
    same(beliefs("dts", memory=1000), [beta(3.5, 3.5, 1.0), beta(3, 2, 1.0), beta(2, 2, 1.0)])


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_policies_believe_what_their_estimator_says(name: str) -> None:
    kind = UnitFreeForgetting if name.startswith("aff-normal") else AdaptiveForgetting
    estimators = [kind(step_size=0.2) for _ in range(ARMS)]
    for arm, reward in HISTORY:
        estimators[arm].update(reward)
    same(beliefs(name, step_size=0.2), [estimator.belief for estimator in estimators])


def test_the_posterior_of_counts_has_its_prior() -> None:
    # Gamma(a + m, b + w); a Poisson count varies by its mean
    expected = [
        ((a + m) / (b + w), (a + m) / (b + w), 1.0, b + w)
        for a, b, m, w in ((2.0, 0.5, 7.0, 3.0), (2.0, 0.5, 1.0, 1.0), (2.0, 0.5, 0.0, 0.0))
    ]
    history = [(0, 4.0), (0, 3.0), (1, 1.0), (0, 0.0)]
    same(beliefs("aff-poisson-ts", history, step_size=0.0, prior=(2, 0.5)), expected)


def test_revenue_is_believed_to_be_the_conversion_times_the_mean_of_log_normal_amounts() -> None:
    history = [(0, 8.0), (0, 0.0), (0, 2.0), (1, 0.0)]
    # Logarithms in units of the first amount, 8: 0 and -log 4, whose variance over 2 - 1 is (log 4)^2 / 2
    center, variance, size = -math.log(4) / 2, math.log(4) ** 2 / 2, 2.0
    expected = []
    # The prior counts as 2 rewards, of which (2 + 1) / (4 + 2) are positive: Beta(1 + 2, 1 + 1) and so on
    for conversion, total, error in ((3 / 5, 5.0, variance / size), (1 / 3, 3.0, variance), (1 / 2, 2.0, variance)):
        mean = conversion * 8 * math.exp(center + (variance + error) / 2)
        second = conversion * 64 * math.exp(2 * center + 2 * variance)
        expected.append((mean, max(second - mean**2, 0.0), 1.0, total))
    same(beliefs("aff-revenue-ts", history, step_size=0.0, prior_weight=2), expected)
    nothing, _, unknown = beliefs("aff-revenue-ts", [(0, 0.0), (1, 0.0)], step_size=0.0, prior_weight=2)
    same([nothing, unknown], [(0.0, 0.0, 1.0, 3.0), (math.nan, 0.0, 1.0, 2.0)])


def test_rounding_makes_no_variance_of_revenue_negative() -> None:
    for amount in range(1, 50):  # every reward is positive, so the variance of the second arm is 0 but for rounding
        found = beliefs("aff-revenue-ts", [(0, 8.0), (1, amount)], prior_weight=1e-300)[1]
        assert 0.0 <= found.variance < 1e-12 * found.mean**2


@pytest.mark.parametrize("rates", [(0.2,), RATES])
@pytest.mark.parametrize("history", [[], HISTORY])
def test_change_point_ts_believes_the_average_of_its_runs(
    rates: tuple[float, ...], history: list[tuple[int, float]]
) -> None:
    found = beliefs("changepoint-ts", history, rate=rates[0] if len(rates) == 1 else "learnt", prior=(2, 3))
    expected = []
    for arm in range(ARMS):
        runs = changepoint_ts.runs(history, arm, rates, (2.0, 3.0))
        mean = sum(run.probability * run.a / (run.a + run.b) for run in runs)
        going_on = sum(run.probability * (1 - rates[run.rate]) for run in runs)
        size = sum(run.probability * (run.a + run.b) for run in runs)
        expected.append((mean, mean * (1 - mean), going_on, size))
    same(found, expected)


def test_every_policy_is_asked_for_its_belief() -> None:
    others = {"sw-ucb", "sw-kl-ucb", "d-ucb", "d-kl-ucb", "f-dsw-ts", "changepoint-ts"}
    others |= {"w-swa", "r-ed-ucb"}  # in test_rested_policies.py
    others |= {"master-ucb"}  # in test_restarting_baselines.py
    others |= {"kalman-ts", "predictive-sampling", "lm-dsee"}  # in test_model_baselines.py, test_window_baselines.py
    assert {*AVERAGING, *ADAPTIVE, *BAYESIAN, *MIXED, *OWN_LAW} | others == set(POLICIES)
