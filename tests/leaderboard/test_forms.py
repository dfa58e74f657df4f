"""The forms of the policies: practical, and tuned with the truth."""

import pytest

import dynabandit as db
from dynabandit.leaderboard.environments import make_trials
from dynabandit.leaderboard.run import Selection
from dynabandit.leaderboard.tuned_forms import PathFacts, path_facts, tunable, tuned_forms
from dynabandit.policies import POLICIES
from dynabandit.policies.horizons.practical_forms import (
    FOR_ANY_REWARDS,
    FOR_RESTED_ARMS,
    FORMS,
    practical_form,
    practical_forms,
)
from dynabandit.validation import BOUNDED

TRIALS = make_trials()


@pytest.mark.parametrize("name", POLICIES)
def test_no_practical_form_is_told_the_horizon_or_how_often_the_best_arm_changes(name: str) -> None:
    assert practical_form(name).left_open == []


def test_every_policy_has_a_row_unless_it_is_for_other_rewards_or_rested_arms() -> None:
    left_out = POLICIES.keys() - {one.name for one in Selection().chosen()}
    others = {name for name, kind in POLICIES.items() if kind.rewards != BOUNDED}
    assert left_out == (others - {*FOR_ANY_REWARDS}) | {*FOR_RESTED_ARMS}
    assert FORMS.keys() <= POLICIES.keys()


def test_practical_forms_are_for_the_rewards_and_know_no_means() -> None:
    assert not any(POLICIES[form.name].informed for form in practical_forms())
    counts = db.reward_law("counts").domain
    assert "aff-poisson-ts" in [form.name for form in practical_forms(counts)]
    assert "sw-ts" not in [form.name for form in practical_forms(counts)]


def test_the_truth_is_the_number_of_breakpoints_and_not_of_switches_of_the_best_arm() -> None:
    assert path_facts(TRIALS["pb-1"]).breakpoints == 4  # the best arm switches twice
    drifting = path_facts(TRIALS["seasonal-100"])
    assert (drifting.breakpoints, round(drifting.variation, 1)) == (0, 12.6)
    assert path_facts(TRIALS["stationary-close-10"]) == PathFacts(0, 0.0)


def test_tuned_forms_use_the_truth_and_a_grid() -> None:
    facts = PathFacts(breakpoints=4, variation=2.5)
    assert [form.label for form in tuned_forms("rexp3", facts)] == ["rexp3", "rexp3(variation=2.5)"]
    assert [form.label for form in tuned_forms("cusum-ucb", facts)] == ["cusum-ucb(changes=4)", "cusum-ucb(changes=1)"]
    assert "d-ts(discount=0.99)" in [form.label for form in tuned_forms("d-ts", facts)]
    assert [form.label for form in tuned_forms("cusum-ucb", PathFacts(0, 2.5))] == ["cusum-ucb(changes=1)"]


@pytest.mark.parametrize("name", [name for name in POLICIES if tunable(name)])
def test_tuned_forms_differ_from_the_practical_one_and_from_each_other(name: str) -> None:
    labels = [form.label for form in tuned_forms(name, PathFacts(7, 3.0))]
    assert len({*labels, practical_form(name).label}) == len(labels) + 1
    assert not any(form.needs_tuning for form in tuned_forms(name, PathFacts(7, 3.0)))
