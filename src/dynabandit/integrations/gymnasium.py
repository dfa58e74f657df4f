"""The environments as Gymnasium environments; importing this module registers them."""

from typing import Any

import numpy as np

from dynabandit.core.streams import stream
from dynabandit.environments import (
    CONTEXTUAL_ENVIRONMENTS,
    ENVIRONMENTS,
    Environment,
    RewardStep,
    environment as make_environment,
)
from dynabandit.extras import import_extra
from dynabandit.simulation.api import DEFAULT_HORIZON
from dynabandit.simulation.best_in_hindsight import make_best_policy

import_extra("gymnasium", "gymnasium")
import gymnasium  # noqa: E402 - after the message that says how to install it

__all__ = ["BanditEnv", "register"]


class BanditEnv(gymnasium.Env[Any, np.int64]):
    """An environment as a `gymnasium.Env`: an action is an arm, and the observation is always 0.

    In an environment with features, the observation is an array with those of the next step: a vector, or a row for
    each arm. After the last step it is the same as before.

    The episodes after ``reset(seed=7)`` are the replications of ``simulate(..., seed=7)``, with the same means and, for
    the same choices, the same rewards. `info` holds the mean of the chosen arm and its regret.

    Parameters
    ----------
    environment
        An environment or its name.
    horizon
        Number of steps after which an episode is truncated; by default 10,000, or the end of the environment.
    parameters
        Parameters of the environment, if it is given by name.

    Examples
    --------
    >>> import gymnasium
    >>> import dynabandit.integrations.gymnasium
    >>> env = gymnasium.make("dynabandit/Case1-v0", arms=5, horizon=100)
    >>> _ = env.reset(seed=7)
    >>> _, reward, _, truncated, info = env.step(3)
    >>> reward in (0.0, 1.0), truncated, sorted(info)
    (True, False, ['mean', 'regret'])
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        environment: Environment | str,
        horizon: int | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        self.environment = make_environment(environment, **parameters)
        reach = min(DEFAULT_HORIZON, self.environment.longest) if horizon is None else horizon
        self.horizon = self.environment.check_horizon(reach)
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Discrete(self.environment.arms)
        context = self.environment.context
        self.observation_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(1)
        if context is not None:
            shape = (self.environment.arms, context.dimension) if context.per_arm else (context.dimension,)
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self._seed: int | None = None
        self._replication = -1
        self._step = self.horizon

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the next episode, or with a seed the first episode of that seed."""
        super().reset(seed=seed)
        if seed is not None or self._seed is None:
            self._seed = int(self.np_random.integers(2**63)) if seed is None else seed
            self._replication = -1
        self._replication += 1
        self._source = stream(self._seed, self._replication)
        self._means = self.environment.path(self.horizon, self._seed, self._replication)
        if self.environment.context is not None:
            self._features = self.environment.features(self.horizon, self._seed, self._replication)
        self._step, self._plays = 0, [0] * self.environment.arms
        self._optimal = np.zeros(self.environment.arms)  # the state of the best policy in hindsight, for rested arms
        return self._observation(), {}

    def _observation(self) -> Any:
        context = self.environment.context
        if context is None:
            return np.int64(0)
        features = self._features[min(self._step, self.horizon - 1)]
        return features if context.per_arm else features[0]

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an arm."""
        if self._step >= self.horizon:
            raise gymnasium.error.ResetNeeded(f"the episode of {self.horizon} steps is over: call reset")
        arm = int(action)
        if not self.action_space.contains(arm):
            raise ValueError(f"action must be an arm from 0 to {self.environment.arms - 1}, got {action}")
        law, params = self.environment.reward_functions, self.environment.rewards.params()
        means, arm_params = self._means[self._step], self.environment.params()
        value = law.mean(means[arm], self._plays[arm], arm, arm_params)
        self._step += 1
        self._plays[arm] += 1
        reward = float(law.draw(value, arm, RewardStep(self._step, self._source), params))
        mean, best = float(law.expected(value, params)), float(law.expected(means.max(), params))
        if law.observes_plays:
            best_reward, _ = make_best_policy(law)
            best = float(best_reward(means, self._optimal, self._step, np.array(arm_params), params))
        info = {"mean": mean, "regret": best - mean}
        return self._observation(), reward, False, self._step == self.horizon, info


def register() -> None:
    """Register every environment as dynabandit/Name-v0; `gymnasium.make` takes its parameters.

    Examples
    --------
    >>> register()
    >>> "dynabandit/Fixed-v0" in gymnasium.registry
    True
    """
    for name, kind in {**ENVIRONMENTS, **CONTEXTUAL_ENVIRONMENTS}.items():
        identifier = f"dynabandit/{kind.__name__}-v0"
        if identifier not in gymnasium.registry:
            gymnasium.register(
                id=identifier,
                entry_point="dynabandit.integrations.gymnasium:BanditEnv",
                kwargs={"environment": name},
            )


register()
