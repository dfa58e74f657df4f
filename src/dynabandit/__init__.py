"""Bandits for rewards that change over time.

The public API is in `__all__`, here and in the packages that it names. It is imported when it is first used, so that
`from dynabandit import Client` does not import Numba.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` returns
    from dynabandit import checks, environments, estimators, features, integrations, offline, plot, policies
    from dynabandit.bandit import Bandit
    from dynabandit.client import AsyncClient, Client, ServiceError, sign_unit
    from dynabandit.client.local_decider import LocalDecider
    from dynabandit.environments import Delay, Environment, delay, environment, reward_law
    from dynabandit.policies import Policy, PythonPolicy, detectors, memories, policy, rules
    from dynabandit.policies.compositions import compose, grid
    from dynabandit.results import Results, Run
    from dynabandit.simulation import Estimation, Simulation, compare, estimation, simulate

__version__ = "0.2.0"

__all__ = [
    "AsyncClient", "Bandit", "Client", "Delay", "Environment", "Estimation", "LocalDecider", "Policy", "PythonPolicy",
    "Results", "Run", "ServiceError", "Simulation", "checks", "compare", "compose", "delay", "detectors", "environment",
    "environments", "estimation", "estimators", "features", "grid", "integrations", "memories", "offline", "plot",
    "policies", "policy", "reward_law", "rules", "sign_unit", "simulate",
]  # fmt: skip

_MODULES = {
    "AsyncClient": "client", "Bandit": "bandit", "Client": "client", "Delay": "environments",
    "Environment": "environments", "Estimation": "simulation", "LocalDecider": "client.local_decider",
    "Policy": "policies", "PythonPolicy": "policies", "Results": "results", "Run": "results",
    "ServiceError": "client", "Simulation": "simulation", "compare": "simulation", "compose": "policies.compositions",
    "delay": "environments", "environment": "environments", "estimation": "simulation",
    "grid": "policies.compositions", "policy": "policies", "reward_law": "environments", "sign_unit": "client",
    "simulate": "simulation",
}  # fmt: skip


_PACKAGES = {name: f"policies.{name}" for name in ("detectors", "memories", "rules")}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'dynabandit' has no attribute {name!r}")
    module = importlib.import_module(f"dynabandit.{_MODULES.get(name) or _PACKAGES.get(name, name)}")
    value = getattr(module, name) if name in _MODULES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
