"""Tried and not kept: AFF-OTS that forgets by time as well as by plays.

In the paper, the data of an arm that was idle for n steps counts lambda^(n / K) for a decision, equations (16) to (18),
but its estimator knows of no time: with the next reward, all of that data is back. Here the estimator takes up the
discount itself, and the gradient follows it, so that what was forgotten while an arm was idle stays forgotten.

It is a policy of its own, outside the registry, and this file is all of it. Run it to see the table of
docs/baselines-forgetting.md again, regret beside that of AFF-OTS on the same paths:

    python benchmarks/persistent_forgetting.py
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.estimators.adaptive_forgetting import AdaptiveParams
from dynabandit.policies import aff_shared, aff_thompson
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.beta_posterior import Prior

SLOTS = (*aff_thompson.SLOTS, "latest")  # the count of all rewards when the arm had its latest one
FORGETTING, M, W, K, M_DOT, W_DOT = range(6)
LATEST = SLOTS.index("latest")
CLOCK = 0  # shared: how many rewards there were, of all arms


class Params(NamedTuple):
    estimator: AdaptiveParams
    prior: Prior
    arms: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    aff_shared.start(state, arm, params)
    state.memory[LATEST, arm] = state.shared[CLOCK]


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return state.shared[CLOCK]


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    memory = state.memory
    idle = step.common - memory[LATEST, arm]
    factor = aff_shared.discount(memory[aff_thompson.LOG_FORGETTING, arm], idle, step.arms)
    m = memory[M, arm]
    return params.prior.a + factor * m, params.prior.b + factor * (memory[W, arm] - m)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    fade(memory, arm, (shared[CLOCK] - memory[LATEST, arm]) / params.arms)
    shared[CLOCK] += 1.0
    memory[LATEST, arm] = shared[CLOCK]
    aff_thompson.learn(state, arm, reward, params)


@kernel
def fade(memory: np.ndarray, arm: int, exponent: float) -> None:
    """Write m~, w~ and k~ of equations (16) to (18) back, and their derivatives with respect to all past factors."""
    forgetting = memory[FORGETTING, arm]
    if exponent == 0.0:
        return
    if forgetting <= 0.0:
        for slot in range(M, W_DOT + 1):
            memory[slot, arm] = 0.0
        return
    factor = forgetting**exponent
    slope = exponent * factor / forgetting
    memory[M_DOT, arm] = factor * memory[M_DOT, arm] + slope * memory[M, arm]
    memory[W_DOT, arm] = factor * memory[W_DOT, arm] + slope * memory[W, arm]
    memory[M, arm] *= factor
    memory[W, arm] *= factor
    memory[K, arm] *= factor * factor


@dataclass(frozen=True, kw_only=True)
class AffOTSLasting(aff_thompson.AffTS):
    """AFF-OTS whose idle arms do not remember again when they are played.

    Parameters
    ----------
    step_size, floor, loss
        Of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of every arm, a pair of positive numbers; it is never forgotten.
    burn_in
        How often each arm is played at first.

    Examples
    --------
    >>> AffOTSLasting(step_size=0.01).label
    'aff-ots-lasting(step_size=0.01)'

    References
    ----------
    A variant of algorithm 5 of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits.
    """

    name: ClassVar[str] = "aff-ots-lasting"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=start, learn=learn, posterior=posterior, common=common, optimistic=True, params=Params
    )

    def params(self, arms: int) -> Any:
        return Params(self._estimator(), Prior(*self.prior), float(arms))


WORLDS = ("case-1", "case-2", "case-3", "case-4", "burst", "seasonal", "rotting")
THREE_ARMS = ("pb-1", "pb-2", "small-changes")


def measure(world: db.Environment, horizon: int = 5000, replications: int = 100) -> None:
    """Print the mean regret of both, and their difference in standard errors of it."""
    policies = {"paper": db.policy("aff-ots"), "lasting": AffOTSLasting()}
    runs = db.compare(policies, world, horizon=horizon, replications=replications, seed=11)
    paper, lasting = runs["paper"].total_regret, runs["lasting"].total_regret
    error = (lasting - paper).std(ddof=1) / math.sqrt(replications)
    difference = (lasting - paper).mean()
    print(
        f"| {world.name} | {world.arms} | {paper.mean():.0f} | {lasting.mean():.0f} | {difference / error:+.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    db.checks.check_policy(AffOTSLasting())
    print("| world | arms | AFF-OTS | lasting | difference, in standard errors |\n|---|---|---|---|---|")
    for arms in (2, 10, 50):
        for name in WORLDS:
            measure(db.environment(name, arms=arms))
    for name in THREE_ARMS:
        measure(db.environment(name), horizon=10_000 if name == "small-changes" else 5000)
