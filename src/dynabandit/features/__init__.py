"""Features: contexts and arms with named values become vectors of numbers."""

from dynabandit.features.arm_features import ArmFeatures
from dynabandit.features.encoder import FeatureEncoder

__all__ = ["ArmFeatures", "FeatureEncoder"]
