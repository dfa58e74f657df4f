"""The bodies of requests and responses, one class each. The service, the OpenAPI document and the clients use them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from dynabandit.service.field_types import (
    MAX_AMONG,
    MAX_ARMS,
    MAX_DECISIONS,
    MAX_PREVIEW_DRAWS,
    MAX_RANKED,
    MAX_REWARDS,
    MAX_WINDOW,
    ArmName,
    Context,
    Features,
    Name,
    Parameters,
    Policy,
    RewardLaw,
    RewardValue,
    Share,
    SignedUnit,
    Unit,
)
from dynabandit.service.monitoring_types import Guardrails, GuardrailState, HoldoutState, ShadowState


class HoldoutSettings(Struct, forbid_unknown_fields=True):
    """The share of the units for which the policy does not decide: they get the control arm, or arms in equal parts."""

    share: Annotated[float, Meta(gt=0, le=0.9)]
    control: Name | None = None


class Create(Struct, forbid_unknown_fields=True, kw_only=True):
    """A bandit to create; `learn` is "settled" by default if it has a reward window and a default reward."""

    arms: Annotated[list[Name], Meta(min_length=2, max_length=MAX_ARMS, extra_json_schema={"uniqueItems": True})]
    policy: Policy = "auto"
    parameters: Parameters = {}
    reward_window: Annotated[float, Meta(gt=0, le=MAX_WINDOW)] | None = msgspec.field(default=None)
    default_reward: RewardValue | None = None
    learn: Literal["settled", "held", "at-once"] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    rewards: RewardLaw | None = None
    features: Features | None = None
    arm_features: Annotated[dict[Name, Context], Meta(max_length=MAX_ARMS)] | None = None
    sticky_for: Annotated[float, Meta(gt=0, le=MAX_WINDOW)] | None = None
    holdout: HoldoutSettings | None = None
    guardrails: Guardrails | None = None


class Decide(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How many decisions to make, in which context, for whom, and among which arms.

    With `rank`, a decision has a ranking of so many arms. Web pages send `signed_unit` in place of `unit`.
    """

    count: Annotated[int, Meta(ge=1, le=MAX_DECISIONS)] = 1
    context: Context | None = None
    unit: Unit | None = None
    among: Annotated[list[ArmName], Meta(min_length=1, max_length=MAX_AMONG)] | None = None
    rank: Annotated[int, Meta(ge=1, le=MAX_RANKED)] | None = None
    signed_unit: SignedUnit | None = None


class RankedArm(Struct):
    """An arm of a ranking; `propensity` is its probability among the arms that the places before it left."""

    arm: str
    propensity: float | None


class Decision(Struct):
    """One decision: the arm to play, and the id to send its reward to.

    `propensity` is the probability with which the arm was chosen, null if it is not known. A decision that is
    `repeated` was made before for the same unit. If `holdout` is true, the unit is in the holdout. The first arm of a
    `ranking` is the arm to play.
    """

    decision: str
    arm: str
    step: int
    propensity: float | None = None
    repeated: bool = False
    holdout: bool = False
    ranking: list[RankedArm] | None = None


class Decisions(Struct):
    """The requested decisions."""

    decisions: list[Decision]


class Reward(Struct, forbid_unknown_fields=True):
    """The reward of a decision; `arm` is the arm of its ranking that was taken, by default the first one."""

    reward: RewardValue
    arm: ArmName | None = None


class Rewarded(Struct, omit_defaults=True):
    """The reward that counts for a decision."""

    decision: str
    reward: float
    arm: str | None = None


class GivenReward(Struct, forbid_unknown_fields=True):
    """A reward and its decision; `arm` is the arm of its ranking that was taken, by default the first one."""

    decision: Annotated[str, Meta(max_length=64)]
    reward: RewardValue
    arm: ArmName | None = None


class Rewards(Struct, forbid_unknown_fields=True):
    """Several rewards."""

    rewards: Annotated[list[GivenReward], Meta(min_length=1, max_length=MAX_REWARDS)]


class RewardResult(Struct, omit_defaults=True):
    """The result of one of several rewards; `status` is that of a request with this reward alone."""

    decision: str
    status: int
    problem: str | None = None


class RewardResults(Struct):
    """The result of each reward, in the order of the request."""

    results: list[RewardResult]


class AddArm(Struct, forbid_unknown_fields=True):
    """An arm to add."""

    arm: Name
    features: Context | None = None


