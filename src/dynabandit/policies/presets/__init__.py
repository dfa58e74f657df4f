"""Policies with a name of their own that are a memory, a rule and perhaps a detector."""
