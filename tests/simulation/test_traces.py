"""The beliefs of a trace are those that the choices were made with."""

from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.simulation.step_by_step import StepByStep

HORIZON, SEED = 300, 5
ENVIRONMENT = db.environment("case-1", arms=3)
KEEP = ("arms", "rewards")


def kept(policy: str | db.Policy, **options: Any) -> db.Simulation:
    return db.simulate(policy, ENVIRONMENT, horizon=HORIZON, seed=SEED, keep=KEEP, **options)


@pytest.mark.parametrize("name", ["aff-ots", "d-ucb", "sw-ts", "oracle-restart"])
def test_a_trace_has_the_beliefs_that_the_choices_were_made_with(name: str) -> None:
    run = kept(name, first_replication=2, replications=2)
    assert run.arms is not None
    assert run.rewards is not None
    found = db.simulation.trace(run, replication=1, times=HORIZON)
    path = ENVIRONMENT.path(HORIZON, SEED, 3)
    policy = run.policy.tuned(int((np.diff(path.argmax(axis=1)) != 0).sum()), HORIZON)
    again = StepByStep(policy, ENVIRONMENT.arms, HORIZON, SEED)
    again.random = stream(SEED, 3)
    for step in range(HORIZON):
        again.reveal(path[step])
        arm = again.decide(step + 1)
        assert arm == run.arms[1, step]
        again.learn(arm, step + 1, float(run.rewards[1, step]))
        beliefs = [policy.belief(again.state.memory[:, arm], again.state.shared) for arm in range(3)]
        traced = (found.mean[step], found.variance[step], found.forgetting[step], found.effective_size[step])
        assert np.array_equal(np.transpose(beliefs), traced, equal_nan=True)


def test_a_trace_holds_the_true_means_and_counts_every_play() -> None:
    run = kept("aff-ots")
    found = db.simulation.trace(run, times=7)
    assert found.plays.sum() == HORIZON
    assert np.array_equal(found.plays.sum(axis=0), np.bincount(np.asarray(run.arms)[0], minlength=3))
    assert np.array_equal(found.truth, ENVIRONMENT.path(HORIZON, SEED)[found.times - 1])


def test_beliefs_are_those_of_a_bandit_that_is_told_the_same_rewards() -> None:
    run = kept("aff-ucb2")
    found = db.simulation.trace(run, times=HORIZON)
    bandit = db.Bandit("aff-ucb2", arms=["0", "1", "2"], seed=SEED)
    for step in range(HORIZON):
        bandit.reward(bandit.choose(), np.asarray(run.rewards)[0, step])
        for arm in range(3):
            one = bandit.arms[str(arm)]
            expected = [one.mean, one.variance, one.forgetting, one.effective_size]
            got = [getattr(found, field)[step, arm] for field in ("mean", "variance", "forgetting", "effective_size")]
            assert np.array_equal(got, expected, equal_nan=True)


def test_a_policy_that_is_tuned_to_the_path_believes_what_its_tuned_self_does() -> None:
    run = kept("d-ucb")
    switches = int((np.diff(ENVIRONMENT.path(HORIZON, SEED).argmax(axis=1)) != 0).sum())
    tuned = run.policy.tuned(switches, HORIZON)
    assert np.array_equal(np.asarray(run.arms), np.asarray(kept(tuned).arms))
    for one, other in zip(db.simulation.trace(run), db.simulation.trace(kept(tuned)), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_a_simulation_that_kept_nothing_cannot_be_traced() -> None:
    with pytest.raises(ValueError, match='keep=\\("arms", "rewards"\\)'):
        db.simulation.trace(db.simulate("ucb", ENVIRONMENT, horizon=10))
    with pytest.raises(ValueError, match="replication must be 0, got 1"):
        db.simulation.trace(kept("ucb"), replication=1)
