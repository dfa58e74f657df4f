"""GLR: a generalised likelihood ratio test of an arm's rewards, and the forced exploration that goes with it."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies import forced_exploration
from dynabandit.policies.base import PolicyState, Reward, Step
from dynabandit.policies.detectors.base import ALL_ARMS, NO_RESTART, THE_ARM, Detector, DetectorKernels
from dynabandit.policies.part import Setting
from dynabandit.stats.change_detection import has_change
from dynabandit.validation import LEAST_FACTOR, check_field, integer, number, set_fields, unknown

SLOTS = ("started", "stride")
STARTED, STRIDE = range(2)  # the step of the arm's latest restart, and the distance between two splits
SUMS = len(SLOTS)  # from this row on: the sum of the first stride, 2 stride, 3 stride, ... rewards
# shared; SEEN is the step at which the latest reward arrived, SESSION the age at the next session of forced exploration
SEEN, RESTARTS, LATEST, SESSION = range(4)
RESTART = ("local", "global")
SCHEDULES = ("growing", "constant")


class Params(NamedTuple):
    arms: float
    share: float
    growing: bool
    doubt: float  # -log delta
    every: int
    spacing: float
    capacity: int
    restart_all: bool


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    """Write the step of the restart and the distance between two splits."""
    state.memory[STARTED, arm] = state.shared[SEEN]
    state.memory[STRIDE, arm] = params.spacing
    if state.shared[SESSION] == 0.0:
        state.shared[SESSION] = 1.0


@kernel
def observe(state: PolicyState, arm: int, reward: Reward, total: float, plays: float, params: Params) -> int:
    """Store the sum of the rewards and test the arm at every so many plays."""
    memory, shared = state.memory, state.shared
    shared[SEEN] = float(reward.arrived_at)
    store_sum(memory, arm, total, plays, params.capacity)
    if int(plays) % params.every != 0 or not has_changed(memory, arm, total, plays, params.doubt):
        return NO_RESTART
    shared[RESTARTS] += 1.0
    shared[LATEST] = shared[SEEN]
    shared[SESSION] = 1.0
    return ALL_ARMS if params.restart_all else THE_ARM


@kernel
def store_sum(memory: np.ndarray, arm: int, total: float, plays: float, capacity: int) -> None:
    """Store the sum so far at multiples of the stride; if there are too many, drop every other one."""
    number, stride = int(plays), int(memory[STRIDE, arm])
    if number % stride != 0:
        return
    place = number // stride
    if place <= capacity:
        memory[SUMS + place - 1, arm] = total
        return
    for kept in range(capacity // 2):
        memory[SUMS + kept, arm] = memory[SUMS + 2 * kept + 1, arm]
    memory[STRIDE, arm] = 2.0 * stride


@kernel
def has_changed(memory: np.ndarray, arm: int, total: float, plays: float, doubt: float) -> bool:
    """Whether the log-likelihood ratio of some stored split reaches log(n^(3/2) / delta), doubt = -log delta."""
    mean = min(total / plays, 1.0)
    return has_change(memory[SUMS:, arm], memory[STRIDE, arm], plays, total, mean, 1.5 * math.log(plays) + doubt)


@kernel
def steps_since_restart(started: float, step: Step, params: Params) -> float:
    """Return how many steps were played since the restart of an arm, at least 1."""
    return max(float(step.number - 1) - started, 1.0)


@kernel
def share_of_episode(shared: np.ndarray, params: Any) -> float:
    """Return alpha_k = sqrt(k K log T / T) in the k-th episode."""
    episode = shared[RESTARTS] + 1.0 if params.growing else 1.0
    return params.share * math.sqrt(episode)


@kernel
def share(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the share of steps with forced exploration."""
    return min(share_of_episode(shared, params), 1.0)


