"""Adapters for river, Gymnasium, Open Bandit Pipeline and MABWiser.

Import each module by itself; none needs the libraries of the others.
"""

__all__ = ["gymnasium", "mabwiser", "obp", "river"]
