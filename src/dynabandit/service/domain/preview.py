"""A look ahead: what another policy would believe and choose now, without changing anything."""

from dynabandit.service import api_types
from dynabandit.service.domain.bandit_state import State
from dynabandit.service.domain.operations import MOST_DRAWS
from dynabandit.service.domain.warm_start import Warming, announce
from dynabandit.service.errors import Refused
from dynabandit.service.stores import Store
from dynabandit.simulation import compiled

__all__ = ["preview"]


def preview(store: Store, state: State, asked: api_types.PreviewPolicy) -> api_types.Preview:
    """Replay the rewards of a bandit's log through another policy and return what it would believe and choose.

    Parameters
    ----------
    store
        Where the log is; it is only read.
    state
        The bandit as of some event, such as a `State.copy`; it is left as it is.
    asked
        The policy to try, and how many draws its propensities are counted over.

    Returns
    -------
    Preview
        For each arm the beliefs of the new policy after all rewards up to `state.sequence`, and the probability
        that the next decision takes the arm, under the new policy and under the one that decides now.
    """
    arms = len(state.bandit.active)
    if asked.draws > 1 and asked.draws * arms > MOST_DRAWS:
        raise Refused(422, f"draws must be at most {MOST_DRAWS // arms} with {arms} arms, got {asked.draws}")
    warming = Warming(state, api_types.SetPolicy(asked.policy, asked.parameters))
    announce(warming.bandit.policy, compiled.count_choices, compiled.learn_many)
    warming.feed(store, state.sequence)
    current, other = state.bandit, warming.bandit
    now, then = current.propensities(asked.draws), other.propensities(asked.draws)
    shown = []
    for name, arm in other.arms.items():
        mean = None if arm.mean != arm.mean else arm.mean
        shown.append(api_types.PreviewArm(name, mean, *arm[1:4], then.get(name, 0.0), now.get(name, 0.0), arm.paused))
    return api_types.Preview(
        policy=other.policy.name,
        parameters=other.policy.parameters,
        current_policy=current.policy.name,
        step=current.step,
        sequence=state.sequence,
        rewards=warming.rewards,
        draws=asked.draws,
        arms=shown,
    )
