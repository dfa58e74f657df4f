"""The decision service: decisions over HTTP that survive crashes, duplicates and delay."""

__all__ = ()
