"""First steps, exact thresholds, long runs, and what lies just beyond an array: the edges of policies."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import EXPLORE, stream, uniform
from dynabandit.policies import POLICIES, PolicyState, Reward
from dynabandit.policies.detectors import glr
from dynabandit.policies.memories.adaptive import LOG_ZERO
from dynabandit.policies.memories.base import exponential
from dynabandit.policies.whole import adaptive, changepoint_thompson
from dynabandit.simulation.compiled import compiled_learn_many
from tools.driver import Driver
from tools.ready import READY

GIVEN: dict[str, dict[str, Any]] = {name: READY.get(name, {}) for name in POLICIES} | {
    "d-ucb": {"discount": 0.9},
    "sw-ucb": {"window": 25},
}
REWARDS = np.random.default_rng(3).random((40, 3)).round(2)


def ready(name: str, **parameters: Any) -> Driver:
    return Driver(db.policy(name, **(GIVEN[name] | parameters)), arms=3)


def scores(driver: Driver, step: int) -> list[float]:
    driver.choose(step)
    return [float(score) for score in driver.scores]


# --- The contract of kernels --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_kernel_reads_nothing_beyond_its_shared_numbers(name: str) -> None:
    plain, padded = ready(name), ready(name)
    padded.shared = np.append(padded.shared * 0.0, math.nan)
    padded.state = PolicyState(padded.memory, padded.shared, padded.last_played)
    for arm in range(3):
        padded.functions.start(padded.state, arm, padded.params)
    means = [[0.5, 0.2, 0.9]] * 20 + [[0.5, 0.9, 0.2]] * 20
    for (step, arm), (_, other) in zip(plain.play(REWARDS, means), padded.play(REWARDS, means), strict=True):
        assert arm == other, step
        np.testing.assert_array_equal(plain.scores, padded.scores)
    np.testing.assert_array_equal(plain.memory, padded.memory)
    np.testing.assert_array_equal(plain.shared, padded.shared[:-1])


@pytest.mark.parametrize("name", POLICIES)
def test_an_arm_that_comes_later_is_new_and_changes_nothing_of_the_others(name: str) -> None:
    driver = ready(name)
    for _ in driver.play(REWARDS, [[0.5, 0.2, 0.9]] * len(REWARDS)):
        pass
    driver.memory[:, 2] = 0.0  # as a column that is added
    memory, shared = driver.memory.copy(), driver.shared.copy()
    driver.functions.start(driver.state, 2, driver.params)
    np.testing.assert_array_equal(driver.shared, shared)
    np.testing.assert_array_equal(driver.memory[:, :2], memory[:, :2])
    is_step = driver.memory[:, 2] == len(REWARDS)  # some policies remember when an arm came
    np.testing.assert_array_equal(driver.memory[~is_step, 2], ready(name).memory[~is_step, 2])


@pytest.mark.parametrize("name", ["ucb", "d-ts"])
def test_many_rewards_at_once_are_learned_in_their_order(name: str) -> None:
    one, many = ready(name), ready(name)
    arms, rewards = np.array([0, 2, 0, 1]), np.array([1.0, 0.5, 0.25, 0.0])
    for step, (arm, reward) in enumerate(zip(arms, rewards, strict=True), start=1):
        one.learn(int(arm), step, float(reward))
    steps = np.arange(1, 5)
    compiled_learn_many(many.functions)(many.state, arms, rewards, steps, steps, np.zeros((len(arms), 0)), many.params)
    np.testing.assert_array_equal(one.memory, many.memory)
    np.testing.assert_array_equal(one.shared, many.shared)


# --- First steps --------------------------------------------------------------------------------------------

FREE: dict[str, dict[str, Any]] = {  # without forced exploration, which would hide the scores
    "ucb": {},
    "kl-ucb": {"loglog": 1.0},
    "d-ucb": {},
    "d-kl-ucb": {},
    "sw-ucb": {},
    "sw-kl-ucb": {},
    "cusum-ucb": {"exploration": 0.0},
    "m-ucb": {"exploration": 0.0},
    "cusum-kl-ucb": {"exploration": 0.0},
    "m-kl-ucb": {"exploration": 0.0},
    "glr-kl-ucb": {"scale": 0.0},
    "glr-kl-ucb-diminishing": {"scale": 0.0},
    "r-bocpd-ucb": {"scale": 0.0},
    "oracle-restart": {},
    "aff-kl-ucb": {},
    "eps-greedy": {},
    "aff-d-greedy": {},
    "aff-ucb1": {},
    "aff-ucb2": {},
    "aff-ucb2-growing": {},
    "sw-ucb-sharp": {},
}


@pytest.mark.parametrize("name", FREE)
def test_before_any_reward_every_arm_is_worth_a_look(name: str) -> None:
    assert scores(ready(name, **FREE[name]), 1) == [math.inf] * 3


LEVEL = math.sqrt(2 * math.log(2))


@pytest.mark.parametrize(
    ("name", "bonus"),
    [(name, 0.0) for name in FREE if not name.startswith(("aff-kl", "aff-ucb", "m-ucb"))] + [("m-ucb", LEVEL)],
)
def test_after_one_reward_the_logarithm_of_time_is_still_zero(name: str, bonus: float) -> None:
    # M-UCB counts the step that it decides, all others those that were played
    driver = ready(name, **FREE[name])
    driver.last_played[0] = 1
    assert scores(driver.feed(0, 0.25), 2) == [pytest.approx(0.25 + bonus, abs=1e-12), math.inf, math.inf]


@pytest.mark.parametrize(
    ("name", "parameters", "rewards", "step", "expected"),
    [
        ("m-ucb", {"exploration": 0.0}, 0, 1, 0.0),
        ("m-ucb", {"exploration": 0.0}, 0, 0, 0.0),  # the step of a restart itself
        ("m-kl-ucb", {"exploration": 0.0}, 0, 1, 0.0),
        ("robust-ucb", {}, 0, 1, 0.0),
        ("robust-ucb", {}, 0, 2, 0.0),
        ("glr-kl-ucb", {"scale": 0.0}, 3, 9, 1.0),
    ],
)
def test_what_all_scores_share_follows_the_paper(
    name: str, parameters: dict[str, Any], rewards: int, step: int, expected: float
) -> None:
    assert ready(name, **parameters).feed(0, *[0.5] * rewards).common(step) == pytest.approx(expected, rel=1e-12)


# --- A scale that all arms share ----------------------------------------------------------------------------


def test_d_ucb_multiplies_its_scale_into_every_arm_and_loses_nothing() -> None:
    driver = Driver(db.policy("d-ucb", discount=0.5), arms=4)
    assert driver.shared[0] == 1.0
    weights, totals, squares = np.zeros(4), np.zeros(4), np.zeros(4)
    scales = []
    for step in range(350):
        arm, reward = (step % 3, 0.25 * (1 + step % 4)) if step > 320 else (0, 0.5)
        driver.feed(arm, reward)
        weights, totals, squares = weights / 2, totals / 2, squares / 2
        weights[arm], totals[arm], squares[arm] = weights[arm] + 1, totals[arm] + reward, squares[arm] + reward**2
        scale = float(driver.shared[0])
        scales.append(scale)
        np.testing.assert_allclose(driver.slot("count") * scale, weights, rtol=1e-12)
        np.testing.assert_allclose(driver.slot("total") * scale, totals, rtol=1e-12)
        np.testing.assert_allclose(driver.slot("squares") * scale, squares, rtol=1e-12)
        played = weights > 0.0
        np.testing.assert_allclose(
            driver.slot("width")[played] / math.sqrt(scale), 1 / np.sqrt(weights[played]), rtol=1e-12
        )
    # 0.5^333 is the first power below 1e-100
    assert scales[:332] == [0.5**n for n in range(1, 333)]
    assert scales[332:] == [0.5**n for n in range(18)]
    assert driver.slot("width")[3] == 0.0


@pytest.mark.parametrize("name", ["d-ts", "f-dsw-ts"])
def test_d_ts_multiplies_its_scale_into_every_arm_and_loses_nothing(name: str) -> None:
    driver = Driver(db.policy(name, discount=0.5), arms=4)
    assert driver.shared[0] == 1.0
    successes, failures = np.zeros(4), np.zeros(4)
    scales = []
    for step in range(350):
        arm, reward = (step % 3, 0.25 * (1 + step % 4)) if step > 320 else (0, 0.5)
        driver.feed(arm, reward)
        successes, failures = successes / 2, failures / 2
        successes[arm], failures[arm] = successes[arm] + reward, failures[arm] + 1 - reward
        scales.append(float(driver.shared[0]))
        np.testing.assert_allclose(driver.memory[0] * scales[-1], successes, rtol=1e-12)
        np.testing.assert_allclose(driver.memory[1] * scales[-1], failures, rtol=1e-12)
    assert scales == [0.5**n for n in range(1, 333)] + [0.5**n for n in range(18)]


@pytest.mark.parametrize("name", ["d-ucb", "d-kl-ucb", "d-ts", "f-dsw-ts"])
def test_a_scale_of_1e_100_is_not_small_yet(name: str) -> None:
    driver = Driver(db.policy(name, discount=1e-100), arms=2).feed(0, 1.0)
    assert driver.shared[0] == 1e-100
    assert driver.feed(0, 1.0).shared[0] == 1.0


# --- Windows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sw-ucb", "sw-kl-ucb", "sw-ts"])
def test_an_arm_without_a_reward_in_the_window_is_as_new(name: str) -> None:
    driver = ready(name, window=3)
    new = driver.memory[:, 0].copy()
    for arm in (0, 1):
        driver.feed(arm, 0.5, 0.25).feed(2, 1.0, 0.5, 0.25)
        np.testing.assert_array_equal(driver.memory[:, arm], new)
    if name != "sw-ts":
        driver.feed(0, 1.0)
        assert driver.slot("mean").tolist() == [1.0, math.inf, pytest.approx(0.375)]
        assert driver.slot("width").tolist() == [1.0, 0.0, pytest.approx(1 / math.sqrt(2))]


@pytest.mark.parametrize(
    ("slot", "rewards"), [("hot_successes", [0.7, 0.1, 0.0, 0.0]), ("hot_failures", [0.05, 0.15, 1.0, 1.0])]
)
def test_rounding_leaves_no_negative_count_in_the_hot_posterior(slot: str, rewards: list[float]) -> None:
    first, second = rewards[:2] if slot == "hot_successes" else (1 - rewards[0], 1 - rewards[1])
    assert (first + second) - first - second < 0.0  # as in the window of two
    assert ready("f-dsw-ts", window=2).feed(0, *rewards).slot(slot)[0] == 0.0


# --- Exact thresholds ---------------------------------------------------------------------------------------


def test_a_walk_of_cusum_that_reaches_its_threshold_restarts_the_arm() -> None:
    for reference in (0.0, 1.0):
        driver = ready("cusum-ucb", reference_plays=1, drift=0.0, threshold=1.0).feed(0, reference, 0.5)
        assert driver.slot("plays")[0] == 2.0
        assert driver.feed(0, 0.5).slot("plays")[0] == 0.0


def test_m_ucb_restarts_beyond_its_threshold_and_not_at_it() -> None:
    assert ready("m-ucb", window=2, threshold=1.0).feed(0, 0.0, 1.0).slot("plays")[0] == 2.0
    assert ready("m-ucb", window=2, threshold=0.75).feed(0, 0.0, 1.0).slot("plays")[0] == 0.0


def test_m_ucb_counts_from_one_where_rewards_are_ahead_of_decisions() -> None:
    driver = ready("m-ucb", window=2, threshold=0.5, exploration=0.0)
    assert [driver.common(step) for step in (1, 2)] == [0.0, pytest.approx(math.sqrt(2 * math.log(2)))]
    driver.feed(0, 0.0, 1.0)  # a restart at the second reward
    assert [driver.common(step) for step in (1, 2, 3)] == [0.0, 0.0, 0.0]
    assert driver.common(5) == pytest.approx(math.sqrt(2 * math.log(3)))


@pytest.mark.parametrize("rewards", [(math.nextafter(1.0, 0.0), 1.0), (5e-324, 0.0)])
def test_rewards_that_differ_by_less_than_their_mean_can_show_are_no_change(rewards: tuple[float, float]) -> None:
    driver = ready("glr-kl-ucb", every=1, spacing=1).feed(0, *rewards)
    assert driver.slot("mean")[0] == rewards[1]
    assert driver.slot("plays")[0] == 2.0


def test_the_oracle_policy_lets_a_move_of_its_tolerance_pass() -> None:
    driver = ready("oracle-restart", tolerance=0.25)
    seen = []
    for mean in (0.0, 0.25, 0.5, 0.75, 1.0):
        driver.functions.reveal(driver.state, 0, mean)
        seen.append((driver.slot("told")[0], driver.slot("truth")[0], driver.slot("age")[0]))
    assert seen == [(1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 0.5, 0.0), (1.0, 0.5, 1.0), (1.0, 1.0, 0.0)]


def test_a_threshold_of_zero_explores_after_every_change_and_one_of_one_hardly_ever() -> None:
    for threshold, explores in ((0.0, True), (1.0, False)):
        driver = ready("aff-d-greedy", threshold=threshold).feed(0, 1.0, 0.0, 0.0)
        for last_played in (0, 1, 3):
            driver.last_played[0] = last_played
            found = [driver.functions.explore(driver.state, 0, driver.step(n), driver.params) for n in (3, 4, 5)]
            assert found == [False, explores, False]  # the latest reward arrived at step 3
        driver.functions.learn(driver.state, 0, Reward(driver.slot("mean")[0], 3, 3), driver.params)  # no change
        assert driver.slot("changed_at")[0] == (3.0 if explores else -1.0)


@pytest.mark.parametrize(("name", "parameter"), [("eps-greedy", "epsilon"), ("cusum-ucb", "exploration")])
def test_a_draw_that_equals_the_probability_of_exploring_does_not_explore(name: str, parameter: str) -> None:
    drawn = uniform(stream(1), EXPLORE, 9, 0)
    for probability, explores in ((drawn, False), (math.nextafter(drawn, 1.0), True)):
        driver = ready(name, **{parameter: probability})
        assert bool(driver.functions.explore(driver.state, 0, driver.step(9), driver.params)) is explores


def test_a_limit_that_is_the_step_size_is_there_before_the_first_reward() -> None:
    assert ready("aff-d-greedy", step_size=0.25).slot("limit").tolist() == [0.25] * 3
    assert ready("aff-d-greedy", threshold=0.5, floor=0.75).slot("limit").tolist() == [0.5] * 3


# --- AFF-UCB1's table ---------------------------------------------------------------------------------------


def test_the_table_of_powers_is_short_and_what_lies_beyond_is_computed() -> None:
    assert adaptive.table(3, 70_000).size == 65_536
    assert adaptive.table(3, 20).size == 20
    driver = ready("aff-ucb1", variance_floor=0.25).feed(0, 1.0, 0.0, 1.0)
    spread = driver.slot("spread")[0]
    for idle in (1, 2, 19, 20, 21, 64):
        driver.last_played[0] = 98 - idle
        found = driver.functions.score(driver.state, 0, driver.step(99), driver.params)
        assert found == pytest.approx(driver.slot("index")[0] + spread * idle ** (1 / 3), rel=1e-12)


# --- Weights of Exp3.S --------------------------------------------------------------------------------------


def test_every_weight_gets_its_part_of_the_sum_of_all_whatever_that_is() -> None:
    driver = ready("exp3-s", exploration=0.5, sharing=0.1)
    driver.slot("share")[:] = [0.9, 0.6, 0.3]  # as after an arm was added: they add up to 1.8
    gift = math.e * 0.1 / 3 * 1.8
    grown = np.array([0.9, 0.6, 0.3]) + gift
    np.testing.assert_allclose(driver.feed(0, 0.0).slot("share"), grown / grown.sum(), rtol=1e-12)


# --- Sessions of diminishing exploration --------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_the_session_that_is_not_over_is_kept_for_the_next_decision(alpha: float) -> None:
    # sqrt(u) grows by K / (2 alpha), and a session lasts as long as there are arms, of which there are 3
    driver = ready("glr-kl-ucb-diminishing", scale=alpha, every=1000)
    sessions = [1]
    for age in range(1, 80):
        driver.feed(0, 0.5)
        if age == sessions[-1] + 3:
            later = math.ceil((math.sqrt(sessions[-1]) + 3 / (2 * alpha)) ** 2)
            sessions.append(max(later, sessions[-1] + 3))
        assert driver.shared[glr.SESSION] == sessions[-1]
    assert sessions[:4] == ([1, 16, 49, 100] if alpha == 0.5 else [1, 4, 7, 10])


def test_without_forced_exploration_no_session_is_looked_for() -> None:
    driver = ready("glr-kl-ucb-diminishing", scale=0.0).feed(0, *[0.5] * 20)
    assert driver.shared[glr.SESSION] == 1.0
    assert driver.common(21) == 1.0


# --- Particles of change-point TS ---------------------------------------------------------------------------


def particles(driver: Driver) -> list[list[float]]:
    """The a, b and probability of each particle of the first arm, under one rate."""
    return [[float(number) for number in row] for row in driver.memory[3:, 0].reshape(-1, 3)]


def test_of_two_equally_likely_runs_the_longer_one_goes() -> None:
    # With a rate of 1/2, a prior of (1, 1) and a second reward of 1/2, all is a power of 2
    driver = ready("changepoint-ts", rate=0.5, particles=2).feed(0, 1.0, 0.5)
    assert particles(driver) == [[2.5, 1.5, 0.25], [1.5, 1.5, 0.25]]
    driver.feed(0, 0.0)
    assert [law[:2] for law in particles(driver)] == [[1.5, 2.5], [1.0, 2.0]]


@pytest.mark.parametrize("least", [0, 1, 2])
def test_the_least_likely_run_goes_however_unlikely_all_are(least: int) -> None:
    driver = ready("changepoint-ts", rate=0.5, particles=3).feed(0, 1.0, 0.5, 0.25)
    laws = [law[:2] for law in particles(driver)]
    driver.memory[5::3, 0] = [1e-40 if particle == least else 1e-30 for particle in range(3)]
    assert changepoint_thompson.make_room(driver.memory, 0, driver.params) == 2
    assert [law[:2] for law in particles(driver)][:2] == [law for place, law in enumerate(laws) if place != least]


# --- The traps that the notes on the paper name ---------------------------------------------------------------


def test_idle_arm_forgets_its_data_but_not_its_prior() -> None:
    played = Driver(db.policy("aff-ts", step_size=0.2, prior=(2.0, 3.0)), arms=2).feed(0, *[0.0] * 9, *[1.0] * 3)
    column = played.memory[:, 0]
    assert column[played.policy.slots.index("forgetting")] < 1.0
    played.last_played[0] = 12
    posterior = played.functions.posterior
    fresh, idle = (posterior(played.state, 0, played.step(number), played.params) for number in (13, 10_013))
    assert sum(fresh) > 6.0
    assert idle == pytest.approx((2.0, 3.0), abs=1e-9)


def test_the_printed_bonus_of_aff_ucb2_never_grows_and_the_repaired_one_does() -> None:
    rewards = [*[0.0] * 20, *[1.0] * 10]
    printed = Driver(db.policy("aff-ucb2", step_size=0.01), arms=2).feed(0, *rewards)
    growing = Driver(db.policy("aff-ucb2-growing", step_size=0.01), arms=2).feed(0, *rewards)
    assert scores(printed, 2)[0] == scores(printed, 10_000)[0]
    assert scores(growing, 1)[0] == pytest.approx(scores(printed, 1)[0], rel=1e-12)
    assert scores(growing, 10)[0] > scores(growing, 2)[0]
    mean = growing.memory[growing.policy.slots.index("mean"), 0]
    assert scores(growing, 10_000)[0] == pytest.approx(mean + math.sqrt(math.log(20) / 2), rel=1e-12)


def test_aff_ucb1_gives_an_idle_arm_without_variance_no_bonus_as_printed() -> None:
    trapped = Driver(db.policy("aff-ucb1"), arms=2).feed(0, *[0.0] * 10)
    mended = Driver(db.policy("aff-ucb1", variance_floor=0.05), arms=2).feed(0, *[0.0] * 10)
    assert scores(trapped, 5000)[0] == 0.0
    assert scores(mended, 5000)[0] > 1.0


def test_dts_never_holds_more_than_its_memory_and_never_scores_nan() -> None:
    played = Driver(db.policy("dts", memory=5.0), arms=2).feed(0, *[1.0] * 5000)
    a, b = played.memory[:, 0]
    assert a + b == pytest.approx(5.0, rel=1e-9)
    assert b < 1e-30  # a long run of equal rewards drives it towards 0
    assert not np.isnan(scores(played, 5001)).any()


def test_adaptive_discount_of_a_forgetting_factor_of_zero_is_one_when_fresh_and_zero_when_idle() -> None:
    assert exponential(LOG_ZERO, 0, 100, None) == 1.0
    assert exponential(LOG_ZERO, 1, 100, None) == 0.0


def test_a_sliding_window_longer_than_the_run_is_no_window() -> None:
    world = db.environment("case-1", arms=3)
    short, long = (
        db.simulate(db.policy("sw-ucb", window=window), world, horizon=500, seed=1, keep=("arms",)).arms
        for window in (500, 2**32 - 1)
    )
    assert np.array_equal(np.asarray(short), np.asarray(long))
