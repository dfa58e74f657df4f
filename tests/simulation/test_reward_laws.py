"""An environment can draw other rewards than 0 and 1, and its means can depend on how often an arm was played."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.compilation import kernel
from dynabandit.core.streams import REWARD, stream, uniform
from dynabandit.environments import (
    REWARD_LAWS,
    Environment,
    EnvironmentFunctions,
    EnvironmentStep,
    RewardFunctions,
    RewardLaw,
    RewardStep,
)
from dynabandit.validation import BOUNDED
from tools.cudasim import cudasim

HORIZON, SEED = 60, 3


@kernel
def start(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> None:
    state[0, arm] = 0.4 + 0.5 * arm / step.arms


@kernel
def advance(state: np.ndarray, arm: int, step: EnvironmentStep, params: Any) -> float:
    return float(state[0, arm])


@kernel
def worn_mean(value: float, plays: int, arm: int, params: Any) -> float:
    return value / (1.0 + 0.25 * plays)


@kernel
def half_steps(mean: float, arm: int, step: RewardStep, params: Any) -> float:
    """Return 0.5, or a uniform neighbour of it, with the given mean."""
    return 0.5 + (mean - 0.5) * 2.0 * uniform(step.random, REWARD, step.number, arm)


@dataclass(frozen=True, kw_only=True)
class HalfSteps(RewardLaw):
    name: ClassVar[str] = "half-steps"
    domain = BOUNDED
    functions = RewardFunctions(half_steps)


@dataclass(frozen=True, kw_only=True)
class WearingArms(Environment):
    """Arms whose mean falls with their own plays, with rewards between 0 and 1.

    Parameters, Examples, References: see tests/simulation/test_reward_laws.py.
    """

    name: ClassVar[str] = "wearing-arms"
    slots: ClassVar[tuple[str, ...]] = ("mean",)
    functions: ClassVar[EnvironmentFunctions] = EnvironmentFunctions(start, advance, mean=worn_mean)

    rewards: RewardLaw = HalfSteps()


LAWS = [kind() for kind in REWARD_LAWS.values()]


def run(policy: str, horizon: int = HORIZON, backend: str = "cpu", law: RewardLaw | None = None) -> db.Simulation:
    options: dict[str, Any] = {"replications": 2, "seed": SEED, "keep": ("arms", "rewards")}
    environment = WearingArms(arms=3, rewards=law or HalfSteps())
    return db.simulate(policy, environment, horizon=horizon, times=horizon, backend=backend, **options)


@pytest.mark.parametrize("policy", ["best-arm", "eps-greedy"])
def test_rewards_means_and_regret_follow_the_law_and_the_plays(policy: str) -> None:
    simulation = run(policy)
    assert simulation.arms is not None
    assert simulation.rewards is not None
    assert simulation.rewards.dtype == np.float64
    for replication in range(2):
        plays, collected = np.zeros(3, dtype=np.int64), 0.0
        curves = [[worn_mean(0.4 + 0.5 * arm / 3, n, arm, None) for n in range(HORIZON)] for arm in range(3)]
        best = np.cumsum(np.sort(np.ravel(curves))[::-1])  # the largest means are collected first
        random = stream(SEED, replication)
        for step in range(HORIZON):
            means = np.array([worn_mean(0.4 + 0.5 * arm / 3, int(plays[arm]), arm, None) for arm in range(3)])
            arm = int(simulation.arms[replication, step])
            if policy == "best-arm":
                assert means[arm] == means.max()
            assert simulation.rewards[replication, step] == half_steps(
                means[arm], arm, RewardStep(step + 1, random), None
            )
            collected += means[arm]
            plays[arm] += 1
            assert simulation.regret[replication, step] == pytest.approx(best[step] - collected, abs=1e-12)


def test_the_law_is_part_of_the_version_of_the_code() -> None:
    laws = [HalfSteps(), "bernoulli", "bounded", db.reward_law("bounded", concentration=2)]
    environments = [WearingArms(arms=3, rewards=law) for law in laws]  # type: ignore[arg-type]
    assert len({db.simulation.code_version(db.policy("ucb"), one, 100) for one in environments}) == 4


def test_an_environment_that_observes_plays_passes_the_checks() -> None:
    db.checks.check_environment(WearingArms(arms=3))


GPU = """
import test_reward_laws as tests
for law in (tests.HalfSteps(), *tests.LAWS):
    cpu, gpu = (tests.run("eps-greedy", horizon=12, backend=backend, law=law) for backend in ("cpu", "cuda"))
    assert (cpu.arms == gpu.arms).all() and (cpu.rewards == gpu.rewards).all(), law
    assert abs(cpu.regret - gpu.regret).max() < 1e-12 * cpu.regret.max(), law
"""


def test_a_gpu_draws_the_same_rewards() -> None:
    here = Path(__file__).parent
    done = cudasim("-c", f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}" + GPU, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
