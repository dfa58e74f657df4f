"""Which policies a live bandit can use: those that need nothing that only a simulation knows, and fit into memory."""

import functools

from dynabandit.core.context import Context
from dynabandit.environments import RewardLaw, reward_law
from dynabandit.policies import Policy, check_fit
from dynabandit.validation import RewardDomain

__all__ = ["accepted_rewards", "check_context", "check_state_size", "law_after_change", "live_policy", "models_size"]

LARGEST_DIMENSION = 1024  # a model keeps about its square
LARGEST_STATE = 10**8  # numbers, 0.8 GB: a larger state is of no use as JSON


def live_policy(policy: Policy) -> Policy:
    """Return the policy in its practical form, or raise an error if it needs what only a simulation knows."""
    if policy.informed:
        raise ValueError(f"policy {policy.name!r} needs to be told the true means, which only a simulation knows")
    policy = policy.practical()
    if policy.left_open:
        needed = " and ".join(f"{name}=..." for name in policy.left_open)
        raise ValueError(f"policy {policy.name!r} needs {needed}: only a simulation knows what will come")
    return policy


def accepted_rewards(policy: Policy, law: RewardLaw | str | None) -> RewardDomain:
    """Return the rewards that a bandit accepts: those of the law that its policy can compute with, or all of these."""
    if law is None:
        return policy.live_rewards or policy.rewards
    domain = reward_law(law).domain
    check_fit(policy, domain, f"the reward law {domain.name!r}")
    return domain if domain.whole else domain._replace(smallest=max(domain.smallest, policy.rewards.smallest))


def law_after_change(accepted: RewardDomain, policy: Policy) -> str | None:
    """Return the law whose rewards a bandit goes on accepting with another policy; None for those of the policy."""
    is_usual = accepted.is_within(policy.live_rewards or policy.rewards)
    return None if is_usual or not accepted.is_within(policy.rewards) else accepted.name


def check_context(policy: Policy, context: Context | None) -> None:
    """Raise an error if the policy decides by features and there are none."""
    if policy.functions.contextual and context is None:
        raise ValueError(f"policy {policy.label!r} decides by features: give features=[...] or arm_features={{...}}")


def models_size(policy: Policy, arms: int, context: Context | None) -> int:
    """Return how many numbers the regression models of a policy have."""
    if not policy.functions.contextual or context is None:
        return 0
    rows, more_rows, size = _models_shape(policy, context)
    return (rows + (arms - 1) * more_rows) * size


@functools.lru_cache(maxsize=64)  # it is needed for every new arm, and a policy may have to make its models for it
def _models_shape(policy: Policy, context: Context) -> tuple[int, int, int]:
    """Return how many models there are with one arm, how many each further arm adds, and the size of each."""
    (rows, size), (rows_of_two, _) = (policy.models_shape(count, context) for count in (1, 2))
    return rows, rows_of_two - rows, size


def check_state_size(policy: Policy, arms: int, context: Context | None = None) -> None:
    """Raise an error if the state of the policy would be too large."""
    if context is not None and context.dimension > LARGEST_DIMENSION:
        raise ValueError(
            f"the features have {context.dimension} columns, but a bandit has at most {LARGEST_DIMENSION}; "
            "hash categories into fewer columns, or leave out products with the features of arms"
        )
    models = models_size(policy, arms, context)
    if context is not None and models > LARGEST_STATE:
        raise ValueError(
            f"{policy.label} would keep {models} numbers for {arms} arms with {context.dimension} columns of "
            f"features, but a bandit keeps at most {LARGEST_STATE}"
        )
    size, shared = policy.memory_size(), policy.shared_size()
    if size * arms > LARGEST_STATE:
        raise ValueError(
            f"{policy.label} would keep {size} numbers of each of {arms} arms, "
            f"but a bandit keeps at most {LARGEST_STATE} in all"
        )
    if shared > LARGEST_STATE:
        raise ValueError(f"{policy.label} would keep {shared} numbers, but a bandit keeps at most {LARGEST_STATE}")
