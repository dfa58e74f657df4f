"""Pending plays: the plays of an arm whose rewards have not arrived yet.

Index policies count them in their bonus as observations that leave the mean as it is. Otherwise an arm with late
rewards would keep its large bonus, and be chosen again and again, until the first of them arrives. Thompson sampling
counts the pending plays of an arm without any reward as rewards of 0, for the same reason.
"""

from numba.extending import overload

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyState

UNKNOWN_STEP = -1  # as the step of a decision
UNSEEN = 1e30  # a mean above this is infinite; fast arithmetic on a GPU need not compare infinities correctly


def pending_plays(state: PolicyState, arm: int) -> int:
    """Return the number of an arm's plays without a reward; without delays the constant 0, in compiled code too."""
    return 0 if state.pending is None else int(state.pending[arm])


@overload(pending_plays)
def _pending_plays(state, arm):  # type: ignore[no-untyped-def]  # Numba compares the signatures, annotations included
    if str(state.types[state.fields.index("pending")]) == "none":
        return lambda state, arm: 0
    return lambda state, arm: state.pending[arm]


pending_plays.compiled_as = _pending_plays  # type: ignore[attr-defined]  # included in fingerprints


@kernel
def begin_play(state: PolicyState, arm: int, number: int) -> None:
    """Record that an arm was chosen at step `number`; its reward is pending."""
    state.last_played[arm] = number
    state.pending[arm] += 1


@kernel
def end_play(state: PolicyState, arm: int, decided_at: int) -> None:
    """Record that the reward of a decision has arrived, or that it never will.

    At most `last_played - decided_at` later plays of the arm can be pending. So plays whose rewards are lost are not
    counted forever: those before the decision of an arm that is played rarely end with it.
    """
    left = state.pending[arm] - 1
    if decided_at != UNKNOWN_STEP:
        left = min(left, state.last_played[arm] - decided_at)
    state.pending[arm] = max(left, 0)


@kernel
def expected_mean(mean: float, pending: int) -> float:
    """Return the mean of an arm, or 1 / (1 + pending) if it has no reward, where its mean is infinite.

    Without a reward, an arm is tried again while its pending plays could be one success and otherwise failures.
    """
    return mean if mean < UNSEEN else 1.0 / (1.0 + pending)


@kernel
def assumed_zeros(state: PolicyState, arm: int, size: float) -> float:
    """Return how many rewards of 0 a posterior counts besides the data of an arm, whose number or weight is `size`.

    These are the pending plays of an arm without any reward: it is tried while it could be as good as the others, and
    then waits for its first reward.
    """
    return float(pending_plays(state, arm)) if size == 0.0 else 0.0
