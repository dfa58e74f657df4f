"""The kernels of a linear model against dense algebra."""

import numpy as np
import pytest

from dynabandit.policies.memories import linear_model


def dense(features: np.ndarray, rewards: np.ndarray, kept: float, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse precision matrix and the coefficients; one coordinate per step gets its prior back."""
    d = features.shape[1]
    data, b, left = np.zeros((d, d)), np.zeros(d), np.full(d, prior)
    for step, (x, reward) in enumerate(zip(features, rewards, strict=True)):
        data, b, left = kept * data + np.outer(x, x), kept * b + reward * x, kept * left
        left[step % d] = prior
    inverse = np.linalg.inv(data + np.diag(left))
    return inverse, inverse @ b


@pytest.mark.parametrize("varying", [True, False])
@pytest.mark.parametrize("kept", [1.0, 0.99, 0.9, 0.8])
def test_a_long_run_agrees_with_dense_algebra_and_stays_symmetric(kept: float, varying: bool) -> None:
    # With 0.8, a difference between the inverse and its transpose would grow by the factor 0.8^-1000
    drawn, d = np.random.default_rng(3), 3
    features, rewards = drawn.normal(size=(1000, d)), drawn.normal(size=1000)
    if not varying:
        features[:] = features[0]
    model = linear_model.initial(d, prior=0.7)
    for x, reward in zip(features, rewards, strict=True):
        linear_model.update(model, x, reward, 1.0, kept, 0.7)
    inverse, theta = dense(features, rewards, kept, 0.7)
    found = model[linear_model.inverse_at(d) :].reshape(d, d)
    assert (found == found.T).all()
    np.testing.assert_allclose(found, inverse, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model[linear_model.theta_at(d) :][:d], theta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_a_quadratic_form_writes_nothing(d: int) -> None:
    drawn = np.random.default_rng(d)
    model, x = drawn.normal(size=5 + d * d), drawn.normal(size=d)
    before = model.copy()
    expected = x @ model[5:].reshape(d, d) @ x
    assert linear_model.quadratic(model, 5, x) == pytest.approx(expected, rel=1e-12)
    assert (model == before).all()


@pytest.mark.parametrize(("kept", "is_new"), [(0.9e-12, True), (1.1e-12, False)])
def test_a_model_whose_data_have_faded_is_as_new(kept: float, is_new: bool) -> None:
    drawn, d = np.random.default_rng(2), 3
    model, new = linear_model.initial(d, prior=0.7), linear_model.initial(d, prior=0.7)
    for _ in range(4):
        linear_model.update(model, drawn.normal(size=d), drawn.normal(), 1.0, 0.99, 0.7)
    model[linear_model.TURN] = 0.0
    x = drawn.normal(size=d)
    before = linear_model.update(model, x, 2.0, 1.0, kept, 0.7)
    assert (before == linear_model.update(new, x, 2.0, 1.0, 1.0, 0.7)) is is_new
    assert bool((model == new).all()) is is_new


@pytest.mark.parametrize(
    ("dimension", "kept", "expected"),
    [(1, 0.5, 1), (11, 0.5, 2), (12, 0.5, 3), (10, 0.499, 10), (10, 0.0, 10), (9, 0.75, 1), (54, 0.75, 4), (8, 1.0, 1)],
)
def test_so_many_coordinates_get_their_prior_back_that_none_fades_beyond_e_to_minus_6(
    dimension: int, kept: float, expected: int
) -> None:
    assert linear_model.turns(dimension, kept) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0.3, -1e-18, 0.5, 4.0), (0.3, 0.0)),  # rounding may make a variance negative
        ((0.3, 0.0, 0.5, 4.0), (0.3, 0.0)),
        ((0.3, -1e-18, 1.0, 4.0), (0.3, 0.0)),
        ((0.3, 0.125, 1.0, 4.0), (0.3, 0.125)),
        ((0.5, 0.125, 0.5, 4.0), (0.5 * 4.0 / 6.0, 1.0 / 6.0)),  # the precision is half of 8 and half of 4
        ((0.5, 0.125, 0.0, 4.0), (0.0, 0.25)),  # the prior alone
    ],
)
def test_a_prediction_fades_into_that_of_the_prior(
    given: tuple[float, float, float, float], expected: tuple[float, float]
) -> None:
    assert linear_model.faded(*given) == pytest.approx(expected, rel=1e-15, abs=0.0)


@pytest.mark.parametrize(("dimension", "kept"), [(60, 0.9), (40, 0.82), (30, 0.6)])
def test_features_that_never_vary_keep_most_of_their_prior(dimension: int, kept: float) -> None:
    """Coordinates without data would have the variance kept^-dimension if they had their turn one by one."""
    random = np.random.default_rng(1)
    model, x = linear_model.initial(dimension, 1.0), np.zeros(dimension)
    for _ in range(2 * dimension):
        x[:2] = random.normal(size=2)
        linear_model.update(model, x, float(random.normal()), 1.0, kept, 1.0)
    inverse = model[linear_model.inverse_at(dimension) :].reshape(dimension, dimension)
    assert np.linalg.eigvalsh(inverse)[0] > 0.0
    assert inverse.diagonal().max() < np.exp(6.0) / kept
