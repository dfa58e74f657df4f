"""Preview: what another policy would estimate and choose now. Nothing is changed."""

from collections.abc import Callable
from typing import Any, Protocol

from dynabandit.bandit import Bandit
from dynabandit.bandit.compiled import compiled_count_choices
from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decisions import MAX_DRAWS
from dynabandit.service.domain.log_start import read_start
from dynabandit.service.domain.warm_start import WarmStart, log_compilation
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.stores import Store
from dynabandit.simulation.compiled import compiled_learn_many

Check = Callable[[], None]


class Trial(Protocol):
    """Another policy for a bandit, which learns its rewards: here, or in a process of its own."""

    def learn(self, rewards: list[tuple[Any, ...]], latest: int) -> int:
        """Learn rewards as `Bandit.reward_columns` does; an error is a `ValueError`."""
        ...

    def arms(self) -> list[api_types.PreviewArm]:
        """Return what it estimates and would choose, or raise `InvalidValueError`."""
        ...


MakeTrial = Callable[[Bandit, api_types.PreviewPolicy, Check], Trial]


class LocalTrial:
    """A trial in this process; `check` is called every now and then, and ends it by an error."""

    def __init__(self, bandit: Bandit, asked: api_types.PreviewPolicy, check: Check = lambda: None) -> None:
        self._current, self._asked, self._check = bandit, asked, check
        self._other = bandit.swapped(asked.policy, (), **asked.parameters)
        log_compilation(self._other.policy, compiled_count_choices, compiled_learn_many)

    def learn(self, rewards: list[tuple[Any, ...]], latest: int) -> int:
        try:
            return self._other.reward_columns(rewards, latest)
        except ArithmeticError as error:
            raise ValueError(str(error)) from None

    def arms(self) -> list[api_types.PreviewArm]:
        current, other = self._current, self._current.adopting(self._other)
        assert other is not None, "it was made for this bandit"
        asked, check = self._asked, self._check
        try:
            now, then = (one.propensities(asked.context, asked.draws, between=check) for one in (current, other))
        except (TypeError, ValueError) as error:  # the context does not fit
            raise InvalidValueError(f"context: {error}") from None
        except ArithmeticError as error:
            raise InvalidValueError(f"policy {other.policy.label!r} cannot decide: {error}") from None
        previewed = []
        for name, arm in other.arms.items():
            mean = None if arm.mean != arm.mean else arm.mean
            propensities = then.get(name, 0.0), now.get(name, 0.0)
            previewed.append(api_types.PreviewArm(name, mean, *arm[1:4], *propensities, arm.paused))
        return previewed


def preview(
    store: Store,
    state: LoggedState,
    asked: api_types.PreviewPolicy,
    check: Check = lambda: None,
    make_trial: MakeTrial = LocalTrial,
) -> api_types.Preview:
    """Return what another policy would estimate and choose after all rewards up to `state.sequence`.

    The propensities, under the new and under the current policy, are estimated from `asked.draws` draws. The store is
    only read, and `state` is not changed. `check` is called every now and then, and ends the preview by an error.
    """
    arms = len(state.bandit.active)
    if asked.draws > 1 and asked.draws * arms > MAX_DRAWS:
        raise InvalidValueError(f"draws must be at most {MAX_DRAWS // arms} with {arms} arms, got {asked.draws}")
    warm = WarmStart(state, api_types.SetPolicy(asked.policy, asked.parameters), read_start(store, state.bandit_number))
    trial = make_trial(state.bandit, asked, check)
    warm.learn(store, state.sequence, check, trial.learn)
    return api_types.Preview(
        policy=warm.bandit.policy.name,
        parameters=warm.bandit.policy.parameters,
        current_policy=state.bandit.policy.name,
        step=state.bandit.step,
        sequence=state.sequence,
        rewards=warm.rewards,
        draws=asked.draws,
        arms=trial.arms(),
    )
