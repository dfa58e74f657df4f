"""Policies that decide by features against literal implementations, interpreted, on the same randomness.

The oracle follows the history that the policy made. Scores are compared to a relative 1e-7, and the chosen arm is that
with the largest score, unless a coin decides otherwise.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynabandit as db
from dynabandit.choosing.choose_arm import make_choose, new_workspace
from dynabandit.core.context import Context
from dynabandit.core.streams import EXPLORE, EXPLORED_ARM, SCORE, SECOND, Stream, normal_pair, stream, uniform, words
from dynabandit.policies import CONTEXTUAL_POLICIES
from dynabandit.policies.base import Policy, Reward, Step, new_state
from dynabandit.policies.memories.linear_model import inverse_at, theta_at
from dynabandit.policies.memories.regression import deviation_at, draw_deviation
from dynabandit.policies.memories.regression_kernels import LONGEST_MEMORY, SHORTEST_MEMORY
from dynabandit.policies.memories.regression_window import RestartRegression, WindowRegression
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules.greedy import Greedy
from dynabandit.policies.rules.kl_ucb import KLUCB
from dynabandit.policies.rules.prediction import LinearThompson, Rate, WidthBound, weight
from dynabandit.policies.rules.thompson import NormalThompson
from oracles import linear
from oracles.linear import Play
from oracles.regression import AdaptiveRegression, Regression

TOLERANCE = 1e-7
COMMON = -1  # the model that all arms share
LINKS = {"logistic": "logistic", "log-linear": "log"}


class Learnt(NamedTuple):
    """A reward, in the order of arrival."""

    arm: int
    x: np.ndarray
    reward: float
    decided: int
    arrived: int


class History(NamedTuple):
    """All rewards so far, and the step before the decision."""

    rewards: list[Learnt]
    step: int

    def is_complete(self) -> bool:
        """Whether every reward came at the step of its decision."""
        steps = list(range(1, self.step + 1))
        return steps == [one.decided for one in self.rewards] == [one.arrived for one in self.rewards]


PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "lin-ucb": [{}, {"discount": 0.9, "width": 0.5, "prior": 0.3}],
    "lin-ts": [{}, {"discount": 0.9, "width": 0.5, "prior": 0.3}],
    "d-lin-ucb": [{"discount": 0.95}, {"discount": 0.7, "width": 0.5, "prior": 0.3}],
    "sw-lin-ucb": [{"window": 7}, {"window": 1, "prior": 0.3}, {"window": 100, "width": 0.5}],
    "weight-ucb": [{"discount": 0.95}, {"discount": 1.0, "noise": 0.3, "bound": 2, "confidence": 0.2}],
    "restart-lin-ucb": [{"period": 13}, {"period": 1, "width": 0.5, "prior": 0.3}],
    "lin-eps-greedy": [{}, {"epsilon": 0.5, "discount": 0.9}],
    "square-cb": [{}, {"scale": 3.0, "exponent": 0.25, "discount": 0.9}],
    "logistic-ts": [{}, {"discount": 0.9, "width": 0.5}],
    "log-linear-ts": [{}, {"discount": 0.9, "width": 0.5}],
    "aff-lin-ucb": [{}, {"memory": 30, "step_size": 0.5}],
    "aff-lin-ts": [{}, {"memory": 30, "step_size": 0.5}],
    "aff-logistic-ts": [{"memory": 30}],
    "aff-log-linear-ts": [{"memory": 30}],
}
WINDOWED = ("sw-lin-ucb", "restart-lin-ucb")
CASES = [
    (name, model, given)
    for name, settings in PARAMETERS.items()
    for given in settings
    for model in ("separate", "shared", "hybrid")
    if not (model == "hybrid" and name in WINDOWED)
]


def regression(policy: Any, dimension: int) -> Regression:
    link = next((link for part, link in LINKS.items() if part in policy.name), "identity")
    if policy.name.startswith("aff"):
        limits = (SHORTEST_MEMORY, LONGEST_MEMORY)
        return AdaptiveRegression(dimension, policy.prior, link, policy.step_size, policy.memory, limits)
    return Regression(dimension, policy.prior, link, getattr(policy, "discount", 1.0))


def by_recursion(policy: Any, history: History, arm: int, dimension: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, covariance and what an idle time keeps of a model, from the recursions of its estimator."""
    common, own, last, common_last = regression(policy, dimension), regression(policy, dimension), 0, 0
    for played, x, reward, decided, arrived in history.rewards:
        offset = common.theta @ x if policy.model == "hybrid" else 0.0
        if policy.model == "hybrid":
            common.learn(x, reward, arrived - common_last, late=arrived - decided)
            common_last = arrived
        if played == arm or policy.model == "shared":
            own.learn(x, reward, arrived - last, offset, arrived - decided)
            last = arrived
    if arm == COMMON and policy.model == "hybrid":
        own, last = common, common_last
    squared = policy.name == "d-lin-ucb" or policy.name.startswith("aff")
    covariance = own.covariance() if squared else np.linalg.inv(own.precision())
    return own.theta, covariance, float(own.forgetting ** (history.step - last))


