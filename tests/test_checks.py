"""check_policy passes what is right, and catches what was made wrong on purpose."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import dynabandit as db
from dynabandit.checks import check_policy
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import SCORE, Stream, uniform
from dynabandit.estimators import Belief
from dynabandit.policies import POLICIES, Kernels, Now, Policy, averaging

VARIANTS: dict[str, Policy] = {
    **{name: db.policy(name) for name in POLICIES},
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
    "rexp3 that starts anew all the time": db.policy("rexp3", batch=1),
}


@pytest.mark.parametrize("policy", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_policy_keeps_the_contract(policy: Policy) -> None:
    check_policy(policy)


@kernel
def any_score(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return uniform(source, SCORE, now.step, arm)


@kernel
def learn(memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray) -> None:
    averaging.observe(memory, arm, reward)


HONEST = Kernels(start=averaging.start, score=any_score, learn=learn)


@dataclass(frozen=True, kw_only=True)
class Honest(averaging.Averaging):
    """Parameters, Examples, References: what a policy must have, and the starting point of all below."""

    name: ClassVar[str] = "honest"
    slots: ClassVar[tuple[str, ...]] = averaging.SLOTS
    kernels: ClassVar[Kernels] = HONEST


def test_an_honest_policy_of_the_users_own_passes() -> None:
    check_policy(Honest(burn_in=1))


@kernel
def score_without_the_last_arm(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return uniform(source, SCORE, now.step, arm) if arm < now.arms - 1 else -1.0


class NeverTheLastArm(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_without_the_last_arm)


@kernel
def score_nan(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return math.nan if now.step % 17 == arm else uniform(source, SCORE, now.step, arm)


class ScoresNaN(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_nan)


@kernel
def score_the_favourite(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return abs(uniform(source, SCORE, now.step, arm) - 0.1 * (parameters[0] % 7.0))


made = itertools.count()


class LooksAtGlobalState(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_the_favourite)

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([float(next(made))])


@kernel
def learn_in_the_parameters(
    memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray
) -> None:
    averaging.observe(memory, arm, reward)
    parameters[0] += 1.0


class HidesState(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_the_favourite, learn=learn_in_the_parameters)


@kernel
def score_overflowing(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return float((now.step + arm) * 6364136223846793005 % 1009)  # 64 bits in compiled code, more in Python


class OverflowsWhenCompiled(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_overflowing)


def table_of_the_horizon(arms: int, horizon: int) -> np.ndarray:
    return np.array([float(horizon)])


@kernel
def score_by_the_table(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return abs(uniform(source, SCORE, now.step, arm) - now.step / table[0])


class KnowsTheHorizon(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_by_the_table, table=table_of_the_horizon)


class BelievesTooMuch(Honest):
    """Parameters, Examples, References."""

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        return Belief(1.5, 0.0, 1.0, 1.0)


class HasNoReferences(Honest):
    """Parameters, Examples."""


class HasOneSlotTwice(Honest):
    """Parameters, Examples, References."""

    slots = ("total", "squares", "total")


class HasNumbersThatAreNone(Honest):
    """Parameters, Examples, References."""

    def numbers(self, arms: int) -> np.ndarray:
        return np.array([math.inf])


class NeverTuned(Honest):
    """Parameters, Examples, References."""

    @property
    def needs_tuning(self) -> bool:
        return True


class NeverTold(Honest):
    """Parameters, Examples, References."""

    @property
    def needs_horizon(self) -> bool:
        return True


class HasTooFewRows(Honest):
    """Parameters, Examples, References."""

    def memory_size(self) -> int:
        return 1


class GrowsWhenRemade(Honest):
    """Parameters, Examples, References."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "burn_in", self.burn_in + 1)


