"""The check of what a policy declares about its posteriors."""

import numpy as np

from dynabandit.checks.estimators import require
from dynabandit.policies import Policy
from dynabandit.policies.base import CONSTANT, MONOTONE, Step
from dynabandit.simulation.step_by_step import StepByStep

ARMS = 5
STEPS = 60
ROUNDING = 1e-12


def posteriors_change_as_declared(policy: Policy) -> None:
    """While an arm is idle, its posterior is constant, or each shape only rises or only falls."""
    functions = policy.functions
    known = functions.posterior is not None and functions.idle_posterior in (CONSTANT, MONOTONE)
    require(
        known, f"idle_posterior needs a posterior and must be CONSTANT or MONOTONE, got {functions.idle_posterior!r}"
    )
    run, generator = StepByStep(policy, ARMS, STEPS), np.random.default_rng(1)
    for number in range(1, STEPS):
        before, played = shapes(run, number + 1), int(generator.integers(ARMS) ** 2 / ARMS)
        run.learn(played, number, float(generator.random() < 0.5))
        others = (np.arange(ARMS) != played) & (run.state.last_played > 0)
        later = np.array([shapes(run, number + 1 + ahead)[others] for ahead in (0, 1, 5, 40)])
        kept = np.array_equal(before[others], later[0])
        require(kept, f"idle_posterior means that learn changes no other arm, but at step {number} it did")
        change = np.diff(later, axis=0)
        constant = functions.idle_posterior != CONSTANT or not change.any()
        require(
            constant, f"a CONSTANT posterior must not change while its arm is idle, but after step {number} it does"
        )
        one_way = (change >= -ROUNDING).all(axis=0) | (change <= ROUNDING).all(axis=0)
        require(
            one_way.all(), f"each shape of an idle arm must only rise or only fall, but after step {number} it turns"
        )


def shapes(run: StepByStep, number: int) -> np.ndarray:
    """Return the posteriors of all arms at a step."""
    functions, state, params = run.policy.functions, run.state, run.params
    assert functions.posterior is not None
    common = functions.common(state, number, params)
    step = Step(number, run.arms, common, run.space.features, run.space.table, run.random)
    return np.array([functions.posterior(state, arm, step, params) for arm in range(run.arms)])
