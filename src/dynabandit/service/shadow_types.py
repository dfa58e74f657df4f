"""The part of the API that shows a shadow policy."""

from typing import Any

from msgspec import Struct


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
