"""The laws of rewards: their moments and supports, their parameters, and the policies that fit them."""

import math
import re
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.one_line_syntax import read_one_line, write_one_line
from dynabandit.core.streams import REWARD, normal_pair, stream, uniform, words
from dynabandit.environments import REWARD_LAWS, RewardLaw, RewardStep
from dynabandit.experiments import Experiment, loads
from dynabandit.validation import REWARD_DOMAINS
from tools.interpreted import interpreted

DRAWS = 4000
KEEP = ("arms", "rewards")
LAWS = [
    db.reward_law("bernoulli"),
    db.reward_law("bounded", concentration=3),
    db.reward_law("normal", low=-10, high=30, deviation=4),
    db.reward_law("counts", scale=50),  # three parts of a Poisson draw
    db.reward_law("revenue", conversion=0.5, median=3, log_deviation=0.5),
]


DEFAULTS: dict[str, dict[str, float]] = {
    "bernoulli": {},
    "bounded": {"concentration": 10.0},
    "normal": {"low": 0.0, "high": 1.0, "deviation": 0.5},
    "counts": {"scale": 10.0},
    "revenue": {"conversion": 0.1, "median": 20.0, "log_deviation": 1.0},
}


def variance(law: Any, value: float) -> float:
    """The variance as the definition of each law gives it."""
    if law.name == "bernoulli":
        return value * (1 - value)
    if law.name == "bounded":
        return value * (1 - value) / (1 + law.concentration)
    if law.name == "normal":
        return float(law.deviation**2)
    if law.name == "counts":
        return float(law.scale * value)
    p, second = law.conversion * value, law.median**2 * math.exp(2 * law.log_deviation**2)
    return float(p * second - (p * law.median * math.exp(law.log_deviation**2 / 2)) ** 2)


def mean(law: Any, value: float) -> float:
    if law.name == "normal":
        return float(law.low + (law.high - law.low) * value)
    if law.name == "counts":
        return float(law.scale * value)
    if law.name == "revenue":
        return float(law.conversion * value * law.median * math.exp(law.log_deviation**2 / 2))
    return value


def drawn(law: RewardLaw, value: float, arm: int = 0) -> np.ndarray:
    params, random = law.params(), stream(11)
    return np.array([law.functions.draw(value, arm, RewardStep(n, random), params) for n in range(1, DRAWS + 1)])


def test_every_law_of_the_registry_is_tested_here_and_has_its_domain() -> None:
    assert [law.name for law in LAWS] == list(REWARD_LAWS) == list(REWARD_DOMAINS)
    assert all(law.domain is REWARD_DOMAINS[law.name] for law in LAWS)


@pytest.mark.parametrize("name", REWARD_LAWS)
def test_the_defaults_of_a_law_are_those_that_are_documented(name: str) -> None:
    law = db.reward_law(name)
    assert law.parameters == {"name": name, **DEFAULTS[name]}
    assert not law.functions.observes_plays
    assert len(law.params()) == max(len(DEFAULTS[name]), 1)


