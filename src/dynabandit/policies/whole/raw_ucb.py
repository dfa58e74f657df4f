"""RAW-UCB: the smallest upper confidence bound over windows of several lengths, for means that only fall."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.whole import dyadic_windows
from dynabandit.policies.whole.dyadic_windows import PLAYS, WINDOWS, window_mean
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, number


class Params(NamedTuple):
    """The parameters of RAW-UCB and FEWA."""

    alpha: float
    sigma: float


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return params.sigma * math.sqrt(2.0 * params.alpha * math.log(float(number)))


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    plays = memory[PLAYS, arm]
    if plays + pending == 0.0:
        return math.inf
    if plays == 0.0:
        return expected_mean(math.inf, pending) + step.common / math.sqrt(float(pending))
    smallest = math.inf
    length, place = 1.0, 0
    while length <= plays and place < WINDOWS:
        smallest = min(smallest, window_mean(memory, arm, place) + step.common / math.sqrt(length + pending))
        length *= 2.0
        place += 1
    return smallest


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    dyadic_windows.observe(state, arm, reward.value)


@dataclass(frozen=True, kw_only=True)
class RottingPolicy(SampleMeanPolicy):
    """What RAW-UCB and FEWA share: dyadic windows and a confidence level.

    Parameters
    ----------
    sigma
        The sub-Gaussian parameter of the rewards, positive: 1/2 is valid for all rewards in [0, 1].
    """

    slots = dyadic_windows.SLOTS

    burn_in: int = 1
    alpha: float = 1.4
    sigma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "alpha", number, 0.0, math.inf, open_low=True)
        check_field(self, "sigma", number, 0.0, math.inf, open_low=True)

    def params(self, arms: int) -> Params:
        return Params(self.alpha, self.sigma)

    def memory_size(self) -> int:
        return dyadic_windows.SIZE


@dataclass(frozen=True, kw_only=True)
class RawUCB(RottingPolicy):
    r"""RAW-UCB: judge each arm by that window of its latest rewards which promises the least. Use it for arms that wear
    out; it does not notice arms that become better.

    An arm is worth the smallest upper confidence bound over windows of its latest rewards. If means only fall, with the
    plays of an arm (rested) or with time (restless), the mean of the latest h rewards is at least the current mean,
    apart from noise. Each window therefore gives an upper confidence bound, and the smallest one is the best: short
    windows have little bias, long ones little noise.

    This is the efficient version of the paper, with windows of 1, 2, 4, ... rewards. A window of 2^j rewards moves on
    whenever 2^(j-1) new rewards have come. While rewards are pending, they count as further rewards of every window.

    Parameters
    ----------
    alpha
        How fast the confidence level 2 / t^alpha falls, positive. The theory of the paper asks for 4 or more; its
        experiments use 1.4.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("rested-drops", arms=5)
    >>> runs = db.compare(["raw-ucb", "ucb"], environment, horizon=2000, replications=5, seed=1)
    >>> bool(runs["raw-ucb"].total_regret.mean() < runs["ucb"].total_regret.mean())
    True

    Notes
    -----
    The score of an arm at step t, with the mean of its latest h rewards:

    .. math:: \min_{h \in \{1, 2, 4, \ldots\}} \; \bar{x}^{(h)} + \sqrt{\frac{2 \sigma^2 \alpha \log t}{h}}

    When the windows move is our reading of the paper's efficient update. `Bandit.arms` shows the mean of all rewards.

    Cost per step: O(K log t), memory: O(K log t); here 64 numbers per arm.

    References
    ----------
    Seznec, Ménard, Lazaric & Valko (2020), A single algorithm for both restless and rested rotting bandits. AISTATS.
    """

    name = "raw-ucb"
    functions = PolicyFunctions(start=dyadic_windows.start, score=score, learn=learn, common=common, params=Params)
