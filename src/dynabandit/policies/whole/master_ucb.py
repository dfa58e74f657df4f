"""MASTER with UCB1: instances of UCB1 for time scales of 1, 2, 4, ... steps, and two tests that restart all of them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.whole import learned_draws, sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import check_field, number

SLOTS = sample_mean_policy.SLOTS  # of the rewards of the current block
ORDERS = 32  # an instance of order m runs for 2^m steps
TOTALS = len(SLOTS)  # from this row on: the sum of the rewards that the instance of each order learned
COUNTS = TOTALS + ORDERS  # from this row on: how many they are
SIZE = COUNTS + ORDERS
# shared: the order of the current block, its steps so far, 1 - U, the sum of the differences between the optimistic
# value and the reward, the order of the active instance, and a hash of the rewards
BLOCK, STEPS, PESSIMISM, EXCESS, ACTIVE, HASH = range(6)
RUNNING = 6  # from here on: whether there is an instance of each order
REWARDS = RUNNING + ORDERS  # from here on: the sum of all rewards since it began
SHARED_SIZE = REWARDS + ORDERS


class Params(NamedTuple):
    arms: float
    log_horizon: float
    factor: float  # rho hat is this times rho


@kernel
def rho(steps: float, params: Params) -> float:
    """Return the average regret per step that UCB1 may have in so many steps."""
    return math.sqrt(params.arms * params.log_horizon / steps) + params.arms * params.log_horizon / steps


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return math.sqrt(2.0 * params.log_horizon)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    order, pending = int(state.shared[ACTIVE]), pending_plays(state, arm)
    total, count = state.memory[TOTALS + order, arm], state.memory[COUNTS + order, arm]
    if pending == 0:
        return bound(total, count, step.common)
    mean = total / count if count > 0.0 else math.inf
    return expected_mean(mean, pending) + step.common / math.sqrt(count + pending)


@kernel
def bound(total: float, count: float, width: float) -> float:
    """Return the upper confidence bound of an arm of an instance."""
    return total / count + width / math.sqrt(count) if count > 0.0 else math.inf


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    value, active, block = reward.value, int(shared[ACTIVE]), int(shared[BLOCK])
    optimistic = optimistic_value(memory, active, math.sqrt(2.0 * params.log_horizon))
    sample_mean_policy.observe(state, arm, value)
    memory[TOTALS + active, arm] += value
    memory[COUNTS + active, arm] += 1.0
    learned_draws.update_hash(shared, HASH, arm, value)
    shared[STEPS] += 1.0
    shared[PESSIMISM] = max(shared[PESSIMISM], 1.0 - optimistic)
    shared[EXCESS] += optimistic - value
    for order in range(block + 1):
        shared[REWARDS + order] += value
    if has_changed(shared, params):
        begin_block(state, 0, params)
    elif shared[STEPS] == float(1 << block):
        begin_block(state, min(block + 1, ORDERS - 1), params)
    begin_step(state, params)


@kernel
def optimistic_value(memory: np.ndarray, active: int, width: float) -> float:
    """Return the largest upper confidence bound of the active instance, at most 1."""
    largest = 0.0
    for arm in range(memory.shape[1]):
        count = memory[COUNTS + active, arm]
        largest = max(largest, bound(memory[TOTALS + active, arm], count, width) if count > 0.0 else 1.0)
    return min(largest, 1.0)


@kernel
def has_changed(shared: np.ndarray, params: Params) -> bool:
    """Whether one of the two tests of algorithm 3 fails."""
    steps, block = int(shared[STEPS]), int(shared[BLOCK])
    # Test 1: the rewards during an instance that ends now are better than was thought possible
    for order in range(block + 1):
        length = float(1 << order)
        if steps % (1 << order) == 0 and (order == block or shared[RUNNING + order] > 0.0):
            bar = 1.0 - shared[PESSIMISM] + 9.0 * params.factor * rho(length, params)
            if shared[REWARDS + order] / length >= bar:
                return True
    # Test 2: the rewards of the block are worse than UCB1 promises
    return shared[EXCESS] / steps >= 3.0 * params.factor * rho(float(steps), params)


@kernel
def begin_block(state: PolicyState, block: int, params: Params) -> None:
    """Forget everything except the hash."""
    for place in range(SHARED_SIZE):
        if place != HASH:
            state.shared[place] = 0.0
    state.shared[BLOCK] = block
    for arm in range(state.memory.shape[1]):
        sample_mean_policy.start(state, arm, params)


@kernel
def begin_step(state: PolicyState, params: Params) -> None:
    """Start the instances of procedure 1 whose turn it is, and find the one that is active: the shortest one."""
    memory, shared = state.memory, state.shared
    steps, block = int(shared[STEPS]), int(shared[BLOCK])
    shared[ACTIVE] = float(block)
    for order in range(block, -1, -1):
        if order < block and steps % (1 << order) == 0:
            chance = rho(float(1 << block), params) / rho(float(1 << order), params)
            is_started = learned_draws.draw(shared, HASH, order, 0) < chance
            shared[RUNNING + order] = 1.0 if is_started else 0.0
            shared[REWARDS + order] = 0.0
            if is_started:
                for arm in range(memory.shape[1]):
                    memory[TOTALS + order, arm] = 0.0
                    memory[COUNTS + order, arm] = 0.0
        if shared[RUNNING + order] > 0.0:
            shared[ACTIVE] = float(order)


@dataclass(frozen=True, kw_only=True)
class MasterUCB(HorizonTuned, SampleMeanPolicy):
    r"""MASTER: many copies of UCB for short and long periods, which start anew together when a test finds a change. A
    reference of the theory: in practice its tests rarely find a change.

    Time is divided into blocks of 1, 2, 4, ... steps. In a block of 2^n steps, a new instance of UCB1 is started by
    chance at multiples of each 2^m, for 2^m steps, and the shortest instance decides and learns. If the rewards of a
    short instance are better, or those of the block worse, than UCB1 promises, the blocks begin again with a single
    step. It needs to know neither the number nor the size of the changes, and its regret is of the optimal order in
    theory. In practice the constants of its tests are so large that they do not find changes within reasonable
    horizons (Gerogiannis, Huang & Veeravalli, 2024). It is here as the reference of the theory.

    Parameters
    ----------
    scale
        A factor for the thresholds of both tests, at least 0; 1 in the paper.

    Examples
    --------
    >>> import dynabandit as db
    >>> environment = db.environment("fixed", means=[0.2, 0.8])
    >>> db.simulate("master-ucb", environment, horizon=1000, replications=10, seed=1).total_regret.mean() < 200
    np.True_

    Notes
    -----
    The average regret of UCB1 and, from it, the thresholds:

    .. math:: \rho(t) = \sqrt{\frac{K \log T}{t}} + \frac{K \log T}{t}, \quad \hat{\rho}(t) = 6 \, (\log_2 T + 1) \,
        \log T \; \rho(t)

    An instance of order m is started with probability rho(2^n) / rho(2^m). With the upper bound g of the active
    instance at each step, at most 1, and U the smallest one of the block, the tests are

    .. math:: \frac{1}{2^m} \sum_{\text{instance}} y \geq U + 9 \hat{\rho}(2^m), \quad \frac{1}{t} \sum_{\text{block}}
        (g - y) \geq 3 \hat{\rho}(t)

    The score is mean + sqrt(2 log(T) / N) of the active instance. The constants of rho and of the score are those of
    the usual analysis of UCB1; we could not compare them with the appendix of the paper. Time is counted in rewards.
    Which instances are started is drawn with a hash of the rewards so far, because learning has no random numbers of
    its own. `Bandit.arms` shows the means of the current block: NaN for an arm without rewards in it.

    Cost per step: O(K + log T); memory: O(K log T), here 67 numbers per arm.

    References
    ----------
    Wei & Luo (2021), Non-stationary reinforcement learning without prior knowledge: an optimal black-box approach.
    COLT. Gerogiannis, Huang & Veeravalli (2024), Is prior-free black-box non-stationary reinforcement learning
    feasible? arXiv 2410.13772.
    """

    name = "master-ucb"
    slots = SLOTS
    functions = PolicyFunctions(start=sample_mean_policy.start, score=score, learn=learn, common=common, params=Params)

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_field(self, "scale", number, 0.0, math.inf)

    def _follows_from_horizon(self) -> bool:
        return True

    def params(self, arms: int) -> Params:
        _, horizon = self._expected()
        log_horizon = max(math.log(horizon), 1.0)
        factor = self.scale * 6.0 * (math.log2(horizon) + 1.0) * log_horizon
        return Params(float(arms), log_horizon, factor)

    def memory_size(self) -> int:
        return SIZE

    def shared_size(self) -> int:
        return SHARED_SIZE
