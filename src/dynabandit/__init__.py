"""Bandits for rewards that change over time."""

from dynabandit import checks, environments, estimators, policies
from dynabandit.bandit import Bandit
from dynabandit.environments import Environment, environment
from dynabandit.policies import Policy, policy
from dynabandit.results import Results, Run
from dynabandit.simulation import Simulation, compare, simulate

__version__ = "0.1.0"

__all__ = [
    "Bandit", "Environment", "Policy", "Results", "Run", "Simulation",
    "checks", "compare", "environment", "environments", "estimators", "policies", "policy", "simulate",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import the clients of the service when they are asked for: they need the extra `serve`."""
    if name in ("AsyncClient", "Client"):
        from dynabandit import client

        return getattr(client, name)
    raise AttributeError(f"module 'dynabandit' has no attribute {name!r}")
