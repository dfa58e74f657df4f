"""The playground: a link in, a simulation to watch out."""

from dynabandit.playground.running import messages
from dynabandit.playground.trial import Problem, Trial, Wrong, read
from dynabandit.playground.writing import python, toml

__all__ = ["Problem", "Trial", "Wrong", "messages", "python", "read", "toml"]
