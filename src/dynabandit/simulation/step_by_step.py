"""One replication played step by step by the caller, interpreted, with its state and scores accessible."""

from collections.abc import Sequence

import numpy as np

from dynabandit.choosing.choose_arm import make_choose, new_workspace
from dynabandit.core.context import Context
from dynabandit.core.streams import stream
from dynabandit.policies import Policy, Reward
from dynabandit.policies.base import new_state
from dynabandit.simulation.stepper import round_robin_arm


class StepByStep:
    """A policy without compilation, whose plays and rewards the caller decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> run = StepByStep(db.policy("ucb"), arms=2, horizon=10)
    >>> run.decide(1), run.decide(2)
    (0, 1)
    >>> run.learn(0, number=1, value=1.0)
    >>> run.state.memory[db.policies.UCB.slots.index("plays")].tolist()
    [1.0, 0.0]
    """

    def __init__(self, policy: Policy, arms: int, horizon: int, seed: int = 1, context: Context | None = None) -> None:
        self.policy, self.arms, self.random = policy, arms, stream(seed)
        self.params = policy.params(arms)
        self.state = new_state(policy, arms, self.params, context)
        self.space = new_workspace(policy.functions, arms, horizon)
        self.scores = self.space.scratch[0]
        self._choose = make_choose(policy.functions)

    def reveal(self, means: Sequence[float] | np.ndarray) -> None:
        """Reveal the true means."""
        for arm in range(self.arms):
            self.policy.functions.reveal(self.state, arm, means[arm])

    def show(self, features: np.ndarray) -> None:
        """Show the features of the next step, an array (rows, dimension)."""
        self.space = self.space._replace(features=features)

    def decide(self, number: int) -> int:
        """Return the arm of a step: that of the burn-in, or the policy's choice."""
        arm = round_robin_arm(self.arms, number, self.policy.burn_in)
        return arm if arm >= 0 else self.choose(number)

    def choose(self, number: int) -> int:
        """Return the policy's choice at a step; `scores` has the scores afterwards."""
        return int(self._choose(self.state, number, self.params, self.space, self.random))

    def learn(self, arm: int, number: int, value: float) -> None:
        """Play an arm at a step and learn its reward."""
        rows = self.space.features
        features = rows[arm if len(rows) > 1 else 0] if self.policy.functions.contextual else None
        self.state.last_played[arm] = number
        self.policy.functions.learn(self.state, arm, Reward(value, number, number, features), self.params)
