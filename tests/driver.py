"""One policy played by hand, with every array in sight."""

from collections.abc import Iterator, Sequence

import numpy as np

from dynabandit.core.compilation import compiled
from dynabandit.core.streams import stream
from dynabandit.policies.base import Policy
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_choose


class Driver:
    """A policy on a table of rewards; between two steps a test looks at its state and scores."""

    def __init__(self, policy: Policy, arms: int, seed: int = 1, *, interpreted: bool = True) -> None:
        self.policy, self.arms, self.source = policy, arms, stream(seed)
        self.numbers = policy.numbers(arms)
        self.table = policy.kernels.table(arms, 20)
        self.memory = np.zeros((policy.memory_size(), arms))
        self.shared = np.zeros(policy.shared_size())
        self.last, self.scratch = np.zeros(arms, dtype=np.int64), np.zeros((SCRATCH_ROWS, arms))
        choose, learn = make_choose(policy.kernels), policy.kernels.learn
        self._choose = choose if interpreted else compiled(choose)
        self._learn = learn if interpreted else compiled(learn)
        for arm in range(arms):
            policy.kernels.start(self.memory, self.shared, arm, self.numbers)

    def choose(self, step: int) -> int:
        """Decide a step; the scores are in the first row of `scratch` afterwards."""
        return int(
            self._choose(self.memory, self.shared, self.last, self.scratch, step, self.numbers, self.table, self.source)
        )

    def feed(self, arm: int, *rewards: float) -> "Driver":
        """Give an arm rewards."""
        for reward in rewards:
            self._learn(self.memory, self.shared, arm, reward, self.numbers)
        return self

    def slot(self, name: str) -> np.ndarray:
        """Return a row of the memory."""
        return self.memory[self.policy.slots.index(name)]

    def play(self, rewards: np.ndarray, means: Sequence[Sequence[float]] | None = None) -> Iterator[tuple[int, int]]:
        """Play a row of rewards after the other; yield step and chosen arm before the reward is learnt."""
        for step, values in enumerate(rewards, start=1):
            if means is not None:
                for arm in range(self.arms):
                    self.policy.kernels.reveal(self.memory, arm, means[step - 1][arm])
            burning = step <= self.policy.burn_in * self.arms
            arm = (step - 1) % self.arms if burning else self.choose(step)
            self.last[arm] = step
            yield step, arm
            self.feed(arm, float(values[arm]))
