"""Features: contexts and arms with named values become vectors of numbers."""

from dynabandit.features.arm_features import ArmFeatures
from dynabandit.features.encoder import FeatureEncoder

PARQUET_KEY = (
    "dynabandit.features"  # the metadata of a Parquet file under this key declare the features of its contexts
)

__all__ = ["PARQUET_KEY", "ArmFeatures", "FeatureEncoder"]
