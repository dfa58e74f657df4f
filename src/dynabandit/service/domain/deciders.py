"""The local deciders of a bandit: who they are, and what the log has of each of them."""

import hashlib
from typing import Any, NamedTuple

from dynabandit.service.domain.decision_details import DecisionDetails
from dynabandit.service.domain.names import LETTERS
from dynabandit.service.errors import InvalidValueError

MAX_DECIDERS = 10_000  # that a state knows; those of earlier ones are found in the log by their keys
MAX_MISSING = 1_000_000  # successive decisions of a decider that the log may lack, such as those of refused batches
ID_LETTERS = 16  # of five bits
SECRET_HEADER = "Decider-Secret"


class DeciderProgress(NamedTuple):
    """The latest stored decision of a decider: its number there, the state from which it was made, and the time."""

    step: int
    base: int
    time: float


class Deciders(dict[str, DeciderProgress]):
    """The deciders whose decisions came latest, by id, the latest one last."""

    def note(self, details: DecisionDetails, time: float) -> None:
        """Note the next decision of a decider."""
        assert details.decider is not None
        if self.pop(details.decider, None) is None and len(self) >= MAX_DECIDERS:
            del self[next(iter(self))]
        self[details.decider] = DeciderProgress(details.local_step, details.base, time)

    def to_plain(self) -> list[Any]:
        """Return the deciders in order."""
        return [[decider, *progress] for decider, progress in self.items()]

    @classmethod
    def from_plain(cls, content: list[Any]) -> "Deciders":
        """Return what `to_plain` wrote."""
        return cls((decider, DeciderProgress(*progress)) for decider, *progress in content)


def decider_of(secret: str) -> str:
    """Return the id of the decider that has a secret: only who knows the secret can show that the id is theirs.

    The first letter is one from g to z. The ids of release 0.2.0 are hexadecimal.

    Examples
    --------
    >>> decider_of("secret")
    'vfp6vsywh7zjts0t'
    """
    digest = hashlib.blake2b(secret.encode(), digest_size=ID_LETTERS * 5 // 8, person=b"decider").digest()
    number = int.from_bytes(digest, "big") | 1 << (ID_LETTERS * 5 - 1)
    return "".join(LETTERS[number >> shift & 31] for shift in range(ID_LETTERS * 5 - 5, -1, -5))


def check_secret(decider: str, secret: str | None) -> None:
    """Raise an error if a secret does not show who a decider is; those of release 0.2.0 have none.

    Examples
    --------
    >>> check_secret(decider_of("secret"), "secret")
    >>> check_secret("0123456789abcdef", None)
    """
    is_without = decider[:1] < "g"
    if not is_without and (secret is None or decider_of(secret) != decider):
        raise InvalidValueError(f"{SECRET_HEADER} must be the secret from which the id of decider {decider!r} is made")


def local_key(decider: str, step: int) -> str:
    """Return the idempotency key of a local decision; callers cannot send it, because a tab is not printable."""
    return f"{decider}\t{step}"
