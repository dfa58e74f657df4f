"""Tests for changes, after which a memory starts anew.

A detector must not know which memory and which rule it works with: it sees rewards, and how many an arm has.
"""

from dynabandit.policies.detectors.base import Detector, DetectorKernels

__all__ = ["DETECTORS", "Detector", "DetectorKernels"]

DETECTORS: dict[str, type[Detector]] = {}
