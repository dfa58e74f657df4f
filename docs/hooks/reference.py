"""A page for each policy and each environment, from its class."""