def test_normal_numbers_of_a_reward_come_from_the_attempts_that_recorded_results_have() -> None:
    step, arm = RewardStep(7, stream(11)), 2
    first, second = (normal_pair(words(step.random, REWARD, 7, arm, attempt))[0] for attempt in (0, 1))
    normal = db.reward_law("normal", low=-10, high=30, deviation=4)
    assert normal.functions.draw(0.6, arm, step, normal.params()) == 14.0 + 4.0 * first
    revenue = db.reward_law("revenue", conversion=1, median=3, log_deviation=0.5)
    u = uniform(step.random, REWARD, 7, arm)
    amounts = [revenue.functions.draw(value, arm, step, revenue.params()) for value in (u, math.nextafter(u, 1.0))]
    assert amounts == [0.0, math.exp(math.log(3.0) + 0.5 * second)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("value", [0.07, 0.6])
def test_draws_have_the_mean_and_the_variance_of_the_law(law: RewardLaw, value: float) -> None:
    """Fixed seeds; each of 20 comparisons is within 4.5 standard errors, which chance breaks once in 10^5."""
    rewards = drawn(law, value)
    assert law.expected(value) == pytest.approx(mean(law, value), rel=1e-12)
    assert abs(rewards.mean() - mean(law, value)) < 4.5 * math.sqrt(variance(law, value) / DRAWS)
    squares = (rewards - mean(law, value)) ** 2
    assert abs(squares.mean() - variance(law, value)) < 4.5 * squares.std() / math.sqrt(DRAWS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_draws_are_in_the_domain_and_differ_between_arms_and_steps(law: RewardLaw) -> None:
    rewards = drawn(law, 0.5)
    assert [law.domain.check(float(reward)) for reward in rewards] == rewards.tolist()
    assert (rewards.astype(law.functions.dtype) == rewards).all()
    other = drawn(law, 0.5, arm=1)
    assert abs(np.corrcoef(rewards, other)[0, 1]) < 4.5 / math.sqrt(DRAWS)
    assert abs(np.corrcoef(rewards[1:], rewards[:-1])[0, 1]) < 4.5 / math.sqrt(DRAWS)


def test_counts_have_the_probabilities_of_the_poisson_law() -> None:
    """Fixed seed; a chi-squared statistic with 6 degrees of freedom exceeds 33.1 by chance once in 10^5."""
    rewards = drawn(db.reward_law("counts", scale=3), 1.0)
    counts = np.bincount(np.minimum(rewards, 6).astype(int), minlength=7)
    probabilities = np.array([math.exp(-3) * 3.0**k / math.factorial(k) for k in range(6)])
    expected = DRAWS * np.append(probabilities, 1 - probabilities.sum())
    assert ((counts - expected) ** 2 / expected).sum() < 33.1


def test_revenue_is_heavy_tailed_where_it_is_not_zero() -> None:
    law = db.reward_law("revenue", conversion=0.5, median=3, log_deviation=0.5)
    rewards = drawn(law, 0.8)
    assert abs((rewards > 0).mean() - 0.4) < 4.5 * math.sqrt(0.24 / DRAWS)
    logs = np.log(rewards[rewards > 0])
    assert abs(logs.mean() - math.log(3)) < 4.5 * 0.5 / math.sqrt(len(logs))
    assert abs(logs.std() - 0.5) < 4.5 * 0.5 / math.sqrt(2 * len(logs))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_bounded_rewards_at_the_ends_of_the_path_are_certain(value: float) -> None:
    assert np.allclose(drawn(db.reward_law("bounded"), value)[:50], value)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("bounded", {"concentration": 0}, "concentration must be a number in (0, inf), got 0"),
        ("bounded", {"concentration": math.inf}, "concentration must be a number in (0, inf), got inf"),
        ("normal", {"deviation": -1}, "deviation must be a number in [0, 1e+98], got -1"),
        ("normal", {"deviation": math.nan}, "deviation must be a number in [0, 1e+98], got nan"),
        ("normal", {"low": 2, "high": 2}, "low must be below high = 2, got 2"),
        ("normal", {"high": 1e99}, "high must be a number in [-1e+98, 1e+98], got 1e+99"),
        ("counts", {"scale": 0}, "scale must be a number in (0, 1000], got 0"),
        ("counts", {"scale": 1001}, "scale must be a number in (0, 1000], got 1001"),
        ("revenue", {"conversion": 0}, "conversion must be a number in (0, 1], got 0"),
        ("revenue", {"conversion": 1.5}, "conversion must be a number in (0, 1], got 1.5"),
        ("revenue", {"median": 0}, "median must be a number in [1e-50, 1e+50], got 0"),
        ("revenue", {"log_deviation": 6}, "log_deviation must be a number in [0, 5], got 6"),
    ],
)
def test_impossible_parameters_are_named(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        db.reward_law(name, **parameters)


def test_unknown_laws_and_parameters_are_named() -> None:
    with pytest.raises(ValueError, match=r"unknown reward law 'norml'\. Did you mean 'normal'"):
        db.environment("case-1", rewards="norml")
    with pytest.raises(ValueError, match="unknown reward law ''"):
        db.environment("path", means=[[0.1, 0.2]], rewards={"deviation": 1})
    with pytest.raises(TypeError, match="reward law 'counts' has no parameter 'rate'"):
        db.reward_law("counts", rate=3)
    with pytest.raises(TypeError, match="go with a law's name"):
        db.reward_law(db.reward_law("counts"), scale=3)


ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "case-3": {"arms": 3},
    "path": {"means": np.full((8, 2), 0.5)},
    "recorded": {"rates": [[0.5, 0.25]]},
    "piecewise": {"starts": [1, 3], "means": [[0.5, 0.25], [0.25, 0.5]]},
    "fixed": {"means": [0.5, 0.25]},
    "exponential-clock": {"rates": [0.1, 0.5], "low": [0.1, 0.0], "high": [0.9, 1.0]},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_takes_a_law_by_name_and_is_remade_with_it(name: str) -> None:
    plain = db.environment(name, **ENVIRONMENTS[name])
    assert "rewards" not in plain.parameters
    environment = db.environment(name, **ENVIRONMENTS[name], rewards={"name": "normal", "deviation": 2})
    assert environment.rewards == db.reward_law("normal", deviation=2)
    assert environment.parameters["rewards"] == {"name": "normal", "low": 0.0, "high": 1.0, "deviation": 2.0}
    assert db.environment(name, **environment.parameters).rewards == environment.rewards


def test_specs_and_the_command_line_write_a_law_as_a_table() -> None:
    spec = loads("""
    [[experiments]]
    id = "trial"
    environment = { name = "case-3", rewards = { name = "normal", deviation = 2 } }
    policies = ["eps-greedy", "uniform"]
    """)
    assert spec.experiments[0].environment.rewards == db.reward_law("normal", deviation=2)
    line = write_one_line("case-3", spec.experiments[0].environment.parameters)
    assert line == 'case-3:arms=2,rewards={name="normal",low=0.0,high=1.0,deviation=2.0}'
    name, parameters = read_one_line(line)
    assert db.environment(name, **parameters) == spec.experiments[0].environment


MISFIT = (
    "policy 'ts' needs rewards that are a number in [0, 1], but those of the reward law 'counts' of environment "
    "'case-3' are a whole number in [0, 9.0072e+15]. Policies for them: eps-greedy, "
)


def test_a_policy_that_cannot_learn_from_the_rewards_is_refused() -> None:
    environment = db.environment("case-3", rewards="counts")
    with pytest.raises(ValueError, match=re.escape(MISFIT)) as found:
        db.compare(["uniform", "ts"], environment, horizon=10)
    assert "kl-ucb" not in str(found.value)
    with pytest.raises(ValueError, match=re.escape(MISFIT)):
        Experiment(id="trial", environment=environment, policies=(db.policy("ts"),))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_regret_and_kept_rewards_are_in_the_units_of_the_rewards(law: RewardLaw) -> None:
    means = [0.2, 0.7]
    environment = db.environment("fixed", means=means, rewards=law)
    with interpreted():
        run = db.simulate("uniform", environment, horizon=40, times=40, replications=2, seed=3, keep=KEEP)
    assert run.arms is not None
    assert run.rewards is not None
    assert run.rewards.dtype == law.functions.dtype
    best, worse = (law.expected(value) for value in (0.7, 0.2))
    np.testing.assert_allclose(run.regret, np.cumsum(np.where(run.arms == 0, best - worse, 0.0), axis=1))
    for replication in range(2):
        for step, arm in enumerate(run.arms[replication].tolist(), start=1):
            expected = law.functions.draw(means[arm], arm, RewardStep(step, stream(3, replication)), law.params())
            assert run.rewards[replication, step - 1] == pytest.approx(expected, rel=1e-12)


def test_an_oracle_policy_is_told_means_in_the_units_of_the_rewards() -> None:
    environment = db.environment("fixed", means=[0.25, 0.5], rewards=db.reward_law("normal", low=-4, high=4))
    with interpreted():
        run = db.simulate("best-arm", environment, horizon=20, seed=1, keep=KEEP)
    assert run.total_regret[0] == 0.0
    assert db.simulation.trace(run, times=1).truth.tolist() == [[-2.0, 0.0]]
