"""How arms are compared: bounds, posteriors, and laws of random scores.

A rule must not know which memory it decides with: it sees the numbers that a memory tells it about an arm.
"""

from dynabandit.policies.rules.base import Rule, RuleKernels
from dynabandit.policies.rules.greedy import Greedy
from dynabandit.policies.rules.hoeffding import Hoeffding, KLBound, PrintedHoeffding
from dynabandit.policies.rules.kl_ucb import KLUCB, KLUCBByWidth
from dynabandit.policies.rules.normal_ucb import NormalUCB
from dynabandit.policies.rules.prediction import EllipsoidBound, LinearThompson, RandomBound, SquareCB, WidthBound
from dynabandit.policies.rules.thompson import (
    GammaThompson,
    NormalThompson,
    OptimisticGammaThompson,
    OptimisticNormalThompson,
    OptimisticThompson,
    StudentThompson,
    Thompson,
)
from dynabandit.policies.rules.ucb import UCB

__all__ = [
    "KLUCB", "KLUCBByWidth", "RULES", "UCB", "EllipsoidBound", "GammaThompson", "Greedy", "Hoeffding", "KLBound",
    "LinearThompson", "NormalThompson", "NormalUCB", "OptimisticGammaThompson", "OptimisticNormalThompson",
    "OptimisticThompson", "PrintedHoeffding", "RandomBound", "Rule", "RuleKernels", "SquareCB", "StudentThompson",
    "Thompson", "WidthBound",
]  # fmt: skip

RULES: dict[str, type[Rule]] = {
    kind.name: kind
    for kind in (
        Greedy, UCB, KLUCB, Hoeffding, KLBound, Thompson, OptimisticThompson, NormalUCB, NormalThompson,
        OptimisticNormalThompson, StudentThompson, GammaThompson, OptimisticGammaThompson,
        WidthBound, EllipsoidBound, RandomBound, LinearThompson, SquareCB, PrintedHoeffding, KLUCBByWidth,
    )
}  # fmt: skip
