"""Personalizer's calls: an action is an arm, an event a decision, and the id of the event its idempotency key."""

from collections.abc import Sequence

import msgspec

from dynabandit.features import FeatureEncoder
from dynabandit.service import api_types, field_types
from dynabandit.service.domain import changes, decisions, rewards
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decision_details import ContextValues, DecisionDetails, read_details
from dynabandit.service.domain.events import EventRow
from dynabandit.service.domain.names import clean_name
from dynabandit.service.domain.personalizer_features import arm_features, flat_features
from dynabandit.service.domain.steps import Steps
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, InvalidValueError, NotFoundError
from dynabandit.service.personalizer_types import (
    MAX_EVENT_ID,
    RankableAction,
    RankedAction,
    RankRequest,
    RankResponse,
)
from dynabandit.validation import repeated

REWARD_WAIT_SECONDS = 600.0  # as in Personalizer, and so is the default reward
CONTEXT = "context"  # the feature of a context
FEATURES: field_types.Features = {CONTEXT: {"kind": "hashed", "columns": 12, "required": True}}


def check(asked: RankRequest) -> None:
    """Raise an error if a request is not valid for any bandit; the ids of actions are brought to their normal form."""
    for place, action in enumerate(asked.actions):
        try:
            action.id = clean_name(action.id, f"actions[{place}].id")
        except ValueError as error:
            raise InvalidValueError(str(error)) from None
    if (twice := repeated(action.id for action in asked.actions)) is not None:
        raise InvalidValueError(f"actions must have different ids, got {twice[0]!r} twice")
    if asked.event_id is not None and not is_event_id(asked.event_id):
        valid = f"1 to {MAX_EVENT_ID} printable ASCII characters"
        raise InvalidValueError(f"eventId must have {valid}, got {asked.event_id[:100]!r}")
    if not _ranked(asked):
        raise InvalidValueError(f"excludedActions must leave one of the {len(asked.actions)} actions, got all of them")


def is_event_id(text: str) -> bool:
    """Whether a text can be the id of an event."""
    return 1 <= len(text) <= MAX_EVENT_ID and text.isascii() and text.isprintable()


def _ranked(asked: RankRequest) -> list[RankableAction]:
    """Return the actions that can be chosen."""
    excluded = set(asked.excluded_actions or ())
    return [action for action in asked.actions if action.id not in excluded]


def new_bandit(asked: RankRequest) -> api_types.Create:
    """Return the bandit that the first request of a client creates."""
    if len(asked.actions) < 2:
        raise InvalidValueError(f"actions must be at least 2 in the first call of a bandit, got {len(asked.actions)}")
    _checked_context(FeatureEncoder(FEATURES), asked)
    return api_types.Create(
        arms=[action.id for action in asked.actions],
        features=FEATURES,
        arm_features={
            action.id: arm_features(f"actions[{place}].features", action.features)
            for place, action in enumerate(asked.actions)
        },
        reward_window=REWARD_WAIT_SECONDS,
        default_reward=0.0,
    )


def create(work: UnitOfWork, name: str, asked: api_types.Create) -> None:
    """Create a bandit, unless another request did so meanwhile."""
    if work.find(name) is None:
        changes.create(work, name, asked)


def takes_long(work: UnitOfWork, name: str, asked: RankRequest) -> bool:
    """Return whether a request is to be served in steps, because it may take more than a few milliseconds."""
    active = work.named(name).bandit.active
    is_new = any(action.id not in active for action in asked.actions)
    return is_new or decisions.is_costly(work, name, len(msgspec.json.encode(asked.context_features)))


def rank(work: UnitOfWork, name: str, asked: RankRequest, event_id: str) -> Steps[tuple[RankResponse, list[str]]]:
    """Choose one of the actions, or return what the event got before; also return the arms that were added.

    Each new arm is a step, and so are the probabilities and the choice.
    """
    state, added = work.named(name), list[str]()
    made = work.find_keyed(state.bandit_number, event_id)
    if not made:
        actions, context = _ranked(asked), _context(state, asked)
        added = yield from _add_arms(work, state, name, actions)
        among = [state.bandit.column(action.id) for action in actions]
        details = DecisionDetails(
            context=context,
            among=among,
            propensities=_probabilities(state, context, among),
            deferred=asked.defer_activation and state.settings.reward_window is not None,
        )
        yield
        made = yield from decisions.make_decisions(work, state, details, event_id)
    elif (before := read_details(made[0].body)).among is None or before.ranking is not None:
        raise ConflictError(f"eventId must be that of a Rank call, got {event_id!r}, the key of another decision")
    return _response(state, asked, event_id, made[0]), added


