"""Checks of memories and rules: what they declare must hold, whatever they are combined with."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dynabandit.checks.estimators import require
from dynabandit.checks.policies import scores_change_only_with_plays
from dynabandit.checks.posteriors import posteriors_change_as_declared
from dynabandit.policies import MEMORIES, RULES
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.compositions import compose
from dynabandit.policies.fit import misfit
from dynabandit.policies.memories import Memory
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.part import Setting
from dynabandit.policies.preset import Preset
from dynabandit.policies.rules import Rule
from dynabandit.simulation.step_by_step import StepByStep

ARMS, STEPS, SEED = 4, 80, 3
SETTING = Setting(ARMS)
ROUNDING = 1e-9
NEAR = 0.15  # a memory may have a prior


def memory_declares_itself(memory: Memory) -> None:
    """The class has a name and kernels, and parameters that make an equal memory."""
    _declares_itself(memory, "memory")
    require(any(True for _ in _policies_with(memory)), "a memory must fit at least one of the rules")
    if isinstance(memory, ModelMemory):
        return
    require(memory.kernels.slots, "a memory needs at least one slot")
    setting, kernels = SETTING, memory.kernels_for(None)
    shared = np.zeros(max(memory.shared_size(setting, None), 1))
    state = PolicyState(np.zeros((len(kernels.slots), 1)), shared, np.zeros(1, dtype=np.int64))
    kernels.start(state, 0, memory.params(setting))
    with np.errstate(all="ignore"):
        size = float(kernels.estimate(state, 0).size)
    require(size == 0.0, f"size must be 0 before the first reward, got {size}")
    clock = float(kernels.clock(state, 1, memory.params(setting)))
    require(clock >= 1.0, f"clock must be at least 1, got {clock} before the first reward")


def rule_declares_itself(rule: Rule) -> None:
    """The class has a name and kernels, and parameters that make an equal rule."""
    _declares_itself(rule, "rule")
    kernels = rule.kernels
    ways = (kernels.score, kernels.predicted, kernels.compare, kernels.family)
    require(any(way is not None for way in ways), "a rule must have a score or a family of laws")
    stores = kernels.store is not None
    require(stores == (kernels.from_stored is not None or kernels.faded is not None), "store needs from_stored")


def tells_what_it_learned(memory: Memory) -> None:
    """Equal rewards have about that mean, and an arm with rewards has a size above 0."""
    if isinstance(memory, ModelMemory):  # checks of policies with features see what it does
        return
    for reward in (1.0, 0.0):
        run = _run(memory)
        for number in range(1, 30):
            run.learn(0, number, reward)
            size = _size(run, 0)
            require(size > 0.0, f"size must be above 0 after a reward, got {size} after {number}")
        mean = _mean(run, 0)
        require(abs(mean - reward) < NEAR, f"mean of rewards that are all {reward} must be near it, got {mean}")


def learns_what_it_estimates(memory: Memory) -> None:
    """`learn` returns the estimate that the memory has after it."""
    if isinstance(memory, ModelMemory):  # it has no estimates
        return
    run = _run(memory)
    for number, reward in enumerate((1.0, 0.0, 1.0, 1.0), 1):
        learned = _kernels(run).learn(run.state, 0, Reward(reward, number, number), run.params.memory)
        known = _kernels(run).estimate(run.state, 0)
        require(learned == known, f"learn must return what estimate returns after it, {known}, got {learned}")


def keeps_arms_apart(memory: Memory) -> None:
    """A reward changes no number of another arm, unless the memory says so by `while_idle=None`."""
    if isinstance(memory, ModelMemory):  # checks of policies with features see what it does
        return
    kernels = memory.kernels_for(None)
    if kernels.while_idle is None:
        return
    run, generator = _run(memory), np.random.default_rng(SEED)
    for number in range(1, STEPS):
        before, played = run.state.memory.copy(), int(generator.integers(ARMS))
        run.learn(played, number, float(generator.random() < 0.5))
        changed = np.flatnonzero((run.state.memory != before).any(axis=0))
        require(
            set(changed.tolist()) <= {played},
            f"a reward of arm {played} changed arms {changed.tolist()}: then while_idle must be None",
        )


def changes_as_declared(memory: Memory) -> None:
    """What follows from `while_idle` holds: for a static index, and for posteriors of idle arms."""
    if isinstance(memory, ModelMemory):  # checks of policies with features see what it does
        return
    for policy in _policies_with(memory):
        if policy.functions.static_index:
            scores_change_only_with_plays(policy)
        if policy.functions.idle_posterior is not None:
            posteriors_change_as_declared(policy)


class Case(NamedTuple):
    """What a rule is told about an arm."""

    mean: float
    size: float
    level: float


def _cases(rule: Rule) -> Iterator[Case]:
    """Yield arms with few and with many rewards, at several times."""
    params = rule.params(SETTING)
    for clock in (1.0, 30.0, 1e5):
        for size in (0.3, 1.0, 2.5, 40.0, 1e4, 1e7):
            for mean in np.linspace(0.0, 1.0, 9).tolist():
                yield Case(mean, size, float(rule.kernels.level(clock, 1.0, params)))


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= ROUNDING * max(1.0, abs(other))


def scores_agree_with_what_is_stored(rule: Rule) -> None:
    """The score of the stored numbers is that of the numbers that they were made from, however long an arm is idle."""
    kernels, params = rule.kernels, rule.params(SETTING)
    if kernels.store is None:
        return
    for case in _cases(rule):
        mean, size, level = case
        direct = kernels.score(mean, size, level, params)  # type: ignore[misc]
        stored = kernels.store(mean, size, size, size, params)
        if kernels.from_stored is not None:
            found = kernels.from_stored(stored, level, params)
            require(
                _is_near(found, direct), f"from_stored(store(...)) must be score(...): {case}: {found} and {direct}"
            )
        if kernels.rescaled is not None:
            found, smaller = kernels.rescaled(stored, 0.25), kernels.store(mean, size / 4, size / 4, size / 4, params)
            same = all(map(_is_near, found, smaller))
            require(same, f"rescaled(stored, 0.25) must be what is stored for a quarter of the size: {case}: {found}")
        if kernels.faded is not None and size >= 2.0:
            found = kernels.faded(stored, mean, math.log(0.5), 6, 6, level, params)
            direct = kernels.score(mean, size / 2, level, params)  # type: ignore[misc]
            require(_is_near(found, direct), f"faded must be the score of the size that is left: {case}: {found}")


def plays_arms_without_rewards_first(rule: Rule) -> None:
    """What is stored for an arm without rewards has the score infinity."""
    kernels, params = rule.kernels, rule.params(SETTING)
    if kernels.store is None:
        return
    stored = kernels.store(math.inf, 0.0, 0.0, 0.0, params)
    for clock in (1.0, 1e5):
        level = kernels.level(clock, 1.0, params)
        scores = [] if kernels.from_stored is None else [kernels.from_stored(stored, level, params)]
        if kernels.faded is not None:
            scores.append(kernels.faded(stored, math.inf, -0.1, 5, 2, level, params))
        require(all(score == math.inf for score in scores), f"an arm without rewards must score inf, got {scores}")


def prefers_better_arms(rule: Rule) -> None:
    """Among arms with equally many rewards, that with the larger mean has the larger score, which is a number.

    A bound that reads the variance of rewards of 0 and 1 may prefer a mean of 1/2 while there are few rewards.
    """
    kernels, params = rule.kernels, rule.params(SETTING)
    if kernels.score is None:
        return
    for case in _cases(rule):
        score = float(kernels.score(*case, params))
        require(math.isfinite(score), f"a score must be a finite number, got {score} with {case}")
    for clock, size in ((100.0, 20.0), (1.0, 1e4), (1e5, 1e4), (1e5, 1e7)):
        level = kernels.level(clock, 1.0, params)
        scores = [kernels.score(mean, size, level, params) for mean in np.linspace(0.05, 0.95, 10).tolist()]
        require(
            (np.diff(scores) >= 0.0).all(),
            f"a larger mean must not have a smaller score: with size {size:g} and level {level:g}, got {scores}",
        )


def keeps_its_score_if_static(rule: Rule) -> None:
    """The score of a rule that is static does not depend on the level."""
    kernels, params = rule.kernels, rule.params(SETTING)
    if not kernels.static or kernels.score is None:
        return
    for case in _cases(rule):
        scores = {float(kernels.score(case.mean, case.size, level, params)) for level in (0.0, case.level, 1.0, 7.0)}
        require(len(scores) == 1, f"a score that depends on the level is not static: {case}: {sorted(scores)}")


def does_not_change_without_rewards(rule: Rule) -> None:
    """What follows from `static` holds: the score of an arm changes only with its rewards."""
    for memory in MEMORIES.values():
        if misfit(memory, type(rule)) is None and not memory.follows_horizon:
            policy = compose(memory=memory, rule=rule)
            if policy.functions.static_index:
                scores_change_only_with_plays(policy)


MEMORY_CHECKS = (
    memory_declares_itself, tells_what_it_learned, learns_what_it_estimates, keeps_arms_apart, changes_as_declared,
)  # fmt: skip
RULE_CHECKS = (
    rule_declares_itself, prefers_better_arms, keeps_its_score_if_static, scores_agree_with_what_is_stored,
    plays_arms_without_rewards_first, does_not_change_without_rewards,
)  # fmt: skip


def _declares_itself(part: Any, what: str) -> None:
    kind = type(part)
    require(isinstance(getattr(kind, "name", None), str) and kind.name, f"the class of a {what} must have a name")
    require(kind(**part.parameters) == part, "the parameters must make an equal object")


def _policies_with(memory: Memory) -> Iterator[Preset]:
    """Yield the compositions of a memory with all rules that it fits."""
    for rule in RULES.values():
        if misfit(type(memory), rule) is None:
            yield compose(memory=memory, rule=rule)


def _run(memory: Memory) -> StepByStep:
    """Return a run of the first composition of a memory."""
    policy = next(iter(_policies_with(memory))).tuned(1, STEPS)
    return StepByStep(policy, ARMS, STEPS, SEED)


def _kernels(run: StepByStep) -> Any:
    policy: Any = run.policy
    memory, rule, _ = policy.parts()
    return memory.kernels_for(rule.kernels.family)


def _size(run: StepByStep, arm: int) -> float:
    return float(_kernels(run).estimate(run.state, arm).size)


def _mean(run: StepByStep, arm: int) -> float:
    return float(_kernels(run).estimate(run.state, arm).mean)
