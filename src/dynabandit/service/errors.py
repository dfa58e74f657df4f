"""What can go wrong, each with the HTTP status that says so."""

__all__ = ["Conflict", "Differs", "Interrupted", "Refused", "StoreFailed"]


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A call that is answered with a status other than 200, and changes nothing."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem


class StoreFailed(Exception):  # noqa: N818
    """The store did not do what it was asked; whether a commit happened may be unknown."""


class Conflict(StoreFailed):
    """Another process wrote the same sequence number, name or settlement first."""


class Interrupted(Exception):  # noqa: N818 - nobody's fault
    """Whoever asked is gone, may not have it any more, or the service is about to stop."""


class Differs(Exception):  # noqa: N818
    """The log and its replay disagree."""

    def __init__(self, bandit: str, sequence: int, problem: str) -> None:
        super().__init__(f"bandit {bandit!r}, event {sequence}: {problem}")
        self.bandit = bandit
        self.sequence = sequence
        self.problem = problem
