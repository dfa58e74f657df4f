"""Kernels: compile targets, random streams and draws. Numbers only; nothing here knows a policy."""

__all__ = ()
