"""SW-UCB#, LM-DSEE and the bandit over window lengths: tuning, sizes, epochs and blocks."""

import pytest

import dynabandit as db
from dynabandit.policies.whole import borl as borl_policy, learned_draws
from oracles import borl
from tools.driver import Driver

# --- SW-UCB# ------------------------------------------------------------------------------------------------


def test_a_simulation_keeps_no_more_rewards_than_it_has_steps() -> None:
    policy = db.policy("sw-ucb-sharp")
    assert policy.shared_size() == 1 + 2 * 10_000
    assert policy.tuned(switches=1, horizon=50).shared_size() == 1 + 2 * 50


# --- BORL ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arms", "horizon"), [(2, 1), (10, 10), (3, 100), (10, 10_000), (50, 10**6)])
def test_borl_is_tuned_as_in_its_paper(arms: int, horizon: int) -> None:
    params = db.policy("borl", horizon=horizon, capacity=1000).params(arms)
    block, exploration = borl.tuned(arms, horizon, capacity=1000)
    assert (params.block, params.exploration) == pytest.approx((block, exploration))
    assert params.windows[: params.choices].tolist() == borl.lengths(block)
    assert params.windows.size == borl_policy.MOST_WINDOWS


def test_the_window_with_the_better_blocks_is_drawn_more_often() -> None:
    driver = Driver(db.policy("borl", block=8, exploration=0.2), arms=2)
    windows = []
    for _ in range(300):
        windows.append(float(driver.shared[borl_policy.WINDOW]))
        driver.feed(0, *[float(windows[-1] == 2.0)] * 8)
    assert windows[0] == 8.0
    assert set(windows) == {1.0, 2.0, 4.0, 8.0}
    assert windows[200:].count(2.0) > 60


def test_a_window_is_drawn_although_rounding_leaves_a_rest_of_the_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(db.policy("borl", block=8, exploration=0.2), arms=2)
    monkeypatch.setattr(learned_draws, "draw", lambda *_: 1.0)
    driver.feed(0, *[0.0] * 8)
    drawn = driver.shared[[borl_policy.WINDOW, borl_policy.CHOSEN, borl_policy.CHANCE, borl_policy.SEEN]]
    assert drawn.tolist() == [8.0, 3.0, pytest.approx(0.25), 0.0]


def test_the_memory_of_borl_is_bounded() -> None:
    policy = db.policy("borl")
    size = borl_policy.LATEST + 1
    assert policy.shared_size() == size + 2 * 10_000
    assert policy.tuned(switches=1, horizon=50).shared_size() == size + 2 * 50
    assert db.policy("borl", block=20, exploration=0.1).tuned(switches=1, horizon=10).shared_size() == size + 2 * 20
    assert policy.params(arms=2**40).choices <= borl_policy.MOST_WINDOWS
    assert len(borl.lengths(2**31)) <= borl_policy.MOST_WINDOWS


# --- LM-DSEE ------------------------------------------------------------------------------------------------


def test_a_late_reward_counts_only_in_its_own_epoch_and_only_if_it_explored() -> None:
    # 36 steps, all exploration; then ceil(36 2^(1/3)) = 46 steps, with 2 ceil(8 log(9 2^(1/3))) = 40 of exploration
    driver = Driver(db.policy("lm-dsee", nu=0.5), arms=2)
    assert driver.params.length == 36
    driver.learn(0, 36, 1.0)
    assert driver.slot("plays").tolist() == [1.0, 0.0]
    assert driver.shared.tolist() == [1.0, 0.0]
    driver.learn(1, 37, 0.0)
    assert driver.slot("plays").tolist() == [0.0, 1.0]
    assert driver.shared.tolist() == [2.0, 36.0]
    driver.learn(0, 36, 1.0)  # late
    driver.learn(0, 36 + 41, 1.0)  # exploitation
    assert driver.slot("plays").tolist() == [0.0, 1.0]
    driver.learn(0, 36 + 40, 1.0)
    assert driver.slot("plays").tolist() == [1.0, 1.0]
    driver.learn(0, 36 + 46 + 1, 1.0)
    assert driver.slot("plays").tolist() == [1.0, 0.0]
    assert driver.shared.tolist() == [3.0, 36.0 + 46.0]


def test_without_rewards_of_an_epoch_the_earlier_means_decide() -> None:
    driver = Driver(db.policy("lm-dsee", nu=0.5), arms=2)
    assert driver.choose(36 + 41) in (0, 1)
    assert driver.scores.tolist() == [-1.0, -1.0]
    driver.learn(0, 1, 0.0)
    driver.learn(1, 22, 1.0)
    assert [driver.choose(36 + place) for place in (1, 2, 39, 40, 41, 46)] == [0, 1, 0, 1, 1, 1]
    assert driver.choose(36 + 46 + 1) == 0


def test_the_belief_is_the_mean_of_the_exploration() -> None:
    policy = db.policy("lm-dsee", nu=0.5)
    driver = Driver(policy, arms=2)
    for step, reward in ((37, 1.0), (38, 0.0), (80, 0.0)):
        driver.learn(0, step, reward)
    assert policy.belief(driver.memory[:, 0], driver.shared) == (0.5, 0.5, 1.0, 2.0)


@pytest.mark.parametrize("given", [{"min_gap": 0.0001}, {"min_gap": 1.0, "a": 4e-7}])
def test_a_first_epoch_of_more_than_ten_million_steps_is_refused(given: dict[str, float]) -> None:
    problem = "min_gap or a must be larger: with 2 arms the first epoch has more than 10000000 steps"
    with pytest.raises(ValueError, match=problem):
        db.policy("lm-dsee", **given).params(arms=2)


def test_a_first_epoch_of_ten_million_steps_is_accepted() -> None:
    # The first epoch has more than 1 / b steps
    assert db.policy("lm-dsee", min_gap=1.0, b=1 / 9_999_999.5).params(arms=2).length == 10_000_000
