"""The domain: events, the state of a bandit as its events make it, and the rules of each request.

Nothing here knows HTTP or SQL.
"""
