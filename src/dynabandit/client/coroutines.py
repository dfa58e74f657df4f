"""The client whose calls are coroutines."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

import httpx
import msgspec

from dynabandit.client import calls
from dynabandit.client.base import DAMAGED, Base, ServiceError, erased
from dynabandit.client.calls import Call
from dynabandit.service import api_types
from dynabandit.service.domain.names import clean_name

__all__ = ["AsyncClient"]

Result = TypeVar("Result")


class AsyncClient(Base):
    """The same as `Client`, with coroutines, and with asynchronous iterators in place of iterators.

    Examples
    --------
    >>> import dynabandit
    >>> async def decide() -> str:
    ...     async with dynabandit.AsyncClient("http://127.0.0.1:8000") as client:
    ...         return (await client.decide("banner")).arm
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        super().__init__(url, key, timeout, tries)
        self._http = httpx.AsyncClient(**self._settings)

    async def _send(self, call: Call[Result]) -> Result:
        for attempt in range(self._tries):
            answer: httpx.Response | httpx.TransportError
            try:
                answer = await self._http.request(**self._request(call))
            except httpx.TransportError as error:
                answer = error
            result = self._read(call, answer, attempt)
            if result is not None:
                return result
            await asyncio.sleep(self._pause(attempt))
        raise AssertionError("unreachable")

    async def create(
        self, name: str, arms: Iterable[str], policy: str = "aff-ots", **settings: Any
    ) -> api_types.BanditState:
        """Create a bandit; `settings` are parameters, reward_window, default_reward and seed."""
        return await self._send(calls.create(name, arms, policy, settings))

    def bandits(self) -> AsyncIterator[api_types.BanditSummary]:
        """Return all bandits."""
        return self._bandits_after("")

    async def _bandits_after(self, name: str) -> AsyncIterator[api_types.BanditSummary]:
        after: str | None = name
        while after is not None:
            page = await self._send(calls.bandits(after))
            for bandit in page.bandits:
                yield bandit
            after = page.next

    async def state(self, name: str) -> api_types.BanditState:
        """Return what a bandit knows."""
        return await self._send(calls.state(name))

    async def decide(self, name: str, key: str | None = None) -> api_types.Decision:
        """Return a decision; the same key gives the same one."""
        return (await self.decide_many(name, 1, key))[0]

    async def decide_many(self, name: str, count: int, key: str | None = None) -> list[api_types.Decision]:
        """Return many decisions at once."""
        return (await self._send(calls.decide(name, count, key))).decisions

    async def reward(self, decision: str, reward: float) -> api_types.Rewarded:
        """Tell the reward of a decision."""
        return await self._send(calls.reward(decision, reward))

    async def reward_many(self, rewards: Iterable[tuple[str, float]]) -> list[api_types.RewardResult]:
        """Tell many rewards, each a pair (decision, reward); each has its own status."""
        return (await self._send(calls.rewards(rewards))).results

    async def add_arm(self, name: str, arm: str) -> api_types.Changed:
        """Add an arm."""
        return await self._send(calls.add_arm(name, arm))

    async def change_arm(self, name: str, arm: str, **change: Any) -> api_types.Changed:
        """Change an arm: paused=True or False, retired=True, min_share=..., max_share=..."""
        return await self._send(calls.change_arm(name, arm, change))

    async def set_policy(self, name: str, policy: str, **parameters: Any) -> api_types.Changed:
        """Go on with another policy, warmed by all rewards so far."""
        return await self._send(calls.set_policy(name, policy, parameters))

    async def preview_policy(self, name: str, policy: str, draws: int = 1000, **parameters: Any) -> api_types.Preview:
        """Return what another policy would believe and choose now; nothing is changed."""
        return await self._send(calls.preview(name, policy, draws, parameters))

    async def events(
        self, name: str, after: int = 0, limit: int = 1000, kind: str = "all"
    ) -> AsyncIterator[api_types.Event]:
        """Return the log after a sequence number: all, or each "decision", "reward" or "change"."""
        while page := (await self._send(calls.events(name, after, limit, kind))).events:
            for event in page:
                yield event
            after = page[-1].sequence

    async def export(self, name: str, draws: int = 200) -> AsyncIterator[api_types.Exported]:
        """Return all decisions with rewards and propensities; a broken stream is not asked for again."""
        async with self._http.stream("GET", calls.path(name, "export"), params={"draws": str(draws)}) as answer:
            if not answer.is_success:
                await answer.aread()
                self._read(Call("GET", "", api_types.Exported), answer, self._tries - 1)
            async for line in answer.aiter_lines():
                yield msgspec.json.decode(line, type=api_types.Exported)

    async def delete(self, name: str, erase: bool = False) -> api_types.Deleted:
        """Delete a bandit; its log stays, unless `erase`."""
        bandit = await self._find(name)
        try:
            return await self._send(calls.delete(bandit, erase))
        except ServiceError as error:
            return erased(bandit, erase, error)

    async def _find(self, name: str) -> calls.Found:
        """Return a bandit, also one whose log is so damaged that it has no state."""
        try:
            return await self.state(name)
        except ServiceError as error:
            if error.status != DAMAGED:
                raise
            name = clean_name(name)
            async for one in self._bandits_after(name[:-1]):
                if one.name == name:
                    return one
            raise

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
