"""Which local deciders this process has heard of, for people to see; nothing else depends on it."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from dynabandit.service.api_types import DeciderState
from dynabandit.service.domain.deciders import DeciderProgress, Deciders

MAX_CONTACTS = 20_000
KEEP_SECONDS = 600.0
MAX_LISTED = 100  # deciders of a bandit


class Contact(NamedTuple):
    """What a decider said when it asked for the state: its bandit, its latest state, and how much it had to send."""

    bandit: int
    name: str  # of the bandit
    decider: str
    base: int
    waiting: int
    time: float


class DeciderContacts:
    """The latest contact of each decider in the last ten minutes; for any thread."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer, self._lock = timer, threading.Lock()
        self._contacts: dict[tuple[int, str], Contact] = {}  # by bandit and decider, the latest last

    def note(self, bandit: int, name: str, decider: str, base: int, waiting: int) -> None:
        """Note that a decider asked for the state of a bandit."""
        with self._lock:
            self._contacts.pop((bandit, decider), None)
            self._contacts[bandit, decider] = Contact(bandit, name, decider, base, waiting, self._timer())
            if len(self._contacts) > MAX_CONTACTS:
                del self._contacts[next(iter(self._contacts))]

    def latest(self) -> list[Contact]:
        """Return the contacts, the latest first, each with its age as its time."""
        with self._lock:
            now = self._timer()
            while self._contacts and now - next(iter(self._contacts.values())).time > KEEP_SECONDS:
                del self._contacts[next(iter(self._contacts))]
            return [one._replace(time=now - one.time) for one in reversed(self._contacts.values())]

    def listed(self, bandit: int, stored: Deciders) -> list[DeciderState]:
        """Return the deciders of a bandit that were heard of last, given what the log has of them."""
        heard = {one.decider: one for one in self.latest() if one.bandit == bandit}
        listed = []
        for decider in list(dict.fromkeys([*heard, *reversed(stored)]))[:MAX_LISTED]:
            progress, contact = stored.get(decider, DeciderProgress(0, 0, 0.0)), heard.get(decider)
            state = DeciderState(decider, progress.step, progress.base)
            if contact is not None:
                state.base, state.seen, state.waiting = max(contact.base, progress.base), contact.time, contact.waiting
            listed.append(state)
        return listed