def _probabilities(state: LoggedState, context: ContextValues | None, among: list[int]) -> list[float] | None:
    """Return the probability with which each arm is chosen, or None if it is not known exactly."""
    bandit, holdout = state.bandit, state.settings.holdout
    known = bandit.exact_probabilities(context, among) if len(bandit.available_columns(among)) else None
    if known is None:
        return None
    found = [known.of(column) for column in among]
    return (
        found
        if holdout is None
        else [holdout.marginal(one, column, bandit, among) for one, column in zip(found, among, strict=True)]
    )


def _context(state: LoggedState, asked: RankRequest) -> ContextValues | None:
    declared = state.bandit.features
    return None if declared is None else _checked_context(declared, asked)


def _checked_context(declared: FeatureEncoder, asked: RankRequest) -> ContextValues:
    """Return the context as the features of a bandit: all in the hashed one, or those with their names."""
    flat = flat_features("contextFeatures", asked.context_features)
    context: ContextValues = (
        {CONTEXT: flat} if _is_hashed(declared) else {name: flat.get(name) for name in declared.names}
    )
    decisions.check_context(context)
    try:
        declared.encode(context)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"contextFeatures: {error}") from None
    return context


def _is_hashed(declared: FeatureEncoder | None) -> bool:
    """Whether a bandit was made for Personalizer: it takes contexts with any features, and any actions."""
    return declared is not None and [(one.name, one.kind) for one in declared.features] == [(CONTEXT, "hashed")]


def _add_arms(work: UnitOfWork, state: LoggedState, name: str, actions: Sequence[RankableAction]) -> Steps[list[str]]:
    """Add arms for the actions that are new, and return their names."""
    bandit = state.bandit
    new = [action for action in actions if action.id not in bandit.active]
    if new and not _is_hashed(bandit.features):
        raise InvalidValueError(f"actions must be arms of bandit {name!r}, got {new[0].id!r}")
    changes.check_more_arms(state, len(new))
    features = []
    for action in new:
        features.append(arm_features(f"features of action {action.id!r}", action.features))
        yield
    for action, own in zip(new, features, strict=True):
        changes.add_arm(work, name, action.id, own)
        yield
    return [action.id for action in new]


def _response(state: LoggedState, asked: RankRequest, event_id: str, event: EventRow) -> RankResponse:
    """Return the actions of an event: the chosen one, the others by probability, and excluded ones in their places."""
    names, details = state.bandit.names, read_details(event.body)
    chosen, among = event.arm or 0, details.among or []
    known: Sequence[float | None] = details.propensities or [None] * len(among)
    propensity = dict(zip(among, known, strict=True))
    others = sorted((one for one in among if one != chosen), key=lambda one: -(propensity[one] or 0.0))
    ranking = [RankedAction(names[one], propensity[one]) for one in (chosen, *others)]
    ranked = {action.id for action in ranking}
    for place, action in enumerate(asked.actions):
        if action.id not in ranked:
            ranking.insert(place, RankedAction(action.id, 0.0))
    return RankResponse(ranking, event_id, names[chosen])


def reward(work: UnitOfWork, name: str, event_id: str, value: float) -> None:
    """Count the reward of an event."""
    state, step = _find_event(work, name, event_id)
    rewards.reward(work, state.bandit_number, step, value)


def activate(work: UnitOfWork, name: str, event_id: str) -> None:
    """Let a decision whose activation was deferred get the default reward if no other one comes."""
    state, step = _find_event(work, name, event_id)
    decisions.activate(work, state, step)


def _find_event(work: UnitOfWork, name: str, event_id: str) -> tuple[LoggedState, int]:
    state = work.named(name)
    found = work.find_keyed(state.bandit_number, event_id)
    if not found:
        raise NotFoundError(f"there is no event {event_id!r}")
    return state, found[0].step or 0
