"""The bodies of requests and responses of local deciders."""

from typing import Annotated

from msgspec import Meta, Struct

from dynabandit.service.api_types import HoldoutSettings, RewardResult
from dynabandit.service.field_types import MAX_ARMS, MAX_DECISIONS, Context, RewardValue, Unit

DeciderId = Annotated[
    # With a count, because $ also matches before a line break at the end
    str, Meta(min_length=16, max_length=16, pattern="^[0-9a-z]{16}$", description="A local decider; see LocalDecider.")
]
LocalStep = Annotated[int, Meta(ge=1, le=2**48 - 1)]


class LocalDecision(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A decision that a local decider has made; `arm` is the place of the arm in the bandit's state."""

    arm: Annotated[int, Meta(ge=0, lt=MAX_ARMS)]
    context: Context | None = None
    unit: Unit | None = None
    holdout: bool = False


class LocalReward(Struct, forbid_unknown_fields=True):
    """The reward of a decision of any local decider."""

    decider: DeciderId
    step: LocalStep
    reward: RewardValue


class LocalBatch(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Decisions and rewards of a local decider, in order.

    `id` is that of the bandit, `first` the number of the first decision among those of the decider, and `base` the
    sequence number of the state from which the decisions were made.
    """

    id: Annotated[str, Meta(max_length=12)]
    decider: DeciderId
    first: LocalStep
    base: Annotated[int, Meta(ge=1)]
    decisions: Annotated[list[LocalDecision], Meta(max_length=MAX_DECISIONS)] = []
    rewards: Annotated[list[LocalReward], Meta(max_length=MAX_DECISIONS)] = []


class LocalBatchResult(Struct):
    """The last decision of a decider that is stored, the last event, and the result of each reward, in order."""

    step: int
    sequence: int
    results: list[RewardResult]


class LocalState(Struct):
    """The state from which local deciders decide; `bandit` is null if there is no event after the given one.

    `rules` are those by which the service decides: a decider of a release with other rules cannot use the state.
    """

    name: str
    id: str
    sequence: int
    rules: int
    sticky_for: float | None = None
    holdout: HoldoutSettings | None = None
    bandit: str | None = None
