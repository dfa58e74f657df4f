"""GLR-klUCB: KL-UCB that restarts when a generalised likelihood ratio test detects a change."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.rules import forced_exploration, kl_index
from dynabandit.stats.change_detection import has_change
from dynabandit.validation import LEAST_FACTOR, check_field, integer, number, set_fields, unknown

SLOTS = (*kl_index.SLOTS, "started", "stride")
TOTAL, PLAYS = SLOTS.index("total"), SLOTS.index("plays")
STARTED = SLOTS.index("started")  # the step of the arm's latest restart
STRIDE = SLOTS.index("stride")
SUMS = len(SLOTS)  # from this row on: the sum of the first stride, 2 stride, 3 stride, ... rewards
# shared; SEEN is the step at which the latest reward arrived, SESSION the age at the next session of forced exploration
SEEN, RESTARTS, LATEST, SESSION = range(4)


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
    kl_index.start(state, arm, params)
    state.memory[STARTED, arm] = state.shared[SEEN]
    state.memory[STRIDE, arm] = params.spacing
    if state.shared[SESSION] == 0.0:
        state.shared[SESSION] = 1.0


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    # alpha_k = sqrt(k K log T / T) in the k-th episode
    episode = state.shared[RESTARTS] + 1.0 if params.growing else 1.0
    return forced_exploration.scheduled(number, int(params.arms), params.share * math.sqrt(episode))


@kernel
def index(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    age = float(step.number - 1) - state.memory[STARTED, arm]
    return kl_index.index(state, arm, math.log(max(age, 1.0)))


score = forced_exploration.make_score(index)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    shared[SEEN] = float(reward.arrived_at)
    kl_index.observe(state, arm, reward.value)
    store_sum(memory, arm, params.capacity)
    if int(memory[PLAYS, arm]) % params.every == 0 and has_changed(memory, arm, params.doubt):
        shared[RESTARTS] += 1.0
        shared[LATEST] = shared[SEEN]
        shared[SESSION] = 1.0
        if params.restart_all:
            for other in range(memory.shape[1]):
                start(state, other, params)
        else:
            start(state, arm, params)


@kernel
def store_sum(memory: np.ndarray, arm: int, capacity: int) -> None:
    """Store the sum so far at multiples of the stride; if there are too many, drop every other one."""
    plays, stride = int(memory[PLAYS, arm]), int(memory[STRIDE, arm])
    if plays % stride != 0:
        return
    place = plays // stride
    if place <= capacity:
        memory[SUMS + place - 1, arm] = memory[TOTAL, arm]
        return
    for kept in range(capacity // 2):
        memory[SUMS + kept, arm] = memory[SUMS + 2 * kept + 1, arm]
    memory[STRIDE, arm] = 2.0 * stride


@kernel
def has_changed(memory: np.ndarray, arm: int, doubt: float) -> bool:
    """Whether the log-likelihood ratio of some stored split reaches log(n^(3/2) / delta), doubt = -log delta."""
    plays, total, mean = memory[PLAYS, arm], memory[TOTAL, arm], memory[kl_index.MEAN, arm]
    return has_change(memory[SUMS:, arm], memory[STRIDE, arm], plays, total, mean, 1.5 * math.log(plays) + doubt)


@kernel
def diminishing_common(state: PolicyState, number: int, params: Params) -> float:
    age = float(number) - state.shared[LATEST]
    if params.share <= 0.0:
        return forced_exploration.NOT_FORCED
    session = next_session(state.shared[SESSION], age, params)
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
def diminishing_learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    learn(state, arm, reward, params)
    shared = state.shared
    if params.share > 0.0:  # stored, so that a decision need not compute all sessions since the restart
        shared[SESSION] = next_session(shared[SESSION], shared[SEEN] - shared[LATEST], params)


RESTART = ("local", "global")
SCHEDULES = ("growing", "constant")


@dataclass(frozen=True, kw_only=True)
class GLRPolicy(HorizonTuned, SampleMeanPolicy):
    """What the variants of GLR-klUCB share: the test and the restarts."""

    slots = SLOTS

    burn_in: int = 1
    restart: str = "local"
    scale: float = 1.0
    delta: float | None = None
    every: int = 10
    spacing: int = 10
    capacity: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def _follows_from_changes(self) -> bool:
        return False

    def _follows_from_horizon(self) -> bool:
        return self.delta is None

    def _share(self, arms: int) -> float:
        """Return the share of forced exploration in the first episode."""
        raise NotImplementedError

    def _growing(self) -> bool:
        return False

    def params(self, arms: int) -> Params:
        _, horizon = self._expected()
        return Params(
            arms=float(arms),
            share=self._share(arms),
            growing=self._growing(),
            doubt=0.5 * math.log(horizon) if self.delta is None else -math.log(self.delta),
            every=self.every,
            spacing=float(self.spacing),
            capacity=self.capacity,
            restart_all=self.restart == "global",
        )

    def memory_size(self) -> int:
        return SUMS + self.capacity

    def shared_size(self) -> int:
        return 4


@dataclass(frozen=True, kw_only=True)
class GLRKLUCB(GLRPolicy):
    r"""KL-UCB that tests whether an arm has changed, and then forgets its earlier rewards or those of all arms. Use it
    for abrupt changes.

    The test is a generalised likelihood ratio test. An arm is tested at its own plays: are its rewards since the
    restart more likely with two means than with one? So that arms with small means are tested too, arms are played in
    turn at regular times, in a share alpha_k = scale sqrt(k K log(T) / T) of the steps after k - 1 restarts.

    The test considers splits after every tenth reward, as in the experiments of the paper. When there are more than
    `capacity` splits, every other one is dropped and the spacing doubles, so that memory and time are bounded. A change
    is then at most one spacing, less than 2 / capacity of the rewards, away from a split.

    Parameters
    ----------
    restart
        ``"local"`` restarts the arm that changed, ``"global"`` restarts all arms.
    schedule
        ``"growing"``, which does not need the number of changes, or ``"constant"``, with `changes` in place of k.
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
    changes
        The expected number of changes of the best arm, for the constant schedule. By default a simulation counts them
        on its path, which is not possible in practice.
    horizon
        The expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> means = [[0.5, 0.1, 0.1], [0.5, 0.9, 0.1], [0.5, 0.1, 0.9]]
    >>> environment = db.environment("piecewise", starts=[1, 1001, 2001], means=means)
    >>> runs = db.compare(["kl-ucb", "glr-kl-ucb"], environment, horizon=3000, replications=2, seed=1)
    >>> runs["glr-kl-ucb"].total_regret.mean() < runs["kl-ucb"].total_regret.mean() / 2
    np.True_

    Notes
    -----
    A change is detected in an arm with n rewards since its restart if, for some split s,

    .. math:: s \, \mathrm{kl}(\bar{x}_{1:s}, \bar{x}_{1:n}) + (n - s) \, \mathrm{kl}(\bar{x}_{s+1:n}, \bar{x}_{1:n})
        \geq \log \frac{n^{3/2}}{\delta}

    The score is that of KL-UCB on the rewards and the steps since the restart.

    Cost per step: O(K), and O(capacity) at every tenth play of an arm; memory: O(K x capacity).

    References
    ----------
    Besson, Kaufmann, Maillard & Seznec (2022), Efficient change-point detection for tackling piecewise-stationary
    bandits. JMLR 23.
    """

    name = "glr-kl-ucb"
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    scale: float = 0.1
    schedule: str = "growing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        set_fields(self, schedule=str(self.schedule))

    def _follows_from_changes(self) -> bool:
        return self.schedule == "constant"

    def _follows_from_horizon(self) -> bool:
        return self.delta is None or self.scale > 0.0

    def _share(self, arms: int) -> float:
        changes, horizon = self._expected()
        factor = 1 if self._growing() else changes
        return self.scale * math.sqrt(factor * arms * math.log(horizon) / horizon)

    def _growing(self) -> bool:
        return self.schedule == "growing"


@dataclass(frozen=True, kw_only=True)
class GLRKLUCBDiminishing(GLRPolicy):
    r"""GLR-klUCB that explores often after a detected change, and ever more rarely as time goes on. Use it for large
    changes after long constant periods.

    A share of about alpha / sqrt(t) of the steps is forced exploration, t steps after the last restart: sessions in
    which each arm is played once start whenever sqrt(t) has grown by K / (2 alpha). This needs neither the number of
    changes nor the horizon. Everything else is as in `GLRKLUCB`.

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
    changes
        Not used.
    horizon
        The expected number of steps, for `delta`; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("glr-kl-ucb-diminishing", arms=["a", "b"], delta=0.01, seed=1)
    >>> bandit.choose()
    'a'

    Notes
    -----
    The test is that of GLR-klUCB. Sessions of forced exploration start at these times u after a restart:

    .. math:: u_{i + 1} = u_i + \frac{K}{\alpha} \sqrt{u_i} + \frac{K^2}{4 \alpha^2}

    Cost per step: O(K), and O(capacity) at every tenth play of an arm; memory: O(K x capacity).

    References
    ----------
    Li, Hsieh & Huang (2024), Diminishing exploration: a minimalist approach to piecewise stationary multi-armed
    bandits. With the test of Besson, Kaufmann, Maillard & Seznec (2022). JMLR 23.
    """

    name = "glr-kl-ucb-diminishing"
    functions = PolicyFunctions(
        start=start, score=score, learn=diminishing_learn, common=diminishing_common, params=Params
    )

    def _share(self, arms: int) -> float:
        return self.scale
