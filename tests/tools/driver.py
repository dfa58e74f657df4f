"""One policy played by hand, with every array accessible."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit.compiled import compiled_choose, compiled_learn, signed_seed
from dynabandit.core.records import to_row
from dynabandit.policies.base import Policy, Reward, Step
from dynabandit.simulation.step_by_step import StepByStep

TABLE_HORIZON = 20  # shorter than most runs, so that a policy also computes what lies beyond its table


class Driver(StepByStep):
    """A policy on a table of rewards; between two steps a test looks at its state and scores."""

    def __init__(self, policy: Policy, arms: int, seed: int = 1, *, interpreted: bool = True) -> None:
        super().__init__(policy, arms, TABLE_HORIZON, seed)
        self.memory, self.shared, self.last_played, self.pending, _ = self.state
        self.rewards = 0  # so far
        self._interpreted = interpreted

    @property
    def functions(self) -> Any:
        return self.policy.functions

    def common(self, number: int) -> float:
        """Return the number that all scores of a step share."""
        return float(self.functions.common(self.state, number, self.params))

    def step(self, number: int) -> Step:
        """Return the step as the policy's functions see it."""
        return Step(number, self.arms, self.common(number), self.space.features, self.space.table, self.random)

    def choose(self, number: int) -> int:
        if self._interpreted:
            return super().choose(number)
        row, space = to_row(self.params), self.space
        seed = signed_seed(self.random.seed_low + (self.random.seed_high << 32))
        played = np.stack([self.last_played, self.pending])
        state = (self.memory, self.shared, played)
        return int(compiled_choose(self.functions)(*state, space.scratch, number, row, space.table, seed))

    def feed(self, arm: int, *rewards: float) -> "Driver":
        """Give an arm rewards without playing it, one per step."""
        for value in rewards:
            self.rewards += 1
            reward = Reward(float(value), int(self.last_played[arm]), self.rewards)
            if self._interpreted:
                self.functions.learn(self.state, arm, reward, self.params)
            else:
                played = np.stack([self.last_played, self.pending])
                compiled_learn(self.functions)(self.memory, self.shared, played, arm, *reward[:3], to_row(self.params))
        return self

    @property
    def drawn(self) -> np.ndarray:
        """The draws of a policy that scores arms by the odds of Beta draws."""
        return self.scores / (1.0 + self.scores)

    def slot(self, name: str) -> np.ndarray:
        """Return a row of the memory."""
        return self.memory[self.policy.slots.index(name)]

    def play(self, rewards: np.ndarray, means: Sequence[Sequence[float]] | None = None) -> Iterator[tuple[int, int]]:
        """Play one row of rewards after the other; yield step and chosen arm before the reward is learned."""
        for number, values in enumerate(rewards, start=1):
            if means is not None:
                self.reveal(means[number - 1])
            arm = self.decide(number)
            self.last_played[arm] = number
            yield number, arm
            self.feed(arm, float(values[arm]))
