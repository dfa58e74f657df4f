"""How arms are compared: bounds, posteriors, laws of random scores, and forced exploration.

A rule must not know which memory it decides with: it sees the numbers that a memory tells it about an arm.
"""
