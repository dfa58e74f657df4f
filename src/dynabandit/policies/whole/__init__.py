"""Algorithms that are not a memory with a rule: each is one file."""
