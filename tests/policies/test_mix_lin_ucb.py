"""MIX-LinUCB against a literal implementation, interpreted, on the same features, rewards and randomness."""

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.context import Context
from dynabandit.core.streams import SCORE, normal_pair, stream, words
from dynabandit.policies.base import Policy, Reward, Step, new_state
from dynabandit.policies.memories import linear_model, regression_mixture
from oracles.mix_lin_ucb import RATES, MixLinUCB

ARMS, STEPS, SEED = 4, 150, 11


class Kernel:
    """The state of the policy under test."""

    def __init__(self, policy: Policy, arms: int, context: Context) -> None:
        self.functions, self.params, self.arms = policy.functions, policy.params(arms), arms
        self.state = new_state(policy, arms, self.params, context)

    def scores(self, features: np.ndarray, number: int) -> np.ndarray:
        step = Step(number, self.arms, 0.0, features, np.zeros(0), stream(SEED))
        return np.array([self.functions.score(self.state, arm, step, self.params) for arm in range(self.arms)])

    def learn(self, arm: int, x: np.ndarray, value: float, decided: int, arrived: int) -> None:
        self.functions.learn(self.state, arm, Reward(value, decided, arrived, x), self.params)


def normal_of(step: int) -> float:
    return float(normal_pair(words(stream(SEED), SCORE, step, 0, 0))[0])


def row_of(features: np.ndarray, arm: int) -> np.ndarray:
    return features[arm if len(features) > 1 else 0]


def rewards_that_change(rng: np.random.Generator, features: np.ndarray, steps: int) -> np.ndarray:
    """Linear in the features with noise, (steps, ARMS); the coefficients change in the middle."""
    coefficients = rng.normal(size=(2, ARMS, features.shape[2]))
    current = coefficients[np.arange(steps) * 2 // steps]
    return (features * current).sum(axis=2) + 0.3 * rng.normal(size=(steps, ARMS))


def chosen_arm(step: int, scores: np.ndarray) -> int:
    """The arm with the largest score; but the last arm is idle from step 6 to 99, and then the only one for a while."""
    if 100 <= step < 110:
        return ARMS - 1
    return int(np.argmax(scores[: ARMS - 1] if 5 < step < 100 else scores))


@pytest.mark.parametrize("dimension", [1, 3, 6])
@pytest.mark.parametrize("per_arm", [False, True])
def test_every_score_is_that_of_the_oracle(per_arm: bool, dimension: int) -> None:
    changed = {"prior": 0.3, "share": 0.02, "sharpness": 1.5, "idle": 4.0} if dimension == 3 else {}
    policy, context = db.policy("mix-lin-ucb", **changed), Context(dimension, per_arm)
    rng = np.random.default_rng(dimension)
    features = rng.normal(size=(STEPS, context.rows(ARMS), dimension))
    rewards = rewards_that_change(rng, features, STEPS)
    delays = rng.integers(0, 26, STEPS) * (rng.random(STEPS) < 0.5)
    rewards[STEPS - 20], delays[STEPS - 20] = 1e6, 0  # so unlikely that all densities underflow
    kernel, oracle = Kernel(policy, ARMS, context), MixLinUCB(policy, ARMS, context)
    arrivals: dict[int, list[tuple[int, int]]] = {}  # decisions and arms
    for step in range(1, STEPS + 1):
        scores = compared(kernel, oracle, features[step - 1], step)
        arrivals.setdefault(step + int(delays[step - 1]), []).append((step, chosen_arm(step, scores)))
        for decided, arm in arrivals.pop(step, []):
            x, value = row_of(features[decided - 1], arm), float(rewards[decided - 1, arm])
            kernel.learn(arm, x, value, decided, step)
            oracle.learn(arm, x, value, decided)
    belief = policy.belief(kernel.state.memory[:, 0], kernel.state.shared)
    assert belief == pytest.approx((np.nan, np.nan, 1.0 - oracle.weights @ RATES, np.nan), nan_ok=True)


def compared(kernel: Kernel, oracle: MixLinUCB, features: np.ndarray, step: int) -> np.ndarray:
    """Return the scores of a step, which are finite and those of the oracle."""
    scores = kernel.scores(features, step)
    expected = [oracle.score(arm, row_of(features, arm), step, normal_of(step)) for arm in range(kernel.arms)]
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, expected, rtol=1e-8, err_msg=f"step {step}")
    return scores


@pytest.mark.parametrize("per_arm", [False, True])
def test_features_that_are_all_zero_give_finite_scores(per_arm: bool) -> None:
    policy, context = db.policy("mix-lin-ucb"), Context(2, per_arm)
    kernel, oracle = Kernel(policy, ARMS, context), MixLinUCB(policy, ARMS, context)
    zeros, ones = np.zeros((context.rows(ARMS), 2)), np.ones((context.rows(ARMS), 2))
    for step in range(1, 21):
        compared(kernel, oracle, zeros, step)
        compared(kernel, oracle, ones, step)
        x = row_of(zeros if step % 2 else ones, 0)
        kernel.learn(step % 3, x, 1.0, step, step)
        oracle.learn(step % 3, x, 1.0, step)


