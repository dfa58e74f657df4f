"""Means that change, and rewards of the domain of a policy."""

import numpy as np

from dynabandit.policies import Policy
from dynabandit.validation import BOUNDED


def path_of(
    policy: Policy, arms: int, steps: int, seed: int, *, fractions: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return means that change in pieces, and rewards: 0 or 1, the means themselves, or others of the policy's domain.

    Of means in [0, 1], those of the third piece are all 0, and one of the fourth is as in the first. Of other rewards,
    those of the last arm are all equal for a while.
    """
    drawn = np.random.default_rng(seed)
    if policy.rewards == BOUNDED or "greedy" in policy.name:
        pieces = drawn.random((4, arms)) * [[1.0], [0.3], [0.0], [1.0]]
        pieces[3, 0] = pieces[0, 0]
        means = np.repeat(pieces, -(-steps // 4), axis=0)[:steps]
        return means, means if fractions else (drawn.random((steps, arms)) < means).astype(float)
    level = np.repeat(drawn.uniform(1.0, 8.0, (3, arms)), -(-steps // 3), axis=0)[:steps]
    if "poisson" in policy.name:
        rewards = drawn.poisson(level).astype(float)
    elif "revenue" in policy.name:
        rewards = np.where(drawn.random((steps, arms)) < 0.4, np.exp(drawn.normal(level)), 0.0)
    else:
        rewards = 1000.0 * drawn.normal(level - 4.0) ** 3
    rewards[: steps // 2, -1] = rewards[0, -1]
    return level, rewards
