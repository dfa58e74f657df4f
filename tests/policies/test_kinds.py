"""What a policy says of its own kind, seen in what it does: static indices, knowledge, numbers, burn-in."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.core.precision import single
from dynabandit.policies import POLICIES, PolicyState, is_contextual, used_plugins
from dynabandit.policies.horizons.practical_forms import practical_form, practical_forms, practical_names
from dynabandit.policies.memories import bounded as bounded_memory
from dynabandit.policies.whole import exp3
from dynabandit.validation import BOUNDED, COUNTS, NORMAL, REVENUE
from tools.driver import Driver
from tools.ready import READY

GIVEN: dict[str, dict[str, Any]] = {"d-ucb": {"discount": 0.9}, "sw-ucb": {"window": 25}, **READY}
SCORED = [name for name, kind in POLICIES.items() if kind.functions.posterior is None]
FADING = ["d-ucb", "d-kl-ucb", "d-ts", "d-ots", "f-dsw-ts"]


def ready(name: str) -> Driver:
    return Driver(db.policy(name, **GIVEN.get(name, {})), arms=3)


def scores_move(name: str) -> bool:
    """Whether the score of an arm changes at a step that gives it no reward."""
    driver, any_number = ready(name), np.random.default_rng(8)
    before, played = np.full(3, np.nan), 0
    for step, arm in enumerate(any_number.integers(0, 3, 40).tolist(), start=1):
        for told, mean in enumerate([0.2, 0.5, 0.8] if step < 20 else [0.8, 0.5, 0.2]):
            driver.functions.reveal(driver.state, told, mean)
        driver.choose(step)
        moved = driver.scores != before
        if step > 1 and moved[np.arange(3) != played].any():
            return True
        driver.learn(arm, step, any_number.random())
        before, played = driver.scores.copy(), arm
    return False


def test_an_index_is_declared_static_if_it_is() -> None:
    static = {name for name in SCORED if not scores_move(name)}
    assert static == {name for name in SCORED if POLICIES[name].functions.static_index}


def test_a_policy_is_said_to_be_informed_where_it_keeps_the_truth() -> None:
    informed = set()
    for name in POLICIES:
        driver = ready(name)
        before = driver.memory.copy()
        driver.functions.reveal(driver.state, 1, 0.625)
        if (driver.memory != before).any():
            informed.add(name)
    assert informed == {name for name, kind in POLICIES.items() if kind.informed}


# --- The form that a user can run -----------------------------------------------------------------------------


def test_practical_forms_are_those_of_the_policies_made_for_the_rewards_except_oracles_and_for_rested_arms() -> None:
    anything = {"eps-greedy", "uniform", "best-arm"}
    normal = {"mix-normal-ts", "normal-ts", "aff-normal-ts", "aff-normal-ucb", "robust-ucb"} | anything
    revenue = {"mix-revenue-ts", "aff-revenue-ts"} | normal
    counts = {"mix-poisson-ts", "aff-poisson-ts"} | revenue
    expected = {
        NORMAL: normal,
        REVENUE: revenue,
        COUNTS: counts,
        BOUNDED: POLICIES.keys() - (counts - anything) - {"w-swa", "r-ed-ucb"},
    }
    for rewards, names in expected.items():
        assert set(practical_names(rewards)) == names
        forms = [form.name for form in practical_forms(rewards)]
        assert forms == [name for name in practical_names(rewards) if name not in {"best-arm", "oracle-restart"}]
    assert practical_names() == practical_names(BOUNDED)
    assert [form.label for form in practical_forms()] == [form.label for form in practical_forms(BOUNDED)]


def test_a_practical_form_knows_neither_changes_nor_horizon_and_has_a_shorter_window_for_its_tests() -> None:
    for name in practical_names():
        form = practical_form(name)
        assert not form.needs_tuning
        assert form.parameters.get("horizon", "doubling") in ("doubling", None)
        longer = {"window": 200} if name in ("m-ucb", "m-kl-ucb") else {}
        assert form.label == db.policy(name, **longer).practical().label


# --- Why some need double precision -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FADING)
def test_a_scale_that_all_arms_share_fades_out_of_single_precision(name: str) -> None:
    driver = Driver(db.policy(name, discount=0.5), arms=2).feed(0, *[1.0] * 200)
    assert driver.shared[0] == 0.5**200
    assert np.float32(driver.shared[0]) == 0.0
    assert driver.policy.needs_double


def test_the_steps_of_a_long_batch_are_lost_to_single_precision() -> None:
    # After n rewards a log-weight is about n times its next step, of which a float32 with its 24 bits keeps little
    steps = {}
    for kind in (np.float64, np.float32):
        driver = Driver(db.policy("rexp3", exploration=0.01, batch=2**24), arms=2)
        driver.memory, driver.shared = driver.memory.astype(kind), driver.shared.astype(kind)
        driver.state = PolicyState(driver.memory, driver.shared, driver.last_played)
        driver.memory[exp3.LOG_WEIGHT, 0] = driver.shared[exp3.LOG_SUM] = 2**23 * 0.005
        before = float(driver.memory[exp3.LOG_WEIGHT, 0])
        steps[kind] = float(driver.feed(0, 1.0).memory[exp3.LOG_WEIGHT, 0]) - before
    assert steps[np.float64] == pytest.approx(0.005 / 0.995, rel=1e-6)
    assert abs(steps[np.float32] / steps[np.float64] - 1.0) > 0.1
    assert driver.policy.needs_double


@pytest.mark.parametrize("memory", [3.0, 5.0, 25.0, 200.0])
def test_a_posterior_in_single_precision_forgets_as_in_double(memory: float) -> None:
    rewards = np.random.default_rng(9).integers(0, 2, 1500).tolist()
    bounded, narrow = bounded_memory.bounded, single(bounded_memory.bounded)
    exact, near = (2.0, 2.0), (np.float32(2.0), np.float32(2.0))
    for reward in rewards:
        exact = bounded(*exact, float(reward), memory)
        near = narrow(*near, np.float32(reward), np.float32(memory))
        assert near == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize(
    ("full", "tolerance"), [(bounded_memory.is_full, 1e-9), (bounded_memory.is_full_in_single, 4e-7 * (25.0 + 1.0))]
)
def test_a_posterior_is_full_from_the_tolerance_below_its_memory_on(
    full: Callable[[float, float], bool], tolerance: float
) -> None:
    edge = 25.0 * (1.0 - tolerance)
    assert full(edge, 25.0)
    assert not full(math.nextafter(edge, 0.0), 25.0)
    assert not full(math.nextafter(0.5e9, 0.0), 1e9)  # half of it at most


@pytest.mark.parametrize("total", [0.0, 1e30])
def test_a_memory_without_bounds_is_never_full(total: float) -> None:
    assert not bounded_memory.is_full(total, math.inf)
    assert not single(bounded_memory.is_full)(np.float32(total), np.float32(math.inf))


# --- Burn-in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "burn_in"),
    [("ucb", 1), ("kl-ucb", 1), ("d-ucb", 1), ("d-kl-ucb", 1), ("sw-ucb", 1), ("sw-kl-ucb", 1), ("aff-ucb2", 1)],
)
def test_the_best_arm_is_played_again_as_soon_as_the_burn_in_is_over(name: str, burn_in: int) -> None:
    for seed in range(4):  # scores alone would play new arms first too, but in an order of chance
        bandit = db.Bandit(name, arms=["a", "b", "c", "d"], seed=seed, **GIVEN.get(name, {}))
        played = []
        for _ in range(4 * burn_in + 1):
            played.append(bandit.choose())
            bandit.reward(played[-1], float(played[-1] == "c"))
        assert "".join(played) == "abcd" * burn_in + "c"


def test_no_policy_of_the_registry_is_a_plugin_of_another_package() -> None:
    assert used_plugins() == []
    assert [is_contextual(name) for name in ("auto", "ucb", "lin-ucb")] == [False, False, True]