@kernel
def start_by_the_arm(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    memory[:, arm] = 0.0
    memory[1, arm] = 0.001 * arm


class StartsByTheArm(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(start=start_by_the_arm)


@kernel
def start_and_count(memory: np.ndarray, shared: np.ndarray, arm: int, parameters: np.ndarray) -> None:
    memory[:, arm] = 0.0
    shared[0] += 1.0


class CountsItsStarts(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(start=start_and_count)


class SaysThatItStandsStill(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(still=True)


class SaysThatItsDrawsStandStill(Honest):
    """Parameters, Examples, References."""

    kernels = db.policy("ts").kernels._replace(still=True)


@kernel
def score_of_the_mean(
    memory: np.ndarray, arm: int, idle: int, now: Now, parameters: np.ndarray, table: np.ndarray, source: Stream
) -> float:
    return memory[0, arm] / memory[2, arm] if memory[2, arm] > 0.0 else math.inf


@kernel
def learn_from_the_neighbour(
    memory: np.ndarray, shared: np.ndarray, arm: int, reward: float, parameters: np.ndarray
) -> None:
    averaging.observe(memory, arm, reward)
    averaging.observe(memory, (arm + 1) % memory.shape[1], reward)


class MovesItsNeighbour(Honest):
    """Parameters, Examples, References."""

    kernels = HONEST._replace(score=score_of_the_mean, learn=learn_from_the_neighbour, still=True)


BROKEN_POLICIES: dict[type[Honest], str] = {
    StartsByTheArm: r"start must write the same for every arm, but wrote .* for arm 1, not ",
    CountsItsStarts: r"start must not add up in shared: \[1.\] became \[12.\]",
    NeverTheLastArm: "every one of 12 equal arms must be chosen at times, but the counts are",
    ScoresNaN: "a score is NaN at step",
    LooksAtGlobalState: "choices must not depend on threads or the size of a block",
    HidesState: "a Bandit must choose as the simulator does",
    OverflowsWhenCompiled: "interpreted, step .* chooses arm .; compiled, arm .",
    KnowsTheHorizon: "a Bandit must choose as the simulator does",
    BelievesTooMuch: r"belief must give arm 0 a mean in \[0, 1\], got Arm\(mean=1.5",
    HasNoReferences: "the docstring of HasNoReferences must have a section References",
    HasOneSlotTwice: "slots must be different names",
    HasNumbersThatAreNone: "numbers must be finite",
    NeverTuned: "a tuned policy must need no more tuning",
    NeverTold: "a tuned policy must need no more tuning",
    HasTooFewRows: "memory_size must leave a row for each slot",
    SaysThatItStandsStill: r"still says that only a play moves a score, but at step 2 those of \[.*\] moved",
    SaysThatItsDrawsStandStill: "scores drawn from a posterior cannot be still",
    MovesItsNeighbour: r"still says that only a play moves a score, but at step 2 those of \[.*\] moved",
    GrowsWhenRemade: "the parameters must make an equal policy again",
}


@pytest.mark.parametrize(("kind", "message"), BROKEN_POLICIES.items())
def test_a_broken_policy_is_caught(kind: type[Honest], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_policy(kind())


@pytest.mark.parametrize("name", [name for name in POLICIES if not POLICIES[name].kernels.still])
def test_no_policy_whose_scores_move_could_say_that_they_stand_still(name: str) -> None:
    policy = db.policy(name)
    liar = type("Liar", (type(policy),), {"kernels": policy.kernels._replace(still=True), "__doc__": policy.__doc__})
    with pytest.raises(AssertionError, match="still"):
        check_policy(liar())


def test_a_burn_in_out_of_turn_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(*arguments: Any, **options: Any) -> db.Simulation:
        run = db.simulate(*arguments, **options)
        assert run.arms is not None
        return replace(run, arms=run.arms[:, ::-1])

    monkeypatch.setattr(db.checks, "simulate", simulate)
    with pytest.raises(AssertionError, match="the burn-in must play the arms in turn"):
        check_policy(Honest(burn_in=2))


def test_what_is_no_policy_is_caught() -> None:
    with pytest.raises(AssertionError, match="a policy must be a dataclass derived from Policy"):
        check_policy("ucb")  # type: ignore[arg-type]
