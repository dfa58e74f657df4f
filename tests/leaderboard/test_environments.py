"""The leaderboard's spec takes in whatever the registries hold."""

import pytest

from dynabandit.environments import ENVIRONMENTS
from dynabandit.leaderboard.environments import ANY_SIZE, DELAYS, FIXED_SIZE, leaderboard_spec
from dynabandit.leaderboard.step_times import time_steps
from dynabandit.policies import POLICIES

ELSEWHERE = {
    "fixed": "one-change, whose halves stand still",
    "piecewise": "one-change, pb-1, pb-2 and small-changes",
    "exponential-clock": "case-1 and case-2",
    "reflected-walk": "case-3",
    "logistic-walk": "case-4",
    "path": "nowhere: its means are the user's",
    "recorded": "nowhere: its rates are the user's",
    **dict.fromkeys(("rested-rotting", "rested-drops", "rested-rising"), "the page on rested arms"),
}


def test_every_environment_has_its_place_or_a_reason_to_be_elsewhere() -> None:
    assert sorted((*ANY_SIZE, *FIXED_SIZE, *ELSEWHERE)) == sorted(ENVIRONMENTS)


def test_every_policy_of_the_registry_has_a_row() -> None:
    spec = leaderboard_spec(replications=1)
    for experiment in spec.experiments:
        assert [one.name for one in experiment.policies] == list(POLICIES)
    assert len(spec.experiments) == 4 * len(ANY_SIZE) + len(FIXED_SIZE) + len(DELAYS) + 1


def test_late_rewards_have_environments_of_their_own() -> None:
    late = [one for one in leaderboard_spec(replications=1).experiments if one.delay is not None]
    assert [(one.id, one.environment.name, one.environment.arms) for one in late] == [
        ("case-3-10-delay-100", "case-3", 10), ("case-3-10-delay-1000", "case-3", 10),
    ]  # fmt: skip
    assert [one.delay and one.delay.label for one in late] == [
        "geometric(lost=0.01, mean=100)", "geometric(lost=0.01, mean=1000)",
    ]  # fmt: skip
    assert not any(one.delay for one in leaderboard_spec(replications=1, arms=[2]).experiments)


def test_one_change_makes_the_worst_arm_the_best_halfway() -> None:
    change = leaderboard_spec(replications=1, horizon=100, policies=["ucb"], environments=["pb-1"]).experiments[-1]
    path = change.environment.path(100, seed=1)
    assert path[:50].argmin(axis=1).tolist() == [9] * 50
    assert path[50:].argmax(axis=1).tolist() == [9] * 50
    assert change.recorded_times().tolist() == list(range(50, 101))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": ["best-arm"]}, "at least one that does not know the true means"),
        ({"policies": ["ucbb"]}, "unknown policy 'ucbb'"),
        ({"environments": ["fixed"]}, "unknown environment of the leaderboard 'fixed'"),
    ],
)
def test_unknown_names_are_refused(wrong: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        leaderboard_spec(**wrong)  # type: ignore[arg-type]


def test_a_step_takes_some_time() -> None:
    assert time_steps(["uniform"], horizon=100)["uniform"] > 0.0
