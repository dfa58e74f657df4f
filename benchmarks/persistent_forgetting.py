"""A rejected variant: AFF-OTS that forgets permanently while an arm is idle.

In the paper, the data of an arm that was idle for n steps are discounted by lambda^(n / K) for a decision, equations
(16) to (18), but with the next reward they have their full weight again. Here the estimator itself is discounted,
including its gradient, so that what was forgotten stays forgotten.

The policy is not in the registry. This script prints the table of docs/baselines-forgetting.md, the regret of both
variants on the same paths:

    python benchmarks/persistent_forgetting.py
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.memories.adaptive import AdaptiveParams
from dynabandit.policies.memories.base import exponential
from dynabandit.policies.presets.adaptive import AffTS
from dynabandit.policies.rules import thompson

SLOTS = (*AffTS.slots, "last_reward")  # the number of rewards of all arms at the arm's last reward
FORGETTING, M, W, K, M_DOT, W_DOT = (SLOTS.index(name) for name in ("forgetting", "m", "w", "k", "m_dot", "w_dot"))
LOG_FORGETTING, LAST_REWARD = SLOTS.index("log_forgetting"), SLOTS.index("last_reward")
REWARDS = 0  # in `shared`: the number of rewards of all arms
start_arm, learn_reward = AffTS.functions.start, AffTS.functions.learn


class Params(NamedTuple):
    memory: AdaptiveParams
    rule: thompson.Params
    arms: float


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    start_arm(state, arm, params)
    state.memory[LAST_REWARD, arm] = state.shared[REWARDS]


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return state.shared[REWARDS]


@kernel
def posterior(state: PolicyState, arm: int, step: Step, params: Params) -> tuple[float, float]:
    memory = state.memory
    idle = step.common - memory[LAST_REWARD, arm]
    factor = exponential(memory[LOG_FORGETTING, arm], idle, step.arms, params)
    m = memory[M, arm]
    return params.rule.prior.a + factor * m, params.rule.prior.b + factor * (memory[W, arm] - m)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    discount_data(state, arm, (state.shared[REWARDS] - state.memory[LAST_REWARD, arm]) / params.arms)
    state.shared[REWARDS] += 1.0
    state.memory[LAST_REWARD, arm] = state.shared[REWARDS]
    learn_reward(state, arm, reward, params)


@kernel
def discount_data(state: PolicyState, arm: int, exponent: float) -> None:
    """Apply equations (16) to (18) to m, w and k, and to the derivatives with respect to the past factors."""
    memory = state.memory
    forgetting = memory[FORGETTING, arm]
    if exponent == 0.0:
        return
    if forgetting <= 0.0:
        memory[M, arm] = memory[W, arm] = memory[K, arm] = memory[M_DOT, arm] = memory[W_DOT, arm] = 0.0
        return
    factor = forgetting**exponent
    slope = exponent * factor / forgetting
    memory[M_DOT, arm] = factor * memory[M_DOT, arm] + slope * memory[M, arm]
    memory[W_DOT, arm] = factor * memory[W_DOT, arm] + slope * memory[W, arm]
    memory[M, arm] *= factor
    memory[W, arm] *= factor
    memory[K, arm] *= factor * factor


@dataclass(frozen=True, kw_only=True)
class AffOTSPersistent(AffTS):
    """AFF-OTS in which the data of an idle arm are discounted permanently.

    Parameters
    ----------
    step_size, floor, loss
        Parameters of the adaptive estimator; see `dynabandit.estimators.AdaptiveForgetting`.
    prior
        The Beta prior of each arm, a pair of positive numbers; it is not discounted.
    burn_in
        The number of plays of each arm before the policy decides.

    Examples
    --------
    >>> AffOTSPersistent(step_size=0.01).label
    'aff-ots-persistent(step_size=0.01)'

    References
    ----------
    A variant of algorithm 5 of Lu, Adams & Kantas, On adaptive estimation for dynamic Bernoulli bandits.
    """

    name: ClassVar[str] = "aff-ots-persistent"
    slots: ClassVar[tuple[str, ...]] = SLOTS
    functions: ClassVar[PolicyFunctions] = PolicyFunctions(
        start=start, learn=learn, posterior=posterior, common=common, optimistic=True, params=Params
    )

    def params(self, arms: int) -> Params:  # type: ignore[override]
        memory, rule, _ = super().params(arms)
        return Params(memory, rule, float(arms))


ENVIRONMENTS = ("case-1", "case-2", "case-3", "case-4", "burst", "seasonal", "rotting")
THREE_ARMS = ("pb-1", "pb-2", "small-changes")


def measure(environment: db.Environment, horizon: int = 5000, replications: int = 100) -> None:
    """Print the mean regret of both variants, and their difference in standard errors."""
    policies = {"paper": db.policy("aff-ots"), "persistent": AffOTSPersistent()}
    runs = db.compare(policies, environment, horizon=horizon, replications=replications, seed=11)
    paper, persistent = runs["paper"].total_regret, runs["persistent"].total_regret
    error = (persistent - paper).std(ddof=1) / math.sqrt(replications)
    cells = (environment.name, environment.arms, f"{paper.mean():.0f}", f"{persistent.mean():.0f}")
    print(f"| {' | '.join(map(str, cells))} | {(persistent - paper).mean() / error:+.1f} |", flush=True)


if __name__ == "__main__":
    db.checks.check_policy(AffOTSPersistent())
    print("| environment | arms | AFF-OTS | persistent | difference, in standard errors |\n|---|---|---|---|---|")
    for arms in (2, 10, 50):
        for name in ENVIRONMENTS:
            measure(db.environment(name, arms=arms))
    for name in THREE_ARMS:
        measure(db.environment(name), horizon=10_000 if name == "small-changes" else 5000)
