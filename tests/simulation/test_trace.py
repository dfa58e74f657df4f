"""Beliefs on the way are those that the choices were made with."""

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import stream
from dynabandit.policies import POLICIES
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_choose
from dynabandit.simulation import trace_run
from dynabandit.simulation.work import initial_state

HORIZON, SEED = 300, 5
WORLD = db.environment("case-1", arms=3)
KEEP = ("arms", "rewards")


def kept(policy, **options):
    return db.simulate(policy, WORLD, horizon=HORIZON, seed=SEED, keep=KEEP, **options)


def replayed(run, replication, monkeypatch):
    """The memory after each step, as `trace` made it, and the policy as it was tuned."""
    memories, tuned = [], []
    learn = trace_run.compiled.learn(run.policy.kernels)

    def watched(memory, shared, arm, reward, parameters):
        learn(memory, shared, arm, reward, parameters)
        memories.append((memory.copy(), shared.copy()))
        tuned[:] = [parameters]

    monkeypatch.setattr(trace_run.compiled, "learn", lambda kernels: watched)
    db.simulation.trace(run, replication)
    return memories, tuned[0]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_choice_of_a_simulation_follows_from_the_replayed_state(name, monkeypatch):
    run = kept(name, first_replication=2, replications=2)
    memories, parameters = replayed(run, 1, monkeypatch)
    choose = make_choose(run.policy.kernels)
    table = run.policy.kernels.table(WORLD.arms, HORIZON)
    scratch = np.empty((SCRATCH_ROWS, WORLD.arms))
    source, last = stream(SEED, 3), np.zeros(WORLD.arms, dtype=np.int64)
    path = WORLD.path(HORIZON, SEED, 3)
    state = initial_state(run.policy.tuned(1, HORIZON), WORLD.arms, np.ones(1, dtype=np.int64), HORIZON)
    before = [(state.memory[0], state.shared[0]), *memories]
    for step in range(1, HORIZON + 1):
        arm = run.arms[1, step - 1]
        if step > run.policy.burn_in * WORLD.arms:
            memory, shared = (part.copy() for part in before[step - 1])
            for other in range(WORLD.arms):
                run.policy.kernels.reveal(memory, other, path[step - 1, other])
            assert choose(memory, shared, last, scratch, step, parameters, table, source) == arm
        last[arm] = step


def test_a_trace_holds_the_true_means_and_counts_every_play():
    run = kept("aff-ots")
    found = db.simulation.trace(run, times=7)
    assert found.plays.sum() == HORIZON
    assert np.array_equal(found.plays.sum(axis=0), np.bincount(run.arms[0], minlength=3))
    assert np.array_equal(found.truth, WORLD.path(HORIZON, SEED)[found.times - 1])


def test_beliefs_are_those_of_a_bandit_that_is_told_the_same_rewards():
    run = kept("aff-ucb2")
    found = db.simulation.trace(run, times=HORIZON)
    bandit = db.Bandit("aff-ucb2", arms=["0", "1", "2"], seed=SEED)
    for step in range(HORIZON):
        bandit.reward(bandit.choose(), run.rewards[0, step])
        for arm in range(3):
            one = bandit.arms[str(arm)]
            expected = [one.mean, one.variance, one.forgetting, one.effective_size]
            got = [getattr(found, field)[step, arm] for field in ("mean", "variance", "forgetting", "effective_size")]
            assert np.array_equal(got, expected, equal_nan=True)


def test_a_policy_that_is_tuned_to_the_path_believes_what_its_tuned_self_does():
    run = kept("d-ucb")
    switches = trace_run._switches(WORLD.path(HORIZON, SEED))
    assert switches == (np.diff(WORLD.path(HORIZON, SEED).argmax(axis=1)) != 0).sum()
    tuned = run.policy.tuned(switches, HORIZON)
    assert np.array_equal(run.arms, kept(tuned).arms)
    for one, other in zip(db.simulation.trace(run), db.simulation.trace(kept(tuned)), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_a_simulation_that_kept_nothing_cannot_be_traced():
    with pytest.raises(ValueError, match='keep=\\("arms", "rewards"\\)'):
        db.simulation.trace(db.simulate("ucb", WORLD, horizon=10))
    with pytest.raises(ValueError, match="replication must be 0, got 1"):
        db.simulation.trace(kept("ucb"), replication=1)
