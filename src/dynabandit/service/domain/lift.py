"""The lift of a bandit: what its policy earns more than its holdout, from the rewards that can no longer change."""

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dynabandit.service.domain.decision_details import DecisionDetails, read_details
from dynabandit.service.domain.learning import Observation
from dynabandit.service.monitoring_types import GroupState, HoldoutState
from dynabandit.stats.lift import Lift, LiftSums, add_reward, estimate_lift
from dynabandit.stats.sequential_tests import sample_ratio_evidence


class HoldoutLift:
    """The decisions and rewards of the policy and of the holdout.

    Each unit counts for the lift once, with its first decision: the group of later ones is known in advance.
    """

    def __init__(self, share: float, control: str | None) -> None:
        self.share, self.control = share, control
        self.decisions = [0, 0]  # of the policy and of the holdout
        self.is_bounded = True
        self.is_reported = False  # the alert about the sample ratio was raised
        self.sums = LiftSums()

    def count(self, details: DecisionDetails) -> None:
        """Count a decision."""
        self.decisions[details.holdout] += 1

    def learn(self, observations: Iterable[Observation], bodies: Mapping[int, str | None], is_bounded: bool) -> None:
        """Add the rewards of decisions that are final; `bodies` has those of their decisions."""
        self.is_bounded &= is_bounded
        for observation in observations:
            if observation.value is None:
                continue
            details = read_details(bodies[observation.step])
            if not details.uncounted:
                value = float(observation.value)
                self.sums = add_reward(self.sums, self.share, self.is_bounded, value, details.holdout)

    def rewards(self, in_holdout: bool) -> int:
        """Return how many rewards of a group count for the lift."""
        return int(self.sums.holdout_count if in_holdout else self.sums.policy_count)

    def mismatch_evidence(self) -> float:
        """Return the evidence that the shares of both groups among the rewards are not those of the holdout."""
        return sample_ratio_evidence(self.sums.holdout_count, self.sums.policy_count, self.share)

    def mean(self, in_holdout: bool) -> float | None:
        """Return the mean of these rewards."""
        sums = self.sums
        total = sums.holdout_total if in_holdout else sums.policy_total
        return total / self.rewards(in_holdout) if self.rewards(in_holdout) else None

    def estimate(self) -> Lift:
        """Return the lift."""
        return estimate_lift(self.sums, self.share, self.is_bounded)

    def view(self) -> HoldoutState:
        """Return what the API and the pages show."""
        found = self.estimate()
        policy, holdout = (
            GroupState(self.decisions[in_holdout], self.rewards(in_holdout), self.mean(in_holdout))
            for in_holdout in (False, True)
        )
        ends = (None if math.isnan(end) else end for end in (*found.absolute, *found.relative))
        return HoldoutState(self.share, self.control, policy, holdout, *ends)

    def copy(self) -> "HoldoutLift":
        """Return a copy that later events do not change."""
        other = copy.copy(self)
        other.decisions = self.decisions.copy()
        return other

    def to_plain(self) -> list[Any]:
        """Return everything as plain values, which `from_plain` reads."""
        return [self.share, self.control, self.decisions, self.is_bounded, self.is_reported, list(self.sums)]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "HoldoutLift":
        """Return what `to_plain` was called on."""
        share, control, decisions, is_bounded, is_reported, sums = content
        lift = cls(share, control)
        lift.decisions, lift.is_bounded, lift.is_reported, lift.sums = (
            decisions,
            is_bounded,
            is_reported,
            LiftSums(*sums),
        )
        return lift
