"""Forgetting baselines find a new best arm and have less regret than policies that do not forget."""

import pytest

import dynabandit as db
from dynabandit.environments import Piecewise

BASELINES = ("d-ts", "sw-ts", "f-dsw-ts", "changepoint-ts", "exp3-s", "rexp3")
FLIP = Piecewise(starts=(1, 501), means=((1.0, 0.0, 0.5), (0.0, 1.0, 0.5)))


@pytest.mark.parametrize("name", BASELINES)
def test_a_new_best_arm_is_found_and_kept(name: str) -> None:
    """Fixed seed; Exp3 pays for its exploration, so that half is far above the third that chance gives."""
    run = db.simulate(name, FLIP, horizon=1000, replications=20, seed=1, keep="arms")
    assert run.arms is not None
    before, after = (run.arms[:, 400:500] == 0).mean(), (run.arms[:, 900:] == 1).mean()
    assert min(before, after) > (0.5 if "exp3" in name else 0.9)


WITHIN = {"d-ts": 0.3, "sw-ts": 0.4, "f-dsw-ts": 0.3, "changepoint-ts": 0.25, "exp3-s": 0.5, "rexp3": 0.8}


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("world", ["pb-1", "seasonal"])
def test_regret_is_far_below_that_of_uniform_play(name: str, world: str) -> None:
    runs = db.compare([name, "uniform"], world, horizon=5000, replications=20, seed=2)
    uniform, own = (runs[label].total_regret.mean() for label in ("uniform", name))
    assert own < WITHIN[name] * uniform


@pytest.mark.parametrize("name", ["d-ts", "f-dsw-ts", "changepoint-ts"])
def test_forgetting_beats_thompson_sampling_where_the_best_arm_changes(name: str) -> None:
    runs = db.compare([name, "ts"], "pb-1", horizon=5000, replications=20, seed=3)
    assert runs[name].total_regret.mean() < 0.7 * runs["ts"].total_regret.mean()
