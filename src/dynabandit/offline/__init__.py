"""Logs of real decisions, and what another policy would have earned."""

from dynabandit.offline.advice import Advice, Candidate, advise, candidates
from dynabandit.offline.flights import Flights, flights
from dynabandit.offline.log import Log, from_columns, read
from dynabandit.offline.replay import Replay, replay
from dynabandit.stats.intervals import Estimate

__all__ = [
    "Advice", "Candidate", "Estimate", "Flights", "Log", "Replay",
    "advise", "candidates", "flights", "from_columns", "read", "replay",
]  # fmt: skip
