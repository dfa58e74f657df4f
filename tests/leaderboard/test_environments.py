"""The environments of the leaderboard and their families."""

import numpy as np
import pytest

from dynabandit.environments import CONTEXTUAL_ENVIRONMENTS, ENVIRONMENTS
from dynabandit.leaderboard.contextual_environments import (
    DEFINITIONS,
    QUICK_CONTEXTUAL,
    make_contextual_change,
    make_contextual_trials,
)
from dynabandit.leaderboard.environments import QUICK, make_one_change, make_trials, select

ELSEWHERE = {
    "exponential-clock": "case-1 and case-2",
    "reflected-walk": "case-3",
    "logistic-walk": "case-4",
    "path": "nowhere: its means are the user's",
    "recorded": "nowhere: its rates are the user's",
    **dict.fromkeys(("rested-rotting", "rested-drops", "rested-rising"), "the page on rested arms"),
}
TRIALS = make_trials()


def path(name: str) -> np.ndarray:
    trial = TRIALS[name]
    return trial.environment.path(trial.horizon, seed=1)


def test_every_environment_is_used_or_has_a_reason_to_be_elsewhere() -> None:
    used = {trial.environment.name for trial in TRIALS.values()}
    assert used | ELSEWHERE.keys() == ENVIRONMENTS.keys()
    assert not used & ELSEWHERE.keys()


def test_sizes_horizons_and_delays_of_one_kind_are_one_family() -> None:
    families: dict[str, list[str]] = {}
    for trial in TRIALS.values():
        families.setdefault(trial.family, []).append(trial.id)
    assert families["burst"] == ["burst-2", "burst-10", "burst-50", "burst-100"]
    assert families["pb"] == ["pb-1", "pb-2", "pb-3", "pb-4"]
    assert {TRIALS[name].horizon for name in families["short"]} == {1000}
    assert {TRIALS[name].horizon for name in families["long"]} == {100_000}
    assert [name for name, trial in TRIALS.items() if trial.delay] == families["delayed"]
    assert len(families) == 19


def test_the_segments_of_the_authors_benchmarks_fill_the_horizon() -> None:
    for name, starts in {"pb-1": 2000, "pb-2": 2000, "pb-3": 2500}.items():
        changes = np.flatnonzero((np.diff(path(name), axis=0) != 0.0).any(axis=1)) + 1
        assert changes.tolist() == list(range(starts, 10_000, starts))
    changes = np.flatnonzero((np.diff(path("pb-1-long"), axis=0) != 0.0).any(axis=1)) + 1
    assert changes.tolist() == [20_000, 40_000, 60_000, 80_000]


def test_late_risers_are_bad_and_then_the_best() -> None:
    slow, sudden = path("late-riser-10"), path("late-riser-50")
    assert slow[2999].argmin() == slow[-1].argmax() == 9
    assert (np.diff(slow[:, 9]) >= 0.0).all()
    assert sudden[7999, 49] == sudden[7999].min()
    assert sudden[8000].argmax() == 49


@pytest.mark.parametrize("arms", [10, 50])
def test_arms_come_and_go_and_some_are_always_there(arms: int) -> None:
    means = path(f"come-and-go-{arms}")
    alive = (means > 0.0).sum(axis=1)
    assert alive.min() >= arms // 5
    assert alive.max() <= arms // 3
    assert (means > 0.0).mean(axis=0) == pytest.approx(0.25, abs=0.05)
    assert len(set(means.argmax(axis=1).tolist())) > 2


def test_click_rates_are_about_one_per_cent() -> None:
    for name in ("clicks-10", "clicks-seasonal-10"):
        assert path(name).mean() == pytest.approx(0.0125, abs=0.001)
        assert len(set(path(name).argmax(axis=1).tolist())) >= 4


def test_one_change_makes_the_worst_arm_the_best_halfway() -> None:
    means = make_one_change(100).environment.path(100, seed=1)
    assert means[:50].argmin(axis=1).tolist() == [9] * 50
    assert means[50:].argmax(axis=1).tolist() == [9] * 50


def test_another_horizon_is_that_of_all_environments() -> None:
    assert {trial.horizon for trial in make_trials(horizon=60).values()} == {60}
    for trial in make_trials(horizon=60).values():
        trial.environment.check_horizon(60)


def test_environments_are_selected_by_id_or_family() -> None:
    assert list(select(TRIALS, ["late-riser", "pb-1"])) == ["pb-1", "late-riser-10", "late-riser-50"]
    assert select(TRIALS, []) == TRIALS
    assert len(select(TRIALS, QUICK)) == len(QUICK)
    with pytest.raises(ValueError, match="unknown environment of the leaderboard 'fixed'"):
        select(TRIALS, ["fixed"])


def test_every_environment_with_features_is_used_except_for_rows_of_the_user() -> None:
    used = {one.name for one in DEFINITIONS.values()}
    assert used == CONTEXTUAL_ENVIRONMENTS.keys() - {"recorded-contexts"}


def test_environments_with_features_are_selected_and_have_their_names_sizes() -> None:
    trials = make_contextual_trials(["walk", *QUICK_CONTEXTUAL], horizon=70)
    assert {trial.horizon for trial in trials.values()} == {70}
    assert set(trials) == {"walk-4x5", "walk-shared-10x20", *QUICK_CONTEXTUAL}
    for name, trial in trials.items():
        context = trial.environment.context
        assert context is not None
        assert context.per_arm == ("shared" in name or name == "lin-abrupt")
        if "x" in name.rpartition("-")[2]:
            assert name.endswith(f"-{trial.environment.arms}x{context.dimension}")
    with pytest.raises(ValueError, match="unknown environment of the leaderboard 'case-3'"):
        make_contextual_trials(["case-3"])


def test_all_coefficients_change_their_sign_halfway() -> None:
    environment = make_contextual_change(100).environment
    means, features = environment.path(100, seed=1) - 0.5, environment.features(100, seed=1)[:, 0]
    before = np.linalg.lstsq(features[:50], means[:50], rcond=None)[0]
    assert features[:50] @ before == pytest.approx(means[:50], abs=1e-12)
    assert features[50:] @ -before == pytest.approx(means[50:], abs=1e-12)
