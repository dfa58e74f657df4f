"""What policies do while rewards are in flight."""

import json
import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit import Bandit
from dynabandit.bandit.serialization import checksum
from dynabandit.policies import POLICIES
from dynabandit.policies.base import PolicyState
from dynabandit.policies.pending_plays import (
    UNKNOWN_STEP,
    UNSEEN,
    begin_play,
    end_play,
    expected_mean,
    pending_plays,
)
from tools.driver import Driver

INDEX_POLICIES: dict[str, dict[str, Any]] = {
    "ucb": {},
    "kl-ucb": {},
    "d-ucb": {"discount": 0.99},
    "d-kl-ucb": {"discount": 0.99},
    "sw-ucb": {"window": 50},
    "sw-kl-ucb": {"window": 50},
    "sw-ucb-sharp": {},
    "borl": {"block": 1000, "exploration": 0.1},
    "cusum-ucb": {"changes": 1, "horizon": 10**6},
    "m-ucb": {"changes": 1, "horizon": 10**6},
    "cusum-kl-ucb": {"changes": 1, "horizon": 10**6},
    "m-kl-ucb": {"changes": 1, "horizon": 10**6},
    "glr-kl-ucb": {"horizon": 10**6, "scale": 0.0},
    "glr-kl-ucb-diminishing": {"delta": 1e-6, "scale": 0.0},
    "r-bocpd-ucb": {"horizon": 10**6, "scale": 0.0},
    "r-bocpd-ucb ucb": {"horizon": 10**6, "scale": 0.0, "index": "ucb"},
    "oracle-restart": {},
    "oracle-restart ucb": {"index": "ucb"},
    "aff-ucb1": {"variance_floor": 0.05},
    "aff-ucb2": {},
    "aff-ucb2-growing": {},
    "aff-kl-ucb": {},
}
# Their bonus also has their number
LEVEL_OF_REWARDS = {"d-ucb", "d-kl-ucb", "sw-ucb", "sw-kl-ucb", "sw-ucb-sharp", "borl", "cusum-ucb", "cusum-kl-ucb"}
UNIT_FREE: dict[str, dict[str, Any]] = {"aff-normal-ucb": {}, "robust-ucb": {}}  # of unseen arms: mean of all rewards
GREEDY: dict[str, dict[str, Any]] = {"eps-greedy": {}, "aff-d-greedy": {}}
WINDOWED = {"raw-ucb", "fewa", "w-swa", "r-ed-ucb"}  # test_rested_policies.py has their own rules
BLOCKS = {"master-ucb"}  # and test_restarting_baselines.py has its own
NUMBER = 200  # late enough that no policy explores on a schedule: 200 is in no period of the detectors


