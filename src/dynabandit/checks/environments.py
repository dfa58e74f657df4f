"""Checks of environments."""

import numpy as np

from dynabandit.checks.estimators import require
from dynabandit.core.streams import stream
from dynabandit.environments import Environment
from dynabandit.environments.base import make_write_paths
from dynabandit.simulation import simulate

STEPS = 120
SEED = 5


def declares_its_environment(environment: Environment) -> None:
    """The class has a name, and parameters that make an equal environment."""
    kind = type(environment)
    require(isinstance(getattr(kind, "name", None), str) and kind.name, "the class must have a name")
    path, again = _path(environment), _path(kind(**environment.parameters))
    require((path == again).all(), "the parameters must make an equal environment")


def _path(environment: Environment, replication: int = 0) -> np.ndarray:
    return environment.path(min(STEPS, environment.longest), seed=SEED, replication=replication)


def makes_valid_paths(environment: Environment) -> None:
    """Means are in [0, 1] and do not depend on the horizon or on compilation."""
    path = _path(environment)
    horizon, arms = min(STEPS, environment.longest), environment.arms
    require(path.shape == (horizon, arms), f"a path must have shape {(horizon, arms)}, got {path.shape}")
    require(((path >= 0.0) & (path <= 1.0)).all(), "every mean must be in [0, 1]")
    short = max(1, horizon // 2)
    same = path[:short] == environment.path(short, seed=SEED)
    require(same.all(), "a shorter path must be the same from the start")
    paths, state = environment.empty_paths(1, horizon), np.zeros((1, environment.state_size(), arms))
    params, table = np.array(environment.params()), environment.table()
    write = make_write_paths(environment.functions)
    write(state, params, table, paths, 1, horizon, stream(SEED))
    require((paths.means[0] == path).all(), "the path must be the same without compilation")


def keeps_means_constant(environment: Environment) -> None:
    """Means are constant as long as `constant_until` says."""
    path = _path(environment)
    for step in range(1, len(path) + 1):
        until = environment.constant_until(step)
        require(until >= step, f"constant_until({step}) must not be before that step, got {until}")
        require(
            (path[step - 1 : until] == path[step - 1]).all(),
            f"constant_until({step}) is {until}, but the means change in between",
        )


def changes_means_in_one_direction(environment: Environment) -> None:
    """Means of rested arms stay in [0, 1]; they never rise with plays, or never fall if they are declared as rising."""
    law, params, values = environment.reward_functions, environment.params(), _path(environment)[0]
    for arm, value in enumerate(values):
        means = np.array([law.mean(value, plays, arm, params) for plays in range(STEPS)])
        require(((means >= 0.0) & (means <= 1.0)).all(), "the means after all numbers of plays must be in [0, 1]")
        steps = np.diff(means) if law.rising else -np.diff(means)
        require((steps >= 0.0).all(), f"with rising={law.rising}, no mean may {'fall' if law.rising else 'rise'}")


def gives_the_simulator_its_path(environment: Environment) -> None:
    """The simulator, which writes several paths block by block, uses the paths that `path` returns."""
    horizon = min(STEPS, environment.longest)
    run = simulate("best-arm", environment, horizon=horizon, replications=2, seed=SEED, threads=1, block=7, keep="arms")
    assert run.arms is not None
    if environment.reward_functions.observes_plays:
        return  # the best arm then depends on what was played
    for replication in range(2):
        path = _path(environment, replication)
        played = path[np.arange(horizon), run.arms[replication]]
        require((played == path.max(axis=1)).all(), "the simulator must use the path that environment.path returns")
