"""Batches of local deciders: their decisions and rewards are stored once, in order, however often they are sent."""

from typing import NamedTuple

from dynabandit.service import local_types
from dynabandit.service.domain import rewards
from dynabandit.service.domain.bandit_state import RULES, LoggedState
from dynabandit.service.domain.deciders import MAX_MISSING, local_key
from dynabandit.service.domain.decision_details import DecisionDetails, check_context_size
from dynabandit.service.domain.decisions import about_context, assign, check_imported, is_uncounted
from dynabandit.service.domain.names import public_id
from dynabandit.service.domain.steps import Steps
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError
from dynabandit.service.stores.local_keys import steps_of


class StoredBatch(NamedTuple):
    """The last stored decision of a decider, the last event of the log, and the error of each reward."""

    step: int
    sequence: int
    errors: list[rewards.RewardError | None]


def takes_long(work: UnitOfWork, name: str, batch: local_types.LocalBatch) -> bool:
    """Whether a batch takes so long that it is stored in steps."""
    bandit_number = work.named(name).bandit_number
    return rewards.takes_long(work, [bandit_number] * (len(batch.decisions) + len(batch.rewards)))


def store_batch(work: UnitOfWork, name: str, batch: local_types.LocalBatch) -> Steps[StoredBatch]:
    """Store what is new in a batch, with a step for each decision and reward."""
    state = work.named(name)
    if batch.id != public_id(state.bandit_number):
        raise ConflictError(
            f"id must be {public_id(state.bandit_number)!r}, that of bandit {name!r} now, got {batch.id!r}"
        )
    check_imported(state)
    _check_first(state, batch)
    _check(state, batch)
    if state.settings.holdout is not None:  # `is_uncounted` asks for each unit
        work.look_up_units(state.bandit_number, (one.unit for one in batch.decisions if one.unit is not None))
    for step in _new_steps(work, state, batch):
        _take(work, state, batch, step)
        yield
    given = [(one.decider, one.step) for one in batch.rewards]
    steps = _service_steps(work, state, given)
    errors: list[rewards.RewardError | None] = []
    for local, one in zip(given, batch.rewards, strict=True):
        found = (state.bandit_number, steps[local]) if local in steps else None
        try:  # a reward that is not valid since the policy was changed must not keep others from being stored
            errors += yield from rewards.reward_many(work, [rewards.RewardOfDecision(found, one.reward)], None)
        except InvalidValueError as error:
            errors.append(error)
    progress = state.deciders.get(batch.decider)
    return StoredBatch(0 if progress is None else progress.step, state.sequence, errors)


def _check_first(state: LoggedState, batch: local_types.LocalBatch) -> None:
    """Raise an error if a batch leaves out so many decisions that a mistake is likely: they could never be stored."""
    progress = state.deciders.get(batch.decider)
    if progress is not None and batch.decisions and batch.first > progress.step + 1 + MAX_MISSING:
        raise InvalidValueError(
            f"first must be at most {progress.step + 1 + MAX_MISSING}: the latest stored decision of decider "
            f"{batch.decider!r} is {progress.step}, and at most {MAX_MISSING} may be missing after it, got "
            f"{batch.first}; a decider that starts again has a new id"
        )


def _check(state: LoggedState, batch: local_types.LocalBatch) -> None:
    """Raise an error if a decision is not valid, before anything is stored."""
    bandit = state.bandit
    for place, decision in enumerate(batch.decisions):
        if decision.arm >= len(bandit.names):
            text = f"a whole number from 0 to {len(bandit.names) - 1}, the place of an arm of bandit"
            raise InvalidValueError(
                f"decisions[{place}].arm must be {text} {state.settings.name!r}, got {decision.arm}"
            )
        try:
            check_context_size(decision.context)
            bandit.check_context(decision.context)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"decisions[{place}].{about_context(str(error))}") from None


def _new_steps(work: UnitOfWork, state: LoggedState, batch: local_types.LocalBatch) -> list[int]:
    """Return which decisions of a batch are not stored yet, by their numbers at the decider."""
    steps = range(batch.first, batch.first + len(batch.decisions))
    progress = state.deciders.get(batch.decider)
    if progress is not None:
        return [step for step in steps if step > progress.step]
    stored = _service_steps(work, state, [(batch.decider, step) for step in steps])
    return [step for step in steps if (batch.decider, step) not in stored]


def _service_steps(work: UnitOfWork, state: LoggedState, local: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the steps in the log of those local decisions, as (decider, number there), that are stored."""
    keys = {local_key(*one): one for one in local}
    made = {key: found[0].step or 0 for key in keys if (found := work.keyed.get((state.bandit_number, key)))}
    made |= steps_of(work.store, state.bandit_number, [key for key in keys if key not in made])
    return {keys[key]: step for key, step in made.items()}


def _take(work: UnitOfWork, state: LoggedState, batch: local_types.LocalBatch, step: int) -> None:
    decision, now, wall = batch.decisions[step - batch.first], work.now(state), work.clock.wall()
    if state.rules < RULES:
        work.events.append(state.adopt_rules(now, wall))
    details = DecisionDetails(
        context=decision.context,
        unit=decision.unit,
        holdout=decision.holdout,
        uncounted=is_uncounted(work, state, decision.unit),
        decider=batch.decider,
        local_step=step,
        base=batch.base if batch.base <= state.sequence else 0,  # the store may have been restored from a backup
    )
    key = local_key(batch.decider, step)
    event = state.take(decision.arm, now, wall, key, details)
    work.events.append(event)
    work.keyed[state.bandit_number, key] = [event]
    if decision.unit is not None:
        assign(work, state, decision.unit, event)
