"""Rewards that arrive late or never: the simulator against a bandit that is fed the same delays by a plain list."""

import math
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit import Bandit
from dynabandit.core.streams import stream
from dynabandit.environments.delays import LOST, draw_delay
from dynabandit.policies import POLICIES
from dynabandit.simulation import trace
from dynabandit.simulation.in_flight import learned_rewards
from dynabandit.stats import settling_age
from tools.ready import READY

NAMES = [name for name, kind in POLICIES.items() if not kind.informed]
PARAMETERS: dict[str, dict[str, Any]] = {"d-ucb": {"discount": 0.9}, "sw-ucb": {"window": 12}, **READY}
SEED, HORIZON = 5, 60
DELAYS = {
    "fixed": db.delay("fixed", steps=[0, 7, 30]),
    "geometric": db.delay("geometric", mean=6, lost=[0.0, 0.3, 1.0]),
    "uniform": db.delay("uniform", low=0, high=[3, 9, 2], lost=0.1),
    "recorded": db.delay("recorded", delays=[[1, 40], [0, 0, 5], [12]]),
    "batch": db.delay("batch", every=8),
}


def policy(name: str) -> db.Policy:
    made = db.policy(name, **PARAMETERS.get(name, {}))
    return type(made)(**{**made.parameters, "burn_in": min(made.burn_in, 2)})


def run(name: str, delay: db.Delay | None, block: int | None = None) -> db.Simulation:
    environment = db.environment("case-1", arms=3)
    return db.simulate(
        policy(name), environment, horizon=HORIZON, seed=SEED, keep=("arms", "rewards"), delay=delay, block=block
    )


