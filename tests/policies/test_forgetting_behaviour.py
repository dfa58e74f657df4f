"""How the forgetting baselines are tuned, and how they forget."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.policies.whole.changepoint_thompson import RATES
from oracles import changepoint_ts, exp3_s, rexp3
from tools.driver import Driver

TUNED = ("d-ts", "sw-ts", "exp3-s")


def driven(name: str, arms: int = 3, **parameters: Any) -> Driver:
    return Driver(db.policy(name, **parameters), arms, interpreted=False)


def means(driver: Driver) -> list[float]:
    return [driver.policy.belief(driver.memory[:, arm], driver.shared).mean for arm in range(driver.arms)]


def sizes(driver: Driver) -> list[float]:
    return [driver.policy.belief(driver.memory[:, arm], driver.shared).effective_size for arm in range(driver.arms)]


# --- Tuning -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arms", [2, 10])
@pytest.mark.parametrize("horizon", [10, 1000, 10**6])
def test_exp3_s_is_tuned_by_the_corollaries_of_its_paper(arms: int, horizon: int) -> None:
    blind = db.policy("exp3-s", changes=1, horizon=horizon).params(arms)
    assert blind[:2] == pytest.approx(exp3_s.tuned(arms, horizon))
    told = db.policy("exp3-s").tuned(switches=7, horizon=horizon).params(arms)
    assert told[:2] == pytest.approx(exp3_s.tuned(arms, horizon, hardness=8))


@pytest.mark.parametrize("arms", [2, 10])
@pytest.mark.parametrize("horizon", [10, 1000, 10**6])
def test_rexp3_is_tuned_by_the_theorem_of_its_paper(arms: int, horizon: int) -> None:
    for policy, variation in (
        (db.policy("rexp3", changes=1, horizon=horizon), 1.0),
        (db.policy("rexp3").tuned(switches=7, horizon=horizon), 1.0),  # V is not the number of switches
        (db.policy("rexp3", changes=7).tuned(switches=2, horizon=horizon), 7.0),
        (db.policy("rexp3", variation=2.5).tuned(switches=7, horizon=horizon), 2.5),
    ):
        assert policy.params(arms)[:2] == pytest.approx(rexp3.tuned(arms, horizon, variation))


@pytest.mark.parametrize("name", TUNED)
def test_a_policy_that_expects_one_change_is_not_told_those_of_the_path(name: str) -> None:
    blind = db.policy(name, changes=1)
    assert not blind.needs_tuning
    assert blind.needs_horizon
    told = [blind.tuned(switches, 1000).params(3) for switches in (0, 9)]
    assert told[0] == told[1] != db.policy(name).tuned(9, 1000).params(3)
    assert (db.policy(name).label, blind.label) == (name, f"{name}(changes=1)")


# --- Forgetting ---------------------------------------------------------------------------------------------


# --- Exp3 ---------------------------------------------------------------------------------------------------


def test_exp3_s_keeps_every_arm_within_reach_in_a_long_run() -> None:
    driver = driven("exp3-s", exploration=0.5, sharing=1e-6).feed(0, *[1.0] * 20_000)
    shares = driver.slot("share")
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] > 0.99
    assert (shares[1:] > 1e-7).all()
    driver.feed(1, *[1.0] * 500)
    assert shares[1] > 0.99


def test_rexp3_neither_overflows_nor_forgets_its_sum_in_a_long_batch() -> None:
    driver = driven("rexp3", exploration=1.0, batch=10**9).feed(0, *[1.0] * 20_000).feed(1, *[1.0] * 19_999)
    log_weights = driver.slot("log_weight")
    assert log_weights[:2] == pytest.approx([20_000, 19_999])
    assert driver.shared[1] == pytest.approx(20_000 + math.log1p(math.exp(-1)))
    driver.choose(40_000)
    assert np.isfinite(driver.scores).all()


# --- Change points ------------------------------------------------------------------------------------------


def probabilities(driver: Driver, arm: int, rates: int) -> tuple[np.ndarray, np.ndarray]:
    """What is fresh, and what the particles hold, under each rate."""
    column = driver.memory[:, arm]
    return column[2 : 2 + rates], column[2 + rates :].reshape(-1, 2 + rates)[:, 2:]


@pytest.mark.parametrize("rate", ["learnt", 0.01])
def test_the_runs_of_an_arm_are_a_law_for_as_long_as_it_is_played(rate: Any) -> None:
    driver = driven("changepoint-ts", rate=rate, particles=7)
    rewards = np.random.default_rng(1).random(3000) < np.repeat([0.9, 0.1, 0.5], 1000)
    for step, reward in enumerate(rewards):
        driver.feed(step % 2, float(reward))
    for arm in range(3):
        fresh, held = probabilities(driver, arm, 4 if rate == "learnt" else 1)
        assert (fresh >= 0.0).all()
        assert (held >= 0.0).all()
        assert fresh.sum() + held.sum() == pytest.approx(1.0)
    assert driver.slot("particles").tolist() == [7.0, 7.0, 0.0]


def test_few_particles_come_close_to_all_of_them() -> None:
    rewards = (np.random.default_rng(2).random(300) < np.repeat([0.8, 0.2, 0.6], 100)).astype(float)
    few, all_ = (driven("changepoint-ts", rate=0.01, particles=particles) for particles in (32, 300))
    apart = []
    for reward in rewards:
        few.feed(0, float(reward))
        all_.feed(0, float(reward))
        apart.append(abs(means(few)[0] - means(all_)[0]))
    assert max(apart) < 0.02
    held = changepoint_ts.runs([(0, float(reward)) for reward in rewards], 0, (0.01,), (1.0, 1.0))
    assert means(all_)[0] == pytest.approx(sum(run.probability * run.a / (run.a + run.b) for run in held))


def test_a_change_is_believed_after_a_few_rewards() -> None:
    driver = driven("changepoint-ts").feed(0, *[1.0] * 500)
    assert means(driver)[0] > 0.99
    driver.feed(0, *[0.0] * 5)
    assert means(driver)[0] < 0.25
    assert sizes(driver)[0] < 20


def test_an_arm_left_alone_may_have_changed() -> None:
    driver = driven("changepoint-ts", rate=0.01).feed(0, *[1.0] * 50)
    sure = means(driver)[0]
    driver.feed(1, *[1.0] * 100)
    # (1 - rate)^100 of the probability still has no change
    assert means(driver)[0] == pytest.approx(0.5 + (sure - 0.5) * 0.99**100)


def test_the_rate_of_changes_is_learned() -> None:
    restless, still = driven("changepoint-ts", particles=200), driven("changepoint-ts", particles=200)
    for piece in range(16):
        restless.feed(0, *[float(piece % 2)] * 30)
        still.feed(0, *[1.0] * 30)
    likely = []
    for driver in (restless, still):
        fresh, held = probabilities(driver, 0, len(RATES))
        likely.append(fresh + held.sum(axis=0))
    assert likely[0][0] > 0.99
    assert sorted(likely[1]) == likely[1].tolist()
    assert likely[1][0] < 0.75 * likely[1][3]
