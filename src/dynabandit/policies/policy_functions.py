"""The functions of a policy, made from a memory, a rule and perhaps a detector."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

from dynabandit.core.compilation import inlined_kernel, kernel
from dynabandit.core.records import NoParams, column_reader, column_writer
from dynabandit.policies import forced_exploration
from dynabandit.policies.base import Exploration, PolicyFunctions, PolicyState, Reward, Step, idle_steps
from dynabandit.policies.beta_posterior import Prior
from dynabandit.policies.detectors.base import ALL_ARMS, NO_RESTART, DetectorKernels
from dynabandit.policies.memories.base import NOBODY, Estimate, MemoryKernels, exponential, unscaled
from dynabandit.policies.pending_plays import expected_mean, pending_plays
from dynabandit.policies.rules.base import Nothing, RuleKernels, no_level
from dynabandit.policies.rules.score_laws import gamma_scores, normal_scores, random_exploration, student_scores

FADING = "log_forgetting"  # the slot with what the memory says about fading
COUNTED = ("seen_total", "seen_plays")  # the slots in which rewards are counted for a detector, if the memory does not
NO_PRIOR = Prior(0.0, 0.0)
MOMENTS = "moments"  # the family of rules that do not draw, but bound the mean
SCORES: dict[str, Callable[..., dict[str, Any]]] = {  # by the family of a rule
    "normal": normal_scores,
    "gamma": gamma_scores,
    "student": student_scores,
}


@functools.cache
def params_type(memory: type, rule: type, detector: type) -> type:
    """Return the type of the parameters of a composed policy, whose fields have the types of its parts.

    It is an attribute of this module: compiled code on disk is found by a pickle of the types of its arguments.
    """
    fields = [("memory", memory), ("rule", rule), ("detector", detector)]
    kind: Any = NamedTuple("Params", fields)  # type: ignore[misc]
    names = [f"{one.__module__}.{one.__qualname__}" for _, one in fields]
    kind.__qualname__ = "Params_" + "_".join(names).replace(".", "_")
    globals()[kind.__qualname__] = kind
    return kind


class Rows(NamedTuple):
    """Where the numbers of each part begin in a column, and their names."""

    slots: tuple[str, ...]
    stored: int  # of the rule
    fading: int  # -1 if nothing fades
    counted: int  # -1 if the memory counts rewards itself, or nobody needs them
    detector: int


@functools.cache
def rows_of(memory: MemoryKernels, rule: RuleKernels, detector: DetectorKernels | None) -> Rows:
    """Return the rows of a composed policy: those of the memory, of the rule and of the detector."""
    memory, rule = _in_the_same_unit(memory, rule)
    stored = () if rule.stored is Nothing else tuple(get_type_hints(rule.stored))
    first = len(memory.slots) - int(memory.keeps_mean and stored[:1] == memory.slots[-1:])
    own = memory.slots[:first]
    slots = [*own, *(f"stored_{name}" if name in own else name for name in stored)]
    fading = counted = -1
    if memory.fading and rule.fades:
        fading = len(slots)
        slots.append(FADING)
    if detector is not None and not memory.counts_rewards:
        counted = len(slots)
        slots.extend(COUNTED)
    of_detector = len(slots)
    if detector is not None:
        slots.extend(detector.slots)
    return Rows(tuple(slots), first, fading, counted, of_detector)


@functools.cache  # so that equal compositions share their compiled code
def policy_functions(
    memory: MemoryKernels, rule: RuleKernels, detector: DetectorKernels | None = None
) -> PolicyFunctions:
    """Return the functions of a policy that remembers, compares arms and detects changes with the kernels of parts.

    In `state.shared` the numbers of the detector come before those of the memory.
    """
    rows = rows_of(memory, rule, detector)
    memory, rule = _in_the_same_unit(memory, rule)
    if detector is not None and detector.shared > 0 and memory.shares:
        memory = _after(memory, detector.shared)
    start, learn = _learning(memory, rule, detector, rows)
    parts = (memory.params, rule.params, NoParams if detector is None else detector.params)
    found: dict[str, Any] = {"start": start, "learn": learn, "params": params_type(*parts)}
    if rule.family is None:
        found |= _scores(memory, rule, detector, rows)
    else:
        found |= {"common": _common_of(memory), **_draws(memory, rule, rows)}
        if detector is None and rule.family == "beta":
            found["idle_posterior"] = memory.while_idle
    return PolicyFunctions(**found, **_exploration(rule, detector))


def _in_the_same_unit(memory: MemoryKernels, rule: RuleKernels) -> tuple[MemoryKernels, RuleKernels]:
    """Return the kernels with sizes in rewards, if the memory has them in units that change and the rule ignores these.

    A rule without a level reads no unit. What it would store changes with the unit, unless it says how.
    """
    if memory.fade is None or rule.level is not no_level or rule.rescaled is not None or rule.score is None:
        return memory, rule
    own_learn, own_estimate, unit = memory.learn, memory.estimate, memory.unit

    @kernel
    def in_rewards(own: Estimate, unit: float) -> Estimate:
        return Estimate(own.mean, own.size * unit, own.w * unit, own.k * unit, own.fading)

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
        return in_rewards(own_learn(state, arm, reward, params), unit(state))

    @kernel
    def estimate(state: PolicyState, arm: int) -> Estimate:
        return in_rewards(own_estimate(state, arm), unit(state))

    memory = memory._replace(learn=learn, estimate=estimate, unit=unscaled)
    return memory, rule._replace(stored=Nothing, store=None, from_stored=None)


def _learning(
    memory: MemoryKernels, rule: RuleKernels, detector: DetectorKernels | None, rows: Rows
) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `start` and `learn`."""
    start_memory, learn_memory, estimate = memory.start, memory.learn, memory.estimate
    drop, fade = memory.drop, memory.fade
    refresh, rescale = _refreshing(memory, rule, rows)
    drops, fades = drop is not None, fade is not None

    @kernel
    def start_parts(state: PolicyState, arm: int, params: Any) -> None:
        state.memory[:, arm] = 0.0
        start_memory(state, arm, params.memory)
        refresh(state, arm, estimate(state, arm), params)

    @inlined_kernel
    def learn_parts(state: PolicyState, arm: int, reward: Reward, params: Any) -> Estimate:
        if fades:
            factor = fade(state, params.memory)  # type: ignore[misc]
            if factor != 1.0:
                for other in range(state.memory.shape[1]):
                    rescale(state, other, factor, params)  # type: ignore[misc]
        if drops:
            changed = drop(state, params.memory)  # type: ignore[misc]
            if changed != NOBODY:
                refresh(state, changed, estimate(state, changed), params)
        known = learn_memory(state, arm, reward, params.memory)
        refresh(state, arm, known, params)
        return known

    @kernel
    def learn_only(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        learn_parts(state, arm, reward, params)

    if detector is None:
        return start_parts, learn_only
    start_detector, observe, forget = detector.start, detector.observe, memory.forget
    part, counts, counted = _part_of(rows.detector), rows.counted >= 0, rows.counted

    @kernel
    def start(state: PolicyState, arm: int, params: Any) -> None:
        start_parts(state, arm, params)
        start_detector(part(state), arm, params.detector)

    @kernel
    def restart(state: PolicyState, arm: int, params: Any) -> None:
        forget(state, arm)
        start(state, arm, params)

    @kernel
    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        known = learn_parts(state, arm, reward, params)
        memory = state.memory
        if counts:
            memory[counted, arm] += reward.value
            memory[counted + 1, arm] += 1.0
            total, plays = memory[counted, arm], memory[counted + 1, arm]
        else:
            total, plays = memory[0, arm], known.size
        forgotten = observe(part(state), arm, reward, total, plays, params.detector)
        if forgotten == ALL_ARMS:
            for other in range(memory.shape[1]):
                restart(state, other, params)
        elif forgotten != NO_RESTART:
            restart(state, arm, params)

    return start, learn


def _part_of(row: int, shared: int = 0) -> Callable[[PolicyState], PolicyState]:
    """Return part(state): the state as a part sees it whose numbers begin in this row, and at this shared number."""

    @inlined_kernel
    def part(state: PolicyState) -> PolicyState:
        return PolicyState(state.memory[row:], state.shared[shared:], state.last_played, state.pending, state.models)

    @inlined_kernel
    def rows_of_part(state: PolicyState) -> PolicyState:
        return PolicyState(state.memory[row:], state.shared, state.last_played, state.pending, state.models)

    return part if shared > 0 else rows_of_part


def _after(memory: MemoryKernels, shared: int) -> MemoryKernels:
    """Return the kernels of a memory whose shared numbers come after those of a detector."""
    part = _part_of(0, shared)

    def moved(function: Callable[..., Any] | None) -> Any:
        if function is None:
            return None
        own = function

        @inlined_kernel
        def with_part(state: PolicyState, *rest: Any) -> Any:
            return own(part(state), *rest)

        return with_part

    laws = tuple((family, moved(law)) for family, law in memory.laws)
    names = ("start", "learn", "estimate", "clock", "unit", "drop", "fade", "common", "forget")
    return memory._replace(laws=laws, **{name: moved(getattr(memory, name)) for name in names})


def _refreshing(
    memory: MemoryKernels, rule: RuleKernels, rows: Rows
) -> tuple[Callable[..., None], Callable[..., None] | None]:
    """Return refresh(state, arm, known, params) and rescale(state, arm, factor, params): they write what it stores.

    The latter is None for a memory that does not fade all arms together, which has no need for its large numbers.
    """
    estimate, store, rescaled, row, fading_row = memory.estimate, rule.store, rule.rescaled, rows.stored, rows.fading
    stores, keeps, fades = rule.stored is not Nothing, rescaled is not None, rows.fading >= 0
    read, write = (column_reader(rule.stored, row), column_writer(rule.stored, row)) if stores else (None, None)

    @kernel
    def refresh(state: PolicyState, arm: int, known: Estimate, params: Any) -> None:
        if stores:
            write(state.memory, arm, store(known.mean, known.size, known.w, known.k, params.rule))  # type: ignore[misc]
        if fades:
            state.memory[fading_row, arm] = known.fading

    @kernel
    def rescale(state: PolicyState, arm: int, factor: float, params: Any) -> None:
        if keeps:
            write(state.memory, arm, rescaled(read(state.memory, arm), factor))  # type: ignore[misc]
        else:
            refresh(state, arm, estimate(state, arm), params)

    return refresh, rescale if memory.fade is not None else None


def _scores(memory: MemoryKernels, rule: RuleKernels, detector: DetectorKernels | None, rows: Rows) -> dict[str, Any]:
    """Return `score`, `common` and `static_index` of a rule that compares scores."""
    clock, unit, level_of = memory.clock, memory.unit, rule.level
    own_clock = detector is not None and detector.clock is not None
    own_arm_clock = detector is not None and detector.arm_clock is not None
    forces = detector is not None and detector.forced is not None
    own_row = rows.detector
    detector_clock = None if detector is None else detector.clock
    arm_clock = None if detector is None else detector.arm_clock
    forced = None if detector is None else detector.forced

    @kernel
    def common(state: PolicyState, number: int, params: Any) -> float:
        if forces:
            turn = forced(state.shared, number, params.detector)  # type: ignore[misc]
            if turn < 0.0 or own_arm_clock:
                return turn
        if own_clock:
            age = detector_clock(state.shared, number, params.detector)  # type: ignore[misc]
            return level_of(age, unit(state), params.rule)
        return level_of(clock(state, number, params.memory), unit(state), params.rule)

    bound = _bound(memory, rule, rows)

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        if own_arm_clock:
            age = arm_clock(state.memory[own_row, arm], step, params.detector)  # type: ignore[misc]
            return bound(state, arm, step, level_of(age, unit(state), params.rule), params)
        return bound(state, arm, step, step.common, params)

    return {
        "score": forced_exploration.make_score(score) if forces else score,
        "common": common,
        "static_index": rule.static and rows.fading < 0 and memory.while_idle is not None and detector is None,
    }


def _bound(memory: MemoryKernels, rule: RuleKernels, rows: Rows) -> Callable[..., float]:
    """Return bound(state, arm, step, level, params): the score of an arm with this level."""
    estimate, unit, kept_of = memory.estimate, memory.unit, memory.kept
    score_of, from_stored, faded, size_left = rule.score, rule.from_stored, rule.faded, rule.size_left
    fades, fading_row = rows.fading >= 0, rows.fading
    reads_stored = rule.stored is not Nothing
    uses_stored = from_stored is not None and not fades
    uses_faded = faded is not None and fades and kept_of is exponential
    read = column_reader(rule.stored, rows.stored) if reads_stored else None

    @kernel
    def from_memory(state: PolicyState, arm: int, step: Step, level: float, pending: int, params: Any) -> float:
        mean, size, w, k, _ = estimate(state, arm)
        kept = 1.0
        if fades:
            kept = kept_of(state.memory[fading_row, arm], idle_steps(state, arm, step), step.arms, params.memory)
        left = size_left(size, w, k, kept)
        if pending > 0:
            return score_of(expected_mean(mean, pending), left + pending / unit(state), level, params.rule)  # type: ignore[misc]
        if size == 0.0 or (left == 0.0 and not fades):  # the weight of an arm that waits for very long underflows
            return math.inf
        return score_of(mean, max(left, 1.0) if fades else left, level, params.rule)  # type: ignore[misc]

    @kernel
    def bound(state: PolicyState, arm: int, step: Step, level: float, params: Any) -> float:
        pending = pending_plays(state, arm)
        if pending == 0:
            if uses_stored:
                return from_stored(read(state.memory, arm), level, params.rule)  # type: ignore[misc]
            if uses_faded:
                fading, idle = state.memory[fading_row, arm], idle_steps(state, arm, step)
                stored, mean = read(state.memory, arm), estimate(state, arm).mean  # type: ignore[misc]
                return faded(stored, mean, fading, idle, step.arms, level, params.rule)  # type: ignore[misc]
        return from_memory(state, arm, step, level, pending, params)

    return bound


def _draws(memory: MemoryKernels, rule: RuleKernels, rows: Rows) -> dict[str, Any]:
    """Return `posterior`, or `score` and `law`, and `optimistic` of a rule that draws."""
    family = rule.family or ""
    law, kept_of = dict(memory.laws)[family], memory.kept
    fades, fading_row, has_prior = rows.fading >= 0, rows.fading, "prior" in get_type_hints(rule.params)

    @kernel
    def numbers(state: PolicyState, arm: int, step: Step, params: Any) -> Any:
        kept = 1.0
        if fades:
            kept = kept_of(state.memory[fading_row, arm], idle_steps(state, arm, step), step.arms, params.memory)
        if has_prior:
            return law(state, arm, step, kept, params.rule.prior, params.memory)
        return law(state, arm, step, kept, NO_PRIOR, params.memory)

    if family == MOMENTS:
        return {"score": _bound_of_moments(numbers, rule)}
    if family == "beta":
        return {"posterior": numbers, "optimistic": rule.optimistic}
    scores: Callable[..., dict[str, Any]] = SCORES[family]
    return scores(numbers, **({"optimistic": True} if rule.optimistic else {}))


def _bound_of_moments(moments: Callable[..., Any], rule: RuleKernels) -> Callable[..., float]:
    """Return `score` of a rule that bounds the mean by means of the variance."""
    bound = rule.bound

    @kernel
    def score(state: PolicyState, arm: int, step: Step, params: Any) -> float:
        mean, variance, size = moments(state, arm, step, params)
        return bound(mean, variance, size, params.rule)  # type: ignore[misc]

    return score


def _common_of(memory: MemoryKernels) -> Callable[..., float]:
    """Return `common` of a rule that draws."""
    common_of = memory.common

    @kernel
    def common(state: PolicyState, number: int, params: Any) -> float:
        return common_of(state, number, params.memory)

    return common


def _exploration(rule: RuleKernels, detector: DetectorKernels | None) -> dict[str, Any]:
    """Return `explore` and `exploration` of the rule, of the detector, or of both, if they explore at random."""
    chances: list[Exploration] = [] if rule.exploration is None else [rule.exploration]
    if detector is not None and detector.share is not None and (rule.family is not None or detector.forced is None):
        share = detector.share

        @kernel
        def chance_of_test(state: PolicyState, leader: int, step: Step, params: Any) -> float:
            return share(state.shared, step.number, params.detector)

        chances.append(chance_of_test)
    if not chances:
        return {}
    if len(chances) == 1:
        return random_exploration(chances[0])
    first, second = chances

    @kernel
    def either(state: PolicyState, leader: int, step: Step, params: Any) -> float:
        one, other = first(state, leader, step, params), second(state, leader, step, params)
        return one + other - one * other

    return random_exploration(either)
