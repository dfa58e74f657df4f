"""M-UCB: UCB or KL-UCB that restarts when the two halves of an arm's latest rewards differ."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.presets import ucb
from dynabandit.policies.rules import forced_exploration, kl_index
from dynabandit.validation import check_field, integer, number, set_fields

TOTAL = ucb.SLOTS.index("total")
SEEN, LATEST = range(2)  # shared: the step at which the latest reward arrived, and that of the latest restart
LARGEST_SHARE = 0.25  # of forced exploration, unless it is given: the paper's rule exceeds 1 if there are many arms


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


@kernel
def kl_common(state: PolicyState, number: int, params: Params) -> float:
    age = number - int(state.shared[LATEST])
    forced = forced_exploration.scheduled(age, params.arms, params.share)
    return forced if forced < 0.0 else math.log(float(max(age - 1, 1)))


def make_learn(start: Callable[..., None], observe: Callable[..., object], first: int) -> Callable[..., None]:
    """Return `learn` for an index with these functions.

    From row `first` on, the memory has a ring buffer: the sum of the arm's rewards after each of its latest plays.
    """

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
        memory, shared, window = state.memory, state.shared, params.window
        shared[SEEN] = float(reward.arrived_at)
        observe(state, arm, reward.value)
        total, plays = memory[TOTAL, arm], int(memory[ucb.PLAYS, arm])
        before = memory[first + plays % window, arm]  # the sum `window` plays ago
        memory[first + plays % window, arm] = total
        if plays < window:
            return
        middle = memory[first + (plays - window // 2) % window, arm]
        # Algorithm 1: the newer half against the older one
        if abs((total - middle) - (middle - before)) > params.threshold:
            shared[LATEST] = shared[SEEN]
            for other in range(memory.shape[1]):
                start(state, other, params)

    return learn


@dataclass(frozen=True, kw_only=True)
class MonitoredPolicy(HorizonTuned, SampleMeanPolicy):
    """What M-UCB and M-klUCB share: everything except the index."""

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
        check_field(self, "threshold", number, 0.0, math.inf, optional=True)
        check_field(self, "exploration", number, 0.0, 1.0, optional=True)

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
            share = min(math.sqrt(changes * arms * cost / (2.0 * horizon)), LARGEST_SHARE)
        return Params(arms, share, self.window, threshold)

    def memory_size(self) -> int:
        return len(self.slots) + self.window

    def shared_size(self) -> int:
        return 2


@dataclass(frozen=True, kw_only=True)
class MUCB(MonitoredPolicy):
    r"""Monitored UCB, which forgets all rewards when the two halves of an arm's latest rewards differ too much. Use it
    for abrupt changes.

    Arms are also played in turn at regular times, so that arms with small means are monitored too.

    Parameters
    ----------
    window
        The paper's w, an even number of an arm's own plays; 800 in the experiments of the paper.
    threshold
        The paper's b, at least 0; by default sqrt(w / 2 log(2 K T^2)).
    exploration
        The paper's gamma, the share of forced exploration in [0, 1]; by default sqrt(changes K (2 b + 3 sqrt(w)) / (2
        T)), but at most 1/4. The paper has no such bound, and its rule exceeds 1 with many arms: the policy would only
        explore.
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
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
    functions = PolicyFunctions(
        start=ucb.start,
        score=forced_exploration.make_score(ucb.score),
        learn=make_learn(ucb.start, ucb.observe, len(ucb.SLOTS)),
        common=common,
        params=Params,
    )


@dataclass(frozen=True, kw_only=True)
class MKLUCB(MonitoredPolicy):
    r"""M-UCB with the tighter bound of KL-UCB: the form in which later papers compare with M-UCB. Use it for abrupt
    changes.

    The test, its defaults and the forced exploration are those of `MUCB`. The experiments of Besson et al. use windows
    of 200 and 800 plays and explore in a share sqrt(changes K log(T) / T) of the steps.

    Parameters
    ----------
    window
        The paper's w, an even number of an arm's own plays.
    threshold
        The paper's b, at least 0; by default sqrt(w / 2 log(2 K T^2)).
    exploration
        The paper's gamma, the share of forced exploration in [0, 1]; by default sqrt(changes K (2 b + 3 sqrt(w)) / (2
        T)), but at most 1/4.
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        T, the expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("m-kl-ucb", changes=1).label
    'm-kl-ucb(changes=1)'

    Notes
    -----
    With t steps played since the restart, the score of an arm with N plays and the sample mean x is

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log t \right\}

    Cost per step: O(K), with one root finding per arm; memory: O(K w).

    References
    ----------
    The test: Cao, Wen, Kveton & Xie (2019), Nearly optimal adaptive procedure with change detection for
    piecewise-stationary bandit. AISTATS. The index: the experiments of Besson, Kaufmann, Maillard & Seznec (2022), JMLR
    23, and their code.
    """

    name = "m-kl-ucb"
    slots = kl_index.SLOTS
    functions = PolicyFunctions(
        start=kl_index.start,
        score=forced_exploration.make_score(kl_index.score),
        learn=make_learn(kl_index.start, kl_index.observe, len(kl_index.SLOTS)),
        common=kl_common,
        params=Params,
    )
