"""Rounding errors of a model that forgets do not grow."""

import numpy as np
import pytest

from dynabandit.policies.memories import linear_model

DIMENSION = 3


@pytest.mark.parametrize("kept", [0.9, 0.97])
def test_the_inverse_stays_symmetric_and_exact_over_many_updates(kept: float) -> None:
    random = np.random.default_rng(1)
    model, prior = linear_model.initial(DIMENSION, 1.0), 1.0
    precision, left = np.eye(DIMENSION), np.ones(DIMENSION)
    for update in range(1500):  # an asymmetry of 1e-17 would grow by a factor of 1e19 or more
        x = random.normal(size=DIMENSION)
        linear_model.update(model, x, float(random.normal()), 1.0, kept, prior)
        precision, left = kept * precision + np.outer(x, x), kept * left
        turn = update % DIMENSION
        precision[turn, turn] += prior - left[turn]
        left[turn] = prior
    inverse = model[linear_model.inverse_at(DIMENSION) :].reshape(DIMENSION, DIMENSION)
    assert (inverse == inverse.T).all()
    assert inverse == pytest.approx(np.linalg.inv(precision), rel=1e-9)


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
