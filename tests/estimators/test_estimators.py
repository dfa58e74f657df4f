"""Every estimator against plain statistics of its rewards, and what all estimators have in common."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit.core.docstrings import descriptions_of
from dynabandit.estimators import (
    AdaptiveForgetting,
    Belief,
    CatoniMean,
    Estimator,
    FixedForgetting,
    LeastSquares,
    SampleMean,
    SlidingWindow,
    UnitFreeForgetting,
)
from dynabandit.policies.memories.adaptive import START, make_params, observe
from dynabandit.policies.memories.unit_free import observe_unit_free
from oracles import paper as oracle, unit_free
from oracles.robust_ucb import catoni, robust_variance
from tools.laws import assert_mean, size

Expected = tuple[Belief, float]  # the belief and the weight


def plain(rewards: Sequence[float]) -> Expected:
    """All rewards have the same weight."""
    variance = statistics.variance(rewards) if len(rewards) > 1 else 0.0
    return Belief(statistics.fmean(rewards), variance, 1.0, len(rewards)), len(rewards)


def fixed(forgetting: float) -> Callable[[Sequence[float]], Expected]:
    def expected(rewards: Sequence[float]) -> Expected:
        mean = oracle.fixed_forgetting_mean(rewards, forgetting)
        variance = oracle.variance_of(rewards, [forgetting] * len(rewards)) if forgetting > 0.0 else 0.0
        effective = oracle.fixed_forgetting_effective_size(rewards, forgetting)
        return Belief(mean, variance, forgetting, effective), sum(forgetting**age for age in range(len(rewards)))

    return expected


def adaptive(**parameters: Any) -> Callable[[Sequence[float]], Expected]:
    def expected(rewards: Sequence[float]) -> Expected:
        state = oracle.aff(rewards, **parameters)
        effective = state.weight**2 / state.squared_weight
        return Belief(state.mean, state.variance, state.forgetting, effective), state.weight

    return expected


def without_unit(rewards: Sequence[float]) -> Expected:
    factors = unit_free.forgettings(rewards, 0.05, 0.3)
    mean, _, effective, forgetting = unit_free.estimate(rewards, rewards, 0.05, 0.3)
    weight = math.fsum(oracle.weights(factors, len(rewards)))
    return Belief(mean, oracle.variance_of(rewards, factors), forgetting, effective), weight


def robust(rewards: Sequence[float]) -> Expected:
    latest = rewards[-13:]
    return Belief(catoni(latest, 0.05), robust_variance(latest), 1.0, len(latest)), len(latest)


class Case(NamedTuple):
    make: Callable[[], Estimator]
    expected: Callable[[Sequence[float]], Expected]


CASES = {
    "sample mean": Case(SampleMean, plain),
    "fixed forgetting": Case(lambda: FixedForgetting(0.9), fixed(0.9)),
    "fixed forgetting of most": Case(lambda: FixedForgetting(0.3), fixed(0.3)),
    "fixed forgetting of all": Case(lambda: FixedForgetting(0.0), fixed(0.0)),
    "fixed forgetting of nothing": Case(lambda: FixedForgetting(1), plain),
    "sliding window": Case(lambda: SlidingWindow(7), lambda rewards: plain(rewards[-7:])),
    "sliding window of one": Case(lambda: SlidingWindow(1), lambda rewards: plain(rewards[-1:])),
    "adaptive forgetting": Case(AdaptiveForgetting, adaptive()),
    "adaptive forgetting, variance-scaled": Case(
        lambda: AdaptiveForgetting("variance-scaled"), adaptive(step_size="variance-scaled")
    ),
    "adaptive forgetting, Bernoulli loss": Case(
        lambda: AdaptiveForgetting(0.01, loss="bernoulli"), adaptive(step_size=0.01, loss="bernoulli")
    ),
    "adaptive forgetting, large steps": Case(lambda: AdaptiveForgetting(1.0), adaptive(step_size=1.0)),
    "adaptive forgetting with a floor": Case(lambda: AdaptiveForgetting(1.0, 0.6), adaptive(step_size=1.0, floor=0.6)),
    "unit-free forgetting": Case(lambda: UnitFreeForgetting(0.05, 0.3), without_unit),
    "Catoni's mean": Case(lambda: CatoniMean(window=13), robust),
}
IN_ANY_UNIT = ("unit-free forgetting", "Catoni's mean")
BOUNDED = {name: case.make for name, case in CASES.items() if name not in IN_ANY_UNIT}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
each_estimator = pytest.mark.parametrize("make", [case.make for case in CASES.values()], ids=CASES.keys())
each_bounded_estimator = pytest.mark.parametrize("make", BOUNDED.values(), ids=BOUNDED.keys())


def fed(estimate: Estimator, rewards: Sequence[float]) -> Estimator:
    for reward in rewards:
        estimate.update(reward)
    return estimate


@each_case
@settings(max_examples=40)
@given(
    rewards=st.lists(st.integers(0, 1).map(float) | st.integers(0, 10).map(lambda n: n / 10), min_size=1, max_size=25)
)
def test_an_estimator_equals_the_statistics_that_it_stands_for(case: Case, rewards: list[float]) -> None:
    estimate, (belief, weight) = fed(case.make(), rewards), case.expected(rewards)
    assert estimate.belief == pytest.approx(belief, rel=1e-9, abs=1e-9)
    assert estimate.weight == pytest.approx(weight, rel=1e-9)
    named = (estimate.mean, estimate.variance, estimate.forgetting, estimate.effective_size)
    assert named == estimate.belief


@each_estimator
def test_nothing_is_believed_before_the_first_reward(make: Callable[[], Estimator]) -> None:
    estimate = make()
    assert math.isnan(estimate.mean)
    forgetting = estimate.state.forgetting if isinstance(estimate, FixedForgetting) else 1.0
    assert estimate.belief[1:] == (0.0, forgetting, 0.0)
    assert estimate.weight == 0.0
    assert repr(estimate) == f"{type(estimate).__name__}(nothing observed, weight 0)"
    assert repr(estimate.update(1)) == f"{type(estimate).__name__}(mean 1, weight 1)"


@each_estimator
def test_every_estimator_keeps_the_contract(make: Callable[[], Estimator]) -> None:
    db.checks.check_estimator(make)


def test_only_estimators_with_a_window_have_one() -> None:
    windows = {name: case.make().update(1.0).window for name, case in CASES.items()}
    assert {name: window for name, window in windows.items() if window != 0} == {
        "sliding window": 7,
        "sliding window of one": 1,
        "Catoni's mean": 13,
    }


@each_bounded_estimator
@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (math.nan, ValueError),
        (-0.1, ValueError),
        (1.1, ValueError),
        (math.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
        ([1.0], TypeError),
        (np.array([0.2, 0.4]), TypeError),
        (np.str_("1"), TypeError),
        pytest.param(10**400, ValueError, id="huge"),
    ],
)
def test_a_reward_outside_its_range_is_refused_and_changes_nothing(
    make: Callable[[], Estimator], reward: object, error: type[Exception]
) -> None:
    estimate, twin = (fed(make(), (0, 1, 1, 0, 1)) for _ in range(2))
    with pytest.raises(error, match=r"reward must be a number in \[0, 1\], got "):
        estimate.update(reward)  # type: ignore[arg-type]
    assert estimate.belief == twin.belief
    assert estimate.update(1).belief == twin.update(1).belief


@each_bounded_estimator
@pytest.mark.parametrize("value", [True, False, np.True_, np.False_, np.float32(0.5), np.int64(1)])
def test_yes_and_no_and_numbers_of_numpy_are_rewards_too(make: Callable[[], Estimator], value: Any) -> None:
    assert make().update(value).belief == make().update(float(value)).belief


@pytest.mark.parametrize("name", [name for name in BOUNDED if not name.startswith("adaptive")])
def test_rounding_makes_no_variance_negative(name: str) -> None:
    for reward in np.linspace(0.01, 0.99, 99).tolist():
        estimate = CASES[name].make()
        for _ in range(12):
            assert 0.0 <= estimate.update(reward).variance < 1e-14


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.integers(1, 12))
def test_rounding_moves_no_mean_of_a_window_out_of_its_range(rewards: list[float], window: int) -> None:
    estimate = SlidingWindow(window)
    for reward in [*rewards, *[0.0] * window, *rewards, *[1.0] * window]:
        assert 0.0 <= estimate.update(reward).mean <= 1.0
    assert fed(SlidingWindow(2), (0.1, 0.7, 0.2, 0.0, 0.0)).mean == pytest.approx(0.0, abs=1e-15)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200), st.integers(1, 12))
def test_a_window_of_zeros_and_ones_has_no_rounding_errors(rewards: list[int], window: int) -> None:
    assert fed(SlidingWindow(window), rewards).mean == oracle.window_mean(rewards, window)


def test_many_rewards_leave_the_mean_of_the_window() -> None:
    rewards = np.random.default_rng(3).random(20_000)
    assert fed(SlidingWindow(50), rewards.tolist()).mean == pytest.approx(math.fsum(rewards[-50:]) / 50, abs=1e-11)


@pytest.mark.parametrize("forgetting", [0.5, 0.9])
def test_the_variance_of_independent_rewards_is_unbiased(forgetting: float) -> None:
    streams = (np.random.default_rng(2).random((size(4000), 8)) < 0.3).astype(float)
    variances = [fed(FixedForgetting(forgetting), stream.tolist()).variance for stream in streams]
    assert_mean(np.array(variances), 0.3 * 0.7)


@pytest.mark.parametrize("confidence", [1e-6, 0.5])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_catoni_s_mean_is_the_root_of_its_equation_in_any_unit(confidence: float, scale: float) -> None:
    rewards = [scale * reward for reward in np.random.default_rng(4).standard_t(1.5, 40).tolist()]
    estimate = CatoniMean(window=13, confidence=confidence)
    for count, reward in enumerate(rewards, start=1):
        latest = rewards[max(count - 13, 0) : count]
        estimate.update(reward)
        assert estimate.mean == pytest.approx(catoni(latest, confidence), rel=1e-9, abs=1e-9 * scale)
        assert estimate.variance == pytest.approx(robust_variance(latest), rel=1e-9)


def test_the_state_is_that_of_the_memory() -> None:
    params = make_params()
    assert AdaptiveForgetting().update(0).update(1).state == observe(observe(START, 0.0, params), 1.0, params)
    unit_free_params = UnitFreeForgetting().params[0]
    assert UnitFreeForgetting().update(7).state == observe_unit_free(START, 7.0, unit_free_params)
    assert tuple(unit_free_params) == (0.0001, 0.0)


def test_an_estimator_describes_the_parameters_of_its_memory_below_its_own_text() -> None:
    for kind, memory in ((AdaptiveForgetting, db.memories.Adaptive), (UnitFreeForgetting, db.memories.UnitFree)):
        assert descriptions_of(kind) == descriptions_of(memory)
        assert "estimate.mean" in (kind.__doc__ or "") or "euros.mean" in (kind.__doc__ or "")
    assert list(descriptions_of(LeastSquares)) == ["dimension", "prior", "forgetting", "step_size, memory"]


def test_parameters_have_the_documented_defaults_and_limits() -> None:
    assert (CatoniMean().window, CatoniMean().confidence) == (100, 0.05)
    assert fed(CatoniMean(window=1), (3.0, 5.0)).mean == 5.0
    assert fed(CatoniMean(confidence=math.nextafter(1.0, 0.0)), (3.0, 5.0)).mean == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("kind", "parameters", "error", "message"),
    [
        (SlidingWindow, {"window": 0}, ValueError, "window must be a whole number of at least 1, got 0"),
        (SlidingWindow, {"window": -3}, ValueError, "window must be a whole number of at least 1, got -3"),
        (SlidingWindow, {"window": 2.5}, TypeError, "window must be a whole number of at least 1, got 2.5"),
        (SlidingWindow, {"window": "9"}, TypeError, "window must be a whole number of at least 1, got '9'"),
        (FixedForgetting, {"forgetting": -0.1}, ValueError, r"forgetting must be a number in \[0, 1\], got -0.1"),
        (FixedForgetting, {"forgetting": 1.1}, ValueError, r"forgetting must be a number in \[0, 1\], got 1.1"),
        (FixedForgetting, {"forgetting": math.nan}, ValueError, r"forgetting must be a number in \[0, 1\], got nan"),
        (CatoniMean, {"window": 0}, ValueError, "window must be"),
        (CatoniMean, {"confidence": 0.0}, ValueError, "confidence must be"),
        (CatoniMean, {"confidence": 1.0}, ValueError, "confidence must be"),
        (CatoniMean, {"confidence": 1.5}, ValueError, "confidence must be"),
        (AdaptiveForgetting, {"step_size": -0.1}, ValueError, r"step_size must be a number in \[0, 1\], got -0.1"),
        (AdaptiveForgetting, {"step_size": math.nan}, ValueError, r"step_size must be a number in \[0, 1\], got nan"),
        (AdaptiveForgetting, {"step_size": None}, TypeError, r"step_size must be a number in \[0, 1\], got None"),
        (
            AdaptiveForgetting,
            {"step_size": "variance"},
            ValueError,
            r"step_size must be a number in \[0, 1\] or 'variance-scaled', got 'variance'",
        ),
        (AdaptiveForgetting, {"floor": 1.1}, ValueError, r"floor must be a number in \[0, 1\], got 1.1"),
        (AdaptiveForgetting, {"floor": "0"}, TypeError, r"floor must be a number in \[0, 1\], got '0'"),
        (
            AdaptiveForgetting,
            {"loss": "squared"},
            ValueError,
            "unknown loss 'squared'. Did you mean 'squared-error'\\? Known: bernoulli, squared-error",
        ),
    ],
)
def test_a_parameter_out_of_range_is_refused(
    kind: Callable[..., Estimator], parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        kind(**parameters)
