"""eps-Greedy: the largest sample mean, or a random arm with probability epsilon."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories import sample_mean_policy
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.rules.score_laws import random_exploration
from dynabandit.validation import BOUNDED, NORMAL, check_field, number

SLOTS = (*sample_mean_policy.SLOTS, "mean")
MEAN = SLOTS.index("mean")


class Params(NamedTuple):
    epsilon: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    sample_mean_policy.start(state, arm, params)
    state.memory[MEAN, arm] = math.inf


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    pending = pending_plays(state, arm)
    return state.memory[MEAN, arm] if pending == 0 else expected_mean(state.memory[MEAN, arm], pending)


@kernel
def exploration(state: PolicyState, leader: int, step: Step, params: Params) -> float:
    return params.epsilon


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    sums = sample_mean_policy.observe(state, arm, reward.value)
    state.memory[MEAN, arm] = sums.total / sums.plays


@dataclass(frozen=True, kw_only=True)
class EpsGreedy(SampleMeanPolicy):
    r"""Play the arm with the best average reward so far, and with probability epsilon a random arm. A simple baseline:
    it never forgets, and it explores at the end as much as at the beginning.

    Parameters
    ----------
    epsilon
        The probability of exploring, in [0, 1].
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("eps-greedy", epsilon=0.2).label
    'eps-greedy(epsilon=0.2)'

    Notes
    -----
    With probability epsilon a random arm, otherwise the arm with the largest sample mean:

    .. math:: a_t = \arg\max_a \bar{x}_t(a)

    Cost per step: O(log K), because a mean changes only when its arm is played.

    References
    ----------
    Watkins (1989), Learning from delayed rewards. PhD thesis, Cambridge.
    Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits, section 3.1.
    """

    name = "eps-greedy"
    rewards = NORMAL
    live_rewards = BOUNDED
    slots = SLOTS
    functions = PolicyFunctions(
        start=start, score=score, learn=learn, static_index=True, params=Params, **random_exploration(exploration)
    )

    burn_in: int = 1
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "epsilon", number, 0.0, 1.0)

    def params(self, arms: int) -> Params:
        return Params(self.epsilon)
