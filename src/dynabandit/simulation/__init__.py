"""Simulation: policies on environments, over replications and cores."""

from dynabandit.simulation.simulate import Simulation, compare, simulate

__all__ = ["Simulation", "compare", "simulate"]
