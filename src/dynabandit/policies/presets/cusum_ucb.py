"""CUSUM-UCB: UCB or KL-UCB that restarts an arm when a CUSUM test detects a change of its mean."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dynabandit.core.compilation import kernel
from dynabandit.core.streams import LARGEST_STEP
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.memories.sample_mean_policy import SampleMeanPolicy
from dynabandit.policies.presets import ucb
from dynabandit.policies.rules import kl_index
from dynabandit.policies.rules.score_laws import random_exploration
from dynabandit.validation import check_field, integer, number

XI = 1.0
TEST_SLOTS = ("reference", "up", "down")  # after the slots of the index
HELD = 0  # shared: how many rewards the arms have since their restarts


class Params(NamedTuple):
    exploration: float
    drift: float
    reference_plays: float
    threshold: float


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return math.sqrt(XI * math.log(max(state.shared[HELD], 1.0)))


@kernel
def exploration(state: PolicyState, leader: int, step: Step, params: Params) -> float:
    return params.exploration


@kernel
def kl_common(state: PolicyState, number: int, params: Params) -> float:
    return math.log(max(state.shared[HELD], 1.0))


def make_learn(start: Callable[..., None], observe: Callable[..., object], test: int) -> Callable[..., None]:
    """Return `learn` for an index with these functions; the slots of the test begin at row `test`."""
    reference, up, down = test, test + 1, test + 2

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
        memory = state.memory
        state.shared[HELD] += 1.0
        observe(state, arm, reward.value)
        plays = memory[ucb.PLAYS, arm]
        if plays == params.reference_plays:
            memory[reference, arm] = memory[ucb.MEAN, arm]
        if plays <= params.reference_plays:
            return
        # Algorithm 3: two random walks, for an increase and for a decrease
        above = reward.value - memory[reference, arm]
        memory[up, arm] = max(0.0, memory[up, arm] + above - params.drift)
        memory[down, arm] = max(0.0, memory[down, arm] - above - params.drift)
        if max(memory[up, arm], memory[down, arm]) >= params.threshold:
            state.shared[HELD] -= plays
            start(state, arm, params)

    return learn


@dataclass(frozen=True, kw_only=True)
class CusumPolicy(HorizonTuned, SampleMeanPolicy):
    """What CUSUM-UCB and CUSUM-klUCB share: everything except the index."""

    burn_in: int = 1
    drift: float = 0.05
    reference_plays: int = 100
    threshold: float | None = None
    exploration: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "drift", number, 0.0, 1.0)
        check_field(self, "reference_plays", integer, 1, LARGEST_STEP)
        check_field(self, "threshold", number, 0.0, math.inf, optional=True)
        check_field(self, "exploration", number, 0.0, 1.0, optional=True)

    def _follows_from_changes(self) -> bool:
        return self.threshold is None or self.exploration is None

    def params(self, arms: int) -> Params:
        changes, horizon = self._expected()
        ratio = max(horizon / changes, 1.0)
        threshold = math.log(ratio) if self.threshold is None else self.threshold
        share = math.sqrt(math.log(ratio) / ratio) if self.exploration is None else self.exploration
        return Params(share, self.drift, float(self.reference_plays), threshold)


@dataclass(frozen=True, kw_only=True)
class CusumUCB(CusumPolicy):
    r"""UCB that forgets the rewards of an arm when they differ too much from its first ones. Use it for abrupt changes.

    A two-sided CUSUM test detects that the mean of an arm differs from that of its first plays, and restarts the arm.
    With a small probability a random arm is played, so that arms with small means are tested too.

    Parameters
    ----------
    drift
        The paper's epsilon in [0, 1]: changes of a mean up to this size cause no alarm.
    reference_plays
        The paper's M: the number of first plays of an arm whose mean later plays are compared with.
    threshold
        The paper's h, at least 0; by default log(horizon / changes).
    exploration
        The paper's alpha in [0, 1]: the probability of playing a random arm; by default sqrt(changes / horizon
        log(horizon / changes)).
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        The expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("cusum-ucb", changes=1).label
    'cusum-ucb(changes=1)'

    Notes
    -----
    After M plays of an arm with mean r, each reward y updates two statistics, for an increase and for a decrease:

    .. math:: g^{+} \leftarrow \max(0, \; g^{+} + y - r - \varepsilon), \quad g^{-} \leftarrow \max(0, \; g^{-} + r -
        y - \varepsilon)

    The arm restarts when one of them reaches the threshold. With n plays of all arms since their restarts, the score is

    .. math:: \bar{x} + \sqrt{\frac{\log n}{N}}

    Cost per step: O(K).

    References
    ----------
    Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit problem.
    AAAI.
    """

    name = "cusum-ucb"
    slots = (*ucb.SLOTS, *TEST_SLOTS)
    functions = PolicyFunctions(
        start=ucb.start,
        score=ucb.score,
        learn=make_learn(ucb.start, ucb.observe, len(ucb.SLOTS)),
        common=common,
        **random_exploration(exploration),
        params=Params,
    )


@dataclass(frozen=True, kw_only=True)
class CusumKLUCB(CusumPolicy):
    r"""CUSUM-UCB with the tighter bound of KL-UCB: the form in which later papers compare with CUSUM-UCB. Use it for
    abrupt changes.

    The test, its defaults and the random exploration are those of `CusumUCB`. The experiments of Besson et al. use
    drift 0.1 with 200 first plays, or drift 0.05 with 400, and explore in a share sqrt(changes K log(T) / T) of the
    steps.

    Parameters
    ----------
    drift
        The paper's epsilon in [0, 1]: changes of a mean up to this size cause no alarm.
    reference_plays
        The paper's M: the number of first plays of an arm whose mean later plays are compared with.
    threshold
        The paper's h, at least 0; by default log(horizon / changes).
    exploration
        The paper's alpha in [0, 1]: the probability of playing a random arm; by default sqrt(changes / horizon
        log(horizon / changes)).
    changes
        The expected number of changes of the best arm. By default a simulation counts them on its path, which is not
        possible in practice; `changes=1` does not use the path.
    horizon
        The expected number of steps, or ``"doubling"``; a simulation uses its own horizon.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> import dynabandit as db
    >>> db.policy("cusum-kl-ucb", changes=1).label
    'cusum-kl-ucb(changes=1)'

    Notes
    -----
    With n plays of all arms since their restarts, the score of an arm with N plays and the sample mean x is

    .. math:: \max \left\{ q : N \, \mathrm{kl}(\bar{x}, q) \leq \log n \right\}

    Cost per step: O(K), with one root finding per arm.

    References
    ----------
    The test: Liu, Lee & Shroff (2018), A change-detection based framework for piecewise-stationary multi-armed bandit
    problem. AAAI. The index: the experiments of Besson, Kaufmann, Maillard & Seznec (2022), JMLR 23, and their code,
    which gives an alarm above the threshold only; here, as in the first paper, also at the threshold.
    """

    name = "cusum-kl-ucb"
    slots = (*kl_index.SLOTS, *TEST_SLOTS)
    functions = PolicyFunctions(
        start=kl_index.start,
        score=kl_index.score,
        learn=make_learn(kl_index.start, kl_index.observe, len(kl_index.SLOTS)),
        common=kl_common,
        **random_exploration(exploration),
        params=Params,
    )
