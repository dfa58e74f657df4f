"""How arms are compared: bounds, posteriors, laws of random scores, and forced exploration."""
