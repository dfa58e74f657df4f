"""The leaderboard as data: every policy in every world, and one change to time."""

from collections.abc import Sequence

from dynabandit.environments import ENVIRONMENTS
from dynabandit.errors import unknown
from dynabandit.experiments.spec import Experiment, Named, Spec
from dynabandit.policies import POLICIES

__all__ = ["CHANGE", "leaderboard"]

ARMS = (2, 10, 50, 100)
HORIZON = 10_000
CHANGE = HORIZON // 2 + 1  # the step of the one change whose detection is timed
SIZED = ("case-1", "case-2", "case-3", "case-4", "seasonal", "rotting", "burst")  # worlds with any number of arms
WORLDS = ("small-changes", "pb-1", "pb-2", "needle")  # worlds with a number of arms of their own
ELSEWHERE = {
    "fixed": "one-change, whose halves stand still",
    "piecewise": "one-change, pb-1, pb-2 and small-changes",
    "exponential-clock": "case-1 and case-2",
    "reflected-walk": "case-3",
    "logistic-walk": "case-4",
    "path": "nowhere: its means are the user's",
}


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
        Names of the registry; all of it where left out. A policy with a parameter that has no default and needs one
        cannot take part.
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
    for name in environments:
        if name not in (*SIZED, *WORLDS):
            raise unknown("world of the leaderboard", name, (*SIZED, *WORLDS))
    entrants = tuple(Named(name) for name in policies or POLICIES)
    wanted = environments or (*SIZED, *WORLDS)
    worlds = [(f"{name}-{count}", Named(name, {"arms": count})) for name in SIZED if name in wanted for count in arms]
    worlds += [(name, Named(name)) for name in WORLDS if name in wanted]
    common = {"policies": entrants, "horizon": horizon, "replications": replications, "seed": seed}
    fitting = [(id, world) for id, world in worlds if world.make_environment().longest >= horizon]
    experiments = [Experiment(id=id, environment=world, times=(horizon,), **common) for id, world in fitting]
    return Spec(title="Leaderboard", experiments=(*experiments, one_change(common)))


def one_change(common: dict[str, object]) -> Experiment:
    """Return the experiment that times detection: ten arms stand still, and halfway the worst becomes the best."""
    horizon = int(str(common["horizon"]))
    change = horizon // 2 + 1
    still = [0.6, *(0.5 for _ in range(8)), 0.3]
    world = Named("piecewise", {"starts": [1, change], "means": [still, [*still[:-1], 0.9]]})
    times = (change - 1, *range(change, horizon + 1))
    return Experiment(id="one-change", environment=world, times=times, **common)  # type: ignore[arg-type]


assert set(ELSEWHERE) <= set(ENVIRONMENTS)
