"""Memories and the estimators of the same name give the same numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.records import NoParams
from dynabandit.core.streams import stream
from dynabandit.estimators import (
    AdaptiveForgetting,
    Estimator,
    FixedForgetting,
    SampleMean,
    SlidingWindow,
    UnitFreeForgetting,
)
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.memories import discount, sample_mean, window
from dynabandit.policies.memories.adaptive import SIZE, Adaptive
from dynabandit.policies.memories.base import NOBODY, Estimate, Memory, MemoryKernels
from dynabandit.policies.memories.bounded import Bounded, BoundedByVariance, BoundedByWeight
from dynabandit.policies.memories.sample_moments import SampleMoments
from dynabandit.policies.memories.unit_free import UnitFree
from dynabandit.policies.part import Setting
from dynabandit.policies.policy_functions import policy_functions
from dynabandit.policies.rules import hoeffding, normal_ucb, thompson

REWARDS = [*([0.0] * 15), *([1.0] * 6), 0.25, *([1.0, 0.0] * 5)]
PRIOR = Prior(2.0, 3.0)
NOTHING = np.zeros(0)


class Fed:
    """A memory of two arms, of which the second one has had some rewards."""

    def __init__(self, memory: Memory, rewards: list[float], family: str | None = None, **setting: Any) -> None:
        self.memory, self.setting = memory, Setting(2, **setting)
        self.kernels: MemoryKernels = memory.kernels_for(family)
        self.params = memory.params(self.setting)
        rows = len(self.kernels.slots)
        shared = np.zeros(max(memory.shared_size(self.setting, family), 1))
        self.state = PolicyState(np.zeros((rows, 2)), shared, np.zeros(2, dtype=np.int64))
        for arm in (0, 1):
            self.kernels.start(self.state, arm, self.params)
        for reward in rewards:
            self.learn(reward)

    def learn(self, reward: float) -> None:
        if self.kernels.fade is not None:
            assert self.kernels.fade(self.state, self.params) == 1.0
        if self.kernels.drop is not None:
            assert self.kernels.drop(self.state, self.params) in (1, NOBODY)
        learned = self.kernels.learn(self.state, 1, Reward(reward, 1, 1), self.params)
        assert learned == self.estimate()

    def estimate(self, arm: int = 1) -> Estimate:
        return self.kernels.estimate(self.state, arm)

    def slots(self, *names: str) -> list[float]:
        return [float(self.state.memory[self.kernels.slots.index(name), 1]) for name in names]

    def law(self, family: str, kept: float = 1.0, arm: int = 1, prior: Prior = PRIOR) -> tuple[float, ...]:
        law = dict(self.kernels.laws)[family]
        numbers = law(self.state, arm, Step(9, 2, 0.0, NOTHING, NOTHING, stream(1)), kept, prior, self.params)
        return tuple(map(float, numbers))


ALIKE: list[tuple[Memory, Callable[[], Estimator]]] = [
    (sample_mean.SampleMean(), SampleMean),
    (window.Window(window=7), lambda: SlidingWindow(7)),
    (discount.Discount(discount=0.9), lambda: FixedForgetting(0.9)),
    (Adaptive(), AdaptiveForgetting),
    (Adaptive(step_size=0.01, floor=0.6), lambda: AdaptiveForgetting(step_size=0.01, floor=0.6)),
    (Adaptive(step_size="variance-scaled"), lambda: AdaptiveForgetting(step_size="variance-scaled")),
    (Adaptive(step_size=0.01, loss="bernoulli"), lambda: AdaptiveForgetting(step_size=0.01, loss="bernoulli")),
    (UnitFree(), UnitFreeForgetting),
    (UnitFree(step_size=0.01, floor=0.6), lambda: UnitFreeForgetting(step_size=0.01, floor=0.6)),
    (SampleMoments(), SampleMean),
]


@pytest.mark.parametrize(("memory", "make"), ALIKE)
def test_a_memory_estimates_as_the_estimator_of_its_name(memory: Memory, make: Callable[[], Estimator]) -> None:
    fed, estimate = Fed(memory, []), make()
    kernels, state = fed.kernels, fed.state
    assert fed.estimate()[:4] == (math.inf, 0.0, 0.0, 0.0)
    for reward in REWARDS:
        fed.learn(reward)
        estimate.update(reward)
        mean, size, w, _, _ = fed.estimate()
        assert mean == pytest.approx(estimate.mean, rel=1e-12, abs=1e-15)
        assert w * kernels.unit(state) == pytest.approx(estimate.weight, rel=1e-12)
        belief = memory.belief(state.memory[:, 1], state.shared, fed.setting)
        assert belief.mean == pytest.approx(mean, rel=1e-15)
        assert memory.forgetting(state.memory[:, 1], fed.setting) == estimate.forgetting == belief.forgetting
        if not isinstance(memory, discount.Discount):  # whose paper counts weights as rewards
            assert size == pytest.approx(estimate.effective_size, rel=1e-12)
    assert fed.estimate(arm=0).size == 0.0
    assert math.isnan(memory.belief(state.memory[:, 0], state.shared, fed.setting).mean)


@pytest.mark.parametrize("memory", [Adaptive(step_size=0.01), BoundedByVariance(step_size=0.01), BoundedByWeight()])
def test_an_adaptive_memory_holds_the_state_of_its_estimator(memory: Adaptive) -> None:
    estimate = AdaptiveForgetting(memory.step_size)
    for reward in REWARDS:
        estimate.update(reward)
    fed = Fed(memory, REWARDS)
    assert fed.state.memory[:SIZE, 1].tolist() == list(estimate.state)
    assert memory.forgetting(fed.state.memory[:, 1], fed.setting) == estimate.forgetting


def test_the_data_of_an_idle_arm_but_not_its_prior_are_discounted() -> None:
    fed = Fed(Adaptive(step_size=0.01), REWARDS)
    m, w, forgetting = fed.slots("m", "w", "forgetting")
    assert forgetting < 1.0
    log_kept = fed.estimate().fading
    assert log_kept == math.log(forgetting)
    kept = fed.kernels.kept(log_kept, 6, 3, fed.params)
    assert kept == pytest.approx(forgetting**2, rel=1e-12)
    assert fed.law("beta", kept) == pytest.approx((2.0 + kept * m, 3.0 + kept * (w - m)), rel=1e-12)
    assert Fed(Adaptive(), []).law("beta") == PRIOR


def test_a_bounded_memory_is_a_sample_mean_before_it_is_full_and_then_discounts() -> None:
    fed, total = Fed(Bounded(memory=8), REWARDS[:8]), 0.0
    assert fed.slots("a", "b") == [sum(REWARDS[:8]), 8 - sum(REWARDS[:8])]
    assert fed.memory.forgetting(fed.state.memory[:, 1], fed.setting) == 8 / 9
    for reward in REWARDS[8:]:
        fed.learn(reward)
    for place, reward in enumerate(reversed(REWARDS)):
        total += reward * (8 / 9) ** min(place + 1, len(REWARDS) - 8)
    mean, size, w, k, _ = fed.estimate()
    assert (mean, size) == pytest.approx((total / 8, 8.0), rel=1e-9)
    assert w == k == size


def test_a_bounded_memory_begins_with_the_prior_of_its_rule() -> None:
    fed = Fed(Bounded(memory=50), [1.0, 0.0, 0.25], prior=PRIOR)
    assert fed.law("beta") == (3.25, 4.75)
    assert fed.memory.forgetting(fed.state.memory[:, 1], fed.setting) == 1.0
    assert Fed(Bounded(memory=50), [], prior=PRIOR).law("beta") == PRIOR


@pytest.mark.parametrize(
    ("memory", "capacity"),
    [
        (BoundedByVariance(memory=4), lambda w, variance: 4.0 / variance - 1.0 if variance > 0.0 else math.inf),
        (BoundedByWeight(memory=4), lambda w, variance: w - 1.0),
    ],
)
def test_the_bound_of_a_memory_follows_its_estimator_after_the_burn_in(
    memory: BoundedByVariance, capacity: Callable[[float, float], float]
) -> None:
    fed, a, b = Fed(memory, [], prior=PRIOR, burn_in=5), *PRIOR
    for number, reward in enumerate(REWARDS, 1):
        fed.learn(reward)
        a, b = a + reward, b + 1.0 - reward
        limit = 4.0 if number <= 5 else capacity(*fed.slots("w", "variance"))
        if a + b - 1.0 >= limit * (1.0 - 1e-9):
            a, b = (one * limit / (limit + 1.0) for one in (a, b))
        assert fed.law("beta") == pytest.approx((a, b), rel=1e-9)
    assert fed.slots("plays") == [len(REWARDS)]


@pytest.mark.parametrize("memory", [SampleMoments(), UnitFree()])
def test_a_memory_for_any_unit_takes_from_all_arms_what_an_arm_does_not_have(memory: Memory) -> None:
    fed = Fed(memory, [])
    assert fed.law("normal") == (0.0, 0.0)
    for reward in (10.0, 14.0, 12.0):
        fed.learn(reward)
    mean, variance, size = fed.law("moments")
    assert (mean, variance, size) == pytest.approx((12.0, 4.0, 3.0), rel=1e-3)
    assert fed.law("normal") == pytest.approx((mean, math.sqrt(variance / size)), rel=1e-12)
    assert fed.law("moments", kept=0.01) == (mean, variance, 1.0)
    assert fed.law("moments", arm=0) == pytest.approx((12.0, 4.0, 1.0), rel=1e-12)
    waiting = fed.state._replace(pending=np.array([5, 2]))
    law, step = dict(fed.kernels.laws)["moments"], Step(9, 2, 0.0, NOTHING, NOTHING, stream(1))
    assert law(waiting, 1, step, 1.0, PRIOR, fed.params) == (mean, variance, size + 2.0)
    fed.kernels.learn(fed.state, 0, Reward(3.0, 1, 1), fed.params)
    assert fed.law("moments", arm=0) == pytest.approx((3.0, 22.916666666666668, 1.0), rel=1e-12)


def test_the_posterior_of_counts_keeps_at_least_one_count() -> None:
    fed = Fed(UnitFree(), [3.0, 5.0, 4.0])
    assert fed.law("gamma") == pytest.approx((14.0, 6.0, 14.0 / 6.0), rel=1e-12)
    assert fed.law("gamma", kept=0.5) == pytest.approx((8.0, 4.5, 8.0 / 4.5), rel=1e-12)
    assert fed.law("gamma", kept=1e-9) == pytest.approx((6.0, 4.0, 1.5), rel=1e-12)
    assert fed.law("gamma", arm=0) == (2.0, 3.0, 2.0 / 3.0)


def test_the_student_posterior_needs_three_different_rewards() -> None:
    fed = Fed(SampleMoments(), [1.0, 3.0])
    assert fed.law("student") == (2.0, 1.0, math.inf)
    fed.learn(5.0)
    assert fed.law("student") == (3.0, math.sqrt(8.0 / 3.0), 1.0)


def test_equal_parts_give_the_functions_of_the_paper_s_policies() -> None:
    for name, memory, rule in (
        ("aff-ts", Adaptive, thompson.Thompson),
        ("aff-ots", Adaptive, thompson.OptimisticThompson),
        ("aff-kl-ucb", Adaptive, hoeffding.KLBound),
        ("dts", Bounded, thompson.Thompson),
        ("aff-dts2", BoundedByWeight, thompson.Thompson),
        ("aff-normal-ucb", UnitFree, normal_ucb.NormalUCB),
    ):
        kernels = memory.kernels_for(rule.kernels.family)
        assert db.policy(name).functions is policy_functions(kernels, rule.kernels, None)
        assert db.policy(name).burn_in == memory.first_plays


def test_a_new_reward_and_no_parameters_leave_the_other_arm_alone() -> None:
    for memory, _ in ALIKE:
        fed = Fed(memory, [])
        before = fed.state.memory[:, 0].tolist()
        fed.learn(1.0)
        assert fed.state.memory[:, 0].tolist() == before
    assert sample_mean.SampleMean().params(Setting(3)) == NoParams()
