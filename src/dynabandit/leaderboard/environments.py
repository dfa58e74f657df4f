"""The leaderboard as data: every policy in every world, and one change to time."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynabandit.environments import environment as make_environment
from dynabandit.errors import unknown
from dynabandit.experiments.spec import Experiment, Named, Spec
from dynabandit.policies import POLICIES
from dynabandit.simulation import compare

__all__ = ["leaderboard", "time_steps"]

ARMS = (2, 10, 50, 100)
HORIZON = 10_000
SIZED = ("case-1", "case-2", "case-3", "case-4", "seasonal", "rotting", "burst")  # worlds with any number of arms
WORLDS = ("small-changes", "pb-1", "pb-2", "needle")  # worlds with a number of arms of their own


def leaderboard(
    replications: int = 1000,
    seed: int = 1,
    horizon: int = HORIZON,
    policies: Sequence[str] = (),
    environments: Sequence[str] = (),
    arms: Sequence[int] = ARMS,
) -> Spec:
    """Return the spec of the leaderboard.

    Parameters
    ----------
    replications, seed, horizon
        As for an `Experiment`.
    policies
        Names of the registry; all of it where left out.
    environments
        Names of the leaderboard's worlds; all of them where left out.
    arms
        How many arms the worlds have that can have any number.

    Examples
    --------
    >>> spec = leaderboard(replications=10, policies=["ucb", "aff-ots"], environments=["case-3"])
    >>> [experiment.id for experiment in spec.experiments]
    ['case-3-2', 'case-3-10', 'case-3-50', 'case-3-100', 'one-change']
    """
    for name in policies:
        if name not in POLICIES:
            raise unknown("policy", name, POLICIES)
    if policies and all(POLICIES[name].informed for name in policies):
        raise ValueError(f"policies must hold at least one that does not know the true means, got {list(policies)!r}")
    for name in environments:
        if name not in (*SIZED, *WORLDS):
            raise unknown("environment of the leaderboard", name, (*SIZED, *WORLDS))
    common: dict[str, Any] = {
        "policies": tuple(Named(name) for name in policies or POLICIES),
        "horizon": horizon,
        "replications": replications,
        "seed": seed,
    }
    wanted = environments or (*SIZED, *WORLDS)
    worlds = {f"{name}-{count}": Named(name, {"arms": count}) for name in SIZED if name in wanted for count in arms}
    worlds |= {name: Named(name) for name in WORLDS if name in wanted}
    experiments = [Experiment(id=key, environment=world, times=(horizon,), **common) for key, world in worlds.items()]
    return Spec(title="Leaderboard", experiments=(*experiments, one_change(horizon, common)))


def one_change(horizon: int, common: dict[str, Any]) -> Experiment:
    """Return the experiment that times detection: ten arms stand still, and halfway the worst becomes the best."""
    change = horizon // 2 + 1
    still = [0.6, *(0.5 for _ in range(8)), 0.3]
    world = Named("piecewise", {"starts": [1, change], "means": [still, [*still[:-1], 0.9]]})
    return Experiment(id="one-change", environment=world, times=tuple(range(change - 1, horizon + 1)), **common)


def time_steps(policies: Sequence[str], arms: int = 10, horizon: int = 100_000) -> dict[str, float]:
    """Return the microseconds of a step of each policy on one core, the least of three tries once it is compiled.

    The means stand still, so that hardly any time goes to the environment.
    """
    world = make_environment("fixed", means=np.linspace(0.3, 0.6, arms).tolist())
    taken = {}
    for name in policies:
        compare([name], world, horizon=10 * arms, threads=1)
        tries = []
        for _ in range(3):
            began = time.perf_counter()
            compare([name], world, horizon=horizon, threads=1)
            tries.append(time.perf_counter() - began)
        taken[name] = 1e6 * min(tries) / horizon
    return taken