@kernel
def forced(shared: np.ndarray, number: int, params: Any) -> float:
    """Return the turn of an arm at this step."""
    return forced_exploration.scheduled(number, int(params.arms), share_of_episode(shared, params))


@kernel
def diminishing_share(shared: np.ndarray, number: int, params: Params) -> float:
    """Return alpha / sqrt(t), t steps after the latest restart."""
    return min(params.share / math.sqrt(max(float(number) - shared[LATEST], 1.0)), 1.0)


@kernel
def diminishing_forced(shared: np.ndarray, number: int, params: Params) -> float:
    """Return the turn of an arm at this step, if there is a session."""
    age = float(number) - shared[LATEST]
    if params.share <= 0.0:
        return forced_exploration.NOT_FORCED
    session = next_session(shared[SESSION], age, params)
    return -1.0 - (age - session) if age >= session else forced_exploration.NOT_FORCED


@kernel
def next_session(session: float, age: float, params: Params) -> float:
    """Return the first session that has not ended at this age: sqrt(u) grows by K / (2 alpha)."""
    arms, alpha = params.arms, max(params.share, LEAST_FACTOR)  # with less, no session ends
    while age >= session + arms:
        later = session + arms * math.sqrt(session) / alpha + arms * arms / (4.0 * alpha * alpha)
        session = max(float(math.ceil(min(later, forced_exploration.LARGEST_PERIOD))), session + arms)
    return session


@kernel
def diminishing_observe(
    state: PolicyState, arm: int, reward: Reward, total: float, plays: float, params: Params
) -> int:
    """Do the same, and store the next session, so that a decision need not compute all sessions since the restart."""
    forgotten = observe(state, arm, reward, total, plays, params)
    shared = state.shared
    if params.share > 0.0:
        shared[SESSION] = next_session(shared[SESSION], shared[SEEN] - shared[LATEST], params)
    return forgotten


@dataclass(frozen=True, kw_only=True)
class LikelihoodRatioTest(Detector):
    """What the two forms of the test share: everything except the exploration.

    Cost per step: O(capacity) at each play of an arm that is followed by a test.

    Memory: O(K x capacity).
    """

    restart: str = "local"
    scale: float = 1.0
    delta: float | None = None
    every: int = 10
    spacing: int = 10
    capacity: int = 128

    def __post_init__(self) -> None:
        if self.restart not in RESTART:
            raise unknown("restart", self.restart, RESTART)
        check_field(self, "delta", number, 0.0, 1.0, open_low=True, optional=True)
        capacity = integer("capacity", self.capacity, 2, LARGEST_STEP)
        if capacity % 2:
            raise ValueError(f"capacity must be an even number of at least 2, got {self.capacity!r}")
        set_fields(self, restart=str(self.restart), capacity=capacity)
        check_field(self, "scale", number, 0.0, math.inf)
        check_field(self, "every", integer, 1, LARGEST_STEP)
        check_field(self, "spacing", integer, 1, LARGEST_STEP)

    @property
    def needs_horizon(self) -> bool:
        return self.delta is None

    def _share(self, setting: Setting) -> float:
        """Return the share of forced exploration in the first episode."""
        return self.scale

    def _growing(self) -> bool:
        return False

    def params(self, setting: Setting) -> Params:
        return Params(
            arms=float(setting.arms),
            share=self._share(setting),
            growing=self._growing(),
            doubt=0.5 * math.log(setting.horizon) if self.delta is None else -math.log(self.delta),
            every=self.every,
            spacing=float(self.spacing),
            capacity=self.capacity,
            restart_all=self.restart == "global",
        )

    def history_size(self, setting: Setting) -> int:
        return self.capacity


