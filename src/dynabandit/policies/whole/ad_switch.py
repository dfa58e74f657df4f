"""AdSwitch: elimination of arms in episodes, with checks of eliminated arms that are started by chance."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.whole import learned_draws, sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, integer, number, set_fields

SLOTS = (*sample_mean_policy.SLOTS, "bad", "mean", "gap", "due", "lower", "upper")
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
BAD = SLOTS.index("bad")  # 1 if the arm was eliminated, `LEAVING` while the others are still compared with it
MEAN, GAP = SLOTS.index("mean"), SLOTS.index("gap")  # of a bad arm when it was eliminated
DUE = SLOTS.index("due")  # a bad arm is checked until it has so many plays
LOWER, UPPER = SLOTS.index("lower"), SLOTS.index("upper")  # largest lower and smallest upper bound of all intervals
CHECKPOINTS = len(SLOTS)  # from this row on: the arm's total and plays at each checkpoint
LEAVING = 2.0
# shared: the steps of the episode, how often the distance of the checkpoints has doubled, the episodes that have ended,
# and a hash of the rewards
STEPS, DOUBLINGS, ENDED, HASH = range(4)
LARGEST_CHECK = 24  # a check of gap 2^-24 would need 10^15 plays
NOT_A_CANDIDATE = -1e18
FAR = 1e18  # a bound that is not known; fast arithmetic on a GPU need not compare infinities correctly


class Params(NamedTuple):
    arms: float
    horizon: float
    log_horizon: float
    constant: float
    scale: float
    every: int
    capacity: int


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    sample_mean_policy.start(state, arm, params)
    state.memory[LOWER, arm] = -FAR
    state.memory[UPPER, arm] = FAR


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    # The candidate that was not played for the longest time
    memory, last = state.memory, float(state.last_played[arm])
    is_candidate = memory[BAD, arm] == 0.0 or memory[PLAYS, arm] < memory[DUE, arm]
    return -last if is_candidate else NOT_A_CANDIDATE - last


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    sample_mean_policy.observe(state, arm, reward.value)
    learned_draws.update_hash(shared, HASH, arm, reward.value)
    shared[STEPS] += 1.0
    if int(shared[STEPS]) % params.every != 0:
        return
    checkpoints = store_checkpoint(state, params)
    for other in range(memory.shape[1]):
        if has_changed(memory, other, checkpoints, params):
            begin_episode(state, params)
            return
    for checkpoint in range(-1, checkpoints):
        eliminate(memory, checkpoint, params)
    for other in range(memory.shape[1]):
        if memory[BAD, other] > 0.0:
            memory[BAD, other] = 1.0
            add_checks(state, other, params)


@kernel
def begin_episode(state: PolicyState, params: Params) -> None:
    """Forget everything except the number of episodes and the hash."""
    state.shared[ENDED] += 1.0
    state.shared[STEPS] = 0.0
    state.shared[DOUBLINGS] = 0.0
    for arm in range(state.memory.shape[1]):
        start(state, arm, params)


@kernel
def store_checkpoint(state: PolicyState, params: Params) -> int:
    """Store the sums at multiples of the distance, which doubles if there are too many; return how many precede now."""
    memory, shared = state.memory, state.shared
    steps, distance = int(shared[STEPS]), params.every << int(shared[DOUBLINGS])
    place = steps // distance
    if steps % distance == 0 and place <= params.capacity:
        row = CHECKPOINTS + 2 * (place - 1)
        for arm in range(memory.shape[1]):
            memory[row, arm] = memory[TOTAL, arm]
            memory[row + 1, arm] = memory[PLAYS, arm]
        return place - 1
    if steps % distance == 0:
        for kept in range(params.capacity // 2):
            row, source = CHECKPOINTS + 2 * kept, CHECKPOINTS + 2 * (2 * kept + 1)
            for arm in range(memory.shape[1]):
                memory[row, arm] = memory[source, arm]
                memory[row + 1, arm] = memory[source + 1, arm]
        shared[DOUBLINGS] += 1.0
        return params.capacity // 2
    return place


@kernel
def since(memory: np.ndarray, arm: int, checkpoint: int) -> tuple[float, float]:
    """Return the sum and the number of an arm's rewards since a checkpoint; -1 is the start of the episode."""
    if checkpoint < 0:
        return memory[TOTAL, arm], memory[PLAYS, arm]
    row = CHECKPOINTS + 2 * checkpoint
    return memory[TOTAL, arm] - memory[row, arm], memory[PLAYS, arm] - memory[row + 1, arm]


@kernel
def has_changed(memory: np.ndarray, arm: int, checkpoints: int, params: Params) -> bool:
    """Conditions (3) and (4) of the paper: bounds of intervals that end now contradict those of earlier ones."""
    lower, upper = -FAR, FAR
    for checkpoint in range(-1, checkpoints):
        total, plays = since(memory, arm, checkpoint)
        if plays > 0.0:
            width = math.sqrt(2.0 * params.log_horizon / plays)
            lower = max(lower, total / plays - width)
            upper = min(upper, total / plays + width)
    if memory[BAD, arm] > 0.0:
        quarter = 0.25 * memory[GAP, arm]
        return lower > memory[MEAN, arm] + quarter or upper < memory[MEAN, arm] - quarter
    memory[LOWER, arm] = max(memory[LOWER, arm], lower)
    memory[UPPER, arm] = min(memory[UPPER, arm], upper)
    return memory[LOWER, arm] > upper or lower > memory[UPPER, arm]