def played(name: str, pending: int, rewards: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0) * 3) -> Driver:
    """Return a policy with these rewards of arm 0, half as many of arm 1, and pending plays of arm 0."""
    driver = Driver(db.policy(name.split()[0], **{**INDEX_POLICIES, **UNIT_FREE, **GREEDY}[name]), arms=2)
    for arm, values in ((0, rewards), (1, rewards[: len(rewards) // 2])):
        driver.last_played[arm] = NUMBER - 1 - arm
        driver.feed(arm, *values)
    driver.pending[0] = pending
    if name.startswith("oracle-restart"):
        driver.slot("age")[:] = NUMBER
    return driver


def score(driver: Driver, number: int = NUMBER) -> float:
    step = driver.step(number)
    assert step.common >= 0.0, "a forced decision has no index"
    return float(driver.functions.score(driver.state, 0, step, driver.params))


@pytest.mark.parametrize("name", [*INDEX_POLICIES, *UNIT_FREE])
def test_pending_plays_shrink_the_bonus_of_an_index_towards_the_mean(name: str) -> None:
    scores = [score(played(name, pending)) for pending in (0, 1, 10, 1000, 10**9)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 5
    assert scores[-1] == pytest.approx(0.25, abs=0.02)  # robust means differ a little


@pytest.mark.parametrize("name", sorted(INDEX_POLICIES.keys() - LEVEL_OF_REWARDS))
def test_pending_plays_count_as_observations_that_leave_the_mean_as_it_is(name: str) -> None:
    """With N rewards and N pending plays the bonus is that of 2 N rewards with the same mean."""
    number = NUMBER - 1 if name == "aff-ucb1" else NUMBER  # its bonus of an idle arm contains the estimated variance
    few, many = played(name, pending=12), played(name, pending=0, rewards=(1.0, 0.0, 0.0, 0.0) * 6)
    few.last_played[0] = many.last_played[0] = number - 1
    assert score(few, number) == pytest.approx(score(many, number), abs=0.02)
    assert score(few, number) < score(played(name, pending=0), number) - 0.02


@pytest.mark.parametrize("name", ["ucb", "m-ucb", "kl-ucb", "glr-kl-ucb", "aff-ucb2", "aff-ucb2-growing", "aff-kl-ucb"])
def test_rewards_and_pending_plays_tie_to_the_last_bit_with_as_many_rewards(name: str) -> None:
    """Otherwise the rounding of a processor would decide between such arms, and a GPU would choose others."""
    for rewards in range(1, 12):
        for pending in range(1, 12):
            few = played(name, pending, rewards=(0.0,) * rewards)
            many = played(name, pending=0, rewards=(0.0,) * (rewards + pending))
            assert score(few) == score(many), (rewards, pending)


@pytest.mark.parametrize("name", [*INDEX_POLICIES, *GREEDY])
def test_an_arm_without_rewards_but_with_pending_plays_has_a_finite_score_that_falls(name: str) -> None:
    scores = [score(played(name, pending, rewards=())) for pending in (1, 2, 30, 10**6)]
    assert np.isfinite(scores).all()
    assert scores == sorted(scores, reverse=True)
    assert scores[0] >= 0.5
    assert scores[-1] < 0.01
    assert score(played(name, 0, rewards=())) == np.inf


@pytest.mark.parametrize("name", GREEDY)
def test_pending_plays_leave_the_mean_of_a_greedy_policy_as_it_is(name: str) -> None:
    assert score(played(name, pending=5)) == score(played(name, pending=0))


# --- Thompson sampling: zeros before the first reward -------------------------------------------------------

POSTERIORS: dict[str, dict[str, Any]] = {
    "ts": {},
    "ots": {},
    "dts": {},
    "odts": {},
    "aff-ts": {},
    "aff-ots": {},
    "aff-dts1": {},
    "aff-dts2": {},
    "d-ts": {"discount": 0.99},
    "d-ots": {"discount": 0.99},
    "sw-ts": {"window": 50},
    "mix-ts": {},
}
DRAWS: dict[str, dict[str, Any]] = {  # their scores are no draws from one Beta posterior
    "f-dsw-ts": {},
    "changepoint-ts": {},
    "kalman-ts": {},
    "predictive-sampling": {},
    "mix-poisson-ts": {},
    "mix-revenue-ts": {},
    "aff-poisson-ts": {},
    "aff-revenue-ts": {},
}
THOMPSON = {**POSTERIORS, **DRAWS}


def shapes(driver: Driver, arm: int, number: int = NUMBER) -> tuple[float, float]:
    a, b = driver.functions.posterior(driver.state, arm, driver.step(number), driver.params)
    return float(a), float(b)


@pytest.mark.parametrize("name", sorted(POSTERIORS))
def test_pending_plays_of_an_arm_without_any_reward_count_as_failures_of_its_prior(name: str) -> None:
    driver = Driver(db.policy(name, **POSTERIORS[name]), arms=2)
    a, b = shapes(driver, 0)
    driver.feed(1, 1.0, 0.0, 1.0)
    for pending in (1, 7, 10**6):
        driver.pending[0] = pending
        zeros = pending * (driver.params.memory.sharpness if name == "mix-ts" else 1.0)
        assert shapes(driver, 0) == pytest.approx((a, b + zeros), rel=1e-12), "whatever the rewards of other arms are"


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_draws_of_an_arm_without_any_reward_fall_with_its_pending_plays(name: str) -> None:
    driver = Driver(db.policy(name, **DRAWS[name]), arms=2).feed(1, 1.0, 0.0, 1.0, 0.0)
    means = []
    for pending in (0, 1, 4, 30, 1000):
        driver.pending[0] = pending
        means.append(np.mean([score(driver, number) for number in range(NUMBER, NUMBER + 100)]))
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.01 * means[0]


@pytest.mark.parametrize("rewards", [(0.0,), (1.0,), (1.0, 0.0, 1.0)])
@pytest.mark.parametrize("name", sorted(THOMPSON))
def test_pending_plays_leave_an_arm_with_a_reward_as_it_is(name: str, rewards: tuple[float, ...]) -> None:
    driver = Driver(db.policy(name, **THOMPSON[name]), arms=2).feed(0, *rewards).feed(1, 1.0, 0.0)
    before = driver.choose(NUMBER), driver.scores.tolist()
    driver.pending[:] = 50
    assert (driver.choose(NUMBER), driver.scores.tolist()) == before


def test_an_arm_whose_rewards_have_left_the_window_waits_as_one_without_any() -> None:
    driver = Driver(db.policy("sw-ts", window=3), arms=2).feed(0, 1.0).feed(1, 1.0, 1.0, 1.0)
    driver.pending[:] = 4
    assert (shapes(driver, 0), shapes(driver, 1)) == ((1.0, 5.0), (4.0, 1.0))


@pytest.mark.parametrize(("name", "most"), [("ts", 100), ("aff-ots", 100), ("kalman-ts", 100), ("auto", 40)])
def test_an_arm_whose_rewards_never_arrive_is_given_up(name: str, most: int) -> None:
    """Before pending plays counted, it got about half of the decisions."""
    bandit, generator = Bandit(name, arms=["dead", "b"], seed=1), np.random.default_rng(1)
    for _ in range(600):
        arm = bandit.choose()
        if arm == "b":
            bandit.reward(arm, float(generator.random() < 0.5), step=bandit.step)
    assert 0 < bandit.arms["dead"].plays < most
    first = bandit.propensities()["dead"]
    assert first < 0.05
    assert bandit.propensities(count_pending=False)["dead"] > 0.2
    for _ in range(bandit.arms["dead"].pending):
        bandit.close("dead")
    assert bandit.propensities()["dead"] > 0.2


OTHERS = sorted(
    POLICIES.keys() - INDEX_POLICIES.keys() - UNIT_FREE.keys() - GREEDY.keys() - THOMPSON.keys() - WINDOWED - BLOCKS
)


@pytest.mark.parametrize("name", OTHERS)
def test_other_policies_take_no_notice_of_pending_plays(name: str) -> None:
    driver = Driver(db.policy(name).tuned(1, 100), arms=2).feed(0, 1.0, 0.0)
    before = driver.choose(3), driver.scores.tolist()
    driver.pending[:] = 50
    assert (driver.choose(3), driver.scores.tolist()) == before


# --- Counting them ------------------------------------------------------------------------------------------


def counted(pending: int, last_played: int) -> PolicyState:
    return PolicyState(np.zeros((1, 2)), np.zeros(1), np.array([0, last_played]), np.array([7, pending]))


def test_a_play_is_pending_until_its_reward_arrives() -> None:
    state = counted(pending=0, last_played=0)
    begin_play(state, 1, 3)
    begin_play(state, 1, 4)
    assert (state.last_played.tolist(), state.pending.tolist()) == ([0, 4], [7, 2])
    end_play(state, 1, 3)
    assert pending_plays(state, 1) == 1
    end_play(state, 1, 4)
    assert state.pending.tolist() == [7, 0]


@pytest.mark.parametrize(
    ("pending", "last_played", "decided_at", "left"),
    [(5, 9, 9, 0), (5, 9, 7, 2), (5, 90, 7, 4), (5, 2, UNKNOWN_STEP, 4), (0, 9, UNKNOWN_STEP, 0), (0, 9, 7, 0)],
)
def test_plays_whose_rewards_are_lost_end_with_the_reward_of_a_later_decision(
    pending: int, last_played: int, decided_at: int, left: int
) -> None:
    state = counted(pending, last_played)
    end_play(state, 1, decided_at)
    assert UNKNOWN_STEP == -1
    assert state.pending.tolist() == [7, left]


def test_without_delays_no_play_is_pending() -> None:
    assert pending_plays(counted(3, 9)._replace(pending=None), 1) == 0


def test_an_arm_without_rewards_is_expected_to_have_one_success_among_its_pending_plays_and_one_more() -> None:
    assert [expected_mean(np.inf, pending) for pending in (1, 3)] == [0.5, 0.25]
    assert expected_mean(0.7, 3) == 0.7
    assert expected_mean(UNSEEN, 3) == 0.25


@pytest.mark.parametrize(("rewards", "mean", "size"), [((), 1 / 4, 3.0), ((0.75,), 0.75, 0.5 + 3.0)])
def test_pending_plays_of_an_adaptive_policy_add_to_its_effective_size(
    rewards: tuple[float, ...], mean: float, size: float
) -> None:
    driver = Driver(db.policy("aff-ucb2-growing"), arms=2).feed(0, *rewards)
    driver.state.pending[0] = 3
    driver.slot("log_forgetting")[0], driver.last_played[0] = math.log(0.5), NUMBER - 1 - 2  # one idle step per arm
    assert score(driver) == pytest.approx(mean + math.sqrt(math.log(20) / 2 / size), rel=1e-12)


def test_pending_plays_add_to_the_weight_of_an_idle_arm_of_aff_ucb1() -> None:
    driver = played("aff-ucb1", pending=4)
    driver.last_played[0] = NUMBER - 1 - 6
    mean, variance, weight = (driver.slot(name)[0] for name in ("mean", "variance", "w"))
    assert variance > 0.05
    assert score(driver) == pytest.approx(mean + math.sqrt(variance / (weight + 4)) * math.sqrt(6), rel=1e-12)


# --- AFF-d-Greedy: has lambda just changed? -----------------------------------------------------------------

ARMS = ["a", "b", "c", "d", "e"]


def falling(**parameters: Any) -> Bandit:
    """Return a bandit whose leader is arm 0, with smaller rewards of late: a reward of 0 changes its lambda much."""
    bandit = Bandit("aff-d-greedy", arms=ARMS, seed=3, **parameters)
    for column, value in [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), *[(0, 1.0)] * 30, *[(0, 0.6)] * 10]:
        bandit.play_column(column)
        bandit.reward_column(column, value)
    bandit.play_column(0)  # so that the change of the latest reward is past
    return bandit


def choices(bandit: Bandit, count: int) -> list[int]:
    return [bandit.choose_column() for _ in range(count)]


def test_lambda_has_changed_if_it_moved_by_the_threshold_or_more_but_not_if_it_did_not_move() -> None:
    rewards = (1.0, 0.0, 0.0)  # lambda moves with the third one
    moved = float(Driver(db.policy("aff-d-greedy"), arms=2).feed(0, *rewards).slot("change")[0])
    for threshold, changed_at in ((0.0, 3.0), (moved, 3.0), (math.nextafter(moved, 1.0), -1.0)):
        driver = Driver(db.policy("aff-d-greedy", threshold=threshold), arms=2)
        for value, expected in zip(rewards, (-1.0, -1.0, changed_at), strict=True):
            driver.feed(0, value)
            assert driver.slot("changed_at").tolist() == [expected, -1.0]
            # A bandit of 0.1.0 has no such row, and its arms were last played when their rewards arrived
            earlier = driver.policy.restored(driver.memory[:-1], np.full(2, driver.rewards))
            np.testing.assert_array_equal(earlier, driver.memory)
            assert driver.policy.restored(driver.memory, driver.last_played) is driver.memory


def test_a_bandit_of_0_1_0_that_had_just_seen_a_change_still_explores() -> None:
    bandit = falling()
    bandit.reward_column(0, 0.0)
    content = json.loads(bandit.to_json())
    content["memory"].pop()
    for arm in content["arms"]:
        arm.pop("pending", None)
    content.pop("checksum")
    text = json.dumps({**content, "checksum": checksum(content)})
    restored = Bandit.from_json(text)
    assert restored._memory[-1].tolist() == [bandit.step, -1, -1, -1, -1]
    assert choices(restored, 50) == choices(bandit, 50)
