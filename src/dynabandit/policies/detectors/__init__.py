"""Tests for changes, after which a memory starts anew.

A detector must not know which memory and which rule it works with: it sees rewards, and how many an arm has.
"""

from dynabandit.policies.detectors.adwin import Adwin
from dynabandit.policies.detectors.base import Detector, DetectorKernels
from dynabandit.policies.detectors.cusum import Cusum
from dynabandit.policies.detectors.glr import GLR, GLRDiminishing
from dynabandit.policies.detectors.halves import Halves, HalvesWithThisStep

__all__ = [
    "Adwin",
    "DETECTORS",
    "GLR",
    "Cusum",
    "Detector",
    "DetectorKernels",
    "GLRDiminishing",
    "Halves",
    "HalvesWithThisStep",
]

DETECTORS: dict[str, type[Detector]] = {
    kind.name: kind for kind in (GLR, GLRDiminishing, Cusum, Halves, Adwin, HalvesWithThisStep)
}
