"""The small parts that policies share, each by its definition."""

import math

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.bernoulli_kl import negentropy, upper_bound
from dynabandit.core.streams import stream
from dynabandit.estimators import adaptive_forgetting
from dynabandit.policies import aff_shared, exploration, kl_index, ring
from dynabandit.policies.averaging import Averaging
from dynabandit.policies.base import Kernels, Now
from dynabandit.policies.tuning_rules import discount_for, window_for

NUMBERS = np.zeros(1)


def test_a_policy_that_says_nothing_more_scores_all_arms_alike_and_keeps_one_shared_number() -> None:
    kernels = Kernels(start=lambda: None, learn=lambda: None)
    now = Now(1, 2, 0.0)
    assert kernels.score(np.ones((1, 2)), 1, 3, now, NUMBERS, NUMBERS, stream(1)) == 0.0
    assert kernels.context(NUMBERS, 7, NUMBERS) == 0.0
    assert kernels.explore(np.ones((1, 2)), 1, 3, now, NUMBERS, stream(1)) is False
    assert (kernels.posterior, kernels.optimistic, kernels.still) == (None, False, False)
    assert kernels.table(3, 5).size == 0
    uniform = db.policy("uniform")
    assert (uniform.shared_size(), uniform.burn_in, uniform.informed, uniform.needs_double) == (1, 0, False, False)
    assert (uniform.needs_tuning, uniform.needs_horizon) == (False, False)
    assert Averaging.shared_size(uniform) == 1
    assert uniform.numbers(3).tolist() == [0.0]


@pytest.mark.parametrize(
    ("changes", "horizon", "discount", "window"),
    [(1, 1, 0.75, 1), (9, 3, 0.75, 1), (4, 64, 1.0 - 0.25 / 4.0, 16), (1, 100, 0.975, 43), (1, 10_000, 0.9975, 607)],
)
def test_discounts_and_windows_follow_the_rules_of_their_paper(
    changes: int, horizon: int, discount: float, window: int
) -> None:
    assert discount_for(changes, horizon) == pytest.approx(discount, rel=1e-15)
    assert window_for(changes, horizon) == window


def test_what_does_not_matter_is_expected_to_be_one() -> None:
    assert db.policy("d-kl-ucb", discount=0.9)._expected() == (1, 1)  # type: ignore[attr-defined]
    assert db.policy("sw-kl-ucb", changes=3, horizon=50)._expected() == (3, 50)  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", ["changes", "horizon", "window"])
def test_numbers_of_steps_are_at_least_one_and_at_most_the_last_step(field: str) -> None:
    for good in (1, 2**32 - 1):
        assert getattr(db.policy("sw-kl-ucb", **{field: good}), field) == good
    for bad in (0, 2**32):
        with pytest.raises(ValueError, match=f"{field} must be a whole number of at least 1 .*, got {bad}"):
            db.policy("sw-kl-ucb", **{field: bad})


def test_the_arm_of_a_turn_is_nobody_where_it_is_nobodys() -> None:
    assert exploration.arm_of(exploration.FREE) == -1
    assert [exploration.arm_of(-1.0 - place) for place in range(3)] == [0, 1, 2]
    assert [exploration.turn(step, 3, 0.0) for step in (1, 2)] == [exploration.FREE] * 2
    assert [exploration.turn(step, 2, 1.0) for step in (1, 2, 3)] == [-1.0, -2.0, -1.0]


def test_the_bonus_of_the_appendix_is_hoeffdings() -> None:
    state = adaptive_forgetting.START._replace(w=3.0, k=2.0)
    expected = math.sqrt(-math.log(0.05) / (2.0 * 3.0**2 / 2.0))
    assert aff_shared.hoeffding(state) == pytest.approx(expected, rel=1e-14)


def test_a_ring_gives_back_what_is_as_old_as_its_window() -> None:
    assert [ring.size(window) for window in (1, 3, 10)] == [3, 7, 21]
    shared = np.zeros(ring.size(3))
    pushed = [(2, 0.5), (0, 1.0), (1, 0.25), (2, 0.75), (1, 0.125)]
    for seen, (arm, reward) in enumerate(pushed):
        assert ring.oldest(shared, 3) == (pushed[seen - 3] if seen >= 3 else (-1, 0.0))
        ring.push(shared, 3, arm, reward)


def test_a_kullback_leibler_index_is_infinite_unseen_and_of_a_mean_of_at_most_one() -> None:
    memory = np.ones((len(kl_index.SLOTS), 2))
    kl_index.start(memory, NUMBERS, 1, NUMBERS)
    assert kl_index.index(memory, 1, 0.3) == math.inf
    assert memory[:, 1].tolist() == [math.inf if row == kl_index.MEAN else 0.0 for row in range(len(kl_index.SLOTS))]
    for reward in (1.0, 0.0, 1.0, 1.0):
        kl_index.observe(memory, 1, reward)
    assert kl_index.index(memory, 1, 0.3) == upper_bound(0.75, negentropy(0.75), 0.3 / 4.0)
    memory[0, 1] = 4.5  # a total that rounding moved past the number of plays
    kl_index.observe(memory, 1, 1.0)
    assert memory[kl_index.MEAN, 1] == 1.0


def test_a_name_that_nothing_has_and_parameters_beside_an_object_are_refused() -> None:
    for make, made in ((db.policy, db.policy("ts")), (db.environment, db.environment("case-1"))):
        assert make(made) is made
        with pytest.raises(ValueError, match="nobody"):
            make("nobody")
        with pytest.raises(TypeError, match=r"parameters \['burn_in'\] go with"):
            make(made, burn_in=3)
