"""The checks pass every policy, and fail for policies that are broken on purpose."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import dynabandit as db
from dynabandit.checks import check_policy, yield_checks
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import SCORE, uniform
from dynabandit.estimators import Belief
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES, Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.base import CONSTANT, MONOTONE
from dynabandit.policies.whole import sample_mean_policy
from dynabandit.policies.whole.sample_mean_policy import SampleMeanPolicy
from dynabandit.validation import RewardDomain
from tools.interpreted import interpreted
from tools.laws import INTERPRETED
from tools.ready import BANDIT_CHECKS, EACH_SHAPE

VARIANTS: dict[str, Policy] = {
    **{name: db.policy(name) for name in POLICIES},
    **{name: db.policy(name) for name in (CONTEXTUAL_POLICIES if INTERPRETED else ("lin-ucb", "square-cb"))},
    "aff-d-greedy, variance-scaled": db.policy("aff-d-greedy", step_size="variance-scaled"),
    "aff-ts, Bernoulli loss and large steps": db.policy("aff-ts", loss="bernoulli", step_size=1.0),
    "aff-ucb2-growing that forgets all": db.policy("aff-ucb2-growing", step_size=1.0),
    "d-ucb with little memory": db.policy("d-ucb", discount=0.1),
    "sw-ucb with a window of one": db.policy("sw-ucb", window=1),
    "dts with little memory": db.policy("dts", memory=0.01, prior=(1e-6, 1e-6)),
    "d-ts with little memory": db.policy("d-ts", discount=0.1),
    "sw-ts with a window of one": db.policy("sw-ts", window=1),
    "f-dsw-ts with a window of one": db.policy("f-dsw-ts", combine="min", discount=0.1, window=1),
    "changepoint-ts with two particles": db.policy("changepoint-ts", rate=0.9, particles=2),
    "exp3-s that shares everything": db.policy("exp3-s", exploration=1.0, sharing=1.0),
    "rexp3 with a batch of one": db.policy("rexp3", batch=1),
}


CASES = [
    pytest.param(policy, check, id=f"{name}: {check.__name__}")
    for name, policy in VARIANTS.items()
    for check in yield_checks(policy)
    if check not in BANDIT_CHECKS  # tests/bandit/test_contract.py
]


@pytest.mark.parametrize(("policy", "check"), CASES)
def test_every_policy_fulfils_the_contract(policy: Policy, check: Callable[[Policy], None]) -> None:
    if policy.name in EACH_SHAPE:
        check(policy)
    else:
        with interpreted():
            check(policy)


# One policy has all defects of a score, so that its functions are compiled once


class Params(NamedTuple):
    defect: int
    number: float = 0.0


NONE, NEVER_THE_LAST_ARM, NAN, OVERFLOW, USES_THE_HORIZON, USES_GLOBAL_STATE = range(6)


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    draw = uniform(step.random, SCORE, step.number, arm)
    if params.defect == NEVER_THE_LAST_ARM and arm == step.arms - 1:
        return -1.0
    if params.defect == NAN and step.number % 17 == arm:
        return math.nan
    if params.defect == OVERFLOW:
        return float((step.number + arm) * 6364136223846793005 % 1009)  # 64 bits in compiled code, more in Python
    if params.defect == USES_THE_HORIZON:
        return float(abs(draw - step.number / step.table[0]))
    if params.defect == USES_GLOBAL_STATE:
        return abs(draw - 0.1 * (params.number % 7.0))
    return draw


def table_of_the_horizon(arms: int, horizon: int) -> np.ndarray:
    return np.array([float(horizon)])


@dataclass(frozen=True, kw_only=True)
class Valid(SampleMeanPolicy):
    """Parameters, Examples, References: what a policy must have, and the base of all policies below."""

    name = "valid"
    slots = sample_mean_policy.SLOTS
    functions = PolicyFunctions(
        start=sample_mean_policy.start,
        score=score,
        learn=sample_mean_policy.learn,
        table=table_of_the_horizon,
        params=Params,
    )
    defect: ClassVar[int] = NONE

    def params(self, arms: int) -> Params:
        return Params(self.defect)


def test_a_valid_policy_of_a_user_passes() -> None:
    check_policy(Valid(burn_in=1))


class NeverTheLastArm(Valid):
    """Parameters, Examples, References."""

    defect = NEVER_THE_LAST_ARM


class ScoresNaN(Valid):
    """Parameters, Examples, References."""

    defect = NAN


class OverflowsWhenCompiled(Valid):
    """Parameters, Examples, References."""

    defect = OVERFLOW


class UsesTheHorizon(Valid):
    """Parameters, Examples, References."""

    defect = USES_THE_HORIZON


made = itertools.count()


class UsesGlobalState(Valid):
    """Parameters, Examples, References."""

    def params(self, arms: int) -> Params:
        return Params(USES_GLOBAL_STATE, float(next(made)))


class BelievesTooMuch(Valid):
    """Parameters, Examples, References."""

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return Belief(1.5, 0.0, 1.0, 1.0)


class LearnsFromNoLaw(Valid):
    """Parameters, Examples, References."""

    rewards = RewardDomain("temperatures below zero", -300.0, -1.0)


class HasNoReferences(Valid):
    """Parameters, Examples."""


class HasOneSlotTwice(Valid):
    """Parameters, Examples, References."""

    slots = ("total", "squares", "total")


class HasAnInfiniteParameter(Valid):
    """Parameters, Examples, References."""

    def params(self, arms: int) -> Params:
        return Params(NONE, math.inf)


class NeverTuned(Valid):
    """Parameters, Examples, References."""

    @property
    def needs_tuning(self) -> bool:
        return True


class NeverTold(Valid):
    """Parameters, Examples, References."""

    @property
    def needs_horizon(self) -> bool:
        return True


class HasTooFewRows(Valid):
    """Parameters, Examples, References."""

    def memory_size(self) -> int:
        return 1


class ChangesItsParameters(Valid):
    """Parameters, Examples, References."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "burn_in", self.burn_in + 1)