@dataclass(frozen=True, kw_only=True)
class GLR(LikelihoodRatioTest):
    r"""Forget the rewards of an arm, or of all arms, when a generalised likelihood ratio test finds a change: for
    abrupt changes.

    A change is detected in an arm with n rewards since its restart if, for some split s,

    .. math:: s \, \mathrm{kl}(\bar{x}_{1:s}, \bar{x}_{1:n}) + (n - s) \, \mathrm{kl}(\bar{x}_{s+1:n}, \bar{x}_{1:n})
        \geq \log \frac{n^{3/2}}{\delta}

    So that arms with small means are tested too, arms are played in turn at regular times, in a share alpha_k = scale
    sqrt(k K log(T) / T) of the steps after k - 1 restarts; if arms are compared by random draws, a random arm is played
    with this probability. The logarithm of a bound counts the steps since the restart of the arm.

    Parameters
    ----------
    restart
        ``"local"`` restarts the arm that changed, ``"global"`` restarts all arms.
    scale
        A factor for the share of forced exploration, at least 0; 0 means none. The theory of the paper has 1, which
        explores too much with more than a few arms; the default is that of the authors' library SMPyBandits, and the
        thesis of Besson uses 0.05.
    delta
        The probability of a false alarm of the test, in (0, 1]; by default 1 / sqrt(horizon).
    every
        The number of plays of an arm between two tests.
    spacing
        The initial distance between two splits, in plays.
    capacity
        The maximum number of splits, an even number.
    schedule
        ``"growing"``, which does not need the number of changes, or ``"constant"``, with `changes` in place of k.

    Examples
    --------
    >>> import dynabandit as db
    >>> test = db.detectors.GLR(restart="global", delta=0.01)
    >>> test.restart, test.needs_changes, test.needs_horizon
    ('global', False, True)

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23.
    """

    name = "glr"
    follows_horizon = True
    kernels = DetectorKernels(
        slots=SLOTS,
        start=start,
        observe=observe,
        arm_clock=steps_since_restart,
        share=share,
        forced=forced,
        shared=4,
        params=Params,
    )

    scale: float = 0.1
    schedule: str = "growing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        set_fields(self, schedule=str(self.schedule))

    @property
    def needs_changes(self) -> bool:
        return self.schedule == "constant"

    @property
    def needs_horizon(self) -> bool:
        return self.delta is None or self.scale > 0.0

    def _share(self, setting: Setting) -> float:
        arms, changes, horizon = setting.arms, setting.changes, setting.horizon
        factor = 1 if self._growing() else changes
        return self.scale * math.sqrt(factor * arms * math.log(horizon) / horizon)

    def _growing(self) -> bool:
        return self.schedule == "growing"


@dataclass(frozen=True, kw_only=True)
class GLRDiminishing(LikelihoodRatioTest):
    r"""The test of `GLR` with exploration that is frequent after a detected change, and ever rarer as time goes on: for
    large changes after long constant periods.

    A share of about alpha / sqrt(t) of the steps is forced exploration, t steps after the last restart: sessions in
    which each arm is played once start whenever sqrt(t) has grown by K / (2 alpha). If arms are compared by random
    draws, a random arm is played with this probability. This needs neither the number of changes nor the horizon.

    Parameters
    ----------
    restart
        ``"local"`` restarts the arm that changed, ``"global"`` restarts all arms.
    scale
        The paper's alpha, at least 0; 0 means no forced exploration.
    delta
        The probability of a false alarm of the test, in (0, 1]; by default 1 / sqrt(horizon).
    every
        The number of plays of an arm between two tests.
    spacing
        The initial distance between two splits, in plays.
    capacity
        The maximum number of splits, an even number.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.detectors.GLRDiminishing(delta=0.01).needs_horizon
    False

    References
    ----------
    Li, Hsieh & Huang (2024), Diminishing exploration: a minimalist approach to piecewise stationary multi-armed
    bandits. With the test of Besson, Kaufmann, Maillard & Seznec (2022). JMLR 23.
    """

    name = "glr-diminishing"
    follows_horizon = True
    kernels = GLR.kernels._replace(observe=diminishing_observe, share=diminishing_share, forced=diminishing_forced)
