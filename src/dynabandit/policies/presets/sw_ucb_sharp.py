"""SW-UCB#: upper confidence bounds on a sliding window that grows with time."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.memories import reward_window
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.presets import sw_ucb, ucb
from dynabandit.validation import check_field, integer, number


class Params(NamedTuple):
    alpha: float
    scale: float
    capacity: float


@kernel
def window_of(rewards: float, params: Params) -> float:
    """Return tau(t, alpha) after t rewards; it grows by at most one per reward."""
    return float(math.ceil(min(params.scale * rewards**params.alpha, rewards, params.capacity)))


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return math.sqrt((1.0 + params.alpha) * math.log(max(state.shared[reward_window.COUNT], 1.0)))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    window = window_of(state.shared[reward_window.COUNT] + 1.0, params)
    sw_ucb.observe(state, arm, reward.value, int(window))


@dataclass(frozen=True, kw_only=True)
class SWUCBSharp(SampleMeanPolicy):
    r"""SW-UCB#: sliding-window UCB whose window grows with time, so that it needs no horizon. A baseline of the
    literature for changing means.

    The window moves with the rewards of all arms, as in `SWUCB`. For abrupt changes, about t^nu of them in t steps, the
    paper has `alpha` = (1 - nu) / 2, so 1/2 for a few changes; for slow changes, of about t^-kappa per step, min(1, 3
    kappa / 4).

    Parameters
    ----------
    alpha
        The exponent of the window, in [0, 1].
    scale
        The paper's lambda, positive: the factor of the window.
    capacity
        The largest window. The paper has no bound; this one bounds the memory.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> abrupt, slow = db.policy("sw-ucb-sharp"), db.policy("sw-ucb-sharp", alpha=0.75, scale=4.3)
    >>> slow.label
    'sw-ucb-sharp(alpha=0.75, scale=4.3)'

    Notes
    -----
    With the count N and the mean x of an arm's rewards among the latest ones of all arms:

    .. math:: \bar{x}_t(a) + \sqrt{\frac{(1 + \alpha) \log t}{N_t(a)}}, \quad \text{window } \min(\lceil \lambda
        t^\alpha \rceil, \; t)

    The rule was compared with the implementation in SMPyBandits, whose lambda is 1. The default lambda is meant to be
    that of the paper's experiments with abrupt changes, which could not be checked.

    Cost per step: O(K), independent of the window; memory: O(K + capacity).

    References
    ----------
    Wei & Srivastava (2018), On abruptly-changing and slowly-varying multiarmed bandit problems. arXiv 1802.08380.
    """

    name = "sw-ucb-sharp"
    slots = ucb.SLOTS
    functions = PolicyFunctions(start=ucb.start, score=ucb.score, learn=learn, common=common, params=Params)

    burn_in: int = 1
    alpha: float = 0.5
    scale: float = 12.3
    capacity: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "alpha", number, 0.0, 1.0)
        check_field(self, "scale", number, 0.0, math.inf, open_low=True)
        check_field(self, "capacity", integer, 1, LARGEST_STEP)

    def params(self, arms: int) -> Params:
        return Params(self.alpha, self.scale, float(self.capacity))

    def shared_size(self) -> int:
        return reward_window.size(self.capacity)

    def tuned(self, switches: int, horizon: int) -> Self:
        return replace(self, capacity=min(self.capacity, horizon))  # a longer window would never be full
