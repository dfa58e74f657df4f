"""What both clients share: how a call is sent, how its answer is read, and when it is sent again."""

import math
import random
import re
from typing import Any, TypeVar

import httpx
import msgspec

from dynabandit.client.calls import Call, Found
from dynabandit.errors import integer, number
from dynabandit.service import api_types

__all__ = ["DAMAGED", "Base", "ServiceError", "erased"]

Result = TypeVar("Result")
TRY_AGAIN = frozenset({429, 502, 503, 504})
DAMAGED = 500  # also what a bandit answers whose log and replay disagree
FIRST_PAUSE = 0.05  # seconds; doubled at each try, with as much again at random
LONGEST_PAUSE = 2.0


class ServiceError(Exception):
    """An answer other than 2xx; `status` is 0 where none came, and `problem` says why.

    Examples
    --------
    >>> import dynabandit
    >>> with dynabandit.Client("http://127.0.0.1:9", tries=1) as client:
    ...     try:
    ...         client.decide("banner")
    ...     except dynabandit.ServiceError as error:
    ...         print(error.status)
    0
    """

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(f"{status}: {problem}" if status else problem)
        self.status = status
        self.problem = problem


class Base:
    """All of a client but the waiting."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        if not isinstance(url, str) or not re.match("https?://.", url):
            raise ValueError(f"url must start with http:// or https://, such as http://127.0.0.1:8000, got {url!r}")
        self._settings: dict[str, Any] = {
            "base_url": url,
            "timeout": number("timeout", timeout, 0.0, math.inf, open_low=True),
            "headers": {} if key is None else {"Authorization": f"Bearer {key}"},
        }
        self._tries = integer("tries", tries, 1)

    @staticmethod
    def _request(call: Call[Any]) -> dict[str, Any]:
        headers, content = dict(call.headers), None
        if call.body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(call.body)
        return {
            "method": call.method,
            "url": call.path,
            "headers": headers,
            "content": content,
            "params": call.query,
        }

    def _read(self, call: Call[Result], answer: httpx.Response | httpx.TransportError, attempt: int) -> Result | None:
        """Return the result, or None to try once more."""
        last, asked = attempt == self._tries - 1, f"{call.method} {call.path}"
        if isinstance(answer, httpx.TransportError):
            if last:
                where, why = self._settings["base_url"], str(answer) or type(answer).__name__
                raise ServiceError(0, f"no answer to {asked} from {where} in {self._tries} tries: {why}") from answer
            return None
        if answer.is_success:
            try:
                return msgspec.json.decode(answer.content, type=call.answer)
            except msgspec.DecodeError as error:
                raise ServiceError(answer.status_code, f"the answer to {asked} is not dynabandit's: {error}") from None
        if answer.status_code in TRY_AGAIN and not last:
            return None
        try:
            problem = msgspec.json.decode(answer.content, type=api_types.Problem).problem
        except msgspec.DecodeError:
            problem = answer.text[:200]
        tries = f" (in {self._tries} tries)" if answer.status_code in TRY_AGAIN else ""
        raise ServiceError(answer.status_code, f"{problem}{tries}")

    @staticmethod
    def _pause(attempt: int) -> float:
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(1.0, 2.0)


def erased(bandit: Found, erase: bool, error: ServiceError) -> api_types.Deleted:
    """Return that a bandit that was there is gone without a trace, where that was asked for."""
    if error.status != 404 or not erase:
        raise error
    return api_types.Deleted(bandit.name, bandit.id, log_kept=False)
