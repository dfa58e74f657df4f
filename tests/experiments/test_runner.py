import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.streams import REWARD, stream, uniform
from dynabandit.experiments import CoverageSpec, Experiment, PathSpec, ProgressReporter, Spec, run, tasks
from dynabandit.experiments.plan import make_plan
from dynabandit.simulation import engine
from dynabandit.simulation.request import SimulationRequest
from dynabandit.simulation.stepper import Record

SMALL: dict[str, Any] = {"horizon": 40, "replications": 30, "seed": 3, "times": 4}
ENVIRONMENT = db.environment("case-1", arms=3)
FIRST = Experiment(id="first", environment=ENVIRONMENT, policies=(db.policy("ucb"), db.policy("eps-greedy")), **SMALL)
SECOND = Experiment(id="second", environment=ENVIRONMENT, policies=(db.policy("ucb"), db.policy("ts")), **SMALL)
PATHS = PathSpec(environment=ENVIRONMENT, figure="paths", replications=2, horizon=40, seed=3, points=20)
BOUND = CoverageSpec(figure="bound", means=(0.3, 0.5), step_sizes=(0.01,), observations=(2, 20), streams=400)
SPEC = Spec(title="Small", experiments=(FIRST, SECOND), sample_paths=(PATHS,), coverage=(BOUND,))
PARQUET = ("replications.parquet", "runs.parquet", "paths.parquet")


class Recorder(ProgressReporter):
    def __init__(self) -> None:
        self.cost = 0.0
        self.advanced = 0.0
        self.titles: list[str] = []
        self.figures: list[str] = []
        self.notes: list[str] = []

    def begin(self, cost: float, figures: int) -> None:
        self.cost = cost

    def running(self, title: str) -> None:
        if not title.startswith("compiling"):
            self.titles.append(title)

    def advance(self, cost: float) -> None:
        self.advanced += cost

    def finished(self, figure: str) -> None:
        self.figures.append(figure)

    def note(self, message: str) -> None:
        self.notes.append(message)


