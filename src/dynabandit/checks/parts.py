"""Checks of memories and rules: what they declare must hold, whatever they are combined with."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dynabandit.checks.estimators import require
from dynabandit.checks.policies import scores_change_only_with_plays
from dynabandit.checks.posteriors import posteriors_change_as_declared
from dynabandit.policies import MEMORIES, RULES
from dynabandit.policies.base import PolicyState, Reward
from dynabandit.policies.composition import Preset
from dynabandit.policies.compositions import compose, misfit
from dynabandit.policies.memories import Memory
from dynabandit.policies.memories.models import ModelMemory
from dynabandit.policies.part import Setting
from dynabandit.policies.rules import Rule
from dynabandit.simulation.step_by_step import StepByStep

ARMS, STEPS, SEED = 4, 80, 3
ROUNDING = 1e-9
NEAR = 0.15  # a memory may have a prior


def memory_declares_itself(memory: Memory) -> None:
    """The class has a name and kernels, and parameters that make an equal memory."""
    _declares_itself(memory, "memory")
    require(any(True for _ in _policies_with(memory)), "a memory must fit at least one of the rules")
    if isinstance(memory, ModelMemory):
        return
    require(memory.kernels.slots, "a memory needs at least one slot")
    setting, kernels = Setting(ARMS), memory.kernels_for(None)
    shared = np.zeros(max(memory.shared_size(setting, None), 1))
    state = PolicyState(np.zeros((len(kernels.slots), 1)), shared, np.zeros(1, dtype=np.int64))
    kernels.start(state, 0, memory.params(setting))
    with np.errstate(all="ignore"):
        size = float(kernels.estimate(state, 0).size)
    require(size == 0.0, f"size must be 0 before the first reward, got {size}")


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


def scores_agree_with_what_is_stored(rule: Rule) -> None:
    """The score of the stored numbers is that of the numbers that they were made from."""
    kernels = rule.kernels
    if kernels.store is None or kernels.from_stored is None:
        return
    params, generator = _rule_params(rule), np.random.default_rng(SEED)
    for _ in range(50):
        mean, size = float(generator.random()), 1.0 + 40.0 * float(generator.random())
        level = kernels.level(1.0 + 1000.0 * float(generator.random()), 1.0, params)
        direct = kernels.score(mean, size, level, params)  # type: ignore[misc]
        stored = kernels.from_stored(kernels.store(mean, size, size, size, params), level, params)
        require(
            abs(direct - stored) <= ROUNDING * max(1.0, abs(direct)),
            f"from_stored(store(...)) must be score(...): with mean {mean:.3g}, size {size:.3g} and level {level:.3g} "
            f"they are {stored} and {direct}",
        )


def prefers_better_arms(rule: Rule) -> None:
    """Among arms with equally many rewards, that with the larger mean has the larger score."""
    if rule.kernels.score is None:
        return
    params = _rule_params(rule)
    level = rule.kernels.level(100.0, 1.0, params)
    scores = [rule.kernels.score(mean, 20.0, level, params) for mean in np.linspace(0.05, 0.95, 10).tolist()]
    require((np.diff(scores) >= 0.0).all(), f"a larger mean must not have a smaller score, got {scores}")


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
    rule_declares_itself, scores_agree_with_what_is_stored, prefers_better_arms, does_not_change_without_rewards,
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


def _rule_params(rule: Rule) -> Any:
    return compose(rule=rule).params(ARMS).rule
