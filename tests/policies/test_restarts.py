"""Policies that detect changes: they find them, they find no others, and every arm is looked at."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies.detectors import glr, halves
from dynabandit.service.domain import warm_start
from oracles import upper_bounds
from tools.driver import Driver

STILL = [0.0, 1.0] * 2000
GLR = {"horizon": 10_000}
ONE_CHANGE = {"changes": 1, "horizon": 10_000}
DETECTORS: dict[str, dict[str, Any]] = {
    "glr-kl-ucb": GLR,
    "glr-kl-ucb-diminishing": GLR,
    "cusum-ucb": ONE_CHANGE,
    "cusum-kl-ucb": ONE_CHANGE,
    "m-ucb": {**ONE_CHANGE, "window": 200},
    "m-kl-ucb": {**ONE_CHANGE, "window": 200},
}
RESTARTS_ALL = ("m-ucb", "m-kl-ucb", "glr-kl-ucb, global")


def detector(name: str) -> Driver:
    name, _, restart = name.partition(", ")
    more = {"restart": restart} if restart else {}
    return Driver(db.policy(name, **DETECTORS[name], **more), arms=3, interpreted=False)


def plays(driver: Driver) -> list[float]:
    return driver.slot("plays").tolist()


@pytest.mark.parametrize("name", [*DETECTORS, "glr-kl-ucb, global"])
def test_a_change_is_found_and_what_was_before_it_forgotten(name: str) -> None:
    driver = detector(name).feed(0, *STILL[:400]).feed(2, *STILL[:10]).feed(1, *STILL[:400])
    needed = 0
    while plays(driver)[1] > 0.0:
        driver.feed(1, 1.0)
        needed += 1
        assert needed < 150
    assert needed > 5
    assert plays(driver) == ([0.0] * 3 if name in RESTARTS_ALL else [400.0, 0.0, 10.0])
    assert driver.slot("mean")[1] == math.inf


@pytest.mark.parametrize("name", DETECTORS)
def test_without_a_change_nothing_is_ever_restarted(name: str) -> None:
    driver = detector(name).feed(1, *STILL, *STILL, *STILL)
    assert plays(driver) == [0.0, 12_000.0, 0.0]


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("name", DETECTORS)
def test_equal_rewards_are_no_change(name: str, reward: float) -> None:
    assert plays(detector(name).feed(1, *[reward] * 3000)) == [0.0, 3000.0, 0.0]


def test_a_late_change_is_found_among_the_few_splits_that_are_kept() -> None:
    policy = db.policy("glr-kl-ucb", horizon=100_000, capacity=8)
    driver = Driver(policy, arms=2, interpreted=False).feed(0, *STILL * 10)
    assert driver.slot("stride")[0] == 10 * 2**9  # 40,000 plays in at most 8 pieces
    assert policy.memory_size() == len(policy.slots) + 8
    driver.feed(0, *[1.0] * 6000)
    assert driver.shared[glr.RESTARTS] == 1.0


def test_the_splits_that_are_kept_are_the_oracles() -> None:
    rewards = np.random.default_rng(5).random(700).round(3)
    driver = Driver(db.policy("glr-kl-ucb", delta=1e-9, scale=0.0, spacing=3, capacity=6), arms=2)
    for n, reward in enumerate(rewards, start=1):
        driver.feed(0, float(reward))
        splits = upper_bounds.glr_candidates(n, 3, 6)
        kept = driver.memory[len(driver.policy.slots) :, 0][: len(splits)]
        assert kept == pytest.approx([rewards[:s].sum() for s in splits], rel=1e-12)


def test_m_ucb_compares_the_latest_plays_only() -> None:
    policy = db.policy("m-ucb", window=4, threshold=1.0, exploration=0.0)
    driver = Driver(policy, arms=2).feed(0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0)
    assert plays(driver) == [8.0, 0.0]
    driver.feed(0, 0.0)  # halves 1 1 and 0 0: now the sums differ by more than 1
    assert plays(driver) == [0.0, 0.0]
    assert driver.shared[halves.LATEST] == 9.0


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("m-ucb", {"exploration": 0.06, "threshold": 1e6}),
        ("m-kl-ucb", {"exploration": 0.06, "threshold": 1e6}),
        ("glr-kl-ucb", {"horizon": 3000, "delta": 1e-9, "scale": 1.0}),
        ("glr-kl-ucb-diminishing", {"delta": 1e-9}),
    ],
)
def test_forced_exploration_plays_every_arm_equally_often_the_last_one_too(
    name: str, parameters: dict[str, Any]
) -> None:
    world = db.environment("fixed", means=[1.0, 0.0, 0.0, 0.0])
    policy = db.policy(name, **parameters)
    run = db.simulate(policy, world, horizon=3000, seed=1, keep="arms")
    assert run.arms is not None
    driver, forced = Driver(policy, arms=4), []
    history = []
    for step, arm in enumerate(run.arms[0].tolist(), start=1):
        common = driver.common(step)
        if common < 0.0:
            forced.append(int(-common) - 1)
            assert arm == forced[-1]
        driver.feed(arm, float(arm == 0))
        history.append(arm)
    counts = np.bincount(forced, minlength=4)
    assert counts.min() >= 10
    assert counts.max() - counts.min() <= 1
    assert forced == [n % 4 for n in range(len(forced))]


@pytest.mark.parametrize("restarts", [0, 1, 3, 20])
@pytest.mark.parametrize("schedule", ["growing", "constant"])
def test_the_share_of_forced_exploration_grows_with_the_root_of_the_number_of_restarts(
    schedule: str, restarts: int
) -> None:
    policy = db.policy("glr-kl-ucb", horizon=1000, schedule=schedule, changes=5)
    driver = Driver(policy, arms=2)
    driver.shared[glr.RESTARTS] = restarts
    factor = restarts + 1 if schedule == "growing" else 5
    share = 0.1 * math.sqrt(factor * 2 * math.log(1000) / 1000)
    for step in range(1, 200):
        turn = driver.common(step)
        expected = upper_bounds.in_turn(step, 2, share)
        assert (None if turn > 0.0 else int(-turn) - 1) == expected


def test_a_share_of_one_leaves_nothing_but_turns() -> None:
    policy = db.policy("m-ucb", exploration=1.0, threshold=1e6)
    run = db.simulate(policy, db.environment("fixed", means=[0.9, 0.5, 0.1]), horizon=60, seed=1, keep="arms")
    assert run.arms is not None
    assert run.arms[0].tolist() == [n % 3 for n in range(60)]


def test_diminishing_exploration_becomes_rare_and_starts_again_with_a_restart() -> None:
    policy = db.policy("glr-kl-ucb-diminishing", delta=0.01)
    driver = Driver(policy, arms=2)
    begins = []
    for step in range(1, 600):
        common = driver.common(step)
        if common == -1.0:
            begins.append(step)
        driver.feed(0, float(step % 2 if step < 300 else 1))
    restarted = int(driver.shared[glr.LATEST])
    assert restarted > 300
    # sqrt(u) grows by K / (2 alpha) = 1: sessions at 1, 4, 9, ... after the start and after the restart
    assert begins == [n * n for n in range(1, 40) if n * n <= restarted] + [
        restarted + n * n for n in range(1, 40) if restarted + n * n < 600
    ]


def test_the_oracle_policy_forgets_the_arm_that_changed_and_no_other() -> None:
    driver = Driver(db.policy("oracle-restart"), arms=2)
    means = [[0.3, 0.6]] * 20 + [[0.9, 0.6]] * 5
    chosen = [arm for _, arm in driver.play(np.tile([0.0, 1.0], (25, 1)), means)]
    assert chosen[20] == 0
    assert driver.slot("plays").tolist() == [chosen[20:].count(0), chosen.count(1)]


def test_the_oracle_policy_lets_small_moves_pass_but_not_their_sum() -> None:
    driver = Driver(db.policy("oracle-restart", tolerance=0.1), arms=2).feed(0, 1.0)
    ages = []
    for step in range(12):
        driver.functions.reveal(driver.state, 0, 0.5 + 0.03 * step)
        ages.append(driver.slot("age")[0])
    assert ages == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]


# --- Bad input, and a Bandit ---------------------------------------------------------------------------------

EVEN = "an even number of at least 2"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("kl-ucb", {"loglog": -1.0}, r"loglog must be a number in \[0, inf\), got -1.0"),
        ("d-kl-ucb", {"discount": 0.0}, r"discount must be a number in \(0, 1\], got 0.0"),
        ("d-kl-ucb", {"changes": 0}, "changes must be a whole number of at least 1 and at most .*, got 0"),
        ("sw-kl-ucb", {"window": 0}, "window must be a whole number of at least 1 and at most .*, got 0"),
        ("sw-kl-ucb", {"horizon": 2.0}, "horizon must be a whole number of at least 1"),
        ("glr-kl-ucb", {"restart": "globl"}, "unknown restart 'globl'. Did you mean 'global'"),
        ("glr-kl-ucb", {"schedule": "x"}, "unknown schedule 'x'. Known: constant, growing"),
        ("glr-kl-ucb", {"delta": 0.0}, r"delta must be a number in \(0, 1\], got 0.0"),
        ("glr-kl-ucb", {"capacity": 7}, f"capacity must be {EVEN}, got 7"),
        ("glr-kl-ucb", {"every": 0}, "every must be a whole number of at least 1 and at most .*, got 0"),
        ("glr-kl-ucb-diminishing", {"scale": -0.1}, r"scale must be a number in \[0, inf\), got -0.1"),
        (
            "glr-kl-ucb-diminishing",
            {"spacing": 0.5},
            "spacing must be a whole number of at least 1 and at most .*, got 0.5",
        ),
        ("cusum-ucb", {"drift": 1.5}, r"drift must be a number in \[0, 1\], got 1.5"),
        (
            "cusum-ucb",
            {"reference_plays": 0},
            "reference_plays must be a whole number of at least 1 and at most .*, got 0",
        ),
        ("m-ucb", {"window": 5}, f"window must be {EVEN}, got 5"),
        ("m-ucb", {"exploration": 1.5}, r"exploration must be a number in \[0, 1\], got 1.5"),
        ("oracle-restart", {"index": "ts"}, "unknown index 'ts'. Known: kl-ucb, ucb"),
        ("aff-kl-ucb", {"confidence": 0.0}, r"confidence must be a number in \(0, 1\], got 0.0"),
    ],
)
def test_a_wrong_parameter_is_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        db.policy(name, **parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("oracle-restart", {}, "needs to be told the true means"),
        (
            "m-ucb",
            {"changes": 1, "horizon": 9, "window": 10**9},
            "would keep 1000000005 numbers of each of 2 arms, but a bandit keeps at most 100000000 in all",
        ),
    ],
)
def test_a_bandit_says_what_it_has_to_be_told(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.Bandit(name, arms=["a", "b"], **parameters)


def test_the_service_refuses_a_window_of_any_length() -> None:
    with pytest.raises(
        ValueError,
        match=r"^window must be smaller: policy 'm-ucb' with 2 arms, changes=1, horizon=9, window=10000000 would keep "
        r"20000012 numbers, but at most 4000000 are possible$",
    ):
        warm_start.check_policy_size("m-ucb", {"changes": 1, "horizon": 9, "window": 10**7}, arms=2)


def test_given_all_that_would_follow_from_them_neither_changes_nor_horizon_are_needed() -> None:
    given: dict[str, dict[str, Any]] = {
        "m-ucb": {"threshold": 5.0, "exploration": 0.1},
        "cusum-ucb": {"threshold": 5.0, "exploration": 0.1},
        "glr-kl-ucb": {"delta": 0.01, "scale": 0.0},
        "glr-kl-ucb-diminishing": {"delta": 0.01},
        "d-kl-ucb": {"discount": 0.99},
        "sw-kl-ucb": {"window": 10},
    }
    for name, parameters in given.items():
        assert db.Bandit(name, arms=["a", "b"], seed=1, **parameters).choose() == "a"


def test_an_arm_that_is_added_counts_its_time_from_then_on() -> None:
    bandit = db.Bandit("glr-kl-ucb", arms=["a", "b"], seed=1, horizon=1000)
    for _ in range(50):
        bandit.reward(bandit.choose(), 0.5)
    bandit.add_arm("c")
    assert bandit.choose() == "c" or bandit.choose() == "c"
    assert bandit._memory[bandit.policy.slots.index("started")].tolist() == [0.0, 0.0, 50.0]
