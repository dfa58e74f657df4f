"""Results come back from their files as they were, also from those of version 0.1.0."""

from pathlib import Path

import numpy as np

import dynabandit as db
from dynabandit.experiments import Experiment, Spec, run

TRIAL = Experiment(
    id="trial",
    environment=db.environment("case-1"),
    policies=(db.policy("ucb"), db.policy("ts")),
    horizon=60,
    replications=30,
    times=5,
)


def make(out: Path) -> db.Results:
    return run(Spec(title="Trial", experiments=(TRIAL,)), out)


def test_correct_selections_keep_their_replications_in_memory_and_on_disk(tmp_path: Path) -> None:
    expected = db.compare(["ucb", "ts"], "case-1", horizon=60, replications=30, times=5)
    made = make(tmp_path)
    for results in (made, db.Results.load(tmp_path / "results")):
        for one in results:
            found = one.correct_by_replication
            assert found is not None
            assert found.dtype == bool
            np.testing.assert_array_equal(found, expected[one.label].correct_by_replication)
            np.testing.assert_array_equal(found.mean(axis=0), one.correct)
            np.testing.assert_array_equal(one.correct, expected[one.label].correct)


def test_a_folder_of_version_0_1_0_has_the_shares_only(tmp_path: Path) -> None:
    shares = [one.correct for one in make(tmp_path)]
    (tmp_path / "results" / "correct.parquet").unlink()
    loaded = db.Results.load(tmp_path / "results")
    assert [one.correct_by_replication for one in loaded] == [None, None]
    np.testing.assert_array_equal([one.correct for one in loaded], shares)
    loaded.save(tmp_path / "again")
    assert [one.correct_by_replication for one in db.Results.load(tmp_path / "again")] == [None, None]