def test_two_arms_with_models_of_their_own_have_the_mean_of_all_rewards_as_prior() -> None:
    policy, context = db.policy("mix-lin-ucb"), Context(2, per_arm=False)
    kernel, oracle, x = Kernel(policy, 2, context), MixLinUCB(policy, 2, context), np.array([1.0, -0.5])
    for step in range(1, 4):
        kernel.learn(0, x, 3.0, step, step)
        oracle.learn(0, x, 3.0, step)
    compared(kernel, oracle, x[np.newaxis], 9)


def law_of_long_known_rewards(weights: np.ndarray, predictions: np.ndarray) -> tuple[float, float, float]:
    """Return the mean and the deviation of the score, and the noise, as after a million rewards of about a million."""
    policy, one = db.policy("mix-lin-ucb", share=0.0), np.ones((1, 1))
    kernel = Kernel(policy, ARMS, Context(1, per_arm=True))
    shared, models = kernel.state.shared, kernel.state.models.reshape(len(RATES), -1)
    shared[regression_mixture.WEIGHT : regression_mixture.LOG_DENSITY] = weights
    places = [regression_mixture.TOTAL, regression_mixture.SQUARES, regression_mixture.COUNT]
    shared[places] = 1e9, 1e15, 1000.0
    models[:, linear_model.theta_at(1)], models[:, linear_model.inverse_at(1)] = predictions, 1e-6
    step = Step(1, ARMS, 0.0, one, np.zeros(0), stream(SEED))
    mean, variance = regression_mixture.predict(kernel.state, 0, step, kernel.params.memory)
    return mean, np.sqrt(variance), regression_mixture.noise(shared)


def test_a_large_mean_takes_no_digits_from_the_deviation() -> None:
    mean, deviation, noise = law_of_long_known_rewards(np.full(7, 1 / 7), np.full(7, 1e6))
    assert mean == 1e6
    assert deviation == pytest.approx(np.sqrt(1e-6 * noise / 2.0), rel=1e-12)


def test_rounding_makes_no_variance_negative() -> None:
    for weights in np.random.default_rng(3).dirichlet(np.ones(6), 50):  # with `share` 0, the last one can become 0
        assert law_of_long_known_rewards(np.append(weights, 0.0), np.array([*[1e12] * 6, 0.0]))[1] >= 0.0


@pytest.mark.parametrize("per_arm", [False, True])
def test_choices_are_the_same_for_rewards_in_any_unit(per_arm: bool) -> None:
    """All units learn from the same plays, because one other choice would change all later ones."""
    small, one, large = (choices(unit, per_arm) for unit in (1e-4, 1.0, 1e6))
    assert small == one == large


def choices(unit: float, per_arm: bool) -> list[int]:
    """Return what the policy would choose in 200 steps after random plays, with rewards in this unit."""
    steps, context = 200, Context(3, per_arm)
    rng = np.random.default_rng(5)
    features = rng.normal(size=(steps, context.rows(ARMS), 3))
    rewards = unit * rewards_that_change(rng, features, steps)
    kernel, chosen = Kernel(db.policy("mix-lin-ucb"), ARMS, context), []
    for step, arm in enumerate(rng.integers(0, ARMS, steps), start=1):
        now = features[step - 1]
        chosen.append(int(np.argmax(kernel.scores(now, step))))
        kernel.learn(int(arm), row_of(now, arm), float(rewards[step - 1, arm]), step, step)
    return chosen


def test_variances_stay_bounded_if_the_features_never_change() -> None:
    """Directions without data keep the variance of the prior; with `share` 1 all memories have the same weight.

    All rewards are 0, so that the score is only the upper bound's width, and the noise is known. A coordinate has at
    least the share 0.9^2 of its prior: the fastest memory keeps 0.9, and a turn comes at every third reward.
    """
    steps, policy, context = 2000, db.policy("mix-lin-ucb", share=1.0), Context(3, per_arm=False)
    kernel, oracle = Kernel(policy, ARMS, context), MixLinUCB(policy, ARMS, context)
    same, orthogonal = np.array([1.0, 2.0, -3.0]), np.array([2.0, -1.0, 0.0])
    for step in range(1, steps + 1):
        kernel.learn(0, same, 0.0, step, step)
        oracle.learn(0, same, 0.0, step)
    step = next(number for number in range(steps + 1, steps + 100) if normal_of(number) > 0.5)
    for x, largest in ((same, 0.1), (orthogonal, orthogonal @ orthogonal / 0.9**2)):
        score = compared(kernel, oracle, x[np.newaxis], step)[0]
        variance = (score / normal_of(step)) ** 2 * policy.parameters["sharpness"] / oracle.noise()
        assert 0 < variance < largest
