"""The small parts that policies share, each by its definition."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.records import NoParams
from dynabandit.core.streams import stream
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.forced_exploration import NOT_FORCED, make_score, scheduled
from dynabandit.policies.horizons.formulas import discount_for, window_for
from dynabandit.policies.memories import adaptive as adaptive_forgetting, window as reward_window
from dynabandit.policies.memories.adaptive import Adaptive
from dynabandit.policies.rules import hoeffding, kl_ucb
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy

NOTHING = np.zeros(0)


def state(slots: int, arms: int = 2) -> PolicyState:
    return PolicyState(np.ones((slots, arms)), np.zeros(1), np.zeros(arms, dtype=np.int64))


def test_a_policy_that_says_nothing_more_scores_all_arms_alike_and_keeps_one_shared_number() -> None:
    functions = PolicyFunctions(start=lambda *_: None, learn=lambda *_: None)
    step = Step(1, 2, 0.0, NOTHING, NOTHING, stream(1))
    assert functions.score(state(1), 1, step, NoParams()) == 0.0
    assert functions.common(state(1), 7, NoParams()) == 0.0
    assert functions.explore(state(1), 1, step, NoParams()) is False
    assert (functions.posterior, functions.optimistic, functions.static_index) == (None, False, False)
    assert functions.table(3, 5).size == 0
    uniform = db.policy("uniform")
    assert (uniform.shared_size(), uniform.burn_in, uniform.informed, uniform.needs_double) == (1, 0, False, False)
    assert (uniform.needs_tuning, uniform.needs_horizon) == (False, False)
    assert SampleMeanPolicy.shared_size(uniform) == 1
    assert uniform.params(3) == NoParams()


@pytest.mark.parametrize(
    ("changes", "horizon", "discount", "window"),
    [(1, 1, 0.75, 1), (9, 3, 0.75, 1), (4, 64, 1.0 - 0.25 / 4.0, 16), (1, 100, 0.975, 43), (1, 10_000, 0.9975, 607)],
)
def test_discounts_and_windows_follow_the_rules_of_their_paper(
    changes: int, horizon: int, discount: float, window: int
) -> None:
    assert discount_for(changes, horizon) == pytest.approx(discount, rel=1e-15)
    assert window_for(changes, horizon) == window


def test_what_does_not_matter_is_expected_to_be_one() -> None:
    assert db.policy("d-kl-ucb", discount=0.9)._expected() == (1, 1)  # type: ignore[attr-defined]
    assert db.policy("sw-kl-ucb", changes=3, horizon=50)._expected() == (3, 50)  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["changes", "horizon", "window"])
def test_numbers_of_steps_are_at_least_one_and_at_most_the_last_step(field: str) -> None:
    for good in (1, 2**32 - 1):
        assert getattr(db.policy("sw-kl-ucb", **{field: good}), field) == good
    for bad in (0, 2**32):
        with pytest.raises(ValueError, match=f"{field} must be a whole number of at least 1 .*, got {bad}"):
            db.policy("sw-kl-ucb", **{field: bad})


def test_forced_exploration_names_the_arm_of_a_step_or_none() -> None:
    score = make_score(lambda state, arm, step, params: 0.25 * (1 + arm))
    own = [0.25, 0.5, 0.75]
    for common, scores in ((-1.0, [math.inf, 0.0, 0.0]), (-3.0, [0.0, 0.0, math.inf]), (0.0, own), (NOT_FORCED, own)):
        step = Step(7, 3, common, NOTHING, NOTHING, stream(1))
        assert [score(state(1, arms=3), arm, step, NoParams()) for arm in range(3)] == scores
    assert [scheduled(number, 3, 0.0) for number in (1, 2)] == [NOT_FORCED] * 2
    assert [scheduled(number, 2, 1.0) for number in (1, 2, 3)] == [-1.0, -2.0, -1.0]
    assert [scheduled(10**15 + number, 2, 1e-300) for number in (0, 1, 2, 3)] == [NOT_FORCED, -1.0, -2.0, NOT_FORCED]


def test_the_bonus_of_the_appendix_is_hoeffdings() -> None:
    estimate = adaptive_forgetting.START._replace(w=3.0, k=2.0)
    expected = math.sqrt(-math.log(0.05) / (2.0 * 3.0**2 / 2.0))
    assert hoeffding.bonus(estimate.w, estimate.k, hoeffding.level_for(0.05)) == pytest.approx(expected, rel=1e-14)


def test_an_arm_without_rewards_has_the_estimator_s_first_state() -> None:
    fresh = state(len(Adaptive.kernels.slots) + 1)
    Adaptive.kernels.start(fresh, 1, NoParams())
    assert adaptive_forgetting.load(fresh.memory, 1) == adaptive_forgetting.START
    assert (fresh.memory[:, 0] == 1.0).all()


def test_the_index_of_an_idle_arm_counts_at_least_one_observation() -> None:
    policy = db.policy("aff-kl-ucb")
    played = state(len(policy.slots))
    params = policy.params(2)
    policy.functions.start(played, 1, params)
    for reward in (1.0, 0.0, 1.0):
        policy.functions.learn(played, 1, Reward(reward, 1, 1), params)
    played.memory[policy.slots.index("log_forgetting"), 1] = math.log(0.5)
    step = Step(10_000, 2, 0.0, NOTHING, NOTHING, stream(1))
    assert policy.functions.score(played, 1, step, params) == upper_bound(2 / 3, negentropy(2 / 3), params.rule.level)


def test_a_reward_window_gives_back_what_is_as_old_as_its_window() -> None:
    assert [reward_window.ring_size(window) for window in (1, 3, 10)] == [3, 7, 21]
    shared = np.zeros(reward_window.ring_size(3))
    pushed = [(2, 0.5), (0, 1.0), (1, 0.25), (2, 0.75), (1, 0.125)]
    for seen, (arm, reward) in enumerate(pushed):
        assert reward_window.take_oldest(shared, 3) == (pushed[seen - 3] if seen >= 3 else (-1, 0.0))
        reward_window.push(shared, arm, reward)


def test_a_reward_window_that_becomes_longer_gives_back_each_reward_once() -> None:
    shared = np.zeros(reward_window.ring_size(5))
    left = []
    for number, window in enumerate([2] * 6 + [5] * 9):
        left.append(int(reward_window.take_oldest(shared, window)[0]))
        reward_window.push(shared, number, 1.0)
    assert left == [-1, -1, 0, 1, 2, 3, -1, -1, -1, 4, 5, 6, 7, 8, 9]


def test_a_kullback_leibler_index_is_infinite_unseen_and_of_a_mean_of_at_most_one() -> None:
    params = kl_ucb.Params(0.0)
    unseen = kl_ucb.store(math.inf, 0.0, 0.0, 0.0, params)
    assert unseen == (math.inf, 0.0, 0.0)
    assert kl_ucb.from_stored(unseen, 0.3, params) == math.inf
    stored = kl_ucb.store(0.75, 4.0, 4.0, 4.0, params)
    assert kl_ucb.from_stored(stored, 0.3, params) == upper_bound(0.75, negentropy(0.75), 0.3 / 4.0)
    assert kl_ucb.store(1.0 + 1e-9, 5.0, 5.0, 5.0, params).mean == 1.0


def test_a_name_that_nothing_has_and_parameters_beside_an_object_are_refused() -> None:
    cases: list[tuple[Any, Any]] = [(db.policy, db.policy("ts")), (db.environment, db.environment("case-1"))]
    for make, made in cases:
        assert make(made) is made
        with pytest.raises(ValueError, match="nobody"):
            make("nobody")
        with pytest.raises(TypeError, match=r"parameters \['burn_in'\] go with"):
            make(made, burn_in=3)
