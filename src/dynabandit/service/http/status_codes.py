"""The HTTP status and the response of every error that a request may raise."""

from collections.abc import Mapping

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from dynabandit.service import errors
from dynabandit.service.http.responses import problem_response
from dynabandit.service.logging_setup import log

STATUSES: dict[type[errors.DomainError], int] = {
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.LateRewardError: 410,
    errors.InvalidValueError: 422,
}
DAMAGED = 500
# Of every status the API may answer with, for the OpenAPI document
DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "An API key is missing or wrong.",
    403: "The API key may not do this.",
    404: "The bandit, arm or decision does not exist.",
    409: "It conflicts with what exists.",
    410: "The window of the decision has ended.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "Without API keys, the Host must be this machine.",
    422: "A value is not valid.",
    429: "Too many requests are waiting, or the API key has sent too many; try again later.",
    500: "An error of the service.",
    501: "An optional package is not installed.",
    503: "The store is not available; try again later.",
}
RETRY = {"Retry-After": "1"}  # seconds
NO_HEADERS: Mapping[str, str] = {}
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 413: {"Connection": "close"}}  # the rest of the body is not read


class ApiError(Exception):
    """A request that HTTP itself refuses, such as one without a key; errors of the domain have no status."""

    def __init__(self, status: int, problem: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(problem)
        self.status = status
        self.headers = headers or HEADERS.get(status, NO_HEADERS)


def error_response(error: Exception) -> Response:
    """Return the response to a request that failed."""
    match error:
        case errors.DomainError():
            return problem_response(STATUSES[type(error)], str(error))
        case ApiError():
            return problem_response(error.status, str(error), **error.headers)
        case errors.OverloadedError():
            return OVERLOADED
        case errors.StoreError():
            return problem_response(503, "the store is not available now; try again", **RETRY)
        case errors.WorkInterruptedError():
            return problem_response(503, "the service is stopping; try again", **RETRY)
        case msgspec.DecodeError() | RecursionError():
            return problem_response(400, f"the body must be JSON: {error}")
        case ClientDisconnect():
            return problem_response(400, "the request must be sent whole, but its end did not come")
        case errors.ReplayMismatchError():
            return problem_response(DAMAGED, damage_problem(error))
    log.error("call failed", exc_info=error)
    return problem_response(500, "something went wrong; the log of the service says what")


def damage_problem(error: errors.ReplayMismatchError) -> str:
    """Log why a bandit is not served, and return what the caller is told."""
    if isinstance(error, errors.UnusablePolicyError):
        log.error("policy cannot be used", bandit=error.bandit, problem=error.problem)
        return f"this bandit cannot be used: {error.problem}"
    log.error("log and replay disagree", bandit=error.bandit, sequence=error.sequence, problem=error.problem)
    return f"event {error.sequence} of this bandit's log and its replay disagree"


# Made once, because there is no time to make many
_TOO_MANY = "too many calls wait already; try again"
OVERLOADED = problem_response(429, _TOO_MANY, **RETRY)
OVERLOADED_CLOSE = problem_response(429, _TOO_MANY, **RETRY, Connection="close")
BUSY = problem_response(503, "there are too many connections; try again", **RETRY, Connection="close")
