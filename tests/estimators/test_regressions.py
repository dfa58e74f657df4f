"""Regressions as objects against the recursions of the oracle."""

from typing import Any

import numpy as np
import pytest

from dynabandit.estimators import LeastSquares, LogisticRegression, PoissonRegression
from dynabandit.policies.memories import linear_model
from oracles.regression import AdaptiveRegression, Regression, data

ESTIMATORS = [(LeastSquares, "identity"), (LogisticRegression, "logistic"), (PoissonRegression, "log")]


@pytest.mark.parametrize(("estimator", "link"), ESTIMATORS)
@pytest.mark.parametrize("forgetting", [1.0, 0.9, "adaptive"])
def test_an_object_follows_the_recursions(estimator: Any, link: str, forgetting: float | str) -> None:
    found = estimator(3, prior=0.7, forgetting=forgetting, memory=50)
    if forgetting == "adaptive":
        expected: Regression = AdaptiveRegression(3, 0.7, link, 0.2, 50.0, (10.0, 10_000.0))
    else:
        expected = Regression(3, 0.7, link, float(forgetting))
    for x, reward, steps, _ in data(link, 3, 20):
        assert found.update(x.tolist(), reward, steps) is found
        expected.learn(x, reward, steps)
        mean = expected.link.mean(expected.theta @ x)
        assert found.predict(x) == pytest.approx((mean, expected.variance(x)), rel=1e-7, abs=1e-9)
        assert found.forgetting == pytest.approx(expected.forgetting, rel=1e-7)
    np.testing.assert_allclose(found.coefficients, expected.theta, rtol=1e-7)
    assert repr(found) == f"{estimator.__name__}(3 features, forgetting {expected.forgetting:.4g})"


@pytest.mark.parametrize("features", [[1.0], [1.0, 2.0, 3.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0]]])
def test_features_of_the_wrong_length_or_not_finite_are_errors_and_nothing_is_learnt(features: Any) -> None:
    estimate = LeastSquares(2)
    before = estimate.model.copy()
    with pytest.raises(ValueError, match="features must be 2 finite numbers, got"):
        estimate.update(features, 1.0)
    assert (estimate.model == before).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number of at least 1 and at most 256, got 0"),
        ({"dimension": 257}, "dimension must be a whole number of at least 1 and at most 256, got 257"),
        ({"forgetting": 0.0}, r"forgetting must be a number in \(0, 1\], got 0.0"),
        ({"forgetting": "slow"}, r"forgetting must be a number in \(0, 1\] or 'adaptive', got 'slow'"),
    ]
    + [
        ({name: np.nextafter(end, away)}, f"{name} must be a number in")
        for name, low, high in [("memory", 10.0, 1e4), ("step_size", 0.0, 1.0), ("forgetting", 1.0, 1.0)]
        for end, away in ((low, -np.inf), (high, np.inf))
        if (name, end, away) != ("forgetting", 1.0, -np.inf)
    ]
    + [({"prior": value}, "prior must be a number in") for value in (0.0, np.nextafter(1e12, np.inf))],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeastSquares(**{"dimension": 2, **arguments})
    with pytest.raises(TypeError, match="features must be 2 numbers, got 'no'"):
        LeastSquares(2).predict("no")
    with pytest.raises(ValueError, match="reward must be a whole number"):
        PoissonRegression(2).update([1.0, 2.0], 0.5)


def test_arguments_may_be_at_their_limits_and_have_the_documented_defaults() -> None:
    assert LeastSquares(256, prior=1e12, forgetting=1e-9, step_size=0).params == (1e12, 1e-9, 0.0)
    assert LeastSquares(1, prior=1e-12, forgetting="adaptive", memory=10, step_size=1).params == (1e-12, 0.9, 1.0)
    assert LeastSquares(2, forgetting="adaptive", memory=10_000).params == pytest.approx((1.0, 0.9999, 0.2))
    assert LeastSquares(2, forgetting="adaptive").params == pytest.approx((1.0, 0.999, 0.2))
    assert LeastSquares(2).params == (1.0, 1.0, 0.2)
    assert LeastSquares(2).predict([3.0, 4.0]) == (0.0, 25.0)


def test_a_variance_that_rounding_made_negative_is_zero() -> None:
    estimate = LeastSquares(1)
    estimate.model[linear_model.inverse_at(1)] = -1e-20
    assert estimate.predict([1.0]).variance == 0.0


@pytest.mark.parametrize("prior", [0.1, 0.3, 3.0])
def test_the_forgetting_factor_first_moves_at_the_third_reward(prior: float) -> None:
    # After one reward, nothing was forgotten yet: the derivative of the coefficient is 0 but for rounding
    estimate = LeastSquares(1, prior=prior, forgetting="adaptive")
    found = [estimate.update([1.0], reward).forgetting for reward in (1.0, 0.0, 1.0)]
    assert found[:2] == [0.999, 0.999]
    assert found[2] != 0.999


def test_a_reward_comes_one_step_after_the_previous_one_unless_told_and_never_before_it() -> None:
    usual, told, late = (LeastSquares(1, forgetting=0.5).update([1.0], 1.0) for _ in range(3))
    assert usual.update([1.0], 0.0).predict([1.0]) == told.update([1.0], 0.0, steps=1).predict([1.0])
    assert late.update([1.0], 0.0, steps=2).predict([1.0]) != told.predict([1.0])
    with pytest.raises(ValueError, match="steps must be a whole number of at least 0, got -1"):
        late.update([1.0], 0.0, steps=-1)
