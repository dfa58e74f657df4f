"""D-UCB: upper confidence bounds on discounted means; all arms are discounted with each reward."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.estimators.base import Belief
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import DiscountTuned
from dynabandit.policies.pending_plays import expected_mean, pending_plays

XI = 0.6
SLOTS = ("total", "squares", "count", "mean", "width")
TOTAL, SQUARES, COUNT, MEAN, WIDTH = range(5)
# The decay that is common to all arms is stored as one scale: true count = count * scale. Only the played arm changes
# its slots. When the scale gets small, all arms are multiplied by it and it is set back to 1.
SCALE, SUM = range(2)
SMALLEST_SCALE = 1e-100
WIDEST = 1e150  # the width of an arm whose count has underflowed; times the common factor it is still finite


class Params(NamedTuple):
    """The parameters of D-UCB and D-KL-UCB."""

    discount: float


@kernel
def start(state: PolicyState, arm: int, params: Any) -> None:
    if state.shared[SCALE] == 0.0:
        state.shared[SCALE] = 1.0
    state.memory[:, arm] = 0.0
    state.memory[MEAN, arm] = math.inf


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    # 2 B sqrt(xi log n_t), over the square root of the scale that is missing in the arms' widths
    return 2.0 * math.sqrt(XI * math.log(max(state.shared[SUM], 1.0)) / state.shared[SCALE])


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    memory, pending = state.memory, pending_plays(state, arm)
    if pending == 0:
        return memory[MEAN, arm] + step.common * memory[WIDTH, arm]
    count = memory[COUNT, arm] + pending / state.shared[SCALE]
    return expected_mean(memory[MEAN, arm], pending) + step.common * (1.0 / math.sqrt(count))


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared, value = state.memory, state.shared, reward.value
    shared[SCALE] *= params.discount
    shared[SUM] = params.discount * shared[SUM] + 1.0
    if shared[SCALE] < SMALLEST_SCALE:
        rescale(memory, shared)
    memory[TOTAL, arm] += value / shared[SCALE]
    memory[SQUARES, arm] += value * value / shared[SCALE]
    memory[COUNT, arm] += 1.0 / shared[SCALE]
    memory[MEAN, arm] = memory[TOTAL, arm] / memory[COUNT, arm]
    memory[WIDTH, arm] = 1.0 / math.sqrt(memory[COUNT, arm])


@kernel
def rescale(memory: np.ndarray, shared: np.ndarray) -> None:
    """Multiply every arm by the common scale."""
    scale = shared[SCALE]
    for other in range(memory.shape[1]):
        memory[TOTAL, other] *= scale
        memory[SQUARES, other] *= scale
        memory[COUNT, other] *= scale
        memory[WIDTH, other] = min(memory[WIDTH, other] / math.sqrt(scale), WIDEST)
    shared[SCALE] = 1.0


def belief(column: np.ndarray, shared: np.ndarray, discount: float) -> Belief:
    """Return an arm's belief; its effective size is the discounted count, the N of the paper's bonus."""
    _, squares, count, mean, _ = column[:5].tolist()
    if math.isinf(mean):
        return Belief(math.nan, 0.0, discount, 0.0)
    variance = max(0.0, squares / count - mean * mean) if count > 0.0 else 0.0
    return Belief(mean, variance, discount, count * float(shared[SCALE]))


@dataclass(frozen=True, kw_only=True)
class DUCB(DiscountTuned):
    r"""Discounted UCB, which gives older rewards less weight, at a constant rate. A baseline of the literature for
    changing means; with many arms it explores too much.

    The rewards of all arms are discounted, whether they are played or not. The discount is applied with each reward of
    any arm; a decision whose reward has not arrived yet discounts nothing. The effective size of an arm is its
    discounted number of rewards.

    Parameters
    ----------
    discount
        The discount factor per reward of any arm, in (0, 1]; by default 1 - sqrt(changes / horizon) / 4.
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
    >>> db.policy("d-ucb", changes=4, horizon=10_000).params(arms=2)
    Params(discount=0.995)

    Notes
    -----
    With discounted counts N and means x, and n the sum of all counts:

    .. math:: N_t(a) = \sum_{s \leq t} \gamma^{t - s} \, 1[a_s = a]

    .. math:: \bar{x}_t(a) + 2 \sqrt{\frac{0.6 \, \log n_t}{N_t(a)}}

    Cost per step: O(K).

    References
    ----------
    Garivier & Moulines (2011), On upper-confidence bound policies for switching bandit problems. ALT.
    """

    name = "d-ucb"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)
    needs_double = True

    burn_in: int = 1

    def params(self, arms: int) -> Params:
        return Params(self._discount())

    def shared_size(self) -> int:
        return 2

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return belief(column, shared, self._discount())
