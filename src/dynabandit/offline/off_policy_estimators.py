"""Off-policy estimators: replay, inverse propensity scoring, self-normalised and doubly robust, from parts of a log."""

from typing import NamedTuple

import numpy as np

from dynabandit.offline.log import Logged
from dynabandit.offline.replay_loop import Played
from dynabandit.stats.intervals import UNKNOWN, Estimate
from dynabandit.stats.ratio_estimator import RatioEstimator
from dynabandit.validation import BOUNDED, RewardDomain

LEAST_EFFECTIVE_ROWS = 30  # fewer rows give no normal interval


class Estimates(NamedTuple):
    """What a policy would have earned per decision, by four estimators, and what the log earned."""

    replay: Estimate
    ips: Estimate
    snips: Estimate
    dr: Estimate
    logged: Estimate


class OffPolicyEstimators:
    """The sums of all estimators, part of the log after part; `Replay` explains the estimators."""

    def __init__(self) -> None:
        self._replay, self._ips, self._snips, self._dr, self._logged = (RatioEstimator() for _ in range(5))

    def add(self, logged: Logged, played: Played, expected: np.ndarray) -> None:
        """Add rows of the log, what the policy did there, and what the reward model expects of each arm."""
        ones = np.ones(len(logged.rewards))
        self._replay.add(played.accepted * logged.rewards, played.accepted)
        self._ips.add(played.weight * logged.rewards, ones)
        self._snips.add(played.weight * logged.rewards, played.weight)
        self._dr.add(doubly_robust(logged, played, expected), ones)
        self._logged.add(logged.rewards, ones)

    @property
    def accepted(self) -> float:
        """How many rows were accepted, mean over replications."""
        return float(self._replay.sums[1])

    @property
    def effective_rows(self) -> float:
        """Effective sample size of the weighted rows."""
        return self._snips.effective_rows

    def estimates(self, domain: RewardDomain) -> Estimates:
        """Return all estimates for rewards of a domain; weighted ones from too few effective rows are not known."""
        interval = RatioEstimator.wilson if domain.is_within(BOUNDED) else RatioEstimator.normal
        is_enough = self.effective_rows >= LEAST_EFFECTIVE_ROWS
        ips, snips, dr = (one.normal() if is_enough else UNKNOWN for one in (self._ips, self._snips, self._dr))
        return Estimates(interval(self._replay), ips, snips, dr, interval(self._logged))


def doubly_robust(logged: Logged, played: Played, expected: np.ndarray) -> np.ndarray:
    """Return the terms of the doubly robust estimate, one per row, given what the reward model expects of each arm."""
    return played.direct + played.weight * (logged.rewards - expected[np.arange(len(expected)), logged.arms])
