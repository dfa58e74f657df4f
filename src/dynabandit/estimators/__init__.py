"""Estimators: the rewards of one arm -> an estimate of its mean, by features if there are any."""

from dynabandit.estimators.means import (
    AdaptiveForgetting,
    CatoniMean,
    Estimator,
    EstimatorFunctions,
    FixedForgetting,
    SampleMean,
    SlidingWindow,
    UnitFreeForgetting,
)
from dynabandit.estimators.regressions import LeastSquares, LogisticRegression, PoissonRegression, Prediction
from dynabandit.policies.belief import Belief

__all__ = [
    "AdaptiveForgetting", "Belief", "CatoniMean", "Estimator", "EstimatorFunctions", "FixedForgetting", "LeastSquares",
    "LogisticRegression", "PoissonRegression", "Prediction", "SampleMean", "SlidingWindow", "UnitFreeForgetting",
]  # fmt: skip
