"""The checks of memories and rules find what is wrong with them, and nothing in those of this package."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import dynabandit as db
from dynabandit.checks import DocumentationAdvice
from dynabandit.core.compilation import kernel
from dynabandit.policies import MEMORIES, RULES
from dynabandit.policies.base import MONOTONE
from dynabandit.policies.rules.base import RuleKernels

GIVEN: dict[str, dict[str, Any]] = {"window": {"window": 15}, "discount": {"discount": 0.9}}


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_memories_of_this_package_pass(name: str) -> None:
    db.checks.check_memory(MEMORIES[name](**GIVEN.get(name, {})))


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_of_this_package_pass(name: str) -> None:
    db.checks.check_rule(RULES[name]())


class Sums(NamedTuple):
    total: float
    plays: float


@kernel
def observe(sums: Sums, reward: float, params: Any) -> Sums:
    return Sums(sums.total + reward, sums.plays + 1.0)


@kernel
def mean(sums: Sums) -> float:
    return sums.total / sums.plays


@kernel
def size(sums: Sums) -> float:
    return sums.plays


@kernel
def fading(sums: Sums) -> float:
    return -0.5


@kernel
def one_more(sums: Sums) -> float:
    return sums.plays + 1.0


@kernel
def half(sums: Sums) -> float:
    return 0.5


GOOD = db.memories.per_arm(Sums(0.0, 0.0), observe, mean, size)


@kernel
def leaky_learn(state: Any, arm: int, reward: Any, params: Any) -> Any:
    state.memory[0, (arm + 1) % state.memory.shape[1]] *= 0.5
    return GOOD.learn(state, arm, reward, params)


@kernel
def late_learn(state: Any, arm: int, reward: Any, params: Any) -> Any:
    before = GOOD.estimate(state, arm)
    GOOD.learn(state, arm, reward, params)
    return before


@kernel
def by_last_play(state: Any, arm: int, step: Any, kept: float, prior: Any, params: Any) -> tuple[float, float]:
    return prior.a + (step.number % 3), prior.b


WRONG_MEMORIES = {
    "size must be 0 before the first reward": db.memories.per_arm(Sums(0.0, 0.0), observe, mean, one_more),
    "mean of rewards that are all 1.0 must be near it": db.memories.per_arm(Sums(0.0, 0.0), observe, half, size),
    "learn must return what estimate returns after it": GOOD._replace(learn=late_learn),
    "then while_idle must be None": GOOD._replace(learn=leaky_learn),
    "a CONSTANT posterior must not change": db.memories.per_arm(
        Sums(0.0, 0.0), observe, mean, size, fading=fading
    )._replace(while_idle="constant"),
    "must only rise or only fall": GOOD._replace(laws=(("beta", by_last_play),), while_idle=MONOTONE),
}


@pytest.mark.parametrize("problem", WRONG_MEMORIES)
@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")
def test_a_wrong_memory_is_found(problem: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(db.memories.Memory):
        name = "wrong"
        kernels = WRONG_MEMORIES[problem]

    with pytest.raises(AssertionError, match=problem):
        db.checks.check_memory(Wrong())


@kernel
def score(mean: float, size: float, level: float, params: Any) -> float:
    return mean + level / size


@kernel
def worse_is_better(mean: float, size: float, level: float, params: Any) -> float:
    return 1.0 - mean


@kernel
def level(clock: float, unit: float, params: Any) -> float:
    return clock


class Stored(NamedTuple):
    value: float


@kernel
def store(mean: float, size: float, w: float, k: float, params: Any) -> Stored:
    return Stored(mean)


@kernel
def from_stored(stored: Stored, level: float, params: Any) -> float:
    return stored.value


WRONG_RULES = {
    "a larger mean must not have a smaller score": RuleKernels(score=worse_is_better),
    "from_stored.store.* must be score": RuleKernels(
        score=score, level=level, stored=Stored, store=store, from_stored=from_stored
    ),
    "static_index means that only a play changes a score": RuleKernels(score=score, level=level, static=True),
    "a rule must have a score or a family of laws": RuleKernels(),
}


@pytest.mark.parametrize("problem", WRONG_RULES)
def test_a_wrong_rule_is_found(problem: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(db.rules.Rule):
        name = "wrong"
        kernels = WRONG_RULES[problem]

    with pytest.raises(AssertionError, match=problem):
        db.checks.check_rule(Wrong())


def test_missing_documentation_is_advice() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Bare(db.memories.Memory):
        name = "bare"
        kernels = GOOD

    with pytest.warns(DocumentationAdvice, match="no section Examples, References"):
        db.checks.check_memory(Bare())
    with pytest.raises(AssertionError, match="must be a dataclass derived from Memory"):
        db.checks.check_memory("ucb")  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="must be a dataclass derived from Rule"):
        db.checks.check_rule(Bare())  # type: ignore[arg-type]
