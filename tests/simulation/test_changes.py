"""Policies that detect changes of the best arm, in simulations that are too long for code that is not compiled.

Few policies are compiled. The decisions of all are compared with their oracles in tests/policies.
"""

import numpy as np
import pytest

import dynabandit as db
from tools.interpreted import interpreted

HORIZON = 30_000
SWITCHING = db.environment(
    "piecewise", starts=[1, 10_001, 20_001], means=[[0.5, 0.1, 0.1], [0.5, 0.9, 0.1], [0.5, 0.1, 0.9]]
)


def test_detecting_changes_beats_ignoring_them_and_the_oracle_beats_all() -> None:
    """Fixed seed; every margin below is beyond 4.5 standard errors, which chance breaks once in 10^5."""
    policies = {
        "oracle": db.policy("oracle-restart"),
        "ucb oracle": db.policy("oracle-restart", index="ucb"),
        "local": db.policy("glr-kl-ucb"),
        "global": db.policy("glr-kl-ucb", restart="global"),
        "constant": db.policy("glr-kl-ucb", schedule="constant"),
        "diminishing": db.policy("glr-kl-ucb-diminishing"),
        "cusum-ucb": db.policy("cusum-ucb"),
        "kl-ucb": db.policy("kl-ucb"),
    }
    runs = db.compare(policies, SWITCHING, horizon=HORIZON, replications=8, seed=1)
    regret = {name: run.total_regret.mean() for name, run in runs.items()}
    lost = regret.pop("kl-ucb")
    told = regret.pop("oracle")
    assert 2 * told < regret.pop("ucb oracle")
    for name, value in regret.items():
        assert 10 * told < value < lost / 2, name


@pytest.mark.parametrize(
    ("name", "parameters"), [("d-kl-ucb", {}), ("sw-kl-ucb", {}), ("cusum-ucb", {}), ("m-ucb", {"window": 20})]
)
def test_a_tuned_policy_is_the_one_that_was_told_the_number_of_changes(name: str, parameters: dict[str, int]) -> None:
    horizon = 3000
    switching = db.environment("piecewise", starts=[1, 1001, 2001], means=SWITCHING.parameters["means"])
    with interpreted():
        tuned, told, blind = (
            db.simulate(db.policy(name, **parameters, **given), switching, horizon=horizon, seed=2, keep="arms")
            for given in ({}, {"changes": 2, "horizon": horizon}, {"changes": 1})
        )
    assert np.array_equal(np.asarray(tuned.arms), np.asarray(told.arms))
    assert not np.array_equal(np.asarray(tuned.arms), np.asarray(blind.arms))
    assert tuned.policy == db.policy(name, **parameters)
    assert "changes=1" in blind.policy.label
