"""The process in which previewed policies learn and choose, with limits on its time and memory.

Its arguments are the policies of other packages that the service uses. It reads messages from its input, each a length
and a pickled tuple, and writes one answer to each, a length and JSON. It ends when its input ends.
"""

import contextlib
import os
import pickle
import sys
from typing import IO

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.core.process_limits import limit_process
from dynabandit.plugins import PluginError
from dynabandit.policies import use_plugin
from dynabandit.service import api_types
from dynabandit.service.domain.preview import LocalTrial
from dynabandit.service.errors import DomainError

LENGTH_BYTES = 8
MOST_BYTES = 2 << 30  # twice what a policy with the largest state and compilation take
TOO_LARGE = "this needs too much memory; ask for less"


class Answer(msgspec.Struct):
    """The answer to a message: a problem, if there is one, or what the message asked for."""

    problem: str | None = None
    latest: int = 0
    arms: list[api_types.PreviewArm] = []


def main() -> None:
    """Answer all messages."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a policy prints is no answer
    limit_process(MOST_BYTES)
    for plugin in sys.argv[1:]:
        with contextlib.suppress(PluginError):  # then a preview of this policy fails, and others do not
            use_plugin(plugin)
    trial: LocalTrial | None = None
    while (message := read_message(sys.stdin.buffer)) is not None:
        try:
            kind, *content = pickle.loads(message)
            if kind == "start":
                trial = None  # before another one needs memory
                text, asked = content
                trial, answer = (
                    LocalTrial(Bandit.from_json(text), msgspec.convert(asked, api_types.PreviewPolicy)),
                    Answer(),
                )
            elif kind == "learn":
                assert trial is not None
                answer = Answer(latest=trial.learn(*content))
            else:
                assert trial is not None
                answer = Answer(arms=trial.arms())
        except (ArithmeticError, DomainError, TypeError, ValueError) as error:
            answer = Answer(problem=str(error))
        except MemoryError:
            answer = Answer(problem=TOO_LARGE)
        write_message(answers, msgspec.json.encode(answer))


def read_message(source: IO[bytes]) -> bytes | None:
    """Return the next message, or None at the end."""
    length = source.read(LENGTH_BYTES)
    message = source.read(int.from_bytes(length)) if len(length) == LENGTH_BYTES else b""
    return message or None


def write_message(target: IO[bytes], message: bytes) -> None:
    """Write a message."""
    target.write(len(message).to_bytes(LENGTH_BYTES))
    target.write(message)
    target.flush()


if __name__ == "__main__":
    main()
