"""Events, the state of a bandit, and how an event changes it."""
