"""Our environments in Gymnasium, with its own checker."""

import copy
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dynabandit as db
import dynabandit.integrations.gymnasium
from dynabandit.integrations.gymnasium import BanditEnv
from tools.interpreted import interpreted

NEEDED: dict[str, dict[str, Any]] = {
    "Fixed": {"means": [0.2, 0.8]},
    "Piecewise": {"starts": [1, 5], "means": [[0.2, 0.8], [0.8, 0.2]]},
    "Path": {"means": np.full((30, 3), 0.5)},
    "Recorded": {"rates": np.full((5, 3), 0.5), "period": 6},
}


@pytest.mark.parametrize("name", ["SmallChanges", "Case1", "Case2", "Case3", "Case4", "ReflectedWalk", *NEEDED])
def test_every_environment_passes_gymnasiums_checker(name: str) -> None:
    env = gymnasium.make(f"dynabandit/{name}-v0", horizon=30, **NEEDED.get(name, {}))
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=1)
    ends = [env.step(0)[2:4] for _ in range(30)]
    assert ends == [(False, False)] * 29 + [(False, True)]


def test_every_environment_of_the_registry_is_registered() -> None:
    for kind in db.environments.ENVIRONMENTS.values():
        assert f"dynabandit/{kind.__name__}-v0" in gymnasium.registry


def test_gymnasium_can_import_the_module_itself() -> None:
    code = (
        "import gymnasium; print(gymnasium.make('dynabandit.integrations.gymnasium:dynabandit/Case1-v0').action_space)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "Discrete(2)\n", done.stderr


@pytest.mark.parametrize("name", ["case-1", "rested-rotting", "rested-rising"])
def test_the_episodes_of_a_seed_are_the_replications_of_a_simulation(name: str) -> None:
    with interpreted():
        run = db.simulate(
            "aff-ots", db.environment(name, arms=4), horizon=50, replications=3, seed=7, keep=("arms", "rewards"),
            times=50,
        )  # fmt: skip
    assert run.arms is not None
    assert run.rewards is not None
    env = BanditEnv(name, arms=4, horizon=50)
    env.reset(seed=7)
    for replication in range(3):
        steps = [env.step(arm) for arm in run.arms[replication]]
        assert [step[1] for step in steps] == run.rewards[replication].tolist()
        regret = np.cumsum([step[4]["regret"] for step in steps])
        assert regret == pytest.approx(run.regret[replication])
        env.reset()


@pytest.mark.parametrize(("models", "shape"), [("separate", (3,)), ("shared", (4, 3))])
def test_features_are_the_observations(models: str, shape: tuple[int, ...]) -> None:
    with interpreted():
        world = db.environment("lin-drift", arms=4, dimension=3, models=models)
        run = db.simulate("uniform", world, horizon=20, replications=2, seed=7, keep=("arms", "rewards"))
    assert run.arms is not None
    assert run.rewards is not None
    env = gymnasium.make("dynabandit/LinDrift-v0", arms=4, dimension=3, models=models, horizon=20).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the features have no bounds
        check_env(env, skip_render_check=True)
    for replication in range(2):
        observation, _ = env.reset(seed=7 if replication == 0 else None)
        features = world.features(20, 7, replication)
        expected = features[:, 0] if models == "separate" else features
        for step, arm in enumerate(run.arms[replication]):
            assert observation.shape == shape
            assert np.array_equal(observation, expected[step])
            observation, reward, *_ = env.step(arm)
            assert reward == run.rewards[replication, step]
        assert np.array_equal(observation, expected[-1])


def test_a_copy_continues_independently() -> None:
    env = gymnasium.make("dynabandit/Case3-v0", horizon=20)
    env.reset(seed=1)
    other = copy.deepcopy(env)
    assert [env.step(1)[1] for _ in range(20)] == [other.step(1)[1] for _ in range(20)]


def test_wrong_use_is_named() -> None:
    env = BanditEnv("case-1", horizon=2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(0))
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action must be an arm from 0 to 1, got 2"):
        env.step(np.int64(2))
    env.step(np.int64(0))
    env.step(np.int64(0))
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode of 2 steps is over"):
        env.step(np.int64(0))
    with pytest.raises(ValueError, match="unknown environment 'case-9'"):
        BanditEnv("case-9")


def test_gymnasiums_vectors_of_environments_run() -> None:
    with warnings.catch_warnings():
        vector = gymnasium.make_vec("dynabandit/Case1-v0", num_envs=3, vectorization_mode="sync", horizon=5)
        vector.reset(seed=1)
        _, rewards, _, _, _ = vector.step(np.array([0, 1, 0]))
    assert rewards.shape == (3,)


def test_rewards_means_and_regret_follow_the_reward_law() -> None:
    law = db.reward_law("normal", low=-4, high=4, deviation=2)
    env = BanditEnv("fixed", means=[0.25, 0.75], rewards=law, horizon=20)
    env.reset(seed=7)
    steps = [env.step(np.int64(step % 2)) for step in range(20)]
    assert [step[4] for step in steps] == [{"mean": -2.0, "regret": 4.0}, {"mean": 2.0, "regret": 0.0}] * 10
    with interpreted():
        run = db.simulate("uniform", env.environment, horizon=20, seed=7, keep=("arms", "rewards"))
    assert run.arms is not None
    assert run.rewards is not None
    same = [step for step in range(20) if run.arms[0, step] == step % 2]
    assert same
    assert [steps[step][1] for step in same] == [run.rewards[0, step] for step in same]
