"""M-UCB: UCB that restarts when the two halves of an arm's latest rewards differ."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies import forced_exploration, ucb
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.tuning_rules import HorizonTuned
from dynabandit.validation import integer, number, set_fields

SUMS = len(ucb.SLOTS)  # from this row on: a ring buffer, the sum of the arm's rewards after each of its latest plays
SEEN, LATEST = range(2)  # shared: the step at which the latest reward arrived, and that of the latest restart


class Params(NamedTuple):
    arms: int
    share: float
    window: int
    threshold: float


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    age = number - int(state.shared[LATEST])
    forced = forced_exploration.scheduled(age, params.arms, params.share)
    return forced if forced < 0.0 else math.sqrt(2.0 * math.log(float(max(age, 1))))


score = forced_exploration.make_score(ucb.score)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, window = state.memory, state.shared, params.window
    shared[SEEN] = float(reward.arrived_at)
    sums = ucb.observe(state, arm, reward.value)
    plays = int(sums.plays)
    before = memory[SUMS + plays % window, arm]  # the sum `window` plays ago
    memory[SUMS + plays % window, arm] = sums.total
    if plays < window:
        return
    middle = memory[SUMS + (plays - window // 2) % window, arm]
    # Algorithm 1: the newer half against the older one
    if abs((sums.total - middle) - (middle - before)) > params.threshold:
        shared[LATEST] = shared[SEEN]
        for other in range(memory.shape[1]):
            ucb.start(state, other, params)


@dataclass(frozen=True, kw_only=True)
class MUCB(HorizonTuned, SampleMeanPolicy):
    r"""Monitored UCB: all arms restart when the two halves of an arm's latest rewards differ too much.

    Arms are also played in turn at regular times, so that arms with small means are monitored too.

    Parameters
    ----------
    window
        The paper's w, an even number of an arm's own plays; 800 in the experiments of the paper.
    threshold
        The paper's b, at least 0; by default sqrt(w / 2 log(2 K T^2)).
    exploration
        The paper's gamma, the share of forced exploration in [0, 1]; by default sqrt(changes K (2 b + 3 sqrt(w)) / (2
        T)), at most 1.
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("m-ucb", changes=1).label
    'm-ucb(changes=1)'

    Notes
    -----
    All arms restart when the sums of the two halves of an arm's latest w rewards differ by more than b:

    .. math:: \left| \sum_{i = n - w/2 + 1}^{n} y_i - \sum_{i = n - w + 1}^{n - w/2} y_i \right| > b

    With tau steps since the restart, the score is

    .. math:: \bar{x} + \sqrt{\frac{2 \log \tau}{N}}

    Cost per step: O(K); memory: O(K w).

    References
    ----------
    Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for piecewise-stationary
    bandit. AISTATS.
    """

    name = "m-ucb"
    slots = ucb.SLOTS
    functions = PolicyFunctions(start=ucb.start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 1
    window: int = 800
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        window = integer("window", self.window, 2, LARGEST_STEP)
        if window % 2:
            raise ValueError(f"window must be an even number of at least 2, got {self.window!r}")
        set_fields(self, window=window)
        if self.threshold is not None:
            set_fields(self, threshold=number("threshold", self.threshold, 0.0, math.inf))
        if self.exploration is not None:
            set_fields(self, exploration=number("exploration", self.exploration, 0.0, 1.0))

    def _follows_from_changes(self) -> bool:
        return self.exploration is None

    def _follows_from_horizon(self) -> bool:
        return self.exploration is None or self.threshold is None

    def params(self, arms: int) -> Params:
        changes, horizon = self._expected()
        threshold, share = self.threshold, self.exploration
        if threshold is None:
            threshold = math.sqrt(self.window / 2.0 * math.log(2.0 * arms * horizon**2))
        if share is None:
            cost = 2.0 * threshold + 3.0 * math.sqrt(self.window)
            share = min(math.sqrt(changes * arms * cost / (2.0 * horizon)), 1.0)
        return Params(arms, share, self.window, threshold)

    def memory_size(self) -> int:
        return SUMS + self.window

    def shared_size(self) -> int:
        return 2
