"""The Thompson sampling and Exp3 baselines against literal implementations of their papers, on the same randomness.

As in test_against_oracle.py, an oracle follows the history that the compiled policy made. At every step after the
burn-in, every arm's score must agree to a relative 1e-7, and the chosen arm must have the oracle's largest score.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.draws import beta
from dynabandit.core.streams import SCORE, SECOND, Stream, uniform
from dynabandit.policies.base import Policy
from dynabandit.policies.whole.changepoint_thompson import RATES
from oracles import changepoint_ts, d_ts, exp3_s, f_dsw_ts, rexp3, sw_ts
from tools.driver import Driver

TOLERANCE = 1e-7
History = list[tuple[int, float]]
Scores = Callable[[Any, History, int, int, Stream], list[float]]


def d_ts_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    laws = [d_ts.posterior(history, arm, policy.discount, policy.prior) for arm in range(arms)]
    draws = [beta(*law, source, SCORE, step, arm) for arm, law in enumerate(laws)]
    if policy.name == "d-ts":
        return draws
    return [max(draw, a / (a + b)) for draw, (a, b) in zip(draws, laws, strict=True)]


def sw_ts_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    laws = [sw_ts.posterior(history, arm, policy.window, policy.prior) for arm in range(arms)]
    return [beta(*law, source, SCORE, step, arm) for arm, law in enumerate(laws)]


def f_dsw_ts_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    combine: Any = f_dsw_ts.COMBINE[policy.combine]
    scores = []
    for arm in range(arms):
        historic, hot = f_dsw_ts.laws(history, arm, policy.discount, policy.window, policy.prior)
        scores.append(combine(beta(*historic, source, SCORE, step, arm), beta(*hot, source, SECOND, step, arm)))
    return scores


def changepoint_ts_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    rates = RATES if policy.rate == "learnt" else (policy.rate,)
    scores = []
    for arm in range(arms):
        held = changepoint_ts.runs(history, arm, rates, policy.prior, policy.particles)
        law = changepoint_ts.draw(held, uniform(source, SECOND, step, arm), policy.prior)
        scores.append(beta(*law, source, SCORE, step, arm))
    return scores


def gumbel_scores(probabilities: list[float], step: int, source: Stream) -> list[float]:
    noise = [-math.log(-math.log(uniform(source, SCORE, step, arm))) for arm in range(len(probabilities))]
    return [math.log(p) + g for p, g in zip(probabilities, noise, strict=True)]


def exp3_s_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    return gumbel_scores(exp3_s.probabilities(history, arms, policy.exploration, policy.sharing), step, source)


def rexp3_scores(policy: Any, history: History, arms: int, step: int, source: Stream) -> list[float]:
    return gumbel_scores(rexp3.probabilities(history, arms, policy.exploration, policy.batch), step, source)


ORACLES: dict[str, Scores] = {
    "d-ts": d_ts_scores,
    "d-ots": d_ts_scores,
    "sw-ts": sw_ts_scores,
    "f-dsw-ts": f_dsw_ts_scores,
    "changepoint-ts": changepoint_ts_scores,
    "exp3-s": exp3_s_scores,
    "rexp3": rexp3_scores,
}
PRIORS = st.sampled_from([(1.0, 1.0), (2.0, 2.0), (0.5, 3.0)])
DISCOUNTS = st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0])
EXPLORATIONS = st.sampled_from([0.01, 0.3, 1.0])
PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "d-ts": {"discount": DISCOUNTS, "prior": PRIORS},
    "d-ots": {"discount": DISCOUNTS, "prior": PRIORS},
    "sw-ts": {"window": st.sampled_from([1, 2, 7, 1000]), "prior": PRIORS},
    "f-dsw-ts": {
        "discount": DISCOUNTS,
        "window": st.sampled_from([1, 3, 100]),
        "combine": st.sampled_from(["min", "max", "mean"]),
        "prior": PRIORS,
    },
    "changepoint-ts": {
        "rate": st.sampled_from(["learnt", 1e-6, 0.02, 0.7]),
        "particles": st.sampled_from([2, 5, 100]),
        "prior": PRIORS,
    },
    "exp3-s": {"exploration": EXPLORATIONS, "sharing": st.sampled_from([1e-12, 0.01, 1.0])},
    "rexp3": {"exploration": EXPLORATIONS, "batch": st.sampled_from([1, 2, 13, 1000])},
}
each_baseline = pytest.mark.parametrize("name", ORACLES)


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False) -> None:
    drawn = np.random.default_rng(seed)
    means = np.repeat(drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]], -(-steps // 4), axis=0)[:steps]
    rewards = means if fractions else (drawn.random((steps, arms)) < means).astype(float)
    driver = Driver(policy, arms, seed, interpreted=False)
    history: History = []
    for step, arm in driver.play(rewards):
        expected = ORACLES[policy.name](policy, history, arms, step, driver.random)
        found = driver.drawn if policy.name.endswith("ts") else driver.scores
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
        assert max(expected) - expected[arm] < TOLERANCE
        history.append((arm, float(rewards[step - 1, arm])))


@each_baseline
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_score_and_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(st.fixed_dictionaries(PARAMETERS[name])))
    arms, seed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 2**32))
    steps = 30 if name == "changepoint-ts" else 60  # its oracle repeats all steps at every step
    agrees_with_oracle(policy, arms, steps, seed)


SETTLED: dict[str, dict[str, Any]] = {
    "d-ts": {"discount": 0.98},
    "d-ots": {"discount": 0.98},
    "sw-ts": {"window": 40},
    "f-dsw-ts": {},
    "changepoint-ts": {"particles": 20},
    "exp3-s": {"exploration": 0.1, "sharing": 0.01},
    "rexp3": {"exploration": 0.1, "batch": 70},
}


@each_baseline
def test_a_long_run_agrees_with_the_oracle(name: str) -> None:
    steps = 60 if name == "changepoint-ts" else 150  # its oracle repeats all steps at every step
    agrees_with_oracle(db.policy(name, **SETTLED[name]), arms=3, steps=steps, seed=42)


@each_baseline
def test_rewards_between_zero_and_one_agree_with_the_oracle(name: str) -> None:
    agrees_with_oracle(db.policy(name, **SETTLED[name]), arms=3, steps=40, seed=7, fractions=True)
