"""Simulation: policies on environments, over replications and cores."""

from dynabandit.simulation.compiling import compile_policy, is_compiled, is_kept
from dynabandit.simulation.simulate import Simulation, check_horizon, compare, recorded_times, simulate
from dynabandit.simulation.tracing import Trace, trace
from dynabandit.simulation.version import code_version, path_version

__all__ = [
    "Simulation", "Trace", "check_horizon", "code_version", "compare", "compile_policy", "is_compiled", "is_kept",
    "path_version", "recorded_times", "simulate", "trace",
]  # fmt: skip