class ChangeArm(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The changes of an arm; fields that are missing or null do not change."""

    paused: bool | None = None
    retired: Literal[True] | None = None
    min_share: Share | None = None
    max_share: Annotated[float, Meta(gt=0, le=1)] | None = None


class SetPolicy(Struct, forbid_unknown_fields=True):
    """The policy to continue with."""

    policy: Policy
    parameters: Parameters = {}


class PromoteShadow(Struct, forbid_unknown_fields=True):
    """The promotion of the shadow policy; with `keep` the policy so far becomes the shadow policy.

    With the `seed` of the shadow policy the request can be repeated: if it was promoted already, nothing changes.
    """

    keep: bool = False
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class PreviewPolicy(Struct, forbid_unknown_fields=True):
    """A policy to preview."""

    policy: Policy
    parameters: Parameters = {}
    draws: Annotated[int, Meta(ge=1, le=MAX_PREVIEW_DRAWS)] = 1000
    context: Context | None = None


class PreviewArm(Struct):
    """What a previewed policy estimates for an arm, and the probability that the next decision chooses it.

    `propensity` is that of the policy that was tried, `current_propensity` that of the one that decides now.
    """

    arm: str
    mean: float | None
    variance: float | None
    forgetting: float
    effective_size: float | None
    propensity: float
    current_propensity: float
    paused: bool


class Preview(Struct):
    """What another policy that has learned all rewards would do after event `sequence`; nothing was changed."""

    policy: str
    parameters: dict[str, Any]
    current_policy: str
    step: int
    sequence: int
    rewards: int
    draws: int
    arms: list[PreviewArm]


class Changed(Struct):
    """The sequence number of the event from which a change holds."""

    sequence: int


class Ready(Struct):
    """Whether the service is live or ready."""

    status: Literal["live", "ready"]


class ArmState(Struct, gc=False):
    """What a bandit has learned about an arm; `mean` is null before the first reward.

    What the policy does not know of a single arm, such as its mean in any context, is null.
    `pending` is the number of its decisions whose rewards are in flight, as the policy counts them. `propensity` is the
    probability that the next decision of the policy chooses the arm, null if it is not known or depends on a context.
    """

    arm: str
    mean: float | None
    variance: float | None
    forgetting: float
    effective_size: float | None
    idle: int
    plays: int
    share: float
    paused: bool
    min_share: float
    max_share: float
    pending: int = 0
    propensity: float | None = None


class DeciderState(Struct):
    """A local decider: its latest stored decision, and what it said when it last asked this replica for the state.

    `step` is the number of that decision, and `base` the latest state that the decider has used or asked about. `seen`
    is the number of seconds since it asked, and `waiting` the number of decisions and rewards that it had to send; both
    are null if it has not asked for ten minutes.
    """

    id: str
    step: int
    base: int
    seen: float | None = None
    waiting: int | None = None


class BanditState(Struct):
    """The state of a bandit after event `sequence`.

    `held` is the number of decisions that the policy has not learned yet because their rewards may still come, and
    `settling_age` the age in seconds at which it learns them; null if it learns rewards when they come. `problem` says
    what of the state cannot be shown, such as an estimate that is not a finite number, which is then null.
    """

    name: str
    id: str
    policy: str
    parameters: dict[str, Any]
    reward_window: float | None
    default_reward: float | None
    seed: int
    step: int
    sequence: int
    state_hash: str
    arms: list[ArmState]
    learn: str = "at-once"
    settling_age: float | None = None
    held: int = 0
    features: Features | None = None
    sticky_for: float | None = None
    holdout: HoldoutState | None = None
    guardrails: list[GuardrailState] = []
    shadow: ShadowState | None = None
    deciders: list[DeciderState] = []
    problem: str | None = None


class BanditSummary(Struct):
    """A bandit in a list."""

    name: str
    id: str
    deleted: bool


class BanditList(Struct):
    """A page of bandits; `next` is the value of `after` for the next page, or null."""

    bandits: list[BanditSummary]
    next: str | None


class Event(Struct, omit_defaults=True):
    """An event of a bandit; events are ordered by `sequence`, not by their times.

    A decision of a local decider has the `decider`, its number there (`local_step`) and the sequence number of the
    state from which it was made (`base`).
    """

    sequence: int
    kind: Literal[
        "create", "decision", "activate", "reward", "close", "learn", "arm", "policy", "shadow", "guardrails", "metric",
        "alert", "delete",
    ]  # fmt: skip
    time: float
    wall: float
    decision: str | None = None
    step: int | None = None
    arm: str | None = None
    reward: float | None = None
    key: str | None = None
    change: dict[str, Any] | None = None
    metric: str | None = None
    value: float | None = None
    propensity: float | None = None
    context: Context | None = None
    unit: str | None = None
    holdout: bool = False
    shadow: str | None = None
    among: list[str] | None = None
    ranking: list[str] | None = None
    decider: str | None = None
    local_step: int = 0
    base: int = 0


class Events(Struct):
    """A page of events; request the next one with `after` the last sequence, until a page is empty."""

    events: list[Event]


class Exported(Struct):
    """One decision for off-policy evaluation; `closed` if its window ended before a reward came.

    If another arm of its `ranking` than the first one was rewarded, `reward` is null, `taken` is that arm, `position`
    its place, from 1, and `taken_reward` the reward.

    `replayed` is false for a decision of an earlier release that decided by other rules: it is taken from the log, and
    its propensity is computed as if no reward were in flight, which those rules ignored. It is also false for a local
    decision that the replay does not make: its state is not in the log any more, or decides otherwise. With a holdout,
    the propensity is that over all units: the policy decides for some, and the holdout for the others.
    """

    step: int
    decision: str
    arm: str
    propensity: float
    reward: float | None
    closed: bool
    time: float
    wall: float
    replayed: bool = True
    context: Context | None = None
    unit: str | None = None
    holdout: bool = False
    ranking: list[str] | None = None
    taken: str | None = None
    position: int | None = None
    taken_reward: float | None = None


class Deleted(Struct):
    """A deleted bandit; `left` is the number of events that are still to be erased."""

    name: str
    id: str
    log_kept: bool
    left: int = 0


class Problem(Struct):
    """Why a request was refused."""

    problem: str
