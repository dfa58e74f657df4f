"""How arms are compared: bounds, posteriors, and laws of random scores.

A rule must not know which memory it decides with: it sees the numbers that a memory tells it about an arm.
"""
