"""Offline evaluation: reading logs of past decisions, and estimating what other policies would have earned."""

from dynabandit.offline.advice import Advice, Candidate, advise, candidates
from dynabandit.offline.flights import Flights, flights
from dynabandit.offline.log import Log, from_columns, read
from dynabandit.offline.replay import Replay, replay
from dynabandit.stats.intervals import Estimate

__all__ = [
    "Advice", "Candidate", "Estimate", "Flights", "Log", "Replay",
    "advise", "candidates", "flights", "from_columns", "read", "replay",
]  # fmt: skip
