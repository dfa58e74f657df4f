"""Detectors with other memories and rules than those of the presets: they find changes, and only changes."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dynabandit as db
from dynabandit.checks import DocumentationAdvice, check_policy
from dynabandit.policies import PolicyState
from dynabandit.policies.detectors import adwin, cusum, glr, halves
from dynabandit.policies.memories import window
from dynabandit.policies.memories.discount import Discount
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.memories.window import Window
from dynabandit.policies.part import Setting
from dynabandit.policies.preset import HorizonPreset, Preset
from dynabandit.policies.rules import greedy, kl_ucb, thompson, ucb
from oracles import adwin as adwin_oracle
from tools.driver import Driver

CHANGE, LATER = 1500, 250  # the step of the change, and how many steps later the arm must be found again
MEANS = [0.8, 0.5]  # and 0.1 instead of 0.8 after the change
HORIZON = 4000


@dataclass(frozen=True, kw_only=True)
class GLROTS(HorizonPreset):
    name = "glr-ots"
    made_of = SampleMean, thompson.OptimisticThompson, glr.GLR


@dataclass(frozen=True, kw_only=True)
class GLRTSDiminishing(HorizonPreset):
    name = "glr-ts-diminishing"
    made_of = SampleMean, thompson.Thompson, glr.GLRDiminishing(delta=0.01)


@dataclass(frozen=True, kw_only=True)
class CusumDUCB(HorizonPreset):
    name = "cusum-d-ucb"
    made_of = Discount(discount=0.9995), ucb.UCB(xi=0.5), cusum.Cusum

    burn_in: int = 0


@dataclass(frozen=True, kw_only=True)
class MTS(HorizonPreset):
    name = "m-ts"
    made_of = SampleMean, thompson.Thompson, halves.Halves


@dataclass(frozen=True, kw_only=True)
class CusumSWOTS(HorizonPreset):
    name = "cusum-sw-ots"
    made_of = Window(window=3000), thompson.OptimisticThompson, cusum.Cusum


@dataclass(frozen=True, kw_only=True)
class GLREpsGreedy(HorizonPreset):
    name = "glr-eps-greedy"
    made_of = Window(window=3000), greedy.Greedy(epsilon=0.05), glr.GLR


@dataclass(frozen=True, kw_only=True)
class AdwinKLUCB(Preset):
    name = "adwin-kl-ucb"
    made_of = SampleMean, kl_ucb.KLUCB(), adwin.Adwin


GIVEN: dict[str, tuple[type[Preset], dict[str, Any]]] = {
    "glr-ots": (GLROTS, {}),
    "glr-ots, global": (GLROTS, {"restart": "global"}),
    "glr-ts-diminishing": (GLRTSDiminishing, {}),
    "cusum-d-ucb": (CusumDUCB, {"drift": 0.15}),
    "m-ts": (MTS, {"window": 100, "threshold": 20.0}),
    "cusum-sw-ots": (CusumSWOTS, {"drift": 0.15}),
    "glr-eps-greedy": (GLREpsGreedy, {}),
    "adwin-kl-ucb": (AdwinKLUCB, {}),
}


def made(name: str) -> Preset:
    kind, parameters = GIVEN[name]
    return kind(**parameters).tuned(1, HORIZON)


def without_detector(policy: Preset) -> Preset:
    memory, rule, _ = policy.parts()
    members = {"name": "without", "made_of": (memory, rule), "__doc__": "", "__annotations__": {}}
    kind: Any = dataclass(frozen=True, kw_only=True)(type("Without", (Preset,), members))
    made_without: Preset = kind(burn_in=policy.burn_in)
    return made_without


def rewards(seed: int, steps: int, change: int | None = None) -> np.ndarray:
    means = np.tile(MEANS, (steps, 1))
    if change is not None:
        means[change:, 0] = 0.1
    return (np.random.default_rng(seed).random((steps, 2)) < means).astype(float)


def chosen(policy: Preset, *, interpreted: bool = True) -> list[int]:
    """The arms that are played on a path with a change, and for a while after they must be the best one again."""
    driver = Driver(policy, arms=2, seed=3, interpreted=interpreted)
    return [arm for _, arm in driver.play(rewards(3, CHANGE + 2 * LATER, CHANGE))]


@pytest.mark.parametrize("name", GIVEN)
def test_after_a_change_the_best_arm_is_found_again_and_without_the_detector_it_is_not(name: str) -> None:
    assert np.mean(chosen(made(name))[CHANGE + LATER :]) > 0.8
    assert np.mean(chosen(without_detector(made(name)))[CHANGE + LATER :]) < 0.3


@pytest.mark.parametrize("name", ["glr-ots", "cusum-d-ucb"])
def test_compiled_code_finds_the_same_change_at_the_same_step(name: str) -> None:
    assert chosen(made(name), interpreted=False) == chosen(made(name))


@pytest.mark.parametrize("name", GIVEN)
def test_constant_means_rarely_restart_an_arm(name: str) -> None:
    restarts = 0
    for seed in range(3):
        driver = Driver(made(name), arms=2, seed=seed)
        slots = driver.policy.slots
        counted = slots.index("seen_plays" if "seen_plays" in slots else "plays")
        before = np.zeros(2)
        for _ in driver.play(rewards(seed, 1500)):
            now = driver.memory[counted].copy()
            restarts += int((now < before).any())
            before = now
    assert restarts <= 1


@pytest.mark.parametrize("name", GIVEN)
def test_a_composed_policy_passes_the_checks_of_every_policy(name: str) -> None:
    kind, parameters = GIVEN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DocumentationAdvice)
        check_policy(kind(**parameters))


@pytest.mark.parametrize("name", GIVEN)
def test_a_restart_leaves_the_column_of_an_arm_without_rewards(name: str) -> None:
    policy = made(name)
    driver = Driver(policy, arms=2).feed(1, 1.0, 0.0, 1.0)
    other = driver.memory[:, 1].copy()
    counted = policy.slots.index("seen_plays" if "seen_plays" in policy.slots else "plays")
    driver.feed(0, *[1.0, 0.0] * 200)
    assert driver.memory[counted, 0] == 400.0
    while driver.memory[counted, 0] > 0.0:
        driver.feed(0, 1.0)
    fresh = PolicyState(np.zeros_like(driver.memory), driver.shared.copy(), driver.last_played, driver.pending)
    driver.functions.start(fresh, 0, driver.params)
    np.testing.assert_array_equal(driver.memory[:, 0], fresh.memory[:, 0])
    if name in ("glr-ots, global", "m-ts"):
        np.testing.assert_array_equal(driver.memory[:, 1], fresh.memory[:, 0])
    elif name != "cusum-d-ucb":  # whose weights of all arms fade
        np.testing.assert_array_equal(driver.memory[:, 1], other)


@dataclass(frozen=True, kw_only=True)
class ShortWindow(HorizonPreset):
    name = "short-window"
    made_of = Window(window=60), ucb.UCB(), cusum.Cusum(reference_plays=5, threshold=3.0, drift=0.0, exploration=0.0)


def test_rewards_that_a_restart_has_forgotten_do_not_leave_the_window_a_second_time() -> None:
    driver = Driver(ShortWindow(), arms=2).feed(0, *[0.0] * 5, *[1.0] * 3)
    assert driver.slot("plays").tolist() == [0.0, 0.0]
    kept = driver.shared[cusum.Cusum.kernels.shared + window.RING :: 2]
    assert not (kept[:8] == 0.0).any()
    driver.feed(0, 1.0).feed(1, *[0.5] * 59)
    assert driver.slot("plays").tolist() == [1.0, 59.0]
    assert driver.slot("total").tolist() == [1.0, 29.5]
    driver.feed(1, 0.5)
    assert driver.slot("plays").tolist() == [0.0, 60.0]


def test_a_detector_counts_rewards_that_have_left_the_window() -> None:
    driver = Driver(ShortWindow(), arms=2).feed(1, *[0.5] * 100)
    assert driver.slot("plays")[1] == 60.0
    assert driver.slot("seen_plays")[1] == 100.0
    assert driver.slot("seen_total")[1] == 50.0


@pytest.mark.parametrize("name", ["glr-ots", "glr-ts-diminishing", "cusum-d-ucb", "m-ts", "cusum-sw-ots"])
def test_exact_probabilities_add_up_to_one_and_leave_every_arm_its_part_of_the_exploration(name: str) -> None:
    policy = made(name)
    bandit = db.Bandit(policy, arms=["a", "b", "c"], seed=4)
    for _ in range(30):
        arm = bandit.choose()
        bandit.reward(arm, 1.0 if arm == "a" else 0.0)
    found = bandit.exact_propensities()
    assert found is not None
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
    detector, setting = policy.parts()[2], policy._setting(3)
    assert detector is not None
    share = detector.kernels.share
    assert share is not None
    own = PolicyState(np.zeros((1, 3)), np.zeros(4), np.zeros(3))
    explored = float(share(own.shared, 31, detector.params(setting)))
    assert 0.0 < explored < 1.0
    assert min(found.values()) >= explored / 3.0 - 1e-9


@pytest.mark.parametrize("scale", [0.0, 1e6])
def test_the_share_of_random_exploration_is_a_probability(scale: float) -> None:
    state = PolicyState(np.zeros((2, 3)), np.array([0.0, 5.0, 0.0, 1.0]), np.zeros(3))
    for detector, share in (
        (glr.GLR(scale=scale), glr.share),
        (glr.GLRDiminishing(scale=scale), glr.diminishing_share),
    ):
        params = detector.params(Setting(arms=3, horizon=1000))
        for step in (1, 7, 500):
            assert share(state.shared, step, params) == (0.0 if scale == 0.0 else 1.0)


def test_diminishing_random_exploration_has_the_share_of_the_paper() -> None:
    state = PolicyState(np.zeros((2, 3)), np.array([0.0, 1.0, 100.0, 1.0]), np.zeros(3))  # a restart at step 100
    params = glr.GLRDiminishing(scale=0.5, delta=0.1).params(Setting(arms=3))
    assert [glr.diminishing_share(state.shared, 100 + age, params) for age in (1, 4, 25)] == [0.5, 0.25, 0.1]


# --- ADWIN against its oracle -------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.002, 0.3])
@pytest.mark.parametrize(("every", "buckets"), [(1, 5), (10, 5), (3, 2)])
def test_adwin_restarts_where_its_oracle_does_and_keeps_the_same_sums(delta: float, every: int, buckets: int) -> None:
    drawn = np.random.default_rng(8)
    means = np.repeat([0.7, 0.2, 0.25, 0.9, 0.5], 160)
    values = [float(value) for value in 0.9 * (drawn.random(means.size) < means) + 0.1 * drawn.random(means.size)]
    expected, left = adwin_oracle.restarts(values, delta, every, buckets)
    parameters: dict[str, Any] = {"delta": delta, "every": every, "buckets": buckets}
    driver = Driver(AdwinKLUCB(**parameters), arms=2)
    found = []
    for number, value in enumerate(values, start=1):
        driver.feed(1, value)
        if driver.slot("plays")[1] == 0.0:
            found.append(number)
    assert found == expected
    assert len(found) >= 3
    rows = driver.memory[len(driver.policy.slots) :, 1].reshape(adwin.SIZES, buckets + 1)
    for size, (held, *sums) in enumerate(rows.tolist()):
        same_size = [bucket for bucket in left if len(bucket) == 2**size]
        assert held == len(same_size)
        assert sums[: int(held)] == pytest.approx([sum(bucket) for bucket in same_size], rel=1e-12)


def test_adwin_drops_the_oldest_sums_when_those_of_all_sizes_are_full() -> None:
    memory = np.zeros((adwin.SIZES * 3, 1))
    for size in range(adwin.SIZES):
        memory[3 * size : 3 * size + 3, 0] = 2.0, 2.0**size, 2.0**size  # rewards of 1
    before, _ = adwin.count_and_total(memory, 0, 2)
    adwin.insert(memory, 0, 1.0, 2)
    count, total = adwin.count_and_total(memory, 0, 2)
    assert count == total == before + 1.0 - 2.0**adwin.SIZES
    assert memory[::3, 0].tolist() == [1.0] * adwin.SIZES
