"""Doors to the tools that people already use: river, Gymnasium, Open Bandit Pipeline and MABWiser.

Each module is imported by itself, so that none needs the tools of the others.
"""

__all__ = ["gymnasium", "mabwiser", "obp", "river"]
