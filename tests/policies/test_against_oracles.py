"""Policies against the literal transcriptions of their definitions, on the same rewards and randomness.

An oracle follows the history that the policy made. At every step after the burn-in, the score of every arm must agree,
and the chosen arm must have the largest score of the oracle. Scores are compared to a relative 1e-7, because oracles
add sums in another order; two scores closer than that count as a tie. With so few arms Thompson sampling draws every
arm; tests/core/test_largest_beta_draw.py shows that the pruned argmax has the same law.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.draws import beta, gamma
from dynabandit.core.streams import EXPLORE, EXPLORED_ARM, SCORE, SECOND, TIE, Stream, normal_pair, uniform, words
from dynabandit.policies.base import Policy
from dynabandit.policies.whole import learned_draws, lm_dsee
from dynabandit.policies.whole.changepoint_thompson import RATES
from dynabandit.policies.whole.kalman_thompson import DRIFTS
from dynabandit.validation import BOUNDED
from oracles import (
    aff_normal,
    aff_poisson_ts,
    aff_revenue_ts,
    borl,
    changepoint_ts,
    d_ts,
    exp3_s,
    f_dsw_ts,
    fewa,
    kalman,
    mix_ts,
    normal_ts,
    paper,
    r_ed_ucb,
    raw_ucb,
    rexp3,
    robust_ucb,
    sw_ts,
    upper_bounds,
    w_swa,
    wei_srivastava,
)
from tools.driver import Driver
from tools.reward_paths import path_of

TOLERANCE = 1e-7
History = list[tuple[int, float]]


class Turn(NamedTuple):
    """What an oracle knows at a decision."""

    policy: Any
    given: dict[str, Any]  # the parameters of the policy that are not None
    history: History
    arms: int
    step: int
    source: Stream
    means: list[list[float]]  # the true means, up to this step

    def noise(self, role: int, arm: int) -> float:
        return float(normal_pair(words(self.source, role, self.step, arm, 0))[0])

    def beta(self, a: float, b: float, arm: int, role: int = SCORE) -> float:
        return float(beta(a, b, self.source, role, self.step, arm))


# What an oracle returns: the scores of all arms, the arms that may be played, or the arm that must be
Expected = list[float] | set[int] | int
OfArm = Callable[[Turn, int], float]


def each(score: OfArm) -> Callable[[Turn], list[float]]:
    return lambda turn: [score(turn, arm) for arm in range(turn.arms)]


# --- The paper, and baselines with upper confidence bounds --------------------------------------------------


def of_the_paper(turn: Turn) -> list[float]:
    return list(paper.index(turn.policy.name, turn.history, turn.arms, turn.given, turn.beta))


def upper_bound(turn: Turn) -> Expected:
    name, known = turn.policy.name, (turn.history, turn.arms, turn.given)
    forced = upper_bounds.FORCED[name](*known) if name in upper_bounds.FORCED else None
    if forced is not None:
        return forced
    if name == "oracle-restart":
        return list(upper_bounds.oracle_restart(*known, turn.means))
    return list(upper_bounds.SCORES[name](*known))


def drawn_by_borl(history: History) -> float:
    """Return the random number that BORL draws after these rewards."""
    numbers = np.zeros(1)
    for arm, reward in history:
        learned_draws.update_hash(numbers, 0, arm, reward)
    return learned_draws.draw(numbers, 0, 0, 0)


def of_borl(turn: Turn) -> list[float]:
    policy, history = turn.policy, turn.history
    length = borl.window(history, policy.block, policy.exploration, lambda known: drawn_by_borl(history[:known]))
    return [borl.index(history, arm, policy.block, length) for arm in range(turn.arms)]


def of_lm_dsee(turn: Turn) -> set[int]:
    policy = turn.policy
    return wei_srivastava.lm_dsee(turn.history, turn.arms, policy.nu, policy.min_gap, policy.a, policy.b)


# --- Thompson sampling and exponential weights --------------------------------------------------------------


def of_d_ts(turn: Turn, arm: int) -> float:
    a, b = d_ts.posterior(turn.history, arm, turn.policy.discount, turn.policy.prior)
    draw = turn.beta(a, b, arm)
    return max(draw, a / (a + b)) if turn.policy.name == "d-ots" else draw


def of_f_dsw_ts(turn: Turn, arm: int) -> float:
    policy = turn.policy
    historic, hot = f_dsw_ts.laws(turn.history, arm, policy.discount, policy.window, policy.prior)
    combine: Any = f_dsw_ts.COMBINE[policy.combine]
    return float(combine(turn.beta(*historic, arm), turn.beta(*hot, arm, SECOND)))


def of_changepoint_ts(turn: Turn, arm: int) -> float:
    policy = turn.policy
    rates = RATES if policy.rate == "learnt" else (policy.rate,)
    runs = changepoint_ts.runs(turn.history, arm, rates, policy.prior, policy.particles)
    law = changepoint_ts.draw(runs, uniform(turn.source, SECOND, turn.step, arm), policy.prior)
    return turn.beta(*law, arm)


def of_kalman_ts(turn: Turn) -> list[float]:
    policy = turn.policy
    drifts = DRIFTS if policy.drift == "learnt" else (policy.drift,)
    models = [kalman.model(policy.prior, policy.persistence, drift) for drift in drifts]
    shares = kalman.weights(turn.history, turn.arms, models)
    drawn = int(np.searchsorted(np.cumsum(shares), uniform(turn.source, SECOND, turn.step, 0), side="right"))
    model = models[min(drawn, len(models) - 1)]
    scores = []
    for arm in range(turn.arms):
        mean, variance, _ = kalman.predicted(turn.history, arm, model)
        if policy.name == "predictive-sampling":
            variance = kalman.predictive_variance(mean, variance, model)
        scores.append(mean + turn.noise(SCORE, arm) * math.sqrt(variance))
    return scores


def with_gumbel_noise(turn: Turn, probabilities: Sequence[float]) -> list[float]:
    noise = [-math.log(-math.log(uniform(turn.source, SCORE, turn.step, arm))) for arm in range(turn.arms)]
    return [math.log(p) + one for p, one in zip(probabilities, noise, strict=True)]


# --- Rewards in any unit ------------------------------------------------------------------------------------


def of_normal_ts(turn: Turn, arm: int) -> float:
    center, scale, freedom = normal_ts.posterior(turn.history, arm)
    number = turn.noise(SECOND, arm)
    if math.isinf(freedom):
        return center + scale * number
    return center + scale * number / math.sqrt(2 * gamma(freedom / 2, turn.source, SCORE, turn.step, arm) / freedom)


def of_aff_normal_ts(turn: Turn, arm: int) -> float:
    mean, variance = aff_normal.law(turn.history, arm, turn.arms, turn.policy.step_size, turn.policy.floor)
    return mean + math.sqrt(variance) * turn.noise(SCORE, arm)


def of_aff_poisson_ts(turn: Turn, arm: int) -> float:
    own = turn.policy.step_size, turn.policy.floor, turn.policy.prior
    shape, rate = aff_poisson_ts.posterior(turn.history, arm, turn.arms, *own)
    return gamma(shape, turn.source, SCORE, turn.step, arm) / rate


def of_aff_revenue_ts(turn: Turn, arm: int) -> float:
    own = turn.policy.step_size, turn.policy.floor, turn.policy.prior_weight
    laws = aff_revenue_ts.laws(turn.history, arm, turn.arms, *own)
    amount = math.exp(laws.center + laws.deviation * turn.noise(SECOND, arm) + laws.variance / 2)
    return turn.beta(laws.a, laws.b, arm) * amount


mix_learnt = functools.lru_cache(maxsize=2)(mix_ts.learnt)  # all arms of a step need the same


def mix_estimate(
    turn: Turn, history: Sequence[tuple[int, float | None]], arm: int, law: mix_ts.Law
) -> tuple[float, float, float]:
    """Mean, size of the draw and noise of an arm; the reward None is a play without an amount."""
    rewards = tuple((step, played, reward) for step, (played, reward) in enumerate(history, start=1))
    beliefs, errors = mix_learnt(rewards, turn.arms, turn.policy, law)
    idle = turn.step - 1 - max((decided for decided, played, _ in rewards if played == arm), default=0)
    prior_mean = mix_ts.mean_of_all(rewards, law)
    estimate = mix_ts.estimate(beliefs.get(arm), prior_mean, turn.step, idle, turn.arms, turn.policy)
    return *estimate, errors.of(arm)


def of_mix_normal_ts(turn: Turn, arm: int) -> float:
    first = turn.history[0][1] if turn.history else 0.0
    mean, size, variance = mix_estimate(turn, [(one, y - first) for one, y in turn.history], arm, mix_ts.NORMAL)
    return max(mean + math.sqrt(variance / size) * turn.noise(SCORE, arm), mean)


def of_mix_poisson_ts(turn: Turn, arm: int) -> float:
    mean, size, _ = mix_estimate(turn, turn.history, arm, mix_ts.POISSON)
    return max(gamma(size * mean, turn.source, SCORE, turn.step, arm) / size, mean)


def of_mix_revenue_ts(turn: Turn, arm: int) -> float:
    converted = [(one, float(y > 0)) for one, y in turn.history]
    conversion, weight, _ = mix_estimate(turn, converted, arm, mix_ts.BERNOULLI)
    first = next((y for _, y in turn.history if y > 0), 1.0)
    amounts = [(one, math.log(y / first) if y > 0 else None) for one, y in turn.history]
    mean, size, variance = mix_estimate(turn, amounts, arm, mix_ts.NORMAL)
    p = turn.beta(weight * conversion, weight * (1 - conversion), arm)
    drawn = mean + math.sqrt(variance / size) * turn.noise(SECOND, arm)
    return max(p * math.exp(drawn + variance / 2), conversion * math.exp(mean + variance / 2))


ORACLES: dict[str, Callable[[Turn], Expected]] = {
    **dict.fromkeys([name for name in db.policies.POLICIES if name in paper.BURN_IN], of_the_paper),
    **dict.fromkeys(upper_bounds.BURN_IN, upper_bound),
    "sw-ucb-sharp": each(
        lambda turn, arm: wei_srivastava.sw_ucb_sharp(
            turn.history, arm, turn.policy.alpha, turn.policy.scale, turn.policy.capacity
        )
    ),
    "lm-dsee": of_lm_dsee,
    "borl": of_borl,
    "d-ts": each(of_d_ts),
    "d-ots": each(of_d_ts),
    "sw-ts": each(
        lambda turn, arm: turn.beta(*sw_ts.posterior(turn.history, arm, turn.policy.window, turn.policy.prior), arm)
    ),
    "f-dsw-ts": each(of_f_dsw_ts),
    "changepoint-ts": each(of_changepoint_ts),
    "kalman-ts": of_kalman_ts,
    "predictive-sampling": of_kalman_ts,
    "exp3-s": lambda turn: with_gumbel_noise(
        turn, exp3_s.probabilities(turn.history, turn.arms, turn.policy.exploration, turn.policy.sharing)
    ),
    "rexp3": lambda turn: with_gumbel_noise(
        turn, rexp3.probabilities(turn.history, turn.arms, turn.policy.exploration, turn.policy.batch)
    ),
    "raw-ucb": each(
        lambda turn, arm: raw_ucb.index(turn.history, arm, turn.step, turn.policy.alpha, turn.policy.sigma)
    ),
    "fewa": lambda turn: fewa.candidates(turn.history, turn.arms, turn.step, turn.policy.alpha, turn.policy.sigma),
    "w-swa": lambda turn: w_swa.candidates(
        turn.history, turn.arms, turn.policy.alpha, turn.policy.sigma, turn.policy.capacity
    ),
    "r-ed-ucb": each(
        lambda turn, arm: r_ed_ucb.index(
            turn.history, arm, turn.step, *(turn.given[name] for name in ("alpha", "sigma", "epsilon", "window"))
        )
    ),
    "mix-normal-ts": each(of_mix_normal_ts),
    "mix-poisson-ts": each(of_mix_poisson_ts),
    "mix-revenue-ts": each(of_mix_revenue_ts),
    "normal-ts": each(of_normal_ts),
    "aff-normal-ts": each(of_aff_normal_ts),
    "aff-normal-ucb": each(
        lambda turn, arm: aff_normal.upper_bound(
            turn.history, arm, turn.arms, *(turn.given[name] for name in ("step_size", "floor", "confidence"))
        )
    ),
    "aff-poisson-ts": each(of_aff_poisson_ts),
    "aff-revenue-ts": each(of_aff_revenue_ts),
    "robust-ucb": each(
        lambda turn, arm: robust_ucb.score(
            turn.history, arm, *(turn.given[name] for name in ("window", "confidence", "exploration"))
        )
    ),
}


def explores(turn: Turn, leader: int) -> bool:
    """Return whether a random arm is played instead of the leader."""
    name, drawn = turn.policy.name, uniform(turn.source, EXPLORE, turn.step, 0)
    if name == "eps-greedy":
        return bool(drawn < turn.policy.epsilon)
    if name == "aff-d-greedy":
        return paper.explores(turn.history, turn.arms, turn.given, leader)
    return name.startswith("cusum") and bool(drawn < upper_bounds.cusum_exploration(turn.given))


# --- Parameters ---------------------------------------------------------------------------------------------

STEP_SIZE = {"step_size": st.sampled_from([0.0001, 0.001, 0.01, 0.2, "variance-scaled"])}
ADAPTIVE = STEP_SIZE | {"floor": st.sampled_from([0.0, 0.6])}
PRIOR = {"prior": st.sampled_from([(2.0, 2.0), (1.0, 3.0), (0.5, 0.5)])}
MEMORY = {"memory": st.sampled_from([1.0, 5.0, 7.5, 1000.0])}
SHORT_BURN_IN = {"burn_in": st.sampled_from([1, 3])}
EXPECTED = {"changes": st.sampled_from([1, 3]), "horizon": st.sampled_from([100, 5000])}
TEST = {
    "restart": st.sampled_from(["local", "global"]),
    "scale": st.sampled_from([0.0, 0.3, 1.0, 50.0]),
    "delta": st.sampled_from([0.001, 0.3, 1.0]),
    "every": st.sampled_from([1, 3, 10]),
    "spacing": st.sampled_from([1, 2, 10]),
    "capacity": st.sampled_from([2, 4, 8, 128]),
}
CUSUM = EXPECTED | {
    "drift": st.sampled_from([0.0, 0.05, 0.3]),
    "reference_plays": st.sampled_from([1, 4, 10]),
    "threshold": st.sampled_from([None, 0.53, 2.03]),  # sums of tenths do not reach it by rounding
    "exploration": st.sampled_from([None, 0.0, 0.3, 1.0]),
}
HALVES = EXPECTED | {
    "window": st.sampled_from([2, 4, 10, 800]),
    "threshold": st.sampled_from([None, 0.5, 1.0, 3.0]),
    "exploration": st.sampled_from([None, 0.0, 0.2, 1.0]),
}
DISCOUNT = {"discount": st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0])}
EXPLORATION = {"exploration": st.sampled_from([0.01, 0.3, 1.0])}
ALPHA = {"alpha": st.sampled_from([0.06, 0.5, 1.4, 4.0])}
SIGMA = {"sigma": st.sampled_from([0.1, 0.5, 1.0])}
UNIT_FREE = {
    "step_size": st.sampled_from([0.0, 0.001, 0.05]),
    "floor": st.sampled_from([0.0, 0.9]),
    "burn_in": st.sampled_from([0, 2]),
}
MIX = {
    "strength": st.sampled_from([0.5, 2.0]),
    "share": st.sampled_from([0.005, 0.3]),
    "idle": st.sampled_from([0.0, 0.2, 5.0]),
    "surplus": st.sampled_from([0.0, 0.1]),
    "burn_in": st.sampled_from([0, 2]),
}
PARAMETERS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "eps-greedy": {"epsilon": st.sampled_from([0.0, 0.3, 1.0])},
    "ucb": {},
    "ts": PRIOR,
    "ots": PRIOR,
    "d-ucb": DISCOUNT,
    "sw-ucb": {"window": st.sampled_from([1, 2, 7, 1000])},
    "dts": PRIOR | MEMORY,
    "odts": PRIOR | MEMORY,
    "aff-d-greedy": ADAPTIVE | {"threshold": st.sampled_from([None, 0.0005, 1.0])},
    "aff-ucb1": ADAPTIVE | SHORT_BURN_IN,
    "aff-ucb2": ADAPTIVE,
    "aff-ucb2-growing": ADAPTIVE,
    "aff-ts": ADAPTIVE | PRIOR | {"loss": st.sampled_from(["squared-error", "bernoulli"])},
    "aff-ots": ADAPTIVE | PRIOR,
    "aff-dts1": ADAPTIVE | PRIOR | MEMORY | SHORT_BURN_IN,
    "aff-dts2": ADAPTIVE | PRIOR | MEMORY,
    "kl-ucb": {"loglog": st.sampled_from([0.0, 0.5, 3.0])},
    "d-kl-ucb": EXPECTED | {"discount": st.sampled_from([None, 0.5, 0.9, 0.999, 1.0])},
    "sw-kl-ucb": EXPECTED | {"window": st.sampled_from([None, 1, 2, 7, 1000])},
    "glr-kl-ucb": EXPECTED | TEST | {"schedule": st.sampled_from(["growing", "constant"])},
    "glr-kl-ucb-diminishing": {"horizon": EXPECTED["horizon"]} | TEST,
    "cusum-ucb": CUSUM,
    "cusum-kl-ucb": CUSUM,
    "m-ucb": HALVES,
    "m-kl-ucb": HALVES,
    "oracle-restart": {"index": st.sampled_from(["kl-ucb", "ucb"]), "tolerance": st.sampled_from([0.0, 0.3])},
    "aff-kl-ucb": ADAPTIVE | {"confidence": st.sampled_from([0.001, 0.05, 1.0])},
    "sw-ucb-sharp": {
        "alpha": st.sampled_from([0.0, 0.3, 0.5, 0.75, 1.0]),
        "scale": st.sampled_from([0.4, 1.0, 4.3]),
        "capacity": st.sampled_from([1, 7, 1000]),
    },
    "lm-dsee": {
        "min_gap": st.sampled_from([0.9, 1.0]),
        "nu": st.sampled_from([0.0, 0.5, 0.9]),
        "a": st.sampled_from([1.0, 2.5]),
        "b": st.sampled_from([0.5, 1.0]),
    },
    "borl": {"block": st.sampled_from([1, 2, 9, 20]), "exploration": st.sampled_from([0.01, 0.5, 1.0])},
    "d-ts": DISCOUNT | PRIOR,
    "d-ots": DISCOUNT | PRIOR,
    "sw-ts": {"window": st.sampled_from([1, 2, 7, 1000])} | PRIOR,
    "f-dsw-ts": {"window": st.sampled_from([1, 3, 100]), "combine": st.sampled_from(["min", "max", "mean"])}
    | DISCOUNT
    | PRIOR,
    "changepoint-ts": {
        "rate": st.sampled_from(["learnt", 1e-6, 0.02, 0.7]),
        "particles": st.sampled_from([2, 5, 100]),
    }
    | PRIOR,
    "kalman-ts": {
        "drift": st.sampled_from(["learnt", 0.0, 0.003, 0.05, 2.0]),
        "persistence": st.sampled_from([1.0, 0.99, 0.6]),
    }
    | PRIOR,
    "exp3-s": EXPLORATION | {"sharing": st.sampled_from([1e-12, 0.01, 1.0])},
    "rexp3": EXPLORATION | {"batch": st.sampled_from([1, 2, 13, 1000])},
    "raw-ucb": ALPHA | SIGMA,
    "fewa": ALPHA | SIGMA,
    "w-swa": {"alpha": st.sampled_from([0.02, 0.2, 1.0]), "capacity": st.sampled_from([1, 3, 1000])} | SIGMA,
    "r-ed-ucb": ALPHA
    | {
        "sigma": st.sampled_from([0.001, 0.1, 0.5]),
        "epsilon": st.sampled_from([0.1, 0.25, 0.4]),
        "window": st.sampled_from([1, 3, 1000]),
    },
    "mix-normal-ts": MIX,
    "mix-poisson-ts": MIX,
    "mix-revenue-ts": MIX,
    "normal-ts": {"burn_in": st.sampled_from([0, 3])},
    "aff-normal-ts": UNIT_FREE,
    "aff-normal-ucb": UNIT_FREE | {"confidence": st.sampled_from([0.01, 0.3])},
    "aff-poisson-ts": UNIT_FREE | {"prior": st.sampled_from([(1.0, 1.0), (0.5, 0.1), (3.0, 2.0)])},
    "aff-revenue-ts": UNIT_FREE | {"prior_weight": st.sampled_from([0.1, 2.0])},
    "robust-ucb": {
        "window": st.sampled_from([1, 3, 13, 100]),
        "confidence": st.sampled_from([0.001, 0.5]),
        "exploration": st.sampled_from([0.0, 1.0, 4.0]),
        "burn_in": st.sampled_from([0, 2]),
    },
}
# Some oracles repeat all steps at every step
STEPS = {"changepoint-ts": 30, "kalman-ts": 40, "lm-dsee": 90, "borl": 50} | {
    name: 40 for name in ORACLES if name.startswith("aff-") and db.policies.POLICIES[name].rewards == BOUNDED
}
TOLD: dict[str, dict[str, Any]] = {
    "d-ucb": {"discount": paper.tuned_discount(3, 150)},
    "sw-ucb": {"window": paper.tuned_window(3, 150)},
}
RUNS: list[tuple[str, int, dict[str, Any]]] = [  # longer ones, in steps, or those of slow oracles
    *((name, 100 if name in STEPS else 150, TOLD.get(name, {})) for name in ORACLES if name in paper.BURN_IN),
    *((name, 100 if name == "aff-kl-ucb" else 300, {}) for name in upper_bounds.BURN_IN),
    ("sw-ucb-sharp", 400, {"scale": 2.0}),
    ("lm-dsee", 400, {"min_gap": 0.8, "nu": 0.5}),
    ("d-ts", 150, {"discount": 0.98}),
    ("d-ots", 150, {"discount": 0.98}),
    ("sw-ts", 150, {"window": 40}),
    ("f-dsw-ts", 150, {}),
    ("changepoint-ts", 60, {"particles": 20}),
    ("exp3-s", 150, {"exploration": 0.1, "sharing": 0.01}),
    ("rexp3", 150, {"exploration": 0.1, "batch": 70}),
    ("raw-ucb", 300, {}),
    ("fewa", 300, {}),
    ("w-swa", 300, {}),
    ("r-ed-ucb", 300, {"sigma": 0.02}),
    ("predictive-sampling", 6, {"drift": 0.05}),
    ("predictive-sampling", 6, {"drift": 0.3, "persistence": 0.5}),
    ("predictive-sampling", 6, {"drift": 2.0}),
]


def agrees_with_oracle(policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False) -> Driver:
    means, rewards = path_of(policy, arms, steps, seed, fractions=fractions)
    known = {name: value for name, value in policy.parameters.items() if value is not None}
    driver = Driver(policy, arms, seed)
    history: History = []
    for step, arm in driver.play(rewards, means.tolist()):
        if step > policy.burn_in * arms:
            turn = Turn(policy, known, history, arms, step, driver.random, means[:step].tolist())
            check_choice(driver, turn, arm)
        history.append((arm, float(rewards[step - 1, arm])))
    return driver


def check_choice(driver: Driver, turn: Turn, arm: int) -> None:
    expected = ORACLES[turn.policy.name](turn)
    tied = np.flatnonzero(driver.scores == driver.scores.max())
    leader = int(tied[int(uniform(turn.source, TIE, turn.step, 0) * len(tied))])
    if isinstance(expected, int):
        assert arm == expected
    elif isinstance(expected, set):
        assert arm == leader
        assert arm in expected
    else:
        is_odds = turn.policy.functions.posterior is not None or turn.policy.name in ("f-dsw-ts", "changepoint-ts")
        size = 1.0 if turn.policy.rewards == BOUNDED else max(map(abs, expected))
        found = driver.drawn if is_odds else driver.scores
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * min(size, 1e300))
        first = max(expected)
        assert expected[leader] == first or first - expected[leader] <= TOLERANCE * size
        explored = int(uniform(turn.source, EXPLORED_ARM, turn.step, 0) * turn.arms)
        assert arm == (explored if explores(turn, leader) else leader)


@pytest.mark.parametrize("name", PARAMETERS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_score_and_choice_is_that_of_the_oracle(name: str, data: st.DataObject) -> None:
    policy = db.policy(name, **data.draw(st.fixed_dictionaries(PARAMETERS[name])))
    arms, seed = data.draw(st.integers(2, 4)), data.draw(st.integers(0, 2**32))
    steps = STEPS.get(name, 80 if name in upper_bounds.BURN_IN else 60 if policy.rewards == BOUNDED else 36)
    agrees_with_oracle(policy, arms, steps, seed, fractions=data.draw(st.booleans()))


@pytest.mark.parametrize(("name", "steps", "parameters"), RUNS)
def test_a_run_with_usual_parameters_agrees_with_the_oracle(name: str, steps: int, parameters: dict[str, Any]) -> None:
    driver = agrees_with_oracle(db.policy(name, **parameters).tuned(switches=3, horizon=steps), 3, steps, seed=42)
    if name == "lm-dsee":
        assert driver.shared[lm_dsee.EPOCH] > 3


def test_rewards_of_predictive_sampling_may_be_between_zero_and_one() -> None:
    agrees_with_oracle(db.policy("predictive-sampling", drift=0.1), arms=2, steps=8, seed=7, fractions=True)


def test_every_oracle_is_asked() -> None:
    assert {*PARAMETERS, *(name for name, _, _ in RUNS)} == set(ORACLES)


def test_burn_in_is_that_of_the_oracle() -> None:
    of_paper = {name: paper.burn_in(name) for name in ORACLES if name in paper.BURN_IN}
    expected = of_paper | upper_bounds.BURN_IN
    assert {name: db.policy(name).burn_in for name in expected} == expected


def test_a_long_idle_arm_of_d_ucb_keeps_its_order_past_the_underflow_of_its_count() -> None:
    # 0.5^1100 underflows. The arm that waited longest must come first, and nothing may become NaN.
    driver = Driver(db.policy("d-ucb", discount=0.5), 3, seed=1)
    for arm in (0, 1, *[2] * 1500):
        driver.feed(arm, 1.0)
    driver.choose(1503)
    assert not np.isnan(driver.scores).any()
    assert driver.scores[0] >= driver.scores[1] > driver.scores[2]
    assert math.isfinite(driver.scores[2])
