"""What the tour says is what its pictures show; every number follows from the seeds."""

import functools
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.playground import read
from dynabandit.playground.message_stream import messages
from dynabandit.playground.tour import STEPS

KEEP = ("arms", "rewards")


@functools.cache
def played(place: int, changes: tuple[tuple[str, str], ...] = ()) -> tuple[list[np.ndarray], list[db.simulation.Trace]]:
    """The runs of a step, and the trace of the first replication of each policy."""
    link = STEPS[place].link
    for old, new in changes:
        assert old in link
        link = link.replace(old, new)
    trial = read(link)
    policies = list(trial.policies)
    world = trial.environment
    rest: dict[str, Any] = {"horizon": trial.horizon, "seed": trial.seed}
    runs = db.compare(policies, world, replications=trial.replications, times=80, **rest)
    first = db.compare(policies, world, keep=KEEP, **rest)
    traces = [db.simulation.trace(run, times=80) for run in first.values()]  # a row for each 100 steps
    return [run.regret.mean(axis=0) for run in runs.values()], traces


def at(step: int) -> int:
    """The row of a step."""
    return step // 100 - 1


def test_there_are_five_steps_that_the_playground_takes() -> None:
    assert len(STEPS) == 5
    for step in STEPS:
        trial = read(step.link)
        assert step.look < len(trial.policies)
        assert all(step.text)


def test_a_sample_mean_is_late_at_both_changes() -> None:
    (regret,), (trace,) = played(0)
    assert (trace.truth[at(4000), 2], trace.truth[at(5500), 2]) == (0.8, 0.4)
    assert trace.mean[at(3500), 2] < 0.5 < trace.mean[at(4000), 2]
    assert trace.mean[at(6000), 2] > 0.58
    assert trace.plays[at(7600) :, 2].sum() > 200  # of 500
    before, between, after = regret[at(3000)], regret[at(5000)] - regret[at(3000)], regret[-1] - regret[at(5000)]
    assert between / 2000 > 10 * before / 3000
    assert after / 3000 > 5 * before / 3000


def test_forgetting_follows_both_changes_and_fluctuates() -> None:
    (late, fast), (steady, trace) = played(1)
    assert trace.mean[at(3600), 2] > 0.7
    assert trace.mean[at(5500), 2] < 0.5
    assert fast[-1] < late[-1] / 2
    assert trace.mean[at(5000) :, 0].std() > 3 * steady.mean[at(5000) :, 0].std()


def test_no_constant_memory_is_as_good_as_one_that_adapts() -> None:
    (short, long, adaptive), (*_, trace) = played(2)
    assert short[at(3000)] > 3 * max(long[at(3000)], adaptive[at(3000)])
    assert long[at(5000)] > 1.5 * adaptive[at(5000)]
    assert adaptive[-1] < min(short[-1], long[-1])
    assert trace.forgetting[at(4900), 2] > 0.95
    assert trace.forgetting[at(5000) : at(6000), 2].min() < 0.92


def test_a_larger_step_size_moves_the_factor_further() -> None:
    _, (*_, usual) = played(2)
    _, (*_, eager) = played(2, (("aff-dts2", "aff-dts2:step_size=0.01"),))
    assert np.ptp(eager.forgetting[:, 0]) > 2 * np.ptp(usual.forgetting[:, 0])


def test_an_idle_arm_is_tried_again_only_where_its_bonus_grows() -> None:
    (still, growing), (stuck, woken) = played(3)
    idle = slice(at(3000), at(5000))
    assert stuck.plays[idle, 2].sum() == 0
    assert np.ptp(stuck.mean[idle, 2]) == 0.0
    assert stuck.truth[at(4000), 2] == 0.8
    assert woken.plays[idle, 2].sum() > 1000
    assert growing[-1] < 0.7 * still[-1]


def test_who_wins_depends_on_the_number_of_arms() -> None:
    many = [one[-1] for one in played(4)[0]]
    assert many == sorted(many)
    few = [one[-1] for one in played(4, (("arms=50", "arms=2"),))[0]]
    assert min(few) == few[1]


@pytest.mark.parametrize("place", range(5))
def test_each_step_runs_to_its_end(place: int) -> None:
    link = STEPS[place].link.replace("replications=40", "replications=2").replace("replications=20", "replications=2")
    assert list(messages(read(link)))[-1]["kind"] == "end"
