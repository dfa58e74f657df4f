"""Kernels: compile targets, random streams and draws. Numbers only; nothing here knows about bandits."""

__all__ = ()
