"""Policies that detect changes of the best arm, in simulations that are too long for code that is not compiled."""

import numpy as np

import dynabandit as db

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
        "m-ucb": db.policy("m-ucb", window=100),
        "cusum-ucb": db.policy("cusum-ucb"),
        "d-kl-ucb": db.policy("d-kl-ucb"),
        "sw-kl-ucb": db.policy("sw-kl-ucb"),
        "kl-ucb": db.policy("kl-ucb"),
    }
    runs = db.compare(policies, SWITCHING, horizon=HORIZON, replications=8, seed=1)
    regret = {name: run.total_regret.mean() for name, run in runs.items()}
    lost = regret.pop("kl-ucb")
    told = regret.pop("oracle")
    assert 2 * told < regret.pop("ucb oracle")
    for name, value in regret.items():
        assert 10 * told < value < lost / 2, name


def test_a_tuned_policy_is_the_one_that_was_told_the_number_of_changes() -> None:
    for name in ("d-kl-ucb", "sw-kl-ucb", "cusum-ucb", "m-ucb"):
        tuned, told, blind = (
            db.simulate(db.policy(name, **given), SWITCHING, horizon=HORIZON, seed=2, keep="arms")
            for given in ({}, {"changes": 2, "horizon": HORIZON}, {"changes": 1})
        )
        assert np.array_equal(np.asarray(tuned.arms), np.asarray(told.arms)), name
        assert not np.array_equal(np.asarray(tuned.arms), np.asarray(blind.arms)), name
        assert {tuned.policy.label, blind.policy.label} == {name, f"{name}(changes=1)"}
