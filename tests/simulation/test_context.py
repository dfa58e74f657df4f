"""Simulations of environments with features; the GPU is compared in tests/tools/gpu_cases.py."""

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.context import Context
from dynabandit.core.streams import stream
from dynabandit.policies.base import Reward, Step, new_state, row_of
from dynabandit.simulation.step_by_step import StepByStep

ARMS, HORIZON = 3, 60


@pytest.fixture
def environment() -> db.Environment:
    return db.environment("lin-abrupt", arms=ARMS, dimension=2, segment=20)


@pytest.mark.parametrize("delay", [None, db.delay("recorded", delays=[0, 2, 5])])
def test_a_policy_learns_the_features_of_the_decision_whose_reward_arrives(
    environment: db.Environment, delay: db.Delay | None
) -> None:
    policy = db.policy("lin-ucb", discount=0.9)
    run = db.simulate(policy, environment, horizon=HORIZON, seed=5, keep=("arms", "rewards"), delay=delay)
    assert run.arms is not None
    assert run.rewards is not None
    features = environment.features(HORIZON, seed=5)
    context = environment.context
    assert context == Context(2, per_arm=True)
    assert features.shape == (HORIZON, ARMS, 2)
    params, state = policy.params(ARMS), new_state(policy, ARMS, policy.params(ARMS), context)
    arrivals: dict[int, list[tuple[int, int, float]]] = {}
    for step in range(1, HORIZON + 1):
        scores = [
            policy.functions.score(
                state, arm, Step(step, ARMS, 0.0, features[step - 1], np.zeros(0), stream(5)), params
            )
            for arm in range(ARMS)
        ]
        arm = int(run.arms[0, step - 1])
        assert scores[arm] == pytest.approx(max(scores), rel=1e-12)  # features of length 1 may tie
        late = 0 if delay is None else delay_of(delay, arm, step)
        arrivals.setdefault(step + late, []).append((step, arm, float(run.rewards[0, step - 1])))
        for decided, rewarded, value in arrivals.pop(step, []):
            x = features[decided - 1, rewarded]
            policy.functions.learn(state, rewarded, Reward(value, decided, step, x), params)


def delay_of(delay: db.Delay, arm: int, step: int) -> int:
    from dynabandit.environments.delays import draw_delay

    return int(draw_delay(delay.params(ARMS), arm, step, stream(5)))


def test_an_arm_has_its_own_row_or_that_of_all_arms() -> None:
    assert (row_of(np.zeros((3, 2)), 2), row_of(np.zeros((1, 2)), 2)) == (2, 0)


def test_policies_without_context_ignore_features(environment: db.Environment) -> None:
    alone = db.simulate("normal-ts", environment, horizon=HORIZON, seed=5, keep="arms")
    beside = db.compare(["lin-ucb", "normal-ts"], environment, horizon=HORIZON, seed=5, keep="arms", block=7)
    assert np.array_equal(alone.arms, beside["normal-ts"].arms)  # type: ignore[arg-type]


def test_features_are_needed_by_contextual_policies_only() -> None:
    with pytest.raises(ValueError, match="policy 'lin-ucb' decides by features, but environment 'case-1' has none"):
        db.simulate("lin-ucb", "case-1", horizon=10)
    with pytest.raises(ValueError, match="decides by features, but there are none"):
        StepByStep(db.policy("lin-ucb"), arms=2, horizon=10)
    with pytest.raises(ValueError, match="environment 'case-1' has no features"):
        db.environment("case-1").features(10, seed=1)


def test_auto_is_the_contextual_policy_where_there_are_features(environment: db.Environment) -> None:
    assert db.simulate("auto", environment, horizon=2).policy.name == "mix-lin-ucb"
    assert list(db.compare(["auto"], environment, horizon=2)) == ["mix-lin-ucb"]
