"""R-BOCPD-UCB, MASTER and AdSwitch against literal implementations of their papers, without compiled code."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings, strategies as st

import dynabandit as db
from dynabandit.core.streams import LEARN, Stream, uniform, words
from dynabandit.policies.whole import ad_switch as ad_switch_kernels, learned_draws, master_ucb, r_bocpd_ucb
from oracles import ad_switch, master, r_bocpd
from tools.driver import Driver

TOLERANCE = 1e-7
STEPS, ARMS, SEEDS = 120, st.integers(2, 4), st.integers(0, 2**32)


def rewards_of(arms: int, seed: int) -> np.ndarray:
    """Fractional rewards of three pieces with other means, the second near 0; so no two weights or means are equal."""
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((3, arms)) * [[1.0], [0.0], [1.0]], STEPS // 3, axis=0)
    rewards = (drawn.random((STEPS, arms)) < means).astype(float)
    return 0.9 * rewards + 0.1 * drawn.random((STEPS, arms))


def is_a_largest(expected: list[float], arm: int) -> bool:
    first = max(expected)
    return expected[arm] == first or first - expected[arm] < TOLERANCE


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    parameters=st.fixed_dictionaries(
        {
            "index": st.sampled_from(["kl-ucb", "ucb"]),
            "restart": st.sampled_from(["local", "global"]),
            "rate": st.sampled_from([None, 0.2971, 0.0113]),
            "scale": st.sampled_from([0.0, 0.1, 1.0]),
            "particles": st.sampled_from([2, 3, 8, 64]),
            "horizon": st.sampled_from([127, 5003]),
        }
    ),
    arms=ARMS,
    seed=SEEDS,
)
def test_r_bocpd_ucb_is_its_oracle(parameters: dict[str, Any], arms: int, seed: int) -> None:
    driver = Driver(db.policy("r-bocpd-ucb", **parameters), arms, seed)
    rate = parameters["rate"] or 1 / parameters["horizon"]
    oracle = r_bocpd.Arms(arms, rate, parameters["particles"], parameters["restart"])
    rewards = rewards_of(arms, seed)
    for step, arm in driver.play(rewards):
        turn = oracle.forced(parameters["scale"], parameters["horizon"])
        if step <= arms:
            assert arm == step - 1  # the burn-in
        elif turn is not None:
            assert arm == turn
        else:
            expected = oracle.scores(parameters["index"])
            np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
            assert is_a_largest(expected, arm)
        oracle.observe(arm, float(rewards[step - 1, arm]))


def test_the_detector_finds_a_change_and_no_other() -> None:
    driver = Driver(db.policy("r-bocpd-ucb", horizon=10_000), arms=2).feed(0, *[0.0, 1.0] * 1000)
    assert driver.slot("plays").tolist() == [2000.0, 0.0]
    needed = 0
    while driver.slot("plays")[0] > 0.0:
        driver.feed(0, 1.0)
        needed += 1
    assert 5 < needed < 40


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_equal_rewards_are_no_change(reward: float) -> None:
    assert Driver(db.policy("r-bocpd-ucb", horizon=100), arms=2).feed(0, *[reward] * 500).slot("plays")[0] == 500.0


def test_a_forecaster_must_outweigh_the_first_one_for_a_restart() -> None:
    # The first reward has the probability 1/2, so that the new forecaster has the weight 1/2, as the first one then has
    assert Driver(db.policy("r-bocpd-ucb", rate=0.5, scale=0.0), arms=2).feed(0, 1.0).slot("plays")[0] == 1.0


def test_of_equally_good_forecasters_the_oldest_goes() -> None:
    # Every forecaster gives a reward of 1/2 the probability 1/2
    driver = Driver(db.policy("r-bocpd-ucb", horizon=100, particles=3), arms=2).feed(0, *[0.5] * 7)
    made_at = driver.memory[r_bocpd_ucb.FIRST_ROW + 1 :: r_bocpd_ucb.ROWS, 0]
    assert made_at.tolist() == [5.0, 6.0, 7.0]


def agrees_with_master(oracle: master.Master, shared: np.ndarray) -> None:
    """Compare what is remembered of the current block."""
    steps, orders = len(oracle.rewards), range(master_ucb.ORDERS)
    assert (shared[master_ucb.BLOCK], shared[master_ucb.STEPS]) == (oracle.n, steps)
    assert shared[master_ucb.PESSIMISM] == pytest.approx(1.0 - min(oracle.optimistic, default=1.0))
    assert shared[master_ucb.EXCESS] == pytest.approx(sum(oracle.optimistic) - sum(oracle.rewards), abs=1e-9)
    running = {one.order: sum(oracle.rewards[one.start - 1 :]) for one in oracle.instances if one.end > steps}
    assert [shared[master_ucb.RUNNING + order] for order in orders] == [
        float(order in running and order < oracle.n) for order in orders
    ]
    for order, total in running.items():
        assert shared[master_ucb.REWARDS + order] == pytest.approx(total)
    assert not shared[master_ucb.REWARDS + oracle.n + 1 :].any()


@settings(max_examples=10, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@example(scale=1.0, horizon=1, arms=2, seed=0)  # rewards of the second piece show that no arm can be good
@given(scale=st.sampled_from([0.0, 0.001, 0.004, 1.0]), horizon=st.sampled_from([1, 127, 5003]), arms=ARMS, seed=SEEDS)
def test_master_ucb_is_its_oracle(scale: float, horizon: int, arms: int, seed: int) -> None:
    driver = Driver(db.policy("master-ucb", scale=scale, horizon=horizon), arms, seed)
    oracle = master.Master(arms, horizon, scale)
    rewards = rewards_of(arms, seed)
    played: tuple[int, float] | None = None
    lowest = 1.0
    for step, arm in driver.play(rewards):
        if played is not None:
            oracle.observe(*played, lambda order: learned_draws.draw(driver.shared, master_ucb.HASH, order, 0))
            lowest = min(lowest, *oracle.optimistic, 1.0)
        agrees_with_master(oracle, driver.shared)
        expected = oracle.scores()
        np.testing.assert_allclose(driver.scores, expected, rtol=TOLERANCE, atol=TOLERANCE)
        assert is_a_largest(expected, arm)
        played = arm, float(rewards[step - 1, arm])
    assert (scale, horizon, seed) != (1.0, 1, 0) or lowest < 0.9


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_rewards_that_are_too_good_restart_master(order: int) -> None:
    """Test 1, which hardly ever fails before test 2 does: an instance ends with the 8 steps of a block."""
    policy = db.policy("master-ucb", horizon=1000, scale=1e-4)
    params, shared = policy.params(2), np.zeros(policy.shared_size())
    shared[[master_ucb.BLOCK, master_ucb.STEPS, master_ucb.PESSIMISM, master_ucb.EXCESS]] = 3.0, 8.0, 0.6, -9.0
    bar = 1.0 - 0.6 + 9.0 * params.factor * master_ucb.rho(2.0**order, params)
    shared[master_ucb.REWARDS + order] = 2.0**order * bar
    if order < 3:
        assert not master_ucb.has_changed(shared, params)  # there is no such instance
        shared[master_ucb.RUNNING + order] = 1.0
    assert master_ucb.has_changed(shared, params)
    shared[master_ucb.REWARDS + order] = np.nextafter(2.0**order * bar, 0.0)
    assert not master_ucb.has_changed(shared, params)
    shared[master_ucb.REWARDS + order], shared[master_ucb.STEPS] = 9.0, 7.0
    assert bool(master_ucb.has_changed(shared, params)) is (order == 0)  # the others do not end now


def test_rewards_that_are_worse_than_promised_restart_master() -> None:
    policy = db.policy("master-ucb", horizon=1000, scale=1e-4)
    params, shared = policy.params(2), np.zeros(policy.shared_size())
    bar = 3.0 * params.factor * master_ucb.rho(8.0, params)
    for excess, changed in ((8.0 * bar, True), (np.nextafter(8.0 * bar, 0.0), False)):
        shared[[master_ucb.BLOCK, master_ucb.STEPS, master_ucb.EXCESS]] = 3.0, 8.0, excess
        assert bool(master_ucb.has_changed(shared, params)) is changed


def test_the_optimistic_value_of_master_is_the_largest_bound_of_its_active_instance_but_at_most_one() -> None:
    memory = np.full((master_ucb.SIZE, 3), 7.0)  # of other instances
    totals, counts = memory[master_ucb.TOTALS + 5], memory[master_ucb.COUNTS + 5]
    totals[:], counts[:] = [2.0, 6.0, 0.25], [10.0, 20.0, 1.0]
    assert master_ucb.optimistic_value(memory, 5, 0.5) == 0.75
    assert master_ucb.optimistic_value(memory, 5, 3.0) == 1.0
    totals[1], counts[1] = 0.0, 0.0
    assert master_ucb.optimistic_value(memory, 5, 0.5) == 1.0


def test_the_last_block_of_master_is_followed_by_one_of_the_same_length() -> None:
    driver = Driver(db.policy("master-ucb", horizon=100), arms=2)
    driver.shared[[master_ucb.BLOCK, master_ucb.ACTIVE]], driver.shared[master_ucb.STEPS] = 31.0, 2.0**31 - 2.0
    sizes = [driver.feed(0, 0.5).shared[[master_ucb.BLOCK, master_ucb.STEPS]].tolist() for _ in range(2)]
    assert sizes == [[31.0, 2.0**31 - 1.0], [31.0, 0.0]]


def agrees_with(oracle: ad_switch.AdSwitch, driver: Driver) -> None:
    """Compare what is remembered: choices alone depend on it rarely."""
    assert driver.shared[ad_switch_kernels.ENDED] == oracle.episode - 1
    for arm in range(oracle.arms):
        assert (driver.slot("bad")[arm] == 0.0) == (arm in oracle.good)
        names = ("lower", "upper") if arm in oracle.good else ("mean", "gap", "due")
        expected = (
            oracle.bounds(arm, ad_switch_kernels.FAR) if arm in oracle.good else (*oracle.bad[arm], oracle.due(arm))
        )
        assert [driver.slot(name)[arm] for name in names] == pytest.approx(expected)


def test_master_forgets_with_each_block_of_twice_the_length() -> None:
    driver = Driver(db.policy("master-ucb", horizon=100), arms=2)
    sizes = []
    for _ in range(16):
        sizes.append(driver.policy.belief(driver.memory[:, 0], driver.shared).effective_size)
        driver.feed(0, 0.5)
    assert sizes == [0, 0, 1, *range(4), *range(8), 0]


def test_pending_plays_shrink_the_bonus_of_master() -> None:
    driver = Driver(db.policy("master-ucb", horizon=100), arms=2).feed(0, 0.5, 0.5, 0.5, 0.5)
    driver.shared[master_ucb.ACTIVE] = 2.0  # the instance of the block
    driver.memory[[master_ucb.TOTALS + 2, master_ucb.COUNTS + 2], 0] = 1.0, 2.0
    log = np.log(100)
    scores = []
    for pending in (0, 1, 10, 10**9):
        driver.pending[:] = pending
        driver.choose(5)
        scores.append(driver.scores.tolist())
    assert scores[0] == [pytest.approx(0.5 + np.sqrt(log)), np.inf]
    assert scores[1] == pytest.approx([0.5 + np.sqrt(2 * log / 3), 0.5 + np.sqrt(2 * log)])
    assert scores[2] == pytest.approx([0.5 + np.sqrt(2 * log / 12), 1 / 11 + np.sqrt(2 * log / 10)])
    assert scores[3] == pytest.approx([0.5, 0.0], abs=1e-3)


def test_a_hash_depends_on_every_arm_and_reward() -> None:
    def hash_of(*rewards: tuple[int, float]) -> float:
        shared = np.zeros(1)
        for arm, value in rewards:
            learned_draws.update_hash(shared, 0, arm, value)
        return float(shared[0])

    different = [((0, 1.0),), ((1, 1.0),), ((0, 0.0),), ((0, 0.5),), ((0, 1.0), (1, 0.0)), ((1, 0.0), (0, 1.0))]
    assert len({hash_of(*rewards) for rewards in different}) == len(different)
    numbers = np.array([learned_draws.draw(np.array([seed]), 0, 3, 1) for seed in range(1000)])
    assert abs(numbers.mean() - 0.5) < 0.04  # more than four standard errors
    assert len(set(numbers)) == 1000


def test_the_numbers_drawn_from_a_hash_are_those_of_earlier_releases() -> None:
    """Logs of such policies would otherwise be replayed with other choices."""
    shared = np.array([5.0, 0.0])
    learned_draws.update_hash(shared, 1, 3, 1.0)
    assert shared[1] == words(Stream(0, 0, 0), LEARN, 1_000_000, 3, 1)[0] >> 8
    assert learned_draws.draw(shared, 0, 2, 1) == uniform(Stream(5, 0, 0), LEARN, 2, 1)


@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    horizon=st.sampled_from([1, 3, 127]),
    constant=st.sampled_from([0.1, 0.3, 1.0]),
    scale=st.sampled_from([0.3, 1.0]),
    every=st.sampled_from([1, 3, 10]),
    capacity=st.sampled_from([2, 4, 128]),
    arms=ARMS,
    seed=SEEDS,
)
def test_ad_switch_is_its_oracle(
    horizon: int, constant: float, scale: float, every: int, capacity: int, arms: int, seed: int
) -> None:
    policy = db.policy("ad-switch", horizon=horizon, constant=constant, scale=scale, every=every, capacity=capacity)
    driver = Driver(policy, arms, seed)
    oracle = ad_switch.AdSwitch(arms, horizon, constant, scale, every, capacity)
    rewards = rewards_of(arms, seed)
    played: tuple[int, float] | None = None
    for step, arm in driver.play(rewards):
        if played is not None:
            oracle.observe(*played, lambda i, arm: learned_draws.draw(driver.shared, ad_switch_kernels.HASH, i, arm))
            agrees_with(oracle, driver)
        longest_idle = min(oracle.played_at[one] for one in oracle.candidates())
        assert arm in oracle.candidates()
        assert oracle.played_at[arm] == longest_idle
        played = arm, float(rewards[step - 1, arm])


def test_checks_of_ad_switch_are_started_for_changes_down_to_two_to_the_minus_24() -> None:
    driver = Driver(db.policy("ad-switch", horizon=1000, scale=1e12), arms=2)  # so that every check is started
    driver.slot("plays")[1], log = 7.0, np.log(1000)
    for gap, smallest in ((0.0, 24), (16.0 * 2.0**-5, 5), (np.nextafter(16.0 * 2.0**-5, 1.0), 4), (9.0, 0)):
        driver.slot("gap")[1], driver.slot("due")[1] = gap, 0.0
        ad_switch_kernels.add_checks(driver.state, 1, driver.params)
        assert driver.slot("due")[1] == (7.0 + np.floor(2.0 * log * 4.0**smallest) if smallest else 0.0)


def test_arms_are_still_compared_with_one_that_is_eliminated_at_the_same_step() -> None:
    driver = Driver(db.policy("ad-switch", horizon=1000, every=10**6), arms=3)
    for arm, reward in enumerate((1.0, 0.0, 0.5)):
        driver.feed(arm, *[reward] * 60)
    driver.slot("bad")[:] = [ad_switch_kernels.LEAVING, 0.0, 1.0]
    ad_switch_kernels.eliminate(driver.memory, -1, driver.params)
    assert driver.slot("bad").tolist() == [ad_switch_kernels.LEAVING, ad_switch_kernels.LEAVING, 1.0]
    assert (driver.slot("mean")[1], driver.slot("gap")[1]) == (0.0, 1.0)
    driver.slot("bad")[:] = [1.0, 0.0, 1.0]  # eliminated before
    ad_switch_kernels.eliminate(driver.memory, -1, driver.params)
    assert driver.slot("bad").tolist() == [1.0, 0.0, 1.0]
