"""The playground: a link in, a simulation to watch out."""

from dynabandit.experiments.spec_reader import FieldProblem, SpecError
from dynabandit.playground.export import python, toml
from dynabandit.playground.link import Trial, read
from dynabandit.playground.message_stream import messages

__all__ = ["FieldProblem", "SpecError", "Trial", "messages", "python", "read", "toml"]
