"""The functions of every policy compute the same in compiled code as in Python, bit for bit.

Each function is compiled alone, which takes a third of the time of a simulation. One policy of each shape is simulated
in compiled code by tests/test_checks.py.
"""

from typing import Any
from unittest import mock

import numpy as np
import pytest

import dynabandit as db
from dynabandit.choosing import draw_tree
from dynabandit.core.compilation import compiled_once
from dynabandit.core.streams import stream
from dynabandit.policies import PolicyFunctions, Reward, Step
from dynabandit.policies.base import new_state
from tools.interpreted import interpreted
from tools.laws import INTERPRETED
from tools.ready import READY

ARMS, STEPS = 3, 40
KERNELS = ("start", "learn", "score", "posterior", "common", "explore", "reveal")


def compiled_functions(functions: PolicyFunctions) -> PolicyFunctions:
    default = PolicyFunctions._field_defaults
    own = [name for name in KERNELS if getattr(functions, name) is not default.get(name)]
    alone: dict[str, Any] = {name: compiled_once(getattr(functions, name)) for name in own}
    return functions._replace(**alone)


def computed(policy: db.policies.Policy, functions: PolicyFunctions) -> list[Any]:
    """Return what the functions return and write while all arms are played in turn, with a change of the rewards."""
    params = policy.params(ARMS)
    state = new_state(policy, ARMS, params)
    table = functions.table(ARMS, STEPS)
    found: list[Any] = []
    for number in range(1, STEPS + 1):
        arm = number % ARMS
        for other in range(ARMS):
            functions.reveal(state, other, 0.9 if (other == 0) == (number < STEPS // 2) else 0.1)
        step = Step(number, ARMS, functions.common(state, number, params), np.zeros(0), table, stream(3))
        scores = functions.score if functions.posterior is None else functions.posterior
        found += [step.common, *(scores(state, other, step, params) for other in range(ARMS))]
        found.append(functions.explore(state, arm, step, params))
        state.last_played[arm] = number
        value = float((arm == 0) == (number < STEPS // 2))
        functions.learn(state, arm, Reward(value, number, number), params)
        found += [state.memory.tobytes(), state.shared.tobytes()]
    functions.start(state, 1, params)
    return [*found, state.memory.tobytes(), state.shared.tobytes()]


@pytest.mark.parametrize("name", db.policies.POLICIES)
def test_the_functions_of_a_policy_compute_the_same_in_compiled_code(name: str) -> None:
    policy = db.policy(name, **READY.get(name, {})).tuned(1, STEPS)
    found, expected = computed(policy, compiled_functions(policy.functions)), computed(policy, policy.functions)
    assert [type(value) for value in found] == [
        type(value.item() if isinstance(value, np.generic) else value) for value in expected
    ]
    np.testing.assert_equal(found, expected)


@pytest.mark.skipif(INTERPRETED, reason="NUMBA_DISABLE_JIT=1: there is no compiled code")
def test_a_draw_tree_makes_the_same_choices_in_compiled_code() -> None:
    world = db.environment("case-1", arms=12)
    with mock.patch.object(draw_tree, "MANY_ARMS", 11):
        compiled = db.simulate("ts", world, horizon=150, seed=2, keep="arms", threads=1).arms
        with interpreted():
            plain = db.simulate("ts", world, horizon=150, seed=2, keep="arms", threads=1).arms
    assert np.array_equal(np.asarray(compiled), np.asarray(plain))
