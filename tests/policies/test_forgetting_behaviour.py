"""How the forgetting baselines are tuned, and how they forget."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.policies.whole.changepoint_thompson import RATES
from oracles import changepoint_ts, exp3_s, paper as oracle, rexp3
from tools.driver import Driver
from tools.laws import ERROR_RATE, size

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


@pytest.mark.parametrize(("switches", "horizon"), [(0, 100), (1, 1000), (7, 1000), (100, 10**6)])
def test_d_ts_and_sw_ts_take_the_rules_of_their_upper_bound_cousins(switches: int, horizon: int) -> None:
    discounted, windowed = (db.policy(name).tuned(switches, horizon).params(2).memory[0] for name in ("d-ts", "sw-ts"))
    assert discounted == oracle.tuned_discount(switches, horizon)
    assert windowed == min(oracle.tuned_window(switches, horizon), horizon)


def test_a_known_batch_or_window_or_rate_needs_no_tuning() -> None:
    for name, parameters in (
        ("d-ts", {"discount": 0.9}),
        ("sw-ts", {"window": 9}),
        ("rexp3", {"batch": 9}),
        ("exp3-s", {"exploration": 0.1, "sharing": 0.1}),
        ("changepoint-ts", {}),
        ("changepoint-ts", {"rate": 0.1}),
        ("f-dsw-ts", {}),
    ):
        policy = db.policy(name, **parameters)
        assert not policy.needs_tuning
        assert not policy.needs_horizon


@pytest.mark.parametrize("name", TUNED)
def test_a_policy_that_expects_one_change_is_not_told_those_of_the_path(name: str) -> None:
    blind = db.policy(name, changes=1)
    assert not blind.needs_tuning
    assert blind.needs_horizon
    told = [blind.tuned(switches, 1000).params(3) for switches in (0, 9)]
    assert told[0] == told[1] != db.policy(name).tuned(9, 1000).params(3)
    assert (db.policy(name).label, blind.label) == (name, f"{name}(changes=1)")


def test_change_point_ts_without_a_rate_takes_the_changes_over_the_horizon() -> None:
    policy = db.policy("changepoint-ts", rate=None)
    assert policy.needs_tuning
    assert policy.tuned(switches=5, horizon=1000).params(2).rates == [0.005]


# --- Forgetting ---------------------------------------------------------------------------------------------


def test_every_arm_of_d_ts_decays_and_the_prior_does_not() -> None:
    driver = driven("d-ts", discount=0.5, prior=(1, 3)).feed(0, 1.0, 1.0).feed(1, *[0.0] * 3)
    # arm 0: 1.5 successes, then halved three times
    assert means(driver) == pytest.approx([(1 + 0.1875) / (4 + 0.1875), 1 / (4 + 1.75), 1 / 4])


@pytest.mark.parametrize("name", ["d-ts", "f-dsw-ts"])
def test_a_common_scale_neither_overflows_nor_loses_the_latest_rewards(name: str) -> None:
    driver = driven(name, discount=0.5).feed(0, 1.0).feed(1, *[1.0] * 3000)
    assert np.isfinite(driver.memory).all()
    assert 1e-100 <= driver.shared[0] <= 1.0
    assert driver.memory[0, 1] * driver.shared[0] == pytest.approx(2.0)
    assert driver.memory[0, 0] * driver.shared[0] == 0.0
    driver.choose(3002)
    assert np.isfinite(driver.scores).all()


def test_an_arm_of_sw_ts_is_back_at_its_prior_after_a_window_of_other_rewards() -> None:
    driver = driven("sw-ts", window=10).feed(0, *[1.0] * 10)
    assert means(driver)[0] == 11 / 12
    driver.feed(1, *[0.0] * 9)
    assert means(driver)[0] == 2 / 3
    driver.feed(2, 0.0)
    assert means(driver)[0] == 0.5
    assert sizes(driver) == [2.0, 11.0, 3.0]


def test_the_hot_posterior_of_f_dsw_ts_stays_while_the_historic_one_fades() -> None:
    driver = driven("f-dsw-ts", discount=0.9, window=3).feed(0, 0.0, 1.0, 1.0, 1.0).feed(1, *[0.0] * 200)
    assert means(driver)[0] == 4 / 5
    assert driver.memory[:2, 0] * driver.shared[0] == pytest.approx([0, 0], abs=1e-8)


def test_the_three_f_put_the_same_two_draws_together() -> None:
    scores = {}
    for combine in ("min", "mean", "max"):
        driver = driven("f-dsw-ts", combine=combine).feed(0, 1.0, 0.0).feed(1, 1.0)
        driver.choose(4)
        scores[combine] = driver.drawn
    assert (scores["min"] < scores["max"]).all()
    np.testing.assert_allclose(scores["mean"], (scores["min"] + scores["max"]) / 2, rtol=1e-12)


# --- Exp3 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exp3-s", "rexp3"])
def test_exp3_plays_every_arm_with_its_probability(name: str) -> None:
    """A chi-squared test fails a right implementation once in 10,000 seeds."""
    given: dict[str, Any] = {"sharing": 0.01} if name == "exp3-s" else {"batch": 100}
    driver = driven(name, arms=4, exploration=0.2, **given)
    history = [(0, 1.0)] * 9 + [(1, 1.0)] * 4 + [(2, 0.5)] * 3
    for arm, reward in history:
        driver.feed(arm, reward)
    literal = exp3_s if name == "exp3-s" else rexp3
    probabilities = np.array(literal.probabilities(history, 4, 0.2, *given.values()))
    counts = np.zeros(4)
    for replication in range(size(20_000, least=500)):
        driver.random = stream(replication)
        counts[driver.choose(len(history) + 1)] += 1
    assert stats.chisquare(counts, counts.sum() * probabilities).pvalue > ERROR_RATE
    assert probabilities[0] > 1.5 * probabilities[3]


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


def test_a_reward_counts_by_the_probability_of_its_decision() -> None:
    # All arms are equally likely at first: the estimate is 3 times the reward, and the weight grows by e^(gamma r)
    driver = driven("rexp3", exploration=0.3, batch=100).feed(2, 0.5)
    assert driver.slot("log_weight").tolist() == [0.0, 0.0, pytest.approx(0.15)]
    grown = math.exp(0.15)
    probability = 0.7 * grown / (2 + grown) + 0.1
    driver.feed(2, 1.0)
    assert driver.slot("log_weight")[2] == pytest.approx(0.15 + 0.3 / probability / 3)


def test_rexp3_knows_nothing_after_a_batch() -> None:
    driver = driven("rexp3", exploration=0.3, batch=5).feed(0, *[1.0] * 4)
    assert driver.slot("log_weight")[0] > 0.0
    driver.feed(1, 1.0)
    assert driver.slot("log_weight").tolist() == [0.0] * 3
    assert driver.shared.tolist() == [0.0, math.log(3)]


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


# --- Bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("d-ts", {"discount": 0}, r"discount must be a number in \(0, 1\], got 0"),
        ("d-ts", {"prior": (0, 1)}, r"each number in prior must be a number in \[1e-12, 1e\+12\], got 0"),
        ("d-ts", {"changes": 0}, "changes must be a whole number of at least 1 .*, got 0"),
        ("sw-ts", {"window": 0}, "window must be a whole number of at least 1 and at most .*, got 0"),
        ("sw-ts", {"window": 2.5}, "window must be a whole number of at least 1 and at most .*, got 2.5"),
        ("sw-ts", {"horizon": 0}, "horizon must be a whole number of at least 1 .*, got 0"),
        ("f-dsw-ts", {"combine": "median"}, "combine must be 'min', 'max' or 'mean', got 'median'"),
        ("f-dsw-ts", {"combine": None}, "combine must be 'min', 'max' or 'mean', got None"),
        ("f-dsw-ts", {"window": 0}, "window must be a whole number of at least 1 and at most .*, got 0"),
        ("f-dsw-ts", {"discount": 1.5}, r"discount must be a number in \(0, 1\], got 1.5"),
        ("changepoint-ts", {"rate": 0.0}, r"rate must be a number in \(0, 1\], got 0.0"),
        ("changepoint-ts", {"rate": 1.0}, r"rate must be a number in \(0, 1\), 'learnt' or None, got 1.0"),
        ("changepoint-ts", {"rate": "known"}, r"rate must be a number in \(0, 1\), 'learnt' or None, got 'known'"),
        (
            "changepoint-ts",
            {"particles": 1},
            "particles must be a whole number of at least 2 and at most .*, got 1",
        ),
        ("exp3-s", {"exploration": 0.0}, r"exploration must be a number in \(0, 1\], got 0.0"),
        ("exp3-s", {"sharing": 0.0}, r"sharing must be a number in \(0, 1\], got 0.0"),
        ("exp3-s", {"sharing": "1"}, r"sharing must be a number in \(0, 1\], got '1'"),
        ("rexp3", {"exploration": 1.5}, r"exploration must be a number in \(0, 1\], got 1.5"),
        ("rexp3", {"batch": 0}, "batch must be a whole number of at least 1 and at most .*, got 0"),
        ("rexp3", {"variation": 0.0}, r"variation must be a number in \[1e-09, 1e\+12\], got 0.0"),
    ],
)
def test_parameters_that_make_no_policy_are_refused(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        db.policy(name, **parameters)
