"""What both clients share: how a request is made, how its response is read, and when it is sent again."""

import math
import random
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from dynabandit.service import api_types
from dynabandit.validation import integer, number

Result = TypeVar("Result")
FoundBandit = api_types.BanditState | api_types.BanditSummary
RETRY_STATUSES = frozenset({429, 502, 503, 504})
DAMAGED = 500  # also the status of a bandit whose log and replay disagree
FIRST_PAUSE = 0.05  # seconds; doubled at each try, plus up to as much again at random
MAX_PAUSE = 2.0


class ServiceError(Exception):
    """A response other than 2xx; `status` is 0 if none came, and `problem` says why.

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


class Call(NamedTuple, Generic[Result]):
    """A request, and the type of its result."""

    method: str
    path: str
    result: type[Result]
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})

    def to_httpx(self) -> dict[str, Any]:
        """Return the arguments of httpx's `request`."""
        headers, content = dict(self.headers), None
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(self.body, enc_hook=_plain)
        return {"method": self.method, "url": self.path, "headers": headers, "content": content, "params": self.query}


def _plain(value: Any) -> Any:
    """Return a value of NumPy, as contexts may have, as msgspec can encode it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a request cannot contain an object of type {type(value).__name__}")


def bandit_path(*names: str) -> str:
    """Return the path of a bandit, or of something below it."""
    # Dots are encoded, too: "." and ".." in a path mean something else
    return "/".join(["/v1/bandits", *(quote(name, safe="").replace(".", "%2E") for name in names)])


class BaseClient:
    """The part of a client that does not wait for anything."""

    def __init__(self, url: str, key: str | None, timeout: float, tries: int) -> None:
        if not isinstance(url, str) or not re.match("https?://.", url):
            raise ValueError(f"url must start with http:// or https://, such as http://127.0.0.1:8000, got {url!r}")
        self._settings: dict[str, Any] = {
            "base_url": url,
            "timeout": number("timeout", timeout, 0.0, math.inf, open_low=True),
            "headers": {} if key is None else {"Authorization": f"Bearer {key}"},
            "verify": url.startswith("https:"),  # loading certificates takes longer than a request
        }
        self._tries = integer("tries", tries, 1)

    def _read(self, call: Call[Result], answer: httpx.Response | httpx.TransportError, attempt: int) -> Result | None:
        """Return the result, or None to try again."""
        is_last, asked = attempt == self._tries - 1, f"{call.method} {call.path}"
        if isinstance(answer, httpx.TransportError):
            if is_last:
                where, why = self._settings["base_url"], str(answer) or type(answer).__name__
                raise ServiceError(0, f"no answer to {asked} from {where} in {self._tries} tries: {why}") from answer
            return None
        if answer.is_success:
            try:
                return msgspec.json.decode(answer.content, type=call.result)
            except msgspec.DecodeError as error:
                raise ServiceError(answer.status_code, f"the answer to {asked} is not dynabandit's: {error}") from None
        if answer.status_code in RETRY_STATUSES and not is_last:
            return None
        try:
            problem = msgspec.json.decode(answer.content, type=api_types.Problem).problem
        except msgspec.DecodeError:
            problem = answer.text[:200]
        tries = f" (in {self._tries} tries)" if answer.status_code in RETRY_STATUSES else ""
        raise ServiceError(answer.status_code, f"{problem}{tries}")

    @staticmethod
    def _decision_path(name: str | None, decision: str, last: str) -> str:
        """Return the path of something below a decision; the name of the bandit may be left out."""
        if name is None:
            return f"/v1/decisions/{quote(decision, safe='')}/{last}"
        return bandit_path(name, "decisions", decision, last)

    @staticmethod
    def _pause(attempt: int) -> float:
        return min(MAX_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(1.0, 2.0)


def erased(bandit: FoundBandit, erase: bool, error: ServiceError) -> api_types.Deleted:
    """Return that a bandit was erased: a lost response and another try give 404."""
    if error.status != 404 or not erase:
        raise error
    return api_types.Deleted(bandit.name, bandit.id, log_kept=False)
