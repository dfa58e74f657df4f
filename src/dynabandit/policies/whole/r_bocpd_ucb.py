"""R-BOCPD-UCB: UCB or KL-UCB that restarts when Bayesian online change-point detection finds a change."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies import forced_exploration
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.detectors import glr
from dynabandit.policies.detectors.glr import LATEST, RESTART, RESTARTS, SEEN
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.whole import either_index
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, integer, number, set_fields, unknown

SLOTS = (*either_index.SLOTS, "started", "forecasters")
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
STARTED = SLOTS.index("started")  # the step of the arm's latest restart
FORECASTERS = SLOTS.index("forecasters")  # how many there are besides the first one
# Then three numbers per forecaster: the arm's total and plays when it was made, and the logarithm of its weight
# relative to that of the first forecaster, which has seen all rewards since the restart
FIRST_ROW = len(SLOTS)
ROWS = 3


class Params(NamedTuple):
    arms: float
    share: float
    growing: bool  # always, for `glr.forced`
    log_rate: float
    particles: int
    restart_all: bool
    is_ucb: bool


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return glr.forced(state.shared, number, params)


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    state.memory[:, arm] = 0.0
    either_index.forget(state, arm)
    state.memory[STARTED, arm] = state.shared[SEEN]


@kernel
def index(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    age = float(step.number - 1) - state.memory[STARTED, arm]
    return either_index.index(state, arm, age, params.is_ucb)


score = forced_exploration.make_score(index)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    shared = state.shared
    shared[SEEN] = float(reward.arrived_at)
    largest = update_weights(state.memory, arm, reward.value, params)
    either_index.observe(state, arm, reward.value)
    largest = max(largest, add_forecaster(state.memory, arm, reward.value, params))
    if largest > 0.0:
        shared[RESTARTS] += 1.0
        shared[LATEST] = shared[SEEN]
        if params.restart_all:
            for other in range(state.memory.shape[1]):
                start(state, other, params)
        else:
            start(state, arm, params)


@kernel
def predict(total: float, plays: float, value: float) -> float:
    """Return the probability of a reward by Laplace's rule; a reward in [0, 1] is a fraction of a success."""
    return (value * (total + 1.0) + (1.0 - value) * (plays - total + 1.0)) / (plays + 2.0)


@kernel
def update_weights(memory: np.ndarray, arm: int, value: float, params: Params) -> float:
    """Multiply each relative weight by the likelihood ratio of a reward, and return the largest logarithm.

    Without forecasters, return that of a new one before its first reward.
    """
    total, plays = memory[TOTAL, arm], memory[PLAYS, arm]
    own = predict(total, plays, value)
    largest = params.log_rate
    for forecaster in range(int(memory[FORECASTERS, arm])):
        row = FIRST_ROW + ROWS * forecaster
        likelihood = predict(total - memory[row, arm], plays - memory[row + 1, arm], value)
        memory[row + 2, arm] += math.log(likelihood / own)
        largest = max(largest, memory[row + 2, arm])
    return largest


@kernel
def add_forecaster(memory: np.ndarray, arm: int, value: float, params: Params) -> float:
    """Add the forecaster of the rewards to come, and return the logarithm of its relative weight."""
    held = int(memory[FORECASTERS, arm])
    if held == params.particles:
        remove_lightest(memory, arm)
        held -= 1
    row = FIRST_ROW + ROWS * held
    total, plays = memory[TOTAL, arm], memory[PLAYS, arm]
    weight = params.log_rate - math.log(predict(total - value, plays - 1.0, value))
    memory[row, arm] = total
    memory[row + 1, arm] = plays
    memory[row + 2, arm] = weight
    memory[FORECASTERS, arm] = held + 1.0
    return weight


@kernel
def remove_lightest(memory: np.ndarray, arm: int) -> None:
    """Remove the forecaster with the smallest weight."""
    held = int(memory[FORECASTERS, arm])
    lightest = 0
    for forecaster in range(1, held):
        if memory[FIRST_ROW + ROWS * forecaster + 2, arm] < memory[FIRST_ROW + ROWS * lightest + 2, arm]:
            lightest = forecaster
    for row in range(FIRST_ROW + ROWS * lightest, FIRST_ROW + ROWS * (held - 1)):
        memory[row, arm] = memory[row + ROWS, arm]


