"""What is simulated, and the policies' states before the first step; the same for all backends."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.core.context import Context
from dynabandit.core.records import to_row
from dynabandit.core.streams import Stream
from dynabandit.environments import Bernoulli, Environment, RewardFunctions
from dynabandit.environments.delays import Delay
from dynabandit.policies import Policy
from dynabandit.policies.base import new_state
from dynabandit.simulation.in_flight import empty_queue
from dynabandit.simulation.stepper import Replications

Progress = Callable[[int, int], None]


class SimulationRequest(NamedTuple):
    """What is simulated."""

    environment: Environment
    policies: dict[str, Policy]
    horizon: int
    random: Stream
    times: np.ndarray
    progress: Progress
    delay: Delay | None
    small: bool = False  # whether interpreted code is fast enough as long as there is no compiled code

    @property
    def needs_switches(self) -> bool:
        """Whether a policy needs to know how often the best arm changes."""
        return any(policy.needs_tuning for policy in self.policies.values())


def initial_states(
    policy: Policy,
    arms: int,
    switches: np.ndarray,
    horizon: int,
    law: RewardFunctions = Bernoulli.functions,
    delay: Delay | None = None,
    context: Context | None = None,
) -> Replications:
    """Return the state before the first step, of one replication for each number of switches."""
    states, index = distinct_states(policy, arms, switches, horizon, law, delay, context)
    return Replications(*(part[index] for part in states))


def distinct_states(
    policy: Policy,
    arms: int,
    switches: np.ndarray,
    horizon: int,
    law: RewardFunctions = Bernoulli.functions,
    delay: Delay | None = None,
    context: Context | None = None,
) -> tuple[Replications, np.ndarray]:
    """Return the different states before the first step, and for each replication the place of its state."""
    counts, index = np.unique(switches if policy.needs_tuning else np.zeros_like(switches), return_inverse=True)
    tuned = [policy.tuned(int(count), horizon) for count in counts]
    params = [one.params(arms) for one in tuned]
    states = [new_state(one, arms, own, context) for one, own in zip(tuned, params, strict=True)]
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
