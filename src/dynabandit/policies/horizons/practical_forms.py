"""The form of each policy that a user can run without knowing the future, for the leaderboard and for advice."""

from typing import Any

from dynabandit.policies import POLICIES, policy as make_policy
from dynabandit.policies.base import Policy
from dynabandit.validation import BOUNDED, RewardDomain

# Parameters of policies without others; all others follow from `Policy.practical`
FORMS: dict[str, dict[str, Any]] = {
    # With the default window of 800 and many arms, most decisions would be random
    "m-ucb": {"window": 200},
    "m-kl-ucb": {"window": 200},
}
FOR_ANY_REWARDS = ("eps-greedy", "uniform", "best-arm")  # also for rewards in [0, 1], although they accept others
FOR_RESTED_ARMS = ("w-swa", "r-ed-ucb")  # whose means depend on the arm's own plays


def practical_form(policy: str | Policy) -> Policy:
    """Return a policy as a user can run it who knows neither the changes nor their number nor the horizon.

    Examples
    --------
    >>> practical_form("sw-ucb").label, practical_form("ts").label
    ('sw-ucb(changes=1, horizon=doubling)', 'ts')
    """
    asked = make_policy(policy)
    return make_policy(asked.name, **FORMS[asked.label]).practical() if asked.label in FORMS else asked.practical()


def practical_forms(rewards: RewardDomain = BOUNDED) -> list[Policy]:
    """Return the practical form of every policy for such rewards.

    Oracle policies are left out, and so are policies for rested arms and, if the rewards are in [0, 1], policies for
    other rewards.

    Examples
    --------
    >>> labels = [policy.label for policy in practical_forms()]
    >>> "aff-ots" in labels, "best-arm" in labels, "normal-ts" in labels
    (True, False, False)
    """
    return [practical_form(name) for name in practical_names(rewards) if not POLICIES[name].informed]


def practical_names(rewards: RewardDomain = BOUNDED) -> list[str]:
    """Return the policies that are made for such rewards, with the oracle policies."""
    fitting = [
        name for name, kind in POLICIES.items() if name not in FOR_RESTED_ARMS and rewards.is_within(kind.rewards)
    ]
    if not rewards.is_within(BOUNDED):
        return fitting
    return [name for name in fitting if POLICIES[name].rewards == BOUNDED or name in FOR_ANY_REWARDS]
