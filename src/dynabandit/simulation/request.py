"""What is simulated, and the policies' states before the first step; the same for all backends."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dynabandit.core.context import Context
from dynabandit.core.records import to_row
from dynabandit.core.streams import Stream, shifted
from dynabandit.environments import Bernoulli, Environment, RewardFunctions
from dynabandit.environments.delays import Delay
from dynabandit.policies import Policy
from dynabandit.policies.base import new_state
from dynabandit.simulation.in_flight import empty_queue
from dynabandit.simulation.stepper import Replications

Progress = Callable[[int, int], None]


class SimulationRequest(NamedTuple):
    """What is simulated, and how. Whoever makes one has checked everything."""

    environment: Environment
    policies: Mapping[str, Policy]
    horizon: int
    replications: int
    random: Stream  # of the first replication
    times: np.ndarray
    delay: Delay | None = None
    keeps_steps: bool = False  # whether the arms and rewards of all steps are kept
    backend: str = "cpu"
    precision: str = "double"
    threads: int = 1
    block: int | None = None
    progress: Progress = lambda done, total: None

    @property
    def needs_changes(self) -> bool:
        """Whether a policy needs to know how often the best arm changes."""
        return any(policy.needs_tuning for policy in self.policies.values())

    def part(self, low: int, high: int) -> "SimulationRequest":
        """Return the request for the replications from `low` up to `high`."""
        return self._replace(replications=high - low, random=shifted(self.random, low))


def initial_states(
    policy: Policy,
    arms: int,
    changes: np.ndarray,
    horizon: int,
    law: RewardFunctions = Bernoulli.functions,
    delay: Delay | None = None,
    context: Context | None = None,
) -> Replications:
    """Return the state before the first step, of one replication for each number of changes."""
    states, index = distinct_states(policy, arms, changes, horizon, law, delay, context)
    return Replications(*(part[index] for part in states))


def distinct_states(
    policy: Policy,
    arms: int,
    changes: np.ndarray,
    horizon: int,
    law: RewardFunctions = Bernoulli.functions,
    delay: Delay | None = None,
    context: Context | None = None,
) -> tuple[Replications, np.ndarray]:
    """Return the different states before the first step, and for each replication the place of its state."""
    counts, index = np.unique(changes if policy.needs_tuning else np.zeros_like(changes), return_inverse=True)
    tuned = [policy.tuned(int(count), horizon) for count in counts]
    params = [form.params(arms) for form in tuned]
    states = [new_state(form, arms, own, context) for form, own in zip(tuned, params, strict=True)]
    memory = np.zeros((len(tuned), max(len(state.memory) for state in states), arms))
    shared = np.zeros((len(tuned), max(len(state.shared) for state in states)))
    for row, state in enumerate(states):
        memory[row, : len(state.memory)] = state.memory
        shared[row, : len(state.shared)] = state.shared
    last_played = np.zeros((len(tuned), arms), dtype=np.int64)
    plays = np.zeros((len(tuned), arms if law.observes_plays else 0), dtype=np.int64)
    optimal = np.zeros(plays.shape)
    pending = np.zeros((len(tuned), 0 if delay is None else arms), dtype=np.int64)
    contextual = policy.functions.contextual
    dimension = context.dimension if contextual and context else 0
    queue, settling = (np.zeros((1, 0)), np.zeros(0)) if delay is None else empty_queue(delay, horizon, dimension)
    queue, settling = (np.stack([part] * len(tuned)) for part in (queue, settling))
    numbers = np.stack([to_row(own) for own in params])
    models = np.stack([state.models for state in states]) if contextual else np.zeros((len(tuned), 0, 0))
    return Replications(memory, shared, last_played, plays, optimal, numbers, pending, queue, settling, models), index