@pytest.mark.parametrize("kind", DELAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_bandit_fed_the_same_delays_makes_the_choices_of_the_simulator(name: str, kind: str) -> None:
    simulated = run(name, DELAYS[kind], block=7)
    assert simulated.arms is not None
    assert simulated.rewards is not None
    bandit, params = Bandit(policy(name), arms=["0", "1", "2"], seed=SEED), DELAYS[kind].params(arms=3)
    arrivals: dict[int, list[tuple[str, float, int]]] = {}
    for step in range(1, HORIZON + 1):
        arm = bandit.choose()
        assert arm == str(simulated.arms[0, step - 1]), step
        delay = draw_delay(params, int(arm), step, stream(SEED))
        if delay != LOST:
            arrivals.setdefault(step + delay, []).append((arm, float(simulated.rewards[0, step - 1]), step))
        for rewarded, value, decided_at in arrivals.pop(step, []):
            bandit.reward(rewarded, value, step=decided_at)


@pytest.mark.parametrize("name", [*NAMES, "oracle-restart", "best-arm"])
def test_a_delay_of_0_is_no_delay(name: str) -> None:
    immediate, delayed = run(name, None), run(name, db.delay("fixed", steps=0))
    assert np.array_equal(np.asarray(immediate.arms), np.asarray(delayed.arms))
    assert np.array_equal(immediate.regret, delayed.regret)


@pytest.mark.parametrize("name", ["aff-ots", "oracle-restart"])
def test_the_beliefs_of_a_trace_are_those_that_late_rewards_leave(name: str) -> None:
    delay = db.delay("fixed", steps=HORIZON // 2)
    late = trace(run(name, delay), times=[HORIZON // 2, HORIZON])
    assert np.isnan(late.mean[0]).all() or (late.effective_size[0] <= 4).all()  # nothing but a prior
    assert late.effective_size[1].max() > 4
    assert late.plays.sum() == HORIZON


def test_the_rules_of_a_window_learn_at_once_at_its_end_or_at_the_settling_age() -> None:
    arms, rewards = np.zeros(300, dtype=np.int64), np.tile([1.0, 1.0, 0.0], 100)
    learned = {
        rule: learned_rewards(db.delay("fixed", steps=3, window=20, rule=rule), arms, rewards, 2, stream(1))
        for rule in ("at-once", "held", "settled")
    }
    ages = {rule: one.arrived_at - one.decided_at for rule, one in learned.items()}
    for rule, one in learned.items():
        assert np.array_equal(one.values, rewards[one.decided_at - 1]), rule
    assert set(ages["at-once"][learned["at-once"].values == 1]) == {3}
    assert set(ages["at-once"][learned["at-once"].values == 0]) == {20}
    assert set(ages["held"]) == {20}
    assert set(ages["settled"]) == {20, 4}  # all arrive within 3.49 steps, the largest age of a bin
    settled = learned["settled"]
    assert (ages["settled"] == 4)[settled.decided_at > 40].all()
    assert (ages["settled"] == 20)[settled.decided_at < 10].all(), "it is not known yet that no reward comes later"


def test_a_positive_reward_after_the_settling_age_is_learned_as_one_more() -> None:
    arms, rewards = np.zeros(2000, dtype=np.int64), np.ones(2000)
    delay = db.delay("recorded", delays=[2] * 199 + [15], window=20)
    learned = learned_rewards(delay, arms, rewards, 2, stream(3))
    ages = learned.arrived_at - learned.decided_at
    late = learned.decided_at[ages == 15]
    assert len(late) > 0
    for decision in late:
        of_decision = learned.decided_at == decision
        assert learned.values[of_decision].tolist() == [0.0, 1.0]
        assert ages[of_decision].tolist() == [3, 15]


@pytest.mark.parametrize("rule", ["at-once", "held", "settled"])
def test_rewards_that_are_lost_or_later_than_the_window_count_as_0(rule: str) -> None:
    arms, rewards = np.arange(100) % 2, np.ones(100)
    delay = db.delay("fixed", steps=[21, 5], lost=[0.0, 1.0], window=20, rule=rule)
    learned = learned_rewards(delay, arms, rewards, 2, stream(1))
    assert set(learned.values) == {0.0}
    assert set(learned.arrived_at - learned.decided_at) == {20}
    assert np.array_equal(learned.arms, arms[:80])


@pytest.mark.parametrize("rule", ["at-once", "held", "settled"])
def test_a_bandit_that_learns_by_the_rule_of_a_window_makes_the_choices_of_the_simulator(rule: str) -> None:
    delay = db.delay("recorded", delays=[2] * 499 + [15], window=20, rule=rule)
    environment, horizon = db.environment("fixed", means=[0.8, 0.7, 0.7]), 1500
    simulated = db.simulate("ucb", environment, horizon=horizon, seed=SEED, keep=("arms", "rewards"), delay=delay)
    assert simulated.arms is not None
    assert simulated.rewards is not None
    bandit, params, late = Bandit("ucb", arms=["0", "1", "2"], seed=SEED), delay.params(arms=3), 0
    ages = [0.0] * settling_age.SIZE
    settling_age.start(ages, 20.0)
    arrivals: dict[int, list[tuple[int, float, int, bool]]] = {}
    observed: dict[int, list[tuple[int, int]]] = {}
    for step in range(1, horizon + 1):
        column = bandit.choose_column()
        assert column == simulated.arms[0, step - 1], step
        value, steps = float(simulated.rewards[0, step - 1]), draw_delay(params, column, step, stream(SEED))
        known_at = steps if value else 20
        learned_at = {"at-once": known_at, "held": 20, "settled": math.ceil(ages[settling_age.AGE])}[rule]
        is_late = value > 0 and known_at > learned_at
        arrivals.setdefault(step + learned_at, []).append((column, 0.0 if is_late else value, step, True))
        if value:
            observed.setdefault(step + known_at, []).append((step, known_at))
        if is_late:
            arrivals.setdefault(step + known_at, []).append((column, value, step, False))
        for rewarded, what, decided_at, ends_play in sorted(arrivals.pop(step, []), key=lambda one: one[2]):
            bandit.reward_column(rewarded, what, decided_at, ends_play)
            late += not ends_play
        for decided, age in observed.pop(step, []):
            settling_age.observe(ages, float(decided), float(age), 20.0)
            settling_age.update(ages, float(step), 20.0)
    assert (late > 0) == (rule == "settled")
