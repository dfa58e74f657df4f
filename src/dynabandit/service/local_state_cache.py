"""The states that local deciders have asked for, encoded, so that each of many deciders does not need its own copy."""

from typing import Generic, TypeVar

MAX_AGE = 0.1  # seconds
MAX_BANDITS = 100
State = TypeVar("State")


class LocalStateCache(Generic[State]):
    """The latest encoded state of each bandit, for a moment.

    Examples
    --------
    >>> states = LocalStateCache[str]()
    >>> states.keep("banner", "state", now=7.0)
    >>> states.find("banner", now=7.05), states.find("banner", now=7.2)
    ('state', None)
    """

    def __init__(self) -> None:
        self._states: dict[str, tuple[float, State]] = {}

    def keep(self, bandit: str, state: State, now: float) -> None:
        """Keep a state, in place of an earlier one."""
        if len(self._states) >= MAX_BANDITS:
            self._states.clear()
        self._states[bandit] = now, state

    def forget(self, bandit: str) -> None:
        """Forget the state of a bandit that was changed."""
        self._states.pop(bandit, None)

    def find(self, bandit: str, now: float) -> State | None:
        """Return the state of a bandit, or None if it is too old."""
        at, state = self._states.get(bandit, (float("-inf"), None))
        return state if now - at < MAX_AGE else None
