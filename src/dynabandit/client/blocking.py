"""The client that waits for its answers."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import httpx
import msgspec

from dynabandit.client import calls
from dynabandit.client.base import DAMAGED, Base, ServiceError, erased
from dynabandit.client.calls import Call
from dynabandit.service import api_types
from dynabandit.service.domain.names import clean_name

__all__ = ["Client"]

Result = TypeVar("Result")


class Client(Base):
    """A client of the decision service.

    Every call is tried again where no answer came or the service was busy. That is safe: a decision carries a key
    that gives the same decision again, and a reward counts once however often it is told.

    Parameters
    ----------
    url
        Where the service is, such as ``"http://127.0.0.1:8000"``.
    key
        An API key, where the service asks for one.
    timeout
        Seconds to wait for an answer.
    tries
        How often a call is tried.

    Examples
    --------
    >>> import dynabandit
    >>> with dynabandit.Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     client.create("banner", arms=["red", "green", "blue"], reward_window=3600, default_reward=0)
    ...     decision = client.decide("banner")
    ...     client.reward(decision.decision, 1)
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        super().__init__(url, key, timeout, tries)
        self._http = httpx.Client(**self._settings)

    def _send(self, call: Call[Result]) -> Result:
        for attempt in range(self._tries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = self._http.request(**self._request(call))
            except httpx.TransportError as error:
                answer = error
            result = self._read(call, answer, attempt)
            if result is not None:
                return result
            time.sleep(self._pause(attempt))
        raise AssertionError("unreachable")

    def create(self, name: str, arms: Iterable[str], policy: str = "aff-ots", **settings: Any) -> api_types.BanditState:
        """Create a bandit; `settings` are parameters, reward_window, default_reward and seed."""
        return self._send(calls.create(name, arms, policy, settings))

    def bandits(self) -> Iterator[api_types.BanditSummary]:
        """Return all bandits."""
        return self._bandits_after("")

    def _bandits_after(self, name: str) -> Iterator[api_types.BanditSummary]:
        after: str | None = name
        while after is not None:
            page = self._send(calls.bandits(after))
            yield from page.bandits
            after = page.next

    def state(self, name: str) -> api_types.BanditState:
        """Return what a bandit knows."""
        return self._send(calls.state(name))

    def decide(self, name: str, key: str | None = None) -> api_types.Decision:
        """Return a decision; the same key gives the same one."""
        return self.decide_many(name, 1, key)[0]

    def decide_many(self, name: str, count: int, key: str | None = None) -> list[api_types.Decision]:
        """Return many decisions at once."""
        return self._send(calls.decide(name, count, key)).decisions

    def reward(self, decision: str, reward: float) -> api_types.Rewarded:
        """Tell the reward of a decision."""
        return self._send(calls.reward(decision, reward))

    def reward_many(self, rewards: Iterable[tuple[str, float]]) -> list[api_types.RewardResult]:
        """Tell many rewards, each a pair (decision, reward); each has its own status."""
        return self._send(calls.rewards(rewards)).results

    def add_arm(self, name: str, arm: str) -> api_types.Changed:
        """Add an arm."""
        return self._send(calls.add_arm(name, arm))

    def change_arm(self, name: str, arm: str, **change: Any) -> api_types.Changed:
        """Change an arm: paused=True or False, retired=True, min_share=..., max_share=..."""
        return self._send(calls.change_arm(name, arm, change))

    def set_policy(self, name: str, policy: str, **parameters: Any) -> api_types.Changed:
        """Go on with another policy, warmed by all rewards so far."""
        return self._send(calls.set_policy(name, policy, parameters))

    def preview_policy(self, name: str, policy: str, draws: int = 1000, **parameters: Any) -> api_types.Preview:
        """Return what another policy would believe and choose now; nothing is changed."""
        return self._send(calls.preview(name, policy, draws, parameters))

    def events(self, name: str, after: int = 0, limit: int = 1000, kind: str = "all") -> Iterator[api_types.Event]:
        """Return the log after a sequence number: all, or each "decision", "reward" or "change"."""
        while page := self._send(calls.events(name, after, limit, kind)).events:
            yield from page
            after = page[-1].sequence

    def export(self, name: str, draws: int = 200) -> Iterator[api_types.Exported]:
        """Return all decisions with rewards and propensities; a broken stream is not asked for again."""
        with self._http.stream("GET", calls.path(name, "export"), params={"draws": str(draws)}) as answer:
            if not answer.is_success:
                answer.read()
                self._read(Call("GET", "", api_types.Exported), answer, self._tries - 1)
            for line in answer.iter_lines():
                yield msgspec.json.decode(line, type=api_types.Exported)

    def delete(self, name: str, erase: bool = False) -> api_types.Deleted:
        """Delete a bandit; its log stays, unless `erase`."""
        bandit = self._find(name)
        try:
            return self._send(calls.delete(bandit, erase))
        except ServiceError as error:
            return erased(bandit, erase, error)

    def _find(self, name: str) -> calls.Found:
        """Return a bandit, also one whose log is so damaged that it has no state."""
        try:
            return self.state(name)
        except ServiceError as error:
            if error.status != DAMAGED:
                raise
            name = clean_name(name)
            for one in self._bandits_after(name[:-1]):  # the list is in order, and can be had from any name on
                if one.name == name:
                    return one
            raise

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