@kernel
def eliminate(memory: np.ndarray, checkpoint: int, params: Params) -> None:
    """Condition (1): mark the good arms whose mean since a checkpoint is too far below the best of the good arms."""
    best = 0.0
    for arm in range(memory.shape[1]):
        total, plays = since(memory, arm, checkpoint)
        if memory[BAD, arm] != 1.0 and plays > 1.0:
            best = max(best, total / plays)
    for arm in range(memory.shape[1]):
        total, plays = since(memory, arm, checkpoint)
        if memory[BAD, arm] == 0.0 and plays > 1.0:
            gap = best - total / plays
            if gap > math.sqrt(params.constant * params.log_horizon / (plays - 1.0)):
                memory[BAD, arm] = LEAVING
                memory[MEAN, arm] = total / plays
                memory[GAP, arm] = gap
                memory[DUE, arm] = 0.0


@kernel
def add_checks(state: PolicyState, arm: int, params: Params) -> None:
    """Start checks of a bad arm by chance: long ones for small changes, and these rarely."""
    memory, shared = state.memory, state.shared
    rate = params.scale * math.sqrt((shared[ENDED] + 1.0) / (params.arms * params.horizon * params.log_horizon))
    size = 0.5
    for check in range(1, LARGEST_CHECK + 1):
        if size < memory[GAP, arm] / 16.0:
            return
        if learned_draws.draw(shared, HASH, check, arm) < params.every * size * rate:
            length = math.floor(2.0 * params.log_horizon / (size * size))
            memory[DUE, arm] = max(memory[DUE, arm], memory[PLAYS, arm] + length)
        size *= 0.5


@dataclass(frozen=True, kw_only=True)
class AdSwitch(HorizonTuned, SampleMeanPolicy):
    r"""AdSwitch: play good arms in turn, drop bad arms, and check dropped arms again at random times. A reference of
    the theory: it need not know how often the means change, but checks take most of its time.

    An episode begins with all arms good. An arm becomes bad if its mean over some recent interval is far below that of
    the best good arm. For bad arms, checks are started by chance, for every size of a change that would matter; an arm
    is then played until such a change would be visible. If the means of an arm in two intervals contradict each other,
    a new episode begins. It was the first policy with optimal regret that needs to know neither the number nor the
    size of the changes. Its constants are those of the theory: with the usual horizons the checks take most of the
    time, and its regret is not far below that of playing all arms equally often. A smaller `scale` makes them rarer.

    The paper considers all intervals at every step, at a cost that grows with the third power of the time. Here arms
    are tested only every `every` steps, and intervals begin at checkpoints. When there are more than `capacity`
    checkpoints, every other one is dropped and their distance doubles. With `every` = 1 and a capacity of at
    least the horizon, this is the paper's rule.

    Parameters
    ----------
    constant
        The paper's C_1, at least 0, for the elimination of arms. The theory of the paper needs more than 16; 1 is the
        default of the code of Besson et al. (2022).
    scale
        A factor for the probability that a check is started, at least 0; 1 in the paper.
    every
        The number of steps between two tests.
    capacity
        The maximum number of checkpoints, an even number.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("fixed", means=[0.1, 0.9])
    >>> rare = db.policy("ad-switch", scale=0.05)
    >>> runs = db.compare(["ad-switch", rare], environment, horizon=1000, replications=4, seed=1)
    >>> regret, regret_of_rare_checks = (run.total_regret.mean() for run in runs.values())
    >>> regret > 2 * regret_of_rare_checks
    np.True_

    Notes
    -----
    With the mean x and the number n of an arm's rewards in an interval that ends now, a good arm becomes bad if

    .. math:: \max_{\text{good}} \bar{x}' - \bar{x} > \sqrt{\frac{C_1 \log T}{n - 1}}

    Let D be this difference. A check for changes of the size 2^-i >= D / 16 is started at a step of the l-th episode
    with probability

    .. math:: 2^{-i} \sqrt{\frac{l}{K T \log T}}

    and lasts for 2 log(T) 4^i plays. A new episode begins if two means of a good arm differ by more than the sum of
    their widths sqrt(2 log(T) / n), or that of a bad arm from its mean at its elimination by more than D / 4 plus its
    width. The score is the time since the last play.

    Checks are drawn with a hash of the rewards so far, because learning has no random numbers of its own, and once for
    all the steps between two tests. `Bandit.arms` shows the means of the current episode.

    Cost per step: O(K), and O(K x capacity) at every tenth step; memory: O(K x capacity).

    References
    ----------
    Auer, Gajane & Ortner (2019), Adaptively tracking the best bandit arm with an unknown number of distribution
    changes. COLT. Read with the implementations in SMPyBandits and by Besson, Kaufmann, Maillard & Seznec (2022).
    """

    name = "ad-switch"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, params=Params)

    constant: float = 1.0
    scale: float = 1.0
    every: int = 10
    capacity: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        capacity = integer("capacity", self.capacity, 2, LARGEST_STEP)
        if capacity % 2:
            raise ValueError(f"capacity must be an even number of at least 2, got {self.capacity!r}")
        set_fields(self, capacity=capacity)
        check_field(self, "constant", number, 0.0, math.inf)
        check_field(self, "scale", number, 0.0, math.inf)
        check_field(self, "every", integer, 1, LARGEST_STEP)

    def _follows_from_horizon(self) -> bool:
        return True

    def params(self, arms: int) -> Params:
        _, horizon = self._expected()
        log_horizon = max(math.log(horizon), 1.0)
        return Params(float(arms), float(horizon), log_horizon, self.constant, self.scale, self.every, self.capacity)

    def memory_size(self) -> int:
        return CHECKPOINTS + 2 * self.capacity

    def shared_size(self) -> int:
        return 4
