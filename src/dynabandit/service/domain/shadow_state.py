"""What the API and the live page show about a shadow policy."""

import math

from dynabandit.service.domain.shadow import Shadow
from dynabandit.service.shadow_types import Interval, ShadowArm, ShadowState
from dynabandit.stats.intervals import Estimate


def shadow_state(shadow: Shadow) -> ShadowState:
    """Return a shadow as the API shows it."""
    bandit, sums, compared = shadow.bandit, shadow.sums, shadow.comparison()
    columns = {name: column for column, name in enumerate(bandit.names) if name in bandit.active}
    found = ShadowState(
        policy=bandit.policy.name,
        parameters=bandit.policy.parameters,
        seed=bandit.seed,
        since=shadow.since,
        decisions=shadow.decisions,
        agreed=shadow.agreed,
        rewards=sums.rewards,
        uncovered=sums.uncovered,
        unknown=sums.unknown,
        arms=[
            ShadowArm(name, _at(shadow.decided, column), _at(shadow.chosen, column)) for name, column in columns.items()
        ],
        problem=shadow.problem,
    )
    if compared is not None:
        found.policy_mean = compared.policy
        found.mean, found.difference = _interval(compared.other), _interval(compared.difference)
    return found


def _at(counts: list[int], column: int) -> int:
    return counts[column] if column < len(counts) else 0  # an arm that was added since the latest decision


def _interval(estimate: Estimate) -> Interval:
    low, high = (None if math.isnan(end) else end for end in (estimate.low, estimate.high))
    return Interval(estimate.value, low, high)
