"""Preview: what another policy would estimate and choose now. Nothing is changed."""

from collections.abc import Callable

from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.decisions import MAX_DRAWS
from dynabandit.service.domain.log_start import read_start
from dynabandit.service.domain.warm_start import WarmStart, log_compilation
from dynabandit.service.errors import InvalidValueError
from dynabandit.service.stores import Store
from dynabandit.simulation.compiled import compiled_count_choices, compiled_learn_many


def preview(
    store: Store, state: LoggedState, asked: api_types.PreviewPolicy, check: Callable[[], None] = lambda: None
) -> api_types.Preview:
    """Return what another policy would estimate and choose after all rewards up to `state.sequence`.

    The propensities, under the new and under the current policy, are estimated from `asked.draws` draws. The store is
    only read, and `state` is not changed. `check` is called every now and then, and ends the preview by an error.
    """
    arms = len(state.bandit.active)
    if asked.draws > 1 and asked.draws * arms > MAX_DRAWS:
        raise InvalidValueError(f"draws must be at most {MAX_DRAWS // arms} with {arms} arms, got {asked.draws}")
    other_policy = api_types.SetPolicy(asked.policy, asked.parameters)
    warm = WarmStart(state, other_policy, read_start(store, state.bandit_number))
    log_compilation(warm.bandit.policy, compiled_count_choices, compiled_learn_many)
    warm.learn(store, state.sequence, check)
    current, other = state.bandit, warm.bandit_for(state)
    assert other is not None, "it was made for this state"
    try:
        now, then = (one.propensities(asked.context, asked.draws, between=check) for one in (current, other))
    except (TypeError, ValueError) as error:  # the context does not fit
        raise InvalidValueError(f"context: {error}") from None
    previewed = []
    for name, arm in other.arms.items():
        mean = None if arm.mean != arm.mean else arm.mean
        propensities = then.get(name, 0.0), now.get(name, 0.0)
        previewed.append(api_types.PreviewArm(name, mean, *arm[1:4], *propensities, arm.paused))
    return api_types.Preview(
        policy=other.policy.name,
        parameters=other.policy.parameters,
        current_policy=current.policy.name,
        step=current.step,
        sequence=state.sequence,
        rewards=warm.rewards,
        draws=asked.draws,
        arms=previewed,
    )
