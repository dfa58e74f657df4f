"""The functions of a policy with features, made from a memory of models and a rule."""

import functools
import math
from typing import Any

from dynabandit.core.compilation import kernel
from dynabandit.core.records import NoParams
from dynabandit.policies.base import PolicyFunctions, PolicyState, Prepare, Reward, ScoreLaw, Step
from dynabandit.policies.memories.models import COEFFICIENTS, ModelKernels
from dynabandit.policies.policy_functions import params_type
from dynabandit.policies.rules.base import RuleKernels
from dynabandit.policies.rules.score_laws import (
    STUDENT,
    common_normal_scores,
    random_exploration,
    weighted_scores,
)

PREDICTION = "prediction"  # the slot with what was predicted for an arm at the latest decision
UNUSED = ("forgetting",)  # a policy has at least one slot; saved bandits have this name


def slots_of(memory: ModelKernels, rule: RuleKernels) -> tuple[str, ...]:
    """Return the slots of a policy with features."""
    return (*memory.slots, *((PREDICTION,) if rule.compare is not None else ())) or UNUSED


@functools.cache  # so that equal compositions share their compiled code
def model_functions(memory: ModelKernels, rule: RuleKernels) -> PolicyFunctions:
    """Return the functions of a policy that predicts from features and compares predictions with the kernels of parts.

    In `state.shared` the numbers of the memory come before those of the rule.
    """
    start_memory, learn_memory = memory.start, memory.learn

    @kernel
    def start(state: PolicyState, arm: int, params: Any) -> None:
        start_memory(state, arm, params.memory)

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        learn_memory(state, arm, reward, params.memory)

    functions: dict[str, Any] = {"params": params_type(memory.params, rule.params, NoParams)}
    if rule.exploration is not None:
        functions |= random_exploration(rule.exploration)
    prepare = _prepared(memory, rule)
    if prepare is not None:
        functions["prepare"] = prepare
    return PolicyFunctions(start, learn, contextual=True, **functions, **_scores(memory, rule))


def _prepared(memory: ModelKernels, rule: RuleKernels) -> Prepare | None:
    """Return `prepare` of the memory and the rule, or None if there is nothing to prepare."""
    own, compare, predict = memory.prepare, rule.compare, memory.predict
    prepares, compares, draws = own is not None, compare is not None, rule.family == COEFFICIENTS
    draw = None if memory.draws is None else memory.draws.prepare
    row, first = len(memory.slots), memory.shared

    @kernel
    def prepare(state: PolicyState, step: Step, params: Any) -> None:
        if prepares:
            own(state, step, params.memory)  # type: ignore[misc]
        if draws:
            draw(state, step, params.rule.width)  # type: ignore[misc]
        if compares:
            for arm in range(step.arms):
                mean, _ = predict(state, arm, step, params.memory)
                state.memory[row, arm] = mean
            compare(state.memory[row], state.shared[first:], step, params.rule)  # type: ignore[misc]

    return prepare if prepares or compares or draws else None


def _scores(memory: ModelKernels, rule: RuleKernels) -> dict[str, Any]:
    """Return `score`, and its law if it is random."""
    if rule.family == COEFFICIENTS:
        return _drawn(memory)
    if rule.weight is not None:
        return _weighted(memory, rule)
    predict, predicted, clock_of, reads_clock = memory.predict, rule.predicted, memory.clock, rule.reads_clock

    @kernel
    def law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float]:
        mean, variance = predict(state, arm, step, params.memory)
        return mean, math.sqrt(variance)

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        mean, variance = predict(state, arm, step, params.memory)
        clock = clock_of(state, step.number, params.memory) if reads_clock else 0.0
        return predicted(mean, variance, clock, step, params.memory.prior, params.rule)  # type: ignore[misc]

    if rule.family == "common normal":
        return common_normal_scores(law)
    return {"score": score}


def _drawn(memory: ModelKernels) -> dict[str, Any]:
    """Return `score` and `law` of a rule that draws the coefficients of models."""
    _, score_of, law_of = memory.draws  # type: ignore[misc]

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        return score_of(state, arm, step, params.rule.width, params.memory)

    @kernel
    def law(state: PolicyState, arm: int, step: Step, params: Any) -> tuple[float, float, float]:
        return law_of(state, arm, step, params.rule.width, params.memory)

    return {"score": score, "law": ScoreLaw(STUDENT, law)}


def _weighted(memory: ModelKernels, rule: RuleKernels) -> dict[str, Any]:
    """Return `score` and `law` of a rule that plays arms with probabilities of its own."""
    weight_of, row, first = rule.weight, len(memory.slots), memory.shared

    @kernel
    def weight(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        return weight_of(state.memory[row], state.shared[first:], arm, step, params.rule)  # type: ignore[misc]

    return weighted_scores(weight)
