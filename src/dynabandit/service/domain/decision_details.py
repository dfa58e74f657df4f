"""The details of a decision: what was asked, and how it was decided. They are the body of its event."""

from typing import Any

import msgspec

ContextValues = dict[str, Any]  # feature -> value


class ShadowChoice(msgspec.Struct, array_like=True, frozen=True):
    """What the shadow policy would have chosen, and the probability with which the policy chooses that, if known."""

    column: int
    propensity: float | None = None


class DecisionDetails(msgspec.Struct, omit_defaults=True, frozen=True):
    """What the log holds about a decision besides its arm, step, time, propensity and idempotency key."""

    count: int = 1  # the decisions of the request, on the first one of several with an idempotency key
    context: ContextValues | None = None
    unit: str | None = None  # whom the decision is for
    holdout: bool = False  # whether the unit is in the holdout, so that the policy did not decide
    uncounted: bool = False  # for the lift: the unit had a decision before, or the holdout's arm could not be chosen
    among: list[int] | None = None  # the columns that could be chosen; None: all
    ranking: list[int] | None = None  # the columns in the order in which they were ranked; the first is the event's arm
    propensities: list[float] | None = None  # of the ranking; without one, of `among`
    deferred: bool = False  # whether the default reward is learned only if the decision is activated
    decider: str | None = None  # the local decider that decided
    local_step: int = 0  # the number of the decision there
    base: int = 0  # the sequence number of the state from which it decided
    shadow: ShadowChoice | None = None  # if there is a shadow policy, except for the holdout


MAX_CONTEXT = 16_384  # bytes: a context is in the log and, until its reward comes, in memory
NO_DETAILS = DecisionDetails()
_decoder = msgspec.json.Decoder(DecisionDetails | int)
_encode = msgspec.json.Encoder().encode


def read_details(body: str | None) -> DecisionDetails:
    """Return the details in the body of a decision; in the logs of release 0.1.0 a body is the number of decisions.

    Examples
    --------
    >>> read_details("3").count, read_details('{"context":{"hour":14}}').context, read_details(None) is NO_DETAILS
    (3, {'hour': 14}, True)
    """
    if body is None:
        return NO_DETAILS
    found = _decoder.decode(body)
    return DecisionDetails(count=found) if isinstance(found, int) else found


def write_details(details: DecisionDetails) -> str | None:
    """Return the body of a decision, None if all details are the usual ones.

    Examples
    --------
    >>> write_details(NO_DETAILS), write_details(DecisionDetails(count=2)), write_details(DecisionDetails(unit="u1"))
    (None, '2', '{"unit":"u1"}')
    """
    if details == NO_DETAILS:
        return None
    if details == DecisionDetails(count=details.count):
        return str(details.count)  # as in the logs of earlier releases
    return _encode(details).decode()


def context_size(context: ContextValues | None) -> int:
    """Return how many bytes a context has as JSON."""
    return 0 if context is None else len(_encode(context))


def check_context_size(context: ContextValues | None) -> None:
    """Raise an error if a context is too large.

    Examples
    --------
    >>> check_context_size({"text": "x" * 20_000})
    Traceback (most recent call last):
    ValueError: context must have at most 16384 bytes as JSON, got 20011
    """
    size = context_size(context)
    if size > MAX_CONTEXT:
        raise ValueError(f"context must have at most {MAX_CONTEXT} bytes as JSON, got {size}")
