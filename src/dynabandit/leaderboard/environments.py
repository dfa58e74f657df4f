"""The environments of the leaderboard, and its spec: every policy on every environment, and one change to detect."""

from collections.abc import Sequence
from typing import Any

from dynabandit.environments import Environment, delay as make_delay, environment as make_environment
from dynabandit.experiments.spec import Experiment, Spec
from dynabandit.policies import POLICIES, policy as make_policy
from dynabandit.validation import unknown

ARMS = (2, 10, 50, 100)
HORIZON = 10_000
ANY_SIZE = ("case-1", "case-2", "case-3", "case-4", "seasonal", "rotting", "burst")  # with any number of arms
DELAYED, DELAYED_ARMS = "case-3", 10  # also with late rewards
DELAYS = {
    "delay-100": make_delay("geometric", mean=100, lost=0.01),
    "delay-1000": make_delay("geometric", mean=1000, lost=0.01),
}
FIXED_SIZE = ("small-changes", "pb-1", "pb-2", "needle")  # with a number of arms of their own
ONE_CHANGE = "one-change"


def leaderboard_spec(
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
        Names of policies, by default all.
    environments
        Names of the leaderboard's environments, by default all.
    arms
        The numbers of arms of the environments that take any number.

    Examples
    --------
    >>> spec = leaderboard_spec(replications=10, policies=["ucb", "aff-ots"], environments=["case-3"])
    >>> [experiment.id for experiment in spec.experiments]
    ['case-3-2', 'case-3-10', 'case-3-50', 'case-3-100', 'case-3-10-delay-100', 'case-3-10-delay-1000', 'one-change']
    """
    for name in policies:
        if name not in POLICIES:
            raise unknown("policy", name, POLICIES)
    if policies and all(POLICIES[name].informed for name in policies):
        raise ValueError(f"policies must hold at least one that does not know the true means, got {list(policies)!r}")
    for name in environments:
        if name not in (*ANY_SIZE, *FIXED_SIZE):
            raise unknown("environment of the leaderboard", name, (*ANY_SIZE, *FIXED_SIZE))
    common: dict[str, Any] = {
        "policies": tuple(make_policy(name) for name in policies or POLICIES),
        "horizon": horizon,
        "replications": replications,
        "seed": seed,
    }
    experiments = [
        Experiment(id=identifier, environment=environment, times=(horizon,), **common)
        for identifier, environment in _make_environments(environments, arms).items()
    ]
    delayed = make_environment(DELAYED, arms=DELAYED_ARMS)
    late = [
        Experiment(id=f"{DELAYED}-{DELAYED_ARMS}-{name}", environment=delayed, delay=delay, times=(horizon,), **common)
        for name, delay in DELAYS.items()
        if DELAYED in (environments or ANY_SIZE) and DELAYED_ARMS in arms
    ]
    return Spec(title="Leaderboard", experiments=(*experiments, *late, _one_change(horizon, common)))


def _make_environments(names: Sequence[str], arms: Sequence[int]) -> dict[str, Environment]:
    wanted = names or (*ANY_SIZE, *FIXED_SIZE)
    sized = {
        f"{name}-{count}": make_environment(name, arms=count) for name in ANY_SIZE if name in wanted for count in arms
    }
    return sized | {name: make_environment(name) for name in FIXED_SIZE if name in wanted}


def _one_change(horizon: int, common: dict[str, Any]) -> Experiment:
    """Return the experiment on the detection delay: ten constant arms, of which the worst becomes the best halfway."""
    change = horizon // 2 + 1
    before = [0.6, *(0.5 for _ in range(8)), 0.3]
    environment = make_environment("piecewise", starts=[1, change], means=[before, [*before[:-1], 0.9]])
    return Experiment(id=ONE_CHANGE, environment=environment, times=tuple(range(change - 1, horizon + 1)), **common)
