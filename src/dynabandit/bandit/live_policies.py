"""Which policies a live bandit can use: those that need nothing that only a simulation knows, and fit into memory."""

from dynabandit.policies import Policy

__all__ = ["check_size", "live_policy"]

LARGEST_STATE = 10**8  # numbers, 0.8 GB: a larger state is of no use as JSON


def live_policy(policy: Policy) -> Policy:
    """Return the policy, or raise an error if it needs what only a simulation knows."""
    if policy.informed:
        raise ValueError(f"policy {policy.name!r} needs to be told the true means, which only a simulation knows")
    if policy.left_open:
        raise ValueError(f"policy {policy.name!r} needs {_needed(policy)}: only a simulation knows what will come")
    return policy


def _needed(policy: Policy) -> str:
    """Return the parameters that must be given: changes and horizon, or the parameter that follows from them."""
    expected = " and ".join(f"{name}=..." for name in policy.left_open)
    follows = [name for name in ("discount", "window") if policy.parameters.get(name, 0) is None]
    return ", or ".join([expected, *(f"{name}=..." for name in follows)])


def check_size(policy: Policy, arms: int) -> None:
    """Raise an error if the state of the policy would be too large."""
    size, shared = policy.memory_size(), policy.shared_size()
    if size * arms > LARGEST_STATE:
        raise ValueError(
            f"{policy.label} would keep {size} numbers of each of {arms} arms, "
            f"but a bandit keeps at most {LARGEST_STATE} in all"
        )
    if shared > LARGEST_STATE:
        raise ValueError(f"{policy.label} would keep {shared} numbers, but a bandit keeps at most {LARGEST_STATE}")