def by_definition(policy: Any, history: History, arm: int, dimension: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The same from the weighted sums over the history that define a linear policy without hybrid models."""
    plays = [Play(arm if policy.model == "shared" else one.arm, one.x, one.reward) for one in history.rewards]
    left, kept = np.full(dimension, policy.prior), 1.0
    if policy.name == "sw-lin-ucb":
        weights = linear.in_window(plays, arm, policy.window)
    elif policy.name == "restart-lin-ucb":
        weights = linear.since_restart(plays, arm, policy.period)
    else:
        weights = linear.discounted(plays, arm, policy.discount)
        left = linear.prior_left(plays, arm, policy.discount, dimension, policy.prior)
        kept = policy.discount ** (len(plays) - linear.idle_since(plays, arm))
    found = linear.fit(plays, weights, left, policy.prior)
    inverse = np.linalg.inv(found.precision)
    return found.theta, inverse @ found.squared @ inverse if policy.name == "d-lin-ucb" else inverse, kept


def model_of(policy: Any, history: History, arm: int, dimension: int) -> tuple[np.ndarray, np.ndarray, float]:
    linear_model = not policy.name.startswith("aff") and not any(part in policy.name for part in LINKS)
    is_defined = linear_model and policy.model != "hybrid" and history.is_complete()
    define = by_definition if is_defined else by_recursion
    return define(policy, history, arm, dimension)


def prediction(policy: Any, history: History, arm: int, x: np.ndarray) -> tuple[float, float]:
    theta, covariance, kept = model_of(policy, history, arm, x.size)
    mean, variance = linear.idle_prediction(theta @ x, x @ covariance @ x, x @ x / policy.prior, kept)
    if policy.model == "hybrid" and arm != COMMON:
        shared_mean, shared_variance = prediction(policy, history, COMMON, x)
        return mean + shared_mean, variance + shared_variance
    return mean, variance


def normals(source: Stream, step: int, dimension: int) -> np.ndarray:
    pairs = [normal_pair(words(source, SECOND, step, pair, 0)) for pair in range((dimension + 1) // 2)]
    return np.array(pairs).ravel()[:dimension]


def drawn_scores(policy: Any, history: History, features: np.ndarray, step: int, source: Stream) -> list[float]:
    """Thompson sampling: one draw of the coefficients that all arms share, independent draws of those of arms."""
    scores = [0.0] * len(features)
    for arm, x in enumerate(features):
        if policy.model != "separate":
            theta, covariance, kept = model_of(policy, history, COMMON, x.size)
            drawn = x @ linear.drawn_theta(theta, covariance, policy.width, normals(source, step, x.size))
            before = x @ covariance @ x
            mean, variance = linear.idle_prediction(theta @ x, before, x @ x / policy.prior, kept)
            scores[arm] += mean + (drawn - theta @ x) * math.sqrt(variance / before)
        if policy.model != "shared":
            theta, covariance, kept = model_of(policy, history, arm, x.size)
            mean, variance = linear.idle_prediction(theta @ x, x @ covariance @ x, x @ x / policy.prior, kept)
            normal, _ = normal_pair(words(source, SCORE, step, arm, 0))
            scores[arm] += mean + normal * policy.width * math.sqrt(variance)
    return scores


def expected_scores(policy: Any, history: History, features: np.ndarray, step: int, source: Stream) -> list[float]:
    if policy.name.endswith("ts"):
        return drawn_scores(policy, history, features, step, source)
    predictions = [prediction(policy, history, arm, x) for arm, x in enumerate(features)]
    means = [mean for mean, _ in predictions]
    if policy.name == "lin-eps-greedy":
        return means
    if policy.name == "square-cb":
        chances = linear.square_cb_probabilities(means, policy.scale * step**policy.exponent)
        return [math.log(p) - math.log(-math.log(uniform(source, SCORE, step, arm))) for arm, p in enumerate(chances)]
    if policy.name == "weight-ucb":
        given = (policy.discount, policy.prior, policy.noise, policy.bound, policy.confidence)
        width = linear.weight_ucb_radius(step, features.shape[1], *given)
    else:
        width = policy.width
    return [mean + width * math.sqrt(variance) for mean, variance in predictions]


def reward_of(policy: Policy, eta: float, drawn: np.random.Generator) -> float:
    if "logistic" in policy.name:
        return float(drawn.random() < 1.0 / (1.0 + math.exp(-eta)))
    return float(drawn.poisson(math.exp(eta))) if "log-linear" in policy.name else float(eta + drawn.normal())


def agrees_with_oracle(
    policy: Any, arms: int, dimension: int, steps: int, *, per_arm: bool, late: bool = False
) -> None:
    """Compare every score and choice; with `late`, rewards arrive up to four steps after their decision, or never."""
    drawn, source = np.random.default_rng(steps + dimension), stream(5)
    params, context = policy.params(arms), Context(dimension, per_arm=per_arm)
    state, choose = new_state(policy, arms, params, context), make_choose(policy.functions)
    space = new_workspace(policy.functions, arms, steps)
    theta = drawn.normal(size=dimension)
    rewards: list[Learnt] = []
    pending: list[Learnt] = []
    for step in range(1, steps + 1):
        history = History(rewards, step - 1)
        features = drawn.normal(size=(context.rows(arms), dimension)) / math.sqrt(dimension)
        everybody = np.broadcast_to(features, (arms, dimension))
        arm = choose(state, step, params, space._replace(features=features), source)
        expected = expected_scores(policy, history, everybody, step, source)
        np.testing.assert_allclose(space.scratch[0], expected, rtol=TOLERANCE, atol=TOLERANCE)
        if policy.name == "lin-eps-greedy" and uniform(source, EXPLORE, step, 0) < policy.epsilon:
            assert arm == int(uniform(source, EXPLORED_ARM, step, 0) * arms)
        else:
            assert max(expected) - expected[arm] < TOLERANCE
        x, sign = everybody[arm], 1.0 if step < steps // 2 else -1.0
        reward = reward_of(policy, float(sign * theta @ x + (arm % 2)), drawn)
        state.last_played[arm] = step
        delay = int(drawn.choice([0, 0, 1, 4, steps])) if late else 0
        pending.append(Learnt(arm, x, reward, step, step + delay))
        for one in [one for one in pending if one.arrived == step]:
            policy.functions.learn(state, one.arm, Reward(one.reward, one.decided, step, one.x), params)
            rewards.append(one)


@pytest.mark.parametrize(("name", "model", "given"), CASES)
def test_every_score_and_choice_is_that_of_the_oracle(name: str, model: str, given: dict[str, Any]) -> None:
    policy = db.policy(name, model=model, **given)
    agrees_with_oracle(policy, arms=3, dimension=2, steps=30, per_arm=model != "separate")


@pytest.mark.parametrize("model", ["separate", "shared", "hybrid"])
@pytest.mark.parametrize("name", [name for name in PARAMETERS if name not in WINDOWED])
def test_late_and_lost_rewards_are_those_of_the_oracle(name: str, model: str) -> None:
    policy = db.policy(name, model=model, **PARAMETERS[name][-1])
    agrees_with_oracle(policy, arms=3, dimension=2, steps=25, per_arm=model != "separate", late=True)


@pytest.mark.parametrize("model", ["separate", "shared", "hybrid"])
def test_a_draw_of_width_zero_is_the_prediction(model: str) -> None:
    policy = db.policy("lin-ts", model=model, discount=0.9, width=0.0)
    agrees_with_oracle(policy, arms=3, dimension=2, steps=25, per_arm=model != "separate", late=True)


@pytest.mark.parametrize(
    ("name", "model", "given"), [case for case in CASES if case[1] != "separate" and case[0] != "square-cb"]
)
def test_features_that_are_all_zero_have_the_score_zero(name: str, model: str, given: dict[str, Any]) -> None:
    policy = db.policy(name, model=model, **given)
    params = policy.params(2)
    state, choose = new_state(policy, 2, params, Context(2, per_arm=True)), make_choose(policy.functions)
    space = new_workspace(policy.functions, 2, 20)
    policy.functions.learn(state, 0, Reward(1.0, 1, 1, np.ones(2)), params)
    for step in (2, 9):  # before and after the data fade
        choose(state, step, params, space._replace(features=np.array([[0.0, 0.0], [1.0, 0.0]])), stream(5))
        assert space.scratch[0, 0] == 0.0
        assert np.isfinite(space.scratch[0, 1])


@pytest.mark.parametrize("model", ["shared", "hybrid"])
def test_a_reward_that_has_faded_to_nothing_does_not_move_a_draw(model: str) -> None:
    policy = db.policy("lin-ts", model=model, discount=0.5)
    params, features = policy.params(2), np.array([[1.0, 0.5], [0.0, 2.0]])
    choose, drawn = make_choose(policy.functions), []
    for reward in (-3.0, 3.0):
        state = new_state(policy, 2, params, Context(2, per_arm=True))
        policy.functions.learn(state, 0, Reward(reward, 1, 1, features[0]), params)
        space = new_workspace(policy.functions, 2, 20)._replace(features=features)
        choose(state, 2000, params, space, stream(5))  # 0.5^1999 is 0 in double precision
        drawn.append(space.scratch[0].tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", ["lin-ts", "d-lin-ucb", "aff-lin-ucb", "sw-lin-ucb"])
def test_more_features_and_a_common_context(name: str) -> None:
    policy = db.policy(name, model="separate", **PARAMETERS[name][0])
    agrees_with_oracle(policy, arms=2, dimension=5, steps=40, per_arm=False)


def test_every_contextual_policy_has_an_oracle() -> None:
    assert {*PARAMETERS} == {name for name in CONTEXTUAL_POLICIES if not name.startswith("mix")}


@pytest.mark.parametrize(("name", "forgetting"), [("lin-ucb", 1.0), ("d-lin-ucb", 0.99), ("aff-lin-ts", 0.999)])
def test_the_belief_about_an_arm_is_unknown_without_a_context(name: str, forgetting: float) -> None:
    mean, variance, factor, size = db.policy(name).belief(np.zeros(1), np.zeros(1))
    assert [math.isnan(number) for number in (mean, variance, size)] == [True] * 3
    assert factor == pytest.approx(forgetting)


@pytest.mark.parametrize("model", ["separate", "shared", "hybrid"])
def test_the_belief_has_the_forgetting_factor_that_was_learnt(model: str) -> None:
    policy, drawn = db.policy("aff-lin-ucb", model=model, step_size=0.5), np.random.default_rng(1)
    params = policy.params(2)
    state = new_state(policy, 2, params, Context(2, per_arm=True))
    rewarded: list[tuple[np.ndarray, float]] = []
    for step in range(1, 20):
        rewarded.append((drawn.normal(size=2), drawn.normal()))
        policy.functions.learn(state, 0, Reward(rewarded[-1][1], step, step, rewarded[-1][0]), params)
    expected = regression(policy, 2)
    common = regression(policy, 2)
    for x, reward in rewarded:
        expected.learn(x, reward, offset=common.theta @ x if model == "hybrid" else 0.0)
        common.learn(x, reward)
    found = [policy.belief(state.memory[:, arm], state.shared).forgetting for arm in range(2)]
    assert found == pytest.approx([expected.forgetting, expected.forgetting if model == "shared" else 0.999])
    assert expected.forgetting != pytest.approx(0.999)


@pytest.mark.parametrize(
    ("name", "decided", "arrived", "is_learnt"),
    [
        ("sw-lin-ucb", 3, 8, False),
        ("sw-lin-ucb", 4, 8, True),
        ("restart-lin-ucb", 3, 8, False),
        ("restart-lin-ucb", 5, 6, False),  # the last step of a period
        ("restart-lin-ucb", 6, 6, True),
        ("restart-lin-ucb", 1, 5, True),
    ],
)
def test_a_late_reward_of_a_decision_that_does_not_count_any_more_is_ignored(
    name: str, decided: int, arrived: int, is_learnt: bool
) -> None:
    policy = db.policy(name, **({"window": 5} if name == "sw-lin-ucb" else {"period": 5}))
    params = policy.params(2)
    state = new_state(policy, 2, params, Context(2, per_arm=False))
    assert state.models is not None
    before = state.models.copy()
    policy.functions.learn(state, 0, Reward(1.0, decided, arrived, np.ones(2)), params)
    assert bool((state.models[0] != before[0]).any()) is is_learnt
    assert (state.models[1] == before[1]).all()


def test_a_window_is_computed_anew_once_per_window_so_that_errors_do_not_add_up() -> None:
    policy, drawn = db.policy("sw-lin-ucb", window=4), np.random.default_rng(1)
    params = policy.params(1)
    state = new_state(policy, 1, params, Context(2, per_arm=False))
    assert state.models is not None
    plays, wrong = [], []
    for step in range(1, 12):
        plays.append(Play(0, drawn.normal(size=2), drawn.normal()))
        policy.functions.learn(state, 0, Reward(plays[-1].reward, step, step, plays[-1].x), params)
        if step == 5:
            state.models[0, theta_at(2)] += 1.0
        expected = linear.fit(plays[-4:], [1.0] * min(step, 4), np.ones(2), 1.0)
        if state.models[0, theta_at(2) :][:2] != pytest.approx(expected.theta, rel=1e-9):
            wrong.append(step)
    assert wrong == [5, 6, 7]


@pytest.mark.parametrize("prior", [1.0, 1e-8])
def test_a_reward_with_large_features_leaves_the_window_without_cancellation(prior: float) -> None:
    # The only reward with a category leaves: 1 - x' P x is then about 1e-11, with a rounding error of about 1e-5
    policy, drawn = db.policy("sw-lin-ucb", window=5, prior=prior), np.random.default_rng(0)
    size = 3e5 * math.sqrt(prior)
    params = policy.params(1)
    state = new_state(policy, 1, params, Context(3, per_arm=False))
    assert state.models is not None
    plays = []
    for step in range(1, 31):
        plays.append(Play(0, size * np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])[drawn.integers(2)], drawn.normal()))
        policy.functions.learn(state, 0, Reward(plays[-1].reward, step, step, plays[-1].x), params)
        latest = plays[-5:]
        expected = linear.fit(latest, [1.0] * len(latest), np.full(3, prior), prior)
        inverse = state.models[0, inverse_at(3) :][:9].reshape(3, 3)
        np.testing.assert_allclose(inverse, np.linalg.inv(expected.precision), rtol=1e-3)


def test_a_full_window_of_late_rewards_drops_the_first_one() -> None:
    # The rewards of steps 4, 2 and 3 arrive at step 4. At step 5, step 2 has left the window, but waits behind step 4
    policy = db.policy("sw-lin-ucb", window=3)
    params, rows = policy.params(1), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 3.0]])
    state = new_state(policy, 1, params, Context(2, per_arm=False))
    for decided, arrived in ((4, 4), (2, 4), (3, 4), (5, 5)):
        policy.functions.learn(state, 0, Reward(float(decided), decided, arrived, rows[decided - 1]), params)
    plays = [Play(0, rows[decided - 1], float(decided)) for decided in (2, 3, 5)]
    expected = linear.fit(plays, [1.0] * 3, np.ones(2), 1.0)
    assert state.models is not None
    np.testing.assert_allclose(state.models[0, theta_at(2) :][:2], expected.theta, rtol=1e-9)


@pytest.mark.parametrize("name", PARAMETERS)
def test_auto_shares_a_model_if_arms_have_features_of_their_own(name: str) -> None:
    policy = db.policy(name)
    assert len(policy.initial_models(4, Context(3, per_arm=True))) == 1
    assert len(policy.initial_models(4, Context(3, per_arm=False))) == 4


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_shape_of_the_models_is_known_without_making_them(name: str) -> None:
    for context in (Context(3, per_arm=True), Context(3, per_arm=False), Context(1, per_arm=True)):
        for model in ("auto", "separate", "shared", "hybrid"):
            try:
                policy = db.policy(name, model=model)
                shape = policy.initial_models(4, context).shape
            except (TypeError, ValueError):
                continue  # the policy has no such models
            assert policy.models_shape(4, context) == shape
    policy = db.policy(name)
    assert policy.models_shape(4, Context(3, per_arm=False)) == policy.initial_models(4, Context(3, False)).shape


def test_a_shared_model_needs_features_of_each_arm() -> None:
    with pytest.raises(ValueError, match="model='shared' needs features of each arm"):
        db.policy("lin-ucb", model="shared").initial_models(4, Context(3, per_arm=False))
    with pytest.raises(ValueError, match="model must be one of 'auto', 'separate', 'shared', got 'hybrid'"):
        db.policy("sw-lin-ucb", model="hybrid")
    with pytest.raises(ValueError, match="model must be one of 'auto', 'separate', 'shared', 'hybrid', got 'both'"):
        db.policy("lin-ts", model="both")


@pytest.mark.parametrize("variance", [1.0, 1e-12, 1e12])
def test_a_draw_from_a_singular_covariance_stays_in_its_range(variance: float) -> None:
    """Pivots that are rounding errors would multiply the rest of their row by a huge factor."""
    d = 8
    v = np.random.default_rng(1).normal(size=d)
    model = np.concatenate([variance * np.outer(v, v).ravel(), np.zeros(d * (d + 1))])
    draw_deviation(model, 0, d, Step(5, 2, 0.0, np.zeros((2, d)), np.zeros(0), stream(3)), 2.0)
    drawn = model[deviation_at(model, d) :][:d]
    assert drawn / v == pytest.approx(np.full(d, drawn[0] / v[0]), rel=1e-6)
    assert drawn[0] != 0.0


def test_a_coefficient_without_variance_does_not_move_the_others() -> None:
    covariance = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 4.0]])  # rounding errors beside a variance of 0
    model, random = np.concatenate([covariance.ravel(), np.zeros(12)]), stream(3)
    draw_deviation(model, 0, 3, Step(5, 2, 0.0, np.zeros((2, 3)), np.zeros(0), random), 2.0)
    first, last = normal_pair(words(random, SECOND, 5, 0, 0))[0], normal_pair(words(random, SECOND, 5, 1, 0))[0]
    assert model[deviation_at(model, 3) :][:3] == pytest.approx([2.0 * first, 0.0, 2.0 * 2.0 * last], rel=1e-12)


def test_the_leader_of_square_cb_keeps_a_weight_if_rounding_leaves_none() -> None:
    nothing = np.zeros(0)
    predictions, leader = np.array([0.75, 0.25]), np.array([0.0, 1.0])
    step = Step(4, 2, 0.0, nothing, nothing, stream(1))
    params = Rate(3.0, 0.5)
    assert [weight(predictions, leader, arm, step, params) for arm in range(2)] == [1e-37, 1.0 / (2 + 3 * 2 * 0.5)]


@dataclass(frozen=True, kw_only=True)
class RestartGreedy(Preset):
    """A combination that has no name.

    Examples
    --------
    """

    name = "restart-greedy"
    made_of = RestartRegression, Greedy


def test_any_rule_that_knows_predictions_decides_with_any_memory_with_models() -> None:
    policy: Any = db.policy(RestartGreedy, period=10, epsilon=0)
    params, x = policy.params(2), np.array([1.0, 2.0])
    state = new_state(policy, 2, params, Context(2, per_arm=False))
    policy.functions.learn(state, 0, Reward(3.0, 1, 1, x), params)
    for number, expected in [(10, 3 * 5 / 6), (11, 0.0)]:
        step = Step(number, 2, 0.0, x[np.newaxis], np.zeros(0), stream(1))
        assert policy.functions.score(state, 0, step, params) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            (WindowRegression, LinearThompson),
            "draws coefficients, and those of memory 'window-regression' cannot be drawn",
        ),
        ((WindowRegression, KLUCB), "does not compare predictions from features"),
        ((SampleMean, WidthBound), "memory 'sample-mean' makes none"),
        ((SampleMean, NormalThompson), "draws from normal laws, and memory 'sample-mean' has none"),
    ],
)
def test_parts_that_cannot_decide_together_are_refused(parts: tuple[Any, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("Refused", (Preset,), {"name": "refused", "made_of": parts, "__doc__": "None."})
