"""The errors of the service. None of them knows an HTTP status: `http/status_codes.py` maps each to its status."""

from dynabandit.plugins import UnknownPolicyError
from dynabandit.validation import ParameterError


class DomainError(Exception):
    """A request that the service cannot carry out."""


class NotFoundError(DomainError):
    """The bandit, arm or decision does not exist."""


class ConflictError(DomainError):
    """The request contradicts what exists, such as another reward for a decision that has one."""


class LateRewardError(DomainError):
    """The reward window of the decision has ended; the decision is closed, if it was not yet."""


class InvalidValueError(DomainError):
    """A value of the request is not valid."""


class OverloadedError(Exception):
    """Too many requests are waiting."""


class StoreError(Exception):
    """The store failed; whether a commit took place may be unknown."""


class WriteConflictError(StoreError):
    """Another process was first to write the same sequence number, bandit name or reward."""


class StoreBusyError(StoreError):
    """Another program has locked the store, so nothing was written; the same statement may succeed later."""


class WorkInterruptedError(Exception):
    """Long work or a stream ended early: its caller left, the key was revoked, or the service is stopping."""


class ReplayMismatchError(Exception):
    """The log and its replay disagree, or the log is damaged."""

    def __init__(self, bandit: str, sequence: int, problem: str) -> None:
        super().__init__(f"bandit {bandit!r}, event {sequence}: {problem}")
        self.bandit = bandit
        self.sequence = sequence
        self.problem = problem


# What reading a policy raises that is not damaged, but that this installation cannot use
UNUSABLE = (UnknownPolicyError, ParameterError)


class UnusablePolicyError(ReplayMismatchError):
    """The policy of a bandit is unknown, perhaps one of another package that is not in use, or its parameters are not
    valid any more.
    """


def unreadable(bandit: str, sequence: int, error: Exception) -> ReplayMismatchError:
    """Return the error for an event or a state that cannot be read."""
    if isinstance(error, UnknownPolicyError):
        return UnusablePolicyError(
            bandit,
            sequence,
            f"policy {error.policy!r} is not known here; if another package provides it, name it with --plugin",
        )
    if isinstance(error, ParameterError):
        return UnusablePolicyError(
            bandit,
            sequence,
            f"its policy has a parameter that this release does not compute with: {error}; change the policy with the "
            "release that made it, compact the log with that release, and open the store again",
        )
    return ReplayMismatchError(bandit, sequence, f"it cannot be read: {type(error).__name__}: {str(error)[:200]}")
