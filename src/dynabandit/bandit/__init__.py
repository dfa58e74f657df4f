"""Bandit: named arms, one decision at a time."""

from dynabandit.bandit.arms import Arm, Arms
from dynabandit.bandit.bandit import Bandit

__all__ = ["Arm", "Arms", "Bandit"]