@dataclass(frozen=True, kw_only=True)
class RBocpdUCB(HorizonTuned, SampleMeanPolicy):
    r"""UCB that forgets the earlier rewards of an arm, or of all arms, when its recent rewards alone predict better.
    Use it for abrupt changes.

    This is restarted Bayesian online change-point detection. For each arm, one forecaster predicts the rewards since
    the restart by Laplace's rule, and for each reward another one is added that has seen only the rewards after it. An
    arm has changed when one of these outweighs the first.

    The number of forecasters per arm is bounded: beyond `particles` of them, the one with the smallest weight is
    dropped for each new one. The authors keep all of them, with a cost per step that grows with the time since the
    restart.

    Parameters
    ----------
    index
        ``"kl-ucb"`` or ``"ucb"``, with t counted from the restart of the arm.
    restart
        ``"local"`` restarts the arm that changed, ``"global"`` restarts all arms.
    rate
        The prior weight of a new forecaster, in (0, 1]; by default 1 / horizon, as in the authors' code.
    scale
        A factor for the share of forced exploration of `GLRKLUCB`, at least 0; 0 means none.
    particles
        The maximum number of forecasters per arm besides the first one, at least 2.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("r-bocpd-ucb", arms=["old", "new"], horizon=1000, seed=1)
    >>> for reward in [1] * 30 + [0] * 9:
    ...     bandit.reward("old", reward)
    >>> bandit.arms["old"].mean
    0.0

    Notes
    -----
    With rewards y since the restart, and P(y | S, N) = (S + 1) / (N + 2) for a success after S successes in N rewards,
    the weight of the forecaster that was added at reward s, relative to that of the first one, is

    .. math:: \frac{\rho \prod_{i < s} P(y_i \mid y_1, \ldots, y_{i-1}) \prod_{i > s} P(y_i \mid y_{s+1}, \ldots,
        y_{i-1})}{\prod_{i} P(y_i \mid y_1, \ldots, y_{i-1})}

    with the rate rho. The arm restarts when it exceeds 1 for some s.

    The weights are those of the authors' published MATLAB code of the detector, without its rounding by repeated
    normalisation; in their paper a forecaster also predicts from the reward at which it was added. How the detector is
    combined with UCB we could not find in full: the index and the schedule of forced exploration are those of
    GLR-klUCB.

    Cost per step: O(K), and O(particles) for the arm that was played; memory: O(K x particles).

    References
    ----------
    Alami, Maillard & Feraud (2020), Restarted Bayesian online change-point detector achieves optimal detection delay.
    ICML. The exploration: Besson, Kaufmann, Maillard & Seznec (2022), JMLR 23.
    """

    name = "r-bocpd-ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 1
    index: str = "kl-ucb"
    restart: str = "local"
    rate: float | None = None
    scale: float = 0.1
    particles: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index not in either_index.INDICES:
            raise unknown("index", self.index, either_index.INDICES)
        if self.restart not in RESTART:
            raise unknown("restart", self.restart, RESTART)
        check_field(self, "rate", number, 0.0, 1.0, open_low=True, optional=True)
        set_fields(self, index=str(self.index), restart=str(self.restart))
        check_field(self, "scale", number, 0.0, math.inf)
        check_field(self, "particles", integer, 2, LARGEST_STEP)

    def _follows_from_horizon(self) -> bool:
        return self.rate is None or self.scale > 0.0

    def params(self, arms: int) -> Params:
        _, horizon = self._expected()
        return Params(
            arms=float(arms),
            share=self.scale * math.sqrt(arms * math.log(horizon) / horizon),
            growing=True,
            log_rate=-math.log(horizon) if self.rate is None else math.log(self.rate),
            particles=self.particles,
            restart_all=self.restart == "global",
            is_ucb=self.index == "ucb",
        )

    def memory_size(self) -> int:
        return FIRST_ROW + ROWS * self.particles

    def shared_size(self) -> int:
        return 4
