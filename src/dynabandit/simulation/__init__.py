"""Simulation: policies on environments, over many replications, on CPU threads or a GPU."""

from dynabandit.results import Simulation
from dynabandit.simulation.accuracy import Estimation, estimation
from dynabandit.simulation.api import check_simulation, compare, recorded_times, simulate
from dynabandit.simulation.backends import BackendError, check_backend, is_large
from dynabandit.simulation.code_versions import code_version, device_version, path_version
from dynabandit.simulation.compiled import compile_policy, is_compiled
from dynabandit.simulation.traces import Trace, trace

__all__ = [
    "BackendError", "Estimation", "Simulation", "Trace", "check_backend", "check_simulation", "code_version", "compare",
    "compile_policy", "device_version", "estimation", "is_compiled", "is_large", "path_version", "recorded_times",
    "simulate", "trace",
]  # fmt: skip
