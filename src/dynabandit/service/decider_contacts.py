"""Which local deciders this process has heard of, for people to see; nothing else depends on it."""

import time
from collections.abc import Callable
from typing import NamedTuple

MAX_CONTACTS = 20_000
KEEP_SECONDS = 600.0


class Contact(NamedTuple):
    """When a decider asked for the state, the state that it had, and how many decisions and rewards it had to send."""

    time: float
    base: int
    waiting: int


class DeciderContacts:
    """The latest contact of each decider in the last ten minutes, the latest one last."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._contacts: dict[tuple[str, str], Contact] = {}  # by bandit and decider

    def note(self, bandit: str, decider: str, base: int, waiting: int) -> None:
        """Note that a decider asked for the state of a bandit."""
        self._contacts.pop((bandit, decider), None)
        self._contacts[bandit, decider] = Contact(self._timer(), base, waiting)
        if len(self._contacts) > MAX_CONTACTS:
            del self._contacts[next(iter(self._contacts))]

    def all(self) -> dict[tuple[str, str], Contact]:
        """Return the contacts by bandit and decider, with their age instead of their time."""
        now = self._timer()
        while self._contacts and now - next(iter(self._contacts.values())).time > KEEP_SECONDS:
            del self._contacts[next(iter(self._contacts))]
        return {key: one._replace(time=now - one.time) for key, one in self._contacts.items()}

    def of(self, bandit: str) -> dict[str, Contact]:
        """Return the contacts of a bandit by decider."""
        return {decider: one for (name, decider), one in self.all().items() if name == bandit}
