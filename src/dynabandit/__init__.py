"""Bandits for rewards that change over time.

What is public is in `__all__`, here and in the packages that it names, and the clients of the service beside them.
"""

import importlib
from typing import TYPE_CHECKING

from dynabandit import checks, environments, estimators, policies
from dynabandit.bandit import Bandit
from dynabandit.environments import Environment, environment
from dynabandit.policies import Policy, policy
from dynabandit.results import Results, Run
from dynabandit.simulation import Simulation, compare, simulate

if TYPE_CHECKING:  # what `__getattr__` gives, for those who check types
    from dynabandit.client import AsyncClient as AsyncClient, Client as Client, ServiceError as ServiceError

__version__ = "0.1.0"

__all__ = [
    "Bandit", "Environment", "Policy", "Results", "Run", "Simulation",
    "checks", "compare", "environment", "environments", "estimators", "integrations", "offline", "policies", "policy",
    "simulate",
]  # fmt: skip

_CLIENTS = ("AsyncClient", "Client", "ServiceError")  # not in __all__, for they need the extra `serve`


def __getattr__(name: str) -> object:
    """Import what not everyone needs when it is asked for."""
    if name in ("integrations", "offline"):
        return importlib.import_module(f"dynabandit.{name}")
    if name in _CLIENTS:
        from dynabandit import client

        return getattr(client, name)
    raise AttributeError(f"module 'dynabandit' has no attribute {name!r}")
