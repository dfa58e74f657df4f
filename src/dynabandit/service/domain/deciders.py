"""The local deciders of a bandit: what the log has of each of them."""

from typing import Any, NamedTuple

from dynabandit.service.domain.decision_details import DecisionDetails

MAX_DECIDERS = 10_000  # that a state knows; those of earlier ones are found in the log by their keys


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


def local_key(decider: str, step: int) -> str:
    """Return the idempotency key of a local decision; callers cannot send it, because a tab is not printable."""
    return f"{decider}\t{step}"
