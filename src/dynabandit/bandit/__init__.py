"""Bandit: named arms, one decision at a time."""

from dynabandit.bandit.arms import Arm, Arms
from dynabandit.bandit.bandit import Bandit
from dynabandit.bandit.decision import Decision
from dynabandit.bandit.ranking import RankedArm

__all__ = ["Arm", "Arms", "Bandit", "Decision", "RankedArm"]
