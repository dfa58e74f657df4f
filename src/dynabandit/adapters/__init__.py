"""Doors to the tools that people already use."""
