"""The paper: its experiments, its claims and how each claim is judged."""
