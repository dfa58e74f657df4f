"""Logs of real decisions, and what another policy would have earned."""

from dynabandit.logs.advising import Advice, Candidate, advise, candidates
from dynabandit.logs.carriers import Flights, flights
from dynabandit.logs.estimates import Estimate
from dynabandit.logs.log import Log, from_columns, read
from dynabandit.logs.replaying import Replay, replay

__all__ = [
    "Advice", "Candidate", "Estimate", "Flights", "Log", "Replay",
    "advise", "candidates", "flights", "from_columns", "read", "replay",
]  # fmt: skip
