"""The shadow policy of a bandit: it sees the same decisions and learns the same rewards, but never decides."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dynabandit.bandit import Bandit
from dynabandit.bandit.decision import ColumnProbabilities
from dynabandit.service.domain.decision_details import DecisionDetails, ShadowChoice, read_details
from dynabandit.service.domain.learning import Observation, teach
from dynabandit.service.monitoring_types import Interval, ShadowArm, ShadowState
from dynabandit.stats.intervals import Estimate
from dynabandit.stats.policy_comparison import Comparison, ComparisonSums, add_reward, compare_policies, is_covered
from dynabandit.validation import BOUNDED


class Shadow:
    """A second policy of a bandit, and its comparison with the one that decides, since step `since`.

    Before each decision of the policy the shadow chooses, too, with random numbers of its own. Its choice is logged
    with the decision, and then it is told the decision that was made.
    """

    def __init__(self, bandit: Bandit) -> None:
        self.bandit = bandit
        self.since = bandit.step
        columns = len(bandit.names)
        self.decided = [0] * columns  # how often the policy chose each column, without the holdout
        self.chosen = [0] * columns  # and how often the shadow would have chosen it
        self.agreed = 0
        self.sums = ComparisonSums()

    def choose(self, decided: DecisionDetails, propensities: ColumnProbabilities | None = None) -> ShadowChoice | None:
        """Return what the shadow would choose now, and the probability with which the policy chooses that.

        Returns None for the holdout, and for the decision of a local decider when no arm can be chosen any more.
        """
        if decided.holdout or len(self.bandit.available_columns(decided.among)) == 0:
            return None
        [column] = self.bandit.ranked_columns(1, decided.context, decided.among)
        known = None if propensities is None else propensities.of(column)
        return ShadowChoice(column, known)

    def see(self, column: int, details: DecisionDetails) -> None:
        """Note a decision that was made."""
        self.bandit.play_column(column, details.context, counts_for_shares=not details.holdout)
        if details.shadow is not None:
            missing = len(self.bandit.names) - len(self.chosen)
            self.decided += [0] * missing
            self.chosen += [0] * missing
            self.decided[column] += 1
            self.chosen[details.shadow.column] += 1
            self.agreed += details.shadow.column == column

    def learn(self, observations: Sequence[Observation], bodies: Mapping[int, str | None]) -> None:
        """Learn and compare the rewards that the policy learns; `bodies` has those of their decisions."""
        teach(self.bandit, observations, bodies)
        for one in observations:
            # The first reward of a decision that was made while there was a shadow
            if one.value is None or one.is_late or one.step <= self.since:
                continue
            choice = read_details(bodies[one.step]).shadow
            if choice is not None:
                self.sums = add_reward(self.sums, choice.propensity, choice.column == one.column, float(one.value))

    @property
    def decisions(self) -> int:
        """How many decisions of the policy were compared."""
        return sum(self.decided)

    @property
    def is_bounded(self) -> bool:
        """Whether all rewards are in [0, 1]."""
        return self.bandit.rewards.is_within(BOUNDED)

    @property
    def problem(self) -> str | None:
        """Why there is no estimate, or None."""
        sums = self.sums
        if sums.rewards + sums.uncovered + sums.unknown == 0:
            return "no decision that was made since the shadow policy began has a reward yet"
        if sums.unknown > sums.rewards + sums.uncovered:
            return "the propensities of most decisions are not known"
        if not is_covered(sums):
            return "the policy would rarely or never choose what the shadow policy chooses where the two differ"
        return None

    def comparison(self) -> Comparison | None:
        """Return the estimate of what the shadow would have earned, unless there is a `problem`."""
        return None if self.problem else compare_policies(self.sums, self.is_bounded)

    def view(self) -> ShadowState:
        """Return what the API and the live page show."""
        bandit, sums, compared = self.bandit, self.sums, self.comparison()
        columns = {name: column for column, name in enumerate(bandit.names) if name in bandit.active}
        found = ShadowState(
            policy=bandit.policy.name,
            parameters=bandit.policy.parameters,
            seed=bandit.seed,
            since=self.since,
            decisions=self.decisions,
            agreed=self.agreed,
            rewards=sums.rewards,
            uncovered=sums.uncovered,
            unknown=sums.unknown,
            arms=[ShadowArm(name, _at(self.decided, at), _at(self.chosen, at)) for name, at in columns.items()],
            problem=self.problem,
        )
        if compared is not None:
            found.policy_mean = compared.policy
            found.mean, found.difference = _interval(compared.other), _interval(compared.difference)
        return found

    def copy(self) -> "Shadow":
        """Return a copy that later events do not change."""
        other = Shadow(self.bandit.copy())
        other.since = self.since
        other.decided, other.chosen, other.agreed = list(self.decided), list(self.chosen), self.agreed
        other.sums = self.sums
        return other

    def _counts(self) -> list[Any]:
        return [self.since, self.decided, self.chosen, self.agreed, list(self.sums)]

    def hashed(self) -> list[Any]:
        """Return what the hash of a state depends on."""
        return [self.bandit.state_hash(), *self._counts()]

    def to_plain(self) -> list[Any]:
        """Return everything as plain values, which `from_plain` reads."""
        return [self.bandit.to_json(), *self._counts()]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "Shadow":
        """Return what `to_plain` wrote."""
        bandit, since, decided, chosen, agreed, sums = content
        shadow = cls(Bandit.from_json(bandit))
        shadow.since, shadow.decided, shadow.chosen, shadow.agreed, shadow.sums = (
            since,
            decided,
            chosen,
            agreed,
            ComparisonSums(*sums),
        )
        return shadow


def _at(counts: list[int], column: int) -> int:
    return counts[column] if column < len(counts) else 0  # an arm that was added since the latest decision


def _interval(estimate: Estimate) -> Interval:
    low, high = (None if math.isnan(end) else end for end in (estimate.low, estimate.high))
    return Interval(estimate.value, low, high)


def restarted(shadow: Shadow | None) -> Shadow | None:
    """Return the shadow of a bandit whose policy has just changed: the comparison starts again."""
    return None if shadow is None else Shadow(shadow.bandit)


def shadow_seed(seed: int, sequence: int) -> int:
    """Return the seed of a shadow that event `sequence` starts, given the seed of its bandit; JavaScript can read it.

    Examples
    --------
    >>> shadow_seed(7, 12) == shadow_seed(7, 12), shadow_seed(7, 12) == shadow_seed(7, 13), shadow_seed(7, 12) < 2**53
    (True, False, True)
    """
    return int.from_bytes(hashlib.blake2b(f"shadow {seed} {sequence}".encode(), digest_size=8).digest(), "big") >> 11
