"""The paper: its experiments, claims, rules and report."""