Calls = list[tuple[list[str], int]]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The policies and the first replication of each simulation, which still does its work."""
    calls: Calls = []

    def spy(request: SimulationRequest) -> dict[str, Record]:
        calls.append((sorted(policy.label for policy in request.policies.values()), request.random.replication))
        return engine.run(request)

    monkeypatch.setattr(tasks, "simulate", spy)
    return calls


def parquet(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "results" / name).read_bytes() for name in PARQUET}


def test_a_run_is_what_compare_gives(tmp_path: Path) -> None:
    results = run(SPEC, tmp_path)
    expected = db.compare(["ucb", "eps-greedy"], db.environment("case-1", arms=3), **SMALL)
    assert [(one.experiment, one.label) for one in results] == [
        ("first", "ucb"), ("first", "eps-greedy"), ("second", "ucb"), ("second", "ts"),
    ]  # fmt: skip
    for label, simulation in expected.items():
        one = results.one(experiment="first", label=label)
        np.testing.assert_array_equal(one.regret, simulation.regret)
        np.testing.assert_array_equal(one.times, simulation.times)
        np.testing.assert_allclose(one.correct, simulation.correct, rtol=0, atol=1e-15)
    aff_ots = results.one(label="ts")
    assert (aff_ots.policy, aff_ots.environment, aff_ots.arms) == ("ts", "case-1", 3)
    assert aff_ots.parameters == {**db.policy("ts").parameters, "prior": [2.0, 2.0]}


def test_experiments_on_the_same_paths_share_one_pass_and_no_policy_runs_twice(tmp_path: Path, compared: Calls) -> None:
    run(SPEC, tmp_path)
    assert compared == [(["eps-greedy", "ts", "ucb"], 0), (["eps-greedy", "ts", "ucb"], 25)]


def test_the_paper_shares_its_paths_and_runs_equal_policies_once() -> None:
    from dynabandit.paper.specs import paper

    plan = make_plan(paper().override(replications=10))
    assert len(plan.simulations) == 13  # small changes, and four cases with three numbers of arms
    asked = sum(len(run.keys) for run in plan.runs)
    computed = sum(len(task.requests) for task in plan.simulations)
    # Shared with Case 3 of as many arms: five default step sizes, tuned eps-greedy and sw-ucb; with Case 1: ts
    assert asked - computed == 3 * (5 + 2) + 1


def test_a_second_run_computes_nothing(tmp_path: Path, compared: Calls) -> None:
    run(SPEC, tmp_path)
    before = parquet(tmp_path)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    compared.clear()
    reporter = Recorder()
    run(SPEC, tmp_path, reporter=reporter)
    assert compared == []
    assert (reporter.cost, reporter.titles) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == files
    assert parquet(tmp_path) == before


def test_fresh_forgets_what_is_asked_for_and_nothing_else(tmp_path: Path, compared: Calls) -> None:
    run(SPEC, tmp_path)
    everything = parquet(tmp_path)
    compared.clear()
    run(SPEC.only(["second"]), tmp_path, fresh=True)
    assert compared == [(["ts", "ucb"], 0), (["ts", "ucb"], 25)]
    compared.clear()
    run(SPEC, tmp_path)
    assert compared == []
    assert parquet(tmp_path) == everything


def test_more_replications_compute_only_the_new_ones(tmp_path: Path, compared: Calls) -> None:
    run(SPEC.override(replications=25), tmp_path)
    compared.clear()
    run(SPEC.override(replications=50), tmp_path)
    assert compared == [(["eps-greedy", "ts", "ucb"], 25)]


@pytest.mark.parametrize("change", [{"seed": 4}, {"horizon": 41}])
def test_another_seed_or_horizon_is_another_request(tmp_path: Path, compared: Calls, change: dict[str, int]) -> None:
    run(SPEC, tmp_path)
    compared.clear()
    run(SPEC.override(**change), tmp_path)
    assert len(compared) == 2


def test_a_new_policy_runs_alone(tmp_path: Path, compared: Calls) -> None:
    run(SPEC, tmp_path)
    compared.clear()
    more = replace(SECOND, policies=(*SECOND.policies, db.policy("ts", burn_in=1)))
    run(replace(SPEC, experiments=(FIRST, more)), tmp_path)
    assert compared == [(["ts(burn_in=1)"], 0), (["ts(burn_in=1)"], 25)]


def test_results_do_not_depend_on_jobs_or_on_where_a_run_was_stopped(tmp_path: Path) -> None:
    run(SPEC, tmp_path / "whole", jobs=1)
    run(SPEC, tmp_path / "stopped", jobs=2)
    for path in sorted((tmp_path / "stopped" / "store").iterdir())[::2]:
        path.unlink()
    run(SPEC, tmp_path / "stopped", jobs=2)
    assert parquet(tmp_path / "whole") == parquet(tmp_path / "stopped")


def test_a_stop_between_units_keeps_what_was_done(tmp_path: Path, compared: Calls) -> None:
    class Stopper(ProgressReporter):
        def running(self, title: str) -> None:
            if "26 to 30" in title:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SPEC, tmp_path, reporter=Stopper())
    assert not (tmp_path / "results").exists()
    compared.clear()
    run(SPEC, tmp_path)
    assert compared == [(["eps-greedy", "ts", "ucb"], 25)]


def test_a_damaged_file_is_computed_again_and_the_user_is_told(tmp_path: Path, compared: Calls) -> None:
    run(SPEC, tmp_path)
    before = parquet(tmp_path)
    (key,) = [run.keys[1] for run in make_plan(SPEC).runs if run.policy.label == "eps-greedy"]
    path = tmp_path / "store" / f"{key}.result"
    path.write_bytes(path.read_bytes()[:-5])
    compared.clear()
    reporter = Recorder()
    run(SPEC, tmp_path, reporter=reporter)
    assert compared == [(["eps-greedy"], 25)]
    assert len(reporter.notes) == 1
    assert reporter.notes[0].startswith("a stored result is damaged and is computed again")
    assert path.with_suffix(".damaged").exists()
    assert parquet(tmp_path) == before


def test_progress_adds_up_and_every_figure_finishes_once(tmp_path: Path) -> None:
    reporter = Recorder()
    run(SPEC, tmp_path, reporter=reporter)
    assert reporter.advanced == pytest.approx(reporter.cost)
    assert sorted(reporter.figures) == ["bound", "first", "paths", "second"]
    assert "case-1, 3 arms, replications 26 to 30" in reporter.titles


def test_sample_paths_are_the_very_paths_of_the_simulation(tmp_path: Path) -> None:
    results = run(SPEC, tmp_path)
    assert [path.replication for path in results.paths] == [0, 1]
    for path in results.paths:
        whole = db.environment("case-1", arms=3).path(horizon=40, seed=3, replication=path.replication)
        assert path.times.tolist() == list(range(2, 41, 2))
        np.testing.assert_array_equal(path.means, whole[path.times - 1])


def test_coverage_counts_what_a_literal_loop_counts(tmp_path: Path) -> None:
    counted = {(one.mean, one.observations): one.exceeded for one in run(SPEC, tmp_path).coverage}
    for number, mean in enumerate(BOUND.means):
        expected = dict.fromkeys(BOUND.observations, 0)
        for index in range(BOUND.streams):
            estimate = db.estimators.AdaptiveForgetting(step_size=0.01)
            for step in range(1, 21):
                estimate.update(float(uniform(stream(BOUND.seed, index), REWARD, step, number) < mean))
                if step in expected:
                    bonus = np.sqrt(-np.log(0.05) / (2.0 * estimate.effective_size))
                    expected[step] += mean - estimate.mean >= bonus
        assert {count: counted[mean, count] for count in BOUND.observations} == expected
    assert sum(counted.values()) > 0


def test_metadata_says_what_it_takes_to_run_it_again(tmp_path: Path) -> None:
    results = run(SPEC, tmp_path)
    metadata = json.loads((tmp_path / "results" / "metadata.json").read_text(encoding="utf-8"))
    assert metadata["title"] == "Small"
    assert metadata["seed"] == [1, 3]
    assert [one["id"] for one in metadata["spec"]["experiments"]] == ["first", "second"]
    assert set(metadata["versions"]) == {"python", "numpy", "numba", "dynabandit"}
    assert set(metadata["hardware"]) == {"processor", "cores", "memory_bytes", "system"}
    assert metadata["wall_seconds"] > 0.0
    assert len(metadata["code_versions"]["second"]["ts"]) == 64
    assert db.Results.load(tmp_path / "results").metadata == results.metadata


def test_old_results_stay_when_new_ones_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(SPEC, tmp_path)
    before = parquet(tmp_path)

    def full(results: db.Results, folder: Path) -> None:
        folder.mkdir()
        (folder / "replications.parquet").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(db.Results, "save", full)
    with pytest.raises(OSError, match="cannot write into"):
        run(SPEC.override(seed=9), tmp_path)
    assert parquet(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "store"]


def test_jobs_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="jobs must be a whole number of at least 1, got 0"):
        run(SPEC, tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("environment", "horizon", "change"),
    [
        (db.environment("burst"), 3999, 4000),
        (db.environment("burst"), 4000, None),
        (db.environment("burst", length=0), 10, None),  # meant to be constant
        (db.environment("burst", rate=0), 10, None),
        (db.environment("small-changes"), 2999, 3000),
        (db.environment("needle", arms=3, period=20), 20, 21),
        (db.environment("needle", arms=3, period=20), 21, None),
        (db.environment("recorded", rates=[[0.1, 0.9], [0.9, 0.1]], period=10), 10, 11),
        (db.environment("recorded", rates=[[0.1, 0.9]], period=10), 10, None),  # there is no later change
        (db.environment("fixed", means=[0.1, 0.9]), 10, None),
        (db.environment("case-3"), 10, None),
    ],
)
def test_an_environment_that_changes_only_after_the_horizon_is_reported_once(
    tmp_path: Path, environment: db.Environment, horizon: int, change: int | None
) -> None:
    class Stopper(Recorder):
        def begin(self, cost: float, figures: int) -> None:
            raise KeyboardInterrupt

    one = Experiment(id="one", environment=environment, policies=(db.policy("ucb"),), horizon=horizon)
    twice, reporter = [one, replace(one, id="two")], Stopper()
    with pytest.raises(KeyboardInterrupt):
        run(Spec(title="Still", experiments=tuple(twice)), tmp_path, reporter=reporter)
    note = (
        f"environment {environment.name!r} does not change before step {change}, but the horizon is {horizon}: "
        "its means are constant in this run"
    )
    assert reporter.notes == ([note] if change else [])
