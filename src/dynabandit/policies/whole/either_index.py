"""The index of policies with a choice between KL-UCB and UCB, from the same numbers of a sample mean."""

import math

from dynabandit.core.compilation import kernel
from dynabandit.core.records import NoParams, column_reader, column_writer
from dynabandit.policies.base import PolicyState
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.rules import kl_ucb
from dynabandit.policies.whole import sample_mean_policy

SLOTS = (*sample_mean_policy.SLOTS, *kl_ucb.Stored._fields)
PLAYS, MEAN = SLOTS.index("plays"), SLOTS.index("mean")
INDICES = ("kl-ucb", "ucb")
NOTHING = NoParams()
read = column_reader(kl_ucb.Stored, len(sample_mean_policy.SLOTS))
write = column_writer(kl_ucb.Stored, len(sample_mean_policy.SLOTS))


@kernel
def forget(state: PolicyState, arm: int) -> None:
    """Forget the rewards of an arm: it is played first."""
    for slot in range(len(sample_mean_policy.SLOTS)):
        state.memory[slot, arm] = 0.0
    state.memory[MEAN, arm] = math.inf


@kernel
def observe(state: PolicyState, arm: int, value: float) -> None:
    """Update an arm with a reward, and store what the index needs."""
    sums = sample_mean_policy.observe(state, arm, value)
    mean, plays = sums.total / sums.plays, sums.plays
    write(state.memory, arm, kl_ucb.store(mean, plays, plays, plays, NOTHING))


@kernel
def index(state: PolicyState, arm: int, age: float, is_ucb: bool) -> float:
    """Return the index of an arm so many steps after its restart; infinity without rewards and pending plays."""
    level, stored, pending = math.log(max(age, 1.0)), read(state.memory, arm), pending_plays(state, arm)
    if is_ucb:
        inverse = stored.inverse if pending == 0 else 1.0 / (state.memory[PLAYS, arm] + pending)
        mean = stored.mean if pending == 0 else expected_mean(stored.mean, pending)
        return mean + math.sqrt(2.0 * level * inverse)
    if pending == 0:
        return kl_ucb.from_stored(stored, level, NOTHING)
    return kl_ucb.score(expected_mean(stored.mean, pending), state.memory[PLAYS, arm] + pending, level, NOTHING)
