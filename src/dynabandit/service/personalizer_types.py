"""The bodies of Personalizer's API, version 1.0: names and limits are those of its clients."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from dynabandit.service.field_types import Name, RewardValue

MAX_ACTIONS = 50
MAX_EVENT_ID = 256

FeatureObjects = Annotated[
    list[dict[str, Any]], Meta(max_length=1000, description="Objects with features, which may be nested.")
]
EventId = Annotated[str, Meta(min_length=1, max_length=MAX_EVENT_ID, extra_json_schema={"pattern": "^[ -~]+$"})]


class RankableAction(Struct, forbid_unknown_fields=True):
    """An action that can be chosen, and its features."""

    id: Name
    features: FeatureObjects = []


class RankRequest(Struct, forbid_unknown_fields=True, rename="camel"):
    """The actions to rank, in a context."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MAX_ACTIONS)]
    context_features: FeatureObjects | None = None
    excluded_actions: Annotated[list[str], Meta(max_length=MAX_ACTIONS)] | None = None
    event_id: EventId | None = None
    defer_activation: bool = False


class RankedAction(Struct):
    """An action and the probability with which it is chosen, null if it is not known."""

    id: str
    probability: float | None


class RankResponse(Struct, rename="camel"):
    """All actions, the chosen one, and the id of the event to send its reward to."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct, forbid_unknown_fields=True):
    """The reward of an event."""

    value: RewardValue


class PersonalizerError(Struct):
    """What is wrong with a request."""

    code: str
    message: str


class ErrorResponse(Struct):
    """Why a request was refused."""

    error: PersonalizerError