@kernel
def start_by_the_arm(state: PolicyState, arm: int, params: Any) -> None:
    state.memory[:, arm] = 0.0
    state.memory[1, arm] = 0.001 * arm


class StartsByTheArm(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(start=start_by_the_arm)


@kernel
def start_and_count(state: PolicyState, arm: int, params: Any) -> None:
    state.memory[:, arm] = 0.0
    state.shared[0] += 1.0


class CountsItsStarts(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(start=start_and_count)


class DeclaresAStaticIndex(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(static_index=True)


class DeclaresStaticDraws(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(static_index=True, posterior=db.policy("ts").functions.posterior)


@kernel
def score_of_the_mean(state: PolicyState, arm: int, step: Step, params: Any) -> float:
    memory = state.memory
    return memory[0, arm] / memory[2, arm] if memory[2, arm] > 0.0 else math.inf


@kernel
def learn_from_the_neighbour(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
    sample_mean_policy.observe(state, arm, reward.value)
    sample_mean_policy.observe(state, (arm + 1) % state.memory.shape[1], reward.value)


class MovesItsNeighbour(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(score=score_of_the_mean, learn=learn_from_the_neighbour, static_index=True)


@kernel
def fading_posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    return 1.0 + state.memory[0, arm] / step.number, 1.0


@kernel
def turning_posterior(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
    return 2.0 + math.sin(step.number), 1.0


class DeclaresConstantPosteriors(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(posterior=fading_posterior, idle_posterior=CONSTANT)


class DeclaresMonotonePosteriors(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(posterior=turning_posterior, idle_posterior=MONOTONE)


class MovesAnotherPosterior(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(
        posterior=fading_posterior, idle_posterior=MONOTONE, learn=learn_from_the_neighbour
    )


class HasNoPosterior(Valid):
    """Parameters, Examples, References."""

    functions = Valid.functions._replace(idle_posterior=CONSTANT)


BROKEN_POLICIES: dict[type[Valid], str] = {
    DeclaresConstantPosteriors: "a CONSTANT posterior must not change while its arm is idle",
    DeclaresMonotonePosteriors: "each shape of an idle arm must only rise or only fall",
    MovesAnotherPosterior: "learn changes no other arm, but at step .* it did",
    HasNoPosterior: "idle_posterior needs a posterior and must be CONSTANT or MONOTONE, got 'constant'",
    StartsByTheArm: r"start must write the same for every arm, but wrote .* for arm 1, not ",
    CountsItsStarts: r"start must not add up in shared: \[1.\] became \[12.\]",
    NeverTheLastArm: "every one of 12 equal arms must be chosen at times, but the counts are",
    ScoresNaN: "a score is NaN at step",
    UsesGlobalState: "choices must not depend on threads or the size of a block",
    OverflowsWhenCompiled: "interpreted, step .* chooses arm .; compiled, arm .",
    UsesTheHorizon: "a Bandit must choose as the simulator does",
    BelievesTooMuch: r"belief must give arm 0 a mean in \[0, 1\], got Arm\(mean=1.5",
    LearnsFromNoLaw: "rewards must include 0 and 1 or all rewards of another reward law, got RewardDomain",
    HasOneSlotTwice: "slots must be different names",
    HasAnInfiniteParameter: "params must be finite numbers",
    NeverTuned: "a tuned policy must need no more tuning",
    NeverTold: "a tuned policy must need no more tuning",
    HasTooFewRows: "memory_size must be at least the number of slots",
    DeclaresAStaticIndex: r"only a play changes a score, but at step 2 the scores of \[.*\] changed",
    DeclaresStaticDraws: "scores drawn from a posterior are not a static index",
    MovesItsNeighbour: r"only a play changes a score, but at step 2 the scores of \[.*\] changed",
    ChangesItsParameters: "the parameters must make an equal policy",
}


@pytest.mark.parametrize(("kind", "message"), BROKEN_POLICIES.items())
def test_a_broken_policy_is_caught(kind: type[Valid], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_policy(kind())


def test_missing_documentation_is_advice_after_all_other_checks() -> None:
    with interpreted(), pytest.warns(db.checks.DocumentationAdvice, match="HasNoReferences passed all .* References$"):
        check_policy(HasNoReferences())


def test_a_burn_in_out_of_turn_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(*arguments: Any, **options: Any) -> db.Simulation:
        run = db.simulate(*arguments, **options)
        assert run.arms is not None
        return replace(run, arms=run.arms[:, ::-1])

    monkeypatch.setattr(db.checks.policies, "simulate", simulate)
    with pytest.raises(AssertionError, match="the burn-in must play the arms in turn"):
        check_policy(Valid(burn_in=2))


def test_what_is_no_policy_is_caught() -> None:
    with pytest.raises(AssertionError, match="a policy must be a dataclass derived from Policy"):
        check_policy("ucb")  # type: ignore[arg-type]
