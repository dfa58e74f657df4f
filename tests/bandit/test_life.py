import math
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dynabandit import Bandit
from dynabandit.policies import POLICIES
from tools.ready import READY, TRIED

PARAMETERS: dict[str, dict[str, Any]] = {
    "d-ucb": {"discount": 0.7},
    "sw-ucb": {"window": 4},
    "dts": {"memory": 3},
    "aff-ucb1": {"burn_in": 2, "step_size": 0.5},
    "aff-dts1": {"burn_in": 2, "step_size": 0.5},
    "aff-dts2": {"step_size": 1.0},
    **READY,
}
BAYESIAN = {name for name, policy in POLICIES.items() if policy.functions.posterior is not None}
# These tell a prior mean before the first reward, too
BAYESIAN |= {"f-dsw-ts", "changepoint-ts", "aff-poisson-ts", "mix-poisson-ts", "kalman-ts", "predictive-sampling"}


class Life(RuleBasedStateMachine):
    """A bandit's life in any order of events, beside a diary that counts by hand."""

    @initialize(name=st.sampled_from(TRIED), arms=st.integers(2, 4), seed=st.integers(0, 2**64 - 1))
    def begin(self, name: str, arms: int, seed: int) -> None:
        self.bandit = Bandit(name, arms=[f"arm {n}" for n in range(arms)], seed=seed, **PARAMETERS.get(name, {}))
        self.born = arms
        self.step = 0
        self.plays = dict.fromkeys(self.bandit.arms, 0)
        self.last = dict.fromkeys(self.bandit.arms, 0)
        self.rewards: dict[str, list[float]] = {name: [] for name in self.bandit.arms}
        self.played_by_removed_arms = 0

    @rule(times=st.integers(1, 5))
    def choose(self, times: int) -> None:
        for _ in range(times):
            arm = self.bandit.choose()
            assert arm in self.plays
            self.step += 1
            self.plays[arm] += 1
            self.last[arm] = self.step

    @rule(data=st.data(), value=st.sampled_from([0.0, 0.1, 0.5, 1.0]) | st.floats(0.0, 1.0))
    def reward(self, data: st.DataObject, value: float) -> None:
        arm = data.draw(st.sampled_from(sorted(self.plays)))
        value = float(round(value)) if self.bandit.rewards.whole else value
        self.bandit.reward(arm, value)
        self.rewards[arm].append(value)

    @rule(data=st.data(), value=st.sampled_from([math.nan, -0.5, 2.0, "1", None]))
    def wrong_reward(self, data: st.DataObject, value: Any) -> None:
        arm = data.draw(st.sampled_from(sorted(self.plays)))
        before = self.bandit.to_json()
        if isinstance(value, float) and not math.isnan(value):
            value = self.bandit.rewards.low - 1e99 if value < 0 else self.bandit.rewards.high * 1.5
        with pytest.raises((TypeError, ValueError), match="reward must be a"):
            self.bandit.reward(arm, value)
        assert self.bandit.to_json() == before

    @precondition(lambda self: len(self.plays) < 6)
    @rule()
    def add(self) -> None:
        name = f"arm {self.born}"
        self.born += 1
        self.bandit.add_arm(name)
        self.plays[name], self.last[name], self.rewards[name] = 0, self.step, []

    @precondition(lambda self: len(self.plays) > 2)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        arm = data.draw(st.sampled_from(sorted(self.plays)))
        self.bandit.remove_arm(arm)
        self.played_by_removed_arms += self.plays.pop(arm)
        with pytest.raises(ValueError, match=f"arm '{arm}' was removed"):
            self.bandit.reward(arm, 1)

    @rule()
    def stop_and_go_on(self) -> None:
        text = self.bandit.to_json()
        self.bandit = Bandit.from_json(text)
        assert self.bandit.to_json() == text

    @invariant()
    def every_play_is_counted(self) -> None:
        arms = self.bandit.arms
        assert list(arms) == list(self.plays)
        assert {name: arm.plays for name, arm in arms.items()} == self.plays
        assert sum(self.plays.values()) + self.played_by_removed_arms == self.step == self.bandit.step

    @invariant()
    def idle_steps_are_counted_since_the_last_play(self) -> None:
        for name, arm in self.bandit.arms.items():
            assert arm.idle == self.step - self.last[name]

    @invariant()
    def a_mean_lies_between_zero_and_one_once_there_is_a_reward(self) -> None:
        for name, arm in self.bandit.arms.items():
            if self.rewards[name] and math.isnan(arm.mean):  # a restart, or a window of all arms, forgot its rewards
                assert arm.effective_size == 0.0
            elif self.rewards[name]:
                assert 0.0 <= arm.mean <= (1.0 if self.bandit.rewards.high == 1.0 else math.inf)
                assert arm.variance >= 0.0
            elif self.bandit.policy.name not in BAYESIAN:
                assert math.isnan(arm.mean)

    @invariant()
    def a_sample_mean_is_the_mean_of_the_rewards(self) -> None:
        if self.bandit.policy.name in {"ucb", "eps-greedy", "uniform"}:
            for name, arm in self.bandit.arms.items():
                if self.rewards[name]:
                    assert arm.mean == pytest.approx(math.fsum(self.rewards[name]) / len(self.rewards[name]))


Life.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestLife = Life.TestCase
