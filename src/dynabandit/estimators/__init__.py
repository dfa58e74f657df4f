"""Estimators: the rewards of one arm -> an estimate of its mean, by features if there are any."""

from dynabandit.estimators.adaptive_forgetting import AdaptiveForgetting, UnitFreeForgetting
from dynabandit.estimators.base import Belief, Estimator, EstimatorFunctions
from dynabandit.estimators.catoni_mean import CatoniMean
from dynabandit.estimators.fixed_forgetting import FixedForgetting
from dynabandit.estimators.regression_estimators import LeastSquares, LogisticRegression, PoissonRegression, Prediction
from dynabandit.estimators.sample_mean import SampleMean
from dynabandit.estimators.sliding_window import SlidingWindow

__all__ = [
    "AdaptiveForgetting", "Belief", "CatoniMean", "Estimator", "EstimatorFunctions", "FixedForgetting", "LeastSquares",
    "LogisticRegression", "PoissonRegression", "Prediction", "SampleMean", "SlidingWindow", "UnitFreeForgetting",
]  # fmt: skip
