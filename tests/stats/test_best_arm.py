"""The probability of being best agrees with integrals computed by SciPy."""

import numpy as np
import pytest
from scipy import integrate, stats

from dynabandit.stats.best_arm import best_of_means, best_of_shares

MEANS, SIZES = np.array([0.2, 0.25, np.nan]), np.array([200.0, 130.5, 0.0])


def chances_of_largest(laws: list[stats.rv_continuous], ends: tuple[float, float]) -> list[float]:
    def density(t: float, arm: int) -> float:
        others = [law.cdf(t) for place, law in enumerate(laws) if place != arm]
        return float(laws[arm].pdf(t) * np.prod(others))

    return [integrate.quad(density, *ends, args=(arm,), limit=200)[0] for arm in range(len(laws))]


@pytest.mark.parametrize("prior", [1.0, 0.5])
def test_means_of_rewards_from_0_to_1_have_beta_posteriors(prior: float) -> None:
    shapes = [(prior + 40.0, prior + 160.0), (prior + 32.625, prior + 97.875), (prior, prior)]
    expected = chances_of_largest([stats.beta(a, b) for a, b in shapes], (0.0, 1.0))
    assert best_of_shares(MEANS, SIZES, prior) == pytest.approx(expected, abs=1e-6)


def test_means_of_other_rewards_have_student_laws() -> None:
    mean, size, variance = np.array([3.0, 2.5, -1.0]), np.array([12.0, 30.0, 9.0]), np.array([4.0, 2.0, 50.0])
    laws = [stats.t(n - 1.0, m, np.sqrt(v / n)) for m, n, v in zip(mean, size, variance, strict=True)]
    assert best_of_means(mean, size, variance) == pytest.approx(chances_of_largest(laws, (-40.0, 60.0)), abs=1e-5)


def test_what_is_not_known_is_nan_for_all_arms() -> None:
    assert np.isnan(best_of_means(np.array([1.0, 2.0]), np.array([9.0, 1.0]), np.array([1.0, 1.0]))).all()
    assert np.isnan(best_of_means(np.array([1.0, 2.0]), np.array([9.0, 9.0]), np.array([1.0, 0.0]))).all()
    assert np.isnan(best_of_shares(MEANS, SIZES, prior=0.0)).all()
    assert len(best_of_shares(np.zeros(0), np.zeros(0))) == 0
