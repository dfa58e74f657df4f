"""Bodies of requests and responses about the holdout, guardrails, alerts and shadow policies; see `api_types.py`."""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dynabandit.validation import LARGEST_REWARD

MAX_GUARDRAILS = 20
MAX_METRIC_NAME = 100
MetricName = Annotated[str, Meta(min_length=1, max_length=MAX_METRIC_NAME)]
MetricValue = Annotated[float, Meta(ge=-LARGEST_REWARD, le=LARGEST_REWARD)]


class Guardrail(Struct, forbid_unknown_fields=True):
    """A bound for the mean of a metric: at most, or with the direction "min" at least, `bound`.

    `range` has the smallest and the largest value that the metric can have; with it, the test is exact.
    """

    bound: MetricValue
    direction: Literal["max", "min"]
    range: Annotated[list[MetricValue], Meta(min_length=2, max_length=2)] | None = None

    @property
    def sign(self) -> float:
        """1 if larger values are worse, -1 if smaller ones are."""
        return 1.0 if self.direction == "max" else -1.0

    @property
    def room(self) -> float:
        """The distance from the bound to the best value that is possible."""
        return math.inf if self.range is None else abs(self.bound - self.range[0 if self.direction == "max" else 1])


Guardrails = Annotated[dict[MetricName, Guardrail], Meta(max_length=MAX_GUARDRAILS)]


class Metrics(Struct, forbid_unknown_fields=True):
    """The metrics of a decision, by name."""

    metrics: Annotated[dict[MetricName, MetricValue], Meta(min_length=1, max_length=MAX_GUARDRAILS)]


class CountedMetrics(Struct):
    """The metrics that count for a decision."""

    decision: str
    metrics: dict[str, float]


class SetGuardrails(Struct, forbid_unknown_fields=True):
    """The guardrails to continue with, in place of all others."""

    guardrails: Guardrails


class GroupState(Struct):
    """The policy or the holdout: its decisions, and those of its rewards that count for the lift."""

    decisions: int
    rewards: int
    mean: float | None


class HoldoutState(Struct):
    """The holdout, and the lift: what a decision of the policy earns more than one of the holdout.

    The intervals, `low` to `high` and `relative_low` to `relative_high`, hold at all times together with a probability
    of 95 %. A number is null while it is not known.
    """

    share: float
    control: str | None
    policy: GroupState
    holdout: GroupState
    lift: float | None
    low: float | None
    high: float | None
    relative_lift: float | None
    relative_low: float | None
    relative_high: float | None


class GuardrailArm(Struct):
    """What a guardrail knows about an arm; at an `evidence` of 1 the arm violates it.

    `problem` says why a test without a range may raise more false alarms than promised, or cannot find a violation, if
    the values show it.
    """

    arm: str
    count: int
    mean: float
    evidence: float
    violated: bool
    problem: str | None = None


class GuardrailState(Struct):
    """A guardrail, and the arms that have values of its metric."""

    metric: str
    bound: float
    direction: str
    range: list[float] | None
    arms: list[GuardrailArm]


class Alert(Struct, omit_defaults=True):
    """An alert: an arm violates a guardrail, or the groups of a holdout do not have their shares of the rewards.

    `policy` and `holdout` are the numbers of rewards of the groups. `refused` is the status with which the webhook has
    refused the alert so often that it is not sent any more.
    """

    sequence: int
    time: float
    wall: float
    alert: Literal["guardrail", "sample-ratio"]
    message: str
    arm: str | None = None
    metric: str | None = None
    mean: float | None = None
    bound: float | None = None
    direction: str | None = None
    count: int | None = None
    paused: bool | None = None
    share: float | None = None
    policy: int | None = None
    holdout: int | None = None
    refused: int | None = None


class Alerts(Struct):
    """A page of alerts, the oldest first; request the next one with `after` the last sequence."""

    alerts: list[Alert]


class SentAlert(Alert, kw_only=True):
    """An alert as the webhook sends it; `id` is the same whenever it is sent again."""

    id: str
    bandit: str
    bandit_id: str


class Interval(Struct):
    """An estimate with an interval that holds at all times with a probability of 95 %; its ends are null if unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class ShadowArm(Struct):
    """How often the policy chose an arm since the shadow policy began, and how often the latter would have."""

    arm: str
    decided: int
    chosen: int


class ShadowState(Struct):
    """The shadow policy of a bandit, and its comparison with the policy since step `since`.

    `rewards` is the number of rewards from which both are estimated; `uncovered` rewards belong to decisions at which
    the policy would rarely or never choose what the shadow policy chose, and `unknown` ones to decisions without a
    known propensity. `policy_mean` is the mean reward of the policy, `mean` that of the shadow policy, and `difference`
    the second minus the first; they are null if there is a `problem`.
    """

    policy: str
    parameters: dict[str, Any]
    seed: int
    since: int
    decisions: int
    agreed: int
    rewards: int
    uncovered: int
    unknown: int
    arms: list[ShadowArm]
    problem: str | None = None
    policy_mean: float | None = None
    mean: Interval | None = None
    difference: Interval | None = None
