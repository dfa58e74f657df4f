"""What an arm remembers of its rewards, and what all arms remember together.

A memory must not know which rule decides with it: it tells every rule the same numbers.
"""

from dynabandit.policies.memories.adaptive import Adaptive
from dynabandit.policies.memories.base import Estimate, Memory, MemoryKernels, Weights, per_arm
from dynabandit.policies.memories.bounded import Bounded, BoundedByVariance, BoundedByWeight
from dynabandit.policies.memories.discount import Discount
from dynabandit.policies.memories.mixture import Mixture, NormalMixture, PoissonMixture
from dynabandit.policies.memories.regression import (
    AdaptiveLogisticRegression,
    AdaptivePoissonRegression,
    AdaptiveRegression,
    LogisticRegression,
    PoissonRegression,
    Regression,
    SquaredRegression,
)
from dynabandit.policies.memories.regression_mixture import RegressionMixture
from dynabandit.policies.memories.regression_window import RestartRegression, WindowRegression
from dynabandit.policies.memories.sample_mean import SampleMean
from dynabandit.policies.memories.sample_moments import SampleMoments
from dynabandit.policies.memories.unit_free import UnitFree
from dynabandit.policies.memories.window import GrowingWindow, Window

__all__ = [
    "MEMORIES", "Adaptive", "AdaptiveLogisticRegression", "AdaptivePoissonRegression", "AdaptiveRegression", "Bounded",
    "BoundedByVariance", "BoundedByWeight", "Discount", "Estimate", "GrowingWindow", "LogisticRegression", "Memory",
    "MemoryKernels", "Mixture", "NormalMixture", "PoissonMixture", "PoissonRegression", "Regression",
    "RegressionMixture", "RestartRegression", "SampleMean", "SampleMoments", "SquaredRegression", "UnitFree", "Weights",
    "Window", "WindowRegression", "per_arm",
]  # fmt: skip

MEMORIES: dict[str, type[Memory]] = {
    kind.name: kind
    for kind in (
        SampleMean, Window, GrowingWindow, Discount, Bounded, Adaptive, BoundedByVariance, BoundedByWeight, Mixture,
        SampleMoments, UnitFree, NormalMixture, PoissonMixture,
        Regression, SquaredRegression, WindowRegression, RestartRegression, AdaptiveRegression, RegressionMixture,
        LogisticRegression, PoissonRegression, AdaptiveLogisticRegression, AdaptivePoissonRegression,
    )
}  # fmt: skip
