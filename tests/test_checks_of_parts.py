"""The checks of memories, rules and detectors find what is wrong with them, and nothing in those of this package."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import dynabandit as db
from dynabandit.checks import DocumentationAdvice
from dynabandit.core.compilation import kernel
from dynabandit.policies import DETECTORS, MEMORIES, RULES
from dynabandit.policies.base import MONOTONE
from dynabandit.policies.detectors.base import NO_RESTART, THE_ARM, DetectorKernels
from dynabandit.policies.rules.base import RuleKernels

GIVEN: dict[str, dict[str, Any]] = {"window": {"window": 15}, "discount": {"discount": 0.9}}


@pytest.mark.parametrize("name", sorted(MEMORIES))
def test_memories_of_this_package_pass(name: str) -> None:
    db.checks.check_memory(MEMORIES[name](**GIVEN.get(name, {})))


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_of_this_package_pass(name: str) -> None:
    db.checks.check_rule(RULES[name]())


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_detectors_of_this_package_pass(name: str) -> None:
    db.checks.check_detector(DETECTORS[name]())


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


@kernel
def no_time(state: Any, number: int, params: Any) -> float:
    return 0.0


WRONG_MEMORIES = {
    "clock must be at least 1": GOOD._replace(clock=no_time),
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


@kernel
def without_limit(mean: float, size: float, level: float, params: Any) -> float:
    return mean + level / (size if size < 1e6 else 0.0 * size + float("nan"))


@kernel
def worse_with_time(mean: float, size: float, level: float, params: Any) -> float:
    return mean if level < 1e4 else 1.0 - mean


@kernel
def only_mean(mean: float, size: float, level: float, params: Any) -> float:
    return mean


class Stored(NamedTuple):
    value: float


@kernel
def store(mean: float, size: float, w: float, k: float, params: Any) -> Stored:
    return Stored(mean)


@kernel
def from_stored(stored: Stored, level: float, params: Any) -> float:
    return stored.value


@kernel
def store_few(mean: float, size: float, w: float, k: float, params: Any) -> Stored:
    return Stored(mean if size < 1e4 else 0.5)


@kernel
def store_unseen(mean: float, size: float, w: float, k: float, params: Any) -> Stored:
    return Stored(mean if size > 0.0 else mean - mean)


@kernel
def halved(stored: Stored, factor: float) -> Stored:
    return Stored(stored.value * factor)


@kernel
def faded_away(stored: Stored, mean: float, log_kept: float, idle: int, arms: int, level: float, params: Any) -> float:
    return stored.value * idle


WRONG_RULES = {
    "a larger mean must not have a smaller score": RuleKernels(score=worse_is_better),
    "from_stored.store.* must be score": RuleKernels(
        score=score, level=level, stored=Stored, store=store, from_stored=from_stored
    ),
    "a larger mean must not have a smaller score: with size 10000 and level 100000": RuleKernels(
        score=worse_with_time, level=level
    ),
    "a score must be a finite number, got nan": RuleKernels(score=without_limit, level=level),
    "a score that depends on the level is not static": RuleKernels(score=score, level=level, static=True),
    "must be score.*size=10000.0": RuleKernels(
        score=only_mean, stored=Stored, store=store_few, from_stored=from_stored
    ),
    "an arm without rewards must score inf, got .nan": RuleKernels(
        score=only_mean, stored=Stored, store=store_unseen, from_stored=from_stored
    ),
    "rescaled.* must be what is stored for a quarter": RuleKernels(
        score=only_mean, stored=Stored, store=store, from_stored=from_stored, rescaled=halved
    ),
    "faded must be the score of the size that is left": RuleKernels(
        score=only_mean, stored=Stored, store=store, from_stored=from_stored, faded=faded_away
    ),
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


@kernel
def start(state: Any, arm: int, params: Any) -> None:
    pass


@kernel
def above_half(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    state.memory[0, arm] = max(0.0, state.memory[0, arm] + reward.value - 0.75)
    return THE_ARM if state.memory[0, arm] > 5.0 else NO_RESTART


@kernel
def leaking(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    state.memory[0, (arm + 1) % state.memory.shape[1]] += reward.value
    return above_half(state, arm, reward, total, plays, params)


@kernel
def comparing(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    return THE_ARM if state.memory[0, (arm + 1) % state.memory.shape[1]] > 0.5 else NO_RESTART


@kernel
def never(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    return NO_RESTART


@kernel
def at_ones(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    return THE_ARM if reward.value == 1.0 else NO_RESTART


@kernel
def at_halves(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    return THE_ARM if reward.value == 0.5 else above_half(state, arm, reward, total, plays, params)


@kernel
def in_shared(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    state.shared[0] += reward.value
    return THE_ARM if state.shared[0] == 800.0 else NO_RESTART


@kernel
def two(state: Any, arm: int, reward: Any, total: float, plays: float, params: Any) -> int:
    return 7


@kernel
def twice(shared: Any, number: int, params: Any) -> float:
    return 2.0


@kernel
def minus_nine(shared: Any, number: int, params: Any) -> float:
    return -9.0


@kernel
def since_start(first: float, step: Any, params: Any) -> float:
    return step.number - 1.0


QUIET = DetectorKernels(slots=("above",), start=start, observe=above_half)
WRONG_DETECTORS = {
    "a reward of one arm must not change another arm": QUIET._replace(observe=leaking),
    "must not depend on the numbers of other arms": QUIET._replace(observe=comparing),
    "after a restart a detector must find changes as at first": QUIET._replace(observe=in_shared, shared=1),
    "a change from 1000 rewards of 0 to 1000 of 1 must be found": QUIET._replace(observe=never),
    "2000 equal rewards must cause no alarm": QUIET._replace(observe=at_halves),
    "2000 rewards with a constant mean must cause no alarm": QUIET._replace(observe=at_ones),
    "observe must return NO_RESTART, THE_ARM or ALL_ARMS, got 7": QUIET._replace(observe=two),
    "share must be in .0, 1., got 2": QUIET._replace(share=twice),
    "forced must be NOT_FORCED or -1 - arm, got -9": QUIET._replace(forced=minus_nine),
    "a clock must be at least 1, got 0": QUIET._replace(arm_clock=since_start),
    "a clock must be at least 1, got -9": QUIET._replace(clock=minus_nine),
}


@pytest.mark.parametrize("problem", WRONG_DETECTORS)
def test_a_wrong_detector_is_found(problem: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wrong(db.detectors.Detector):
        name = "wrong"
        kernels = WRONG_DETECTORS[problem]

    with pytest.raises(AssertionError, match=problem):
        db.checks.check_detector(Wrong())


@pytest.mark.filterwarnings("ignore::dynabandit.checks.DocumentationAdvice")
def test_the_detector_that_wrong_ones_differ_from_passes() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Quiet(db.detectors.Detector):
        name = "quiet"
        kernels = QUIET

    db.checks.check_detector(Quiet())


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
    with pytest.raises(AssertionError, match="must be a dataclass derived from Detector"):
        db.checks.check_detector(Bare())  # type: ignore[arg-type]
