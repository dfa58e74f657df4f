"""Forgetting baselines find a new best arm and have less regret than policies that do not forget.

The long simulations compile two of them, which other tests need too; their oracles are in tests/policies.
"""

import pytest

import dynabandit as db
from dynabandit.environments import Piecewise
from tools.interpreted import interpreted

BASELINES = ("d-ts", "sw-ts", "f-dsw-ts", "changepoint-ts", "exp3-s", "rexp3")
FLIP = Piecewise(starts=(1, 501), means=((1.0, 0.0, 0.5), (0.0, 1.0, 0.5)))


@pytest.mark.parametrize("name", BASELINES)
def test_a_new_best_arm_is_found_and_kept(name: str) -> None:
    """Fixed seed; Exp3 pays for its exploration, so that half is far above the third that chance gives."""
    with interpreted():
        run = db.simulate(name, FLIP, horizon=1000, replications=3, seed=1, keep="arms")
    assert run.arms is not None
    before, after = (run.arms[:, 400:500] == 0).mean(), (run.arms[:, 900:] == 1).mean()
    assert min(before, after) > (0.5 if "exp3" in name else 0.9)


@pytest.mark.parametrize(("name", "share"), [("d-ts", 0.3), ("exp3-s", 0.5)])
@pytest.mark.parametrize("world", ["pb-1", "seasonal"])
def test_regret_is_far_below_that_of_uniform_play(name: str, share: float, world: str) -> None:
    runs = db.compare([name, "uniform"], world, horizon=5000, replications=20, seed=2)
    uniform, own = (runs[label].total_regret.mean() for label in ("uniform", name))
    assert own < share * uniform


def test_forgetting_beats_thompson_sampling_where_the_best_arm_changes() -> None:
    runs = db.compare(["d-ts", "ts"], "pb-1", horizon=5000, replications=20, seed=3)
    assert runs["d-ts"].total_regret.mean() < 0.7 * runs["ts"].total_regret.mean()
