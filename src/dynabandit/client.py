"""A client of the decision service, whose retries are safe because every call is idempotent."""

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from dynabandit.errors import extra

extra("httpx", "serve")
import httpx  # noqa: E402 - after the message that says how to install it
import msgspec  # noqa: E402

from dynabandit.service import types  # noqa: E402

__all__ = ["AsyncClient", "Client", "ServiceError"]

Result = TypeVar("Result")
TRY_AGAIN = frozenset({429, 502, 503, 504})
FIRST_PAUSE = 0.05  # seconds; doubled at each try, with as much again at random
LONGEST_PAUSE = 2.0


class ServiceError(Exception):
    """An answer other than 2xx; `status` is 0 where none came."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(f"{status}: {problem}" if status else problem)
        self.status = status
        self.problem = problem


class _Call(NamedTuple, Generic[Result]):
    method: str
    path: str
    answer: type[Result]
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})


def _bandit(name: str, *rest: str) -> str:
    # A dot is encoded, too: "." and ".." are names here, not places
    return "/".join(["/v1/bandits", *(quote(part, safe="").replace(".", "%2E") for part in (name, *rest))])


def _create(name: str, arms: Iterable[str], policy: str, settings: dict[str, Any]) -> _Call[types.BanditState]:
    body = types.Create(arms=list(arms), policy=policy, **settings)
    return _Call("PUT", _bandit(name), types.BanditState, body)


def _decide(name: str, count: int, key: str | None) -> _Call[types.Decisions]:
    headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else key}
    return _Call("POST", f"{_bandit(name)}/decisions", types.Decisions, types.Decide(count), headers)


def _reward(decision: str, reward: float) -> _Call[types.Rewarded]:
    path = f"/v1/decisions/{quote(decision, safe='')}/reward"
    return _Call("PUT", path, types.Rewarded, types.Reward(float(reward)))


def _rewards(given: Iterable[tuple[str, float]]) -> _Call[types.RewardResults]:
    body = types.Rewards([types.GivenReward(decision, float(reward)) for decision, reward in given])
    return _Call("POST", "/v1/rewards", types.RewardResults, body)


def _change_arm(name: str, arm: str, change: dict[str, Any]) -> _Call[types.Changed]:
    path = f"{_bandit(name)}/arms{_bandit(arm).removeprefix('/v1/bandits')}"
    return _Call("PATCH", path, types.Changed, types.ChangeArm(**change))


def _set_policy(name: str, policy: str, parameters: dict[str, Any]) -> _Call[types.Changed]:
    return _Call("PUT", f"{_bandit(name)}/policy", types.Changed, types.SetPolicy(policy, parameters))


def _preview(name: str, policy: str, draws: int, parameters: dict[str, Any]) -> _Call[types.Preview]:
    body = types.PreviewPolicy(policy, parameters, draws)
    return _Call("POST", f"{_bandit(name)}/policy/preview", types.Preview, body)


def _events(name: str, after: int, limit: int, kind: str) -> _Call[types.Events]:
    query = {"after": str(after), "limit": str(limit), "kind": kind}
    return _Call("GET", f"{_bandit(name)}/events", types.Events, query=query)


def _delete(bandit: types.BanditState, erase: bool) -> _Call[types.Deleted]:
    # By its id a bandit can be deleted again after a lost answer, and whoever has its name by then is left alone
    query = {"confirm": bandit.name, "id": bandit.id, "erase": "true" if erase else "false"}
    return _Call("DELETE", _bandit(bandit.name), types.Deleted, query=query)


def _erased(bandit: types.BanditState, erase: bool, error: ServiceError) -> types.Deleted:
    """Return that a bandit that was there is gone without a trace, where that was asked for."""
    if error.status != 404 or not erase:
        raise error
    return types.Deleted(bandit.name, bandit.id, log_kept=False)


class _Base:
    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        self._settings: dict[str, Any] = {
            "base_url": url,
            "timeout": timeout,
            "headers": {} if key is None else {"Authorization": f"Bearer {key}"},
        }
        self._tries = tries

    @staticmethod
    def _request(call: _Call[Any]) -> dict[str, Any]:
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

    def _read(self, call: _Call[Result], answer: httpx.Response | None, attempt: int) -> Result | None:
        """Return the result, or None to try once more."""
        last = attempt == self._tries - 1
        if answer is None or answer.status_code in TRY_AGAIN:
            if last:
                status = 0 if answer is None else answer.status_code
                raise ServiceError(status, f"no answer to {call.method} {call.path} in {self._tries} tries")
            return None
        if answer.is_success:
            return msgspec.json.decode(answer.content, type=call.answer)
        try:
            problem = msgspec.json.decode(answer.content, type=types.Problem).problem
        except msgspec.DecodeError:
            problem = answer.text[:200]
        raise ServiceError(answer.status_code, problem)

    @staticmethod
    def _pause(attempt: int) -> float:
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(1.0, 2.0)


class Client(_Base):
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
    ::

        with dynabandit.Client("http://127.0.0.1:8000") as client:
            client.create("banner", arms=["red", "green", "blue"], reward_window=3600, default_reward=0)
            decision = client.decide("banner")
            client.reward(decision.decision, 1)
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        super().__init__(url, key, timeout, tries)
        self._http = httpx.Client(**self._settings)

    def _send(self, call: _Call[Result]) -> Result:
        for attempt in range(self._tries):
            answer = None
            with contextlib.suppress(httpx.TransportError):
                answer = self._http.request(**self._request(call))
            result = self._read(call, answer, attempt)
            if result is not None:
                return result
            time.sleep(self._pause(attempt))
        raise AssertionError("unreachable")

    def create(self, name: str, arms: Iterable[str], policy: str = "aff-ots", **settings: Any) -> types.BanditState:
        """Create a bandit; `settings` are parameters, reward_window, default_reward and seed."""
        return self._send(_create(name, arms, policy, settings))

    def bandits(self) -> Iterator[types.BanditSummary]:
        """Return all bandits."""
        after: str | None = ""
        while after is not None:
            page = self._send(_Call("GET", "/v1/bandits", types.BanditList, query={"after": after}))
            yield from page.bandits
            after = page.next

    def state(self, name: str) -> types.BanditState:
        """Return what a bandit knows."""
        return self._send(_Call("GET", _bandit(name), types.BanditState))

    def decide(self, name: str, key: str | None = None) -> types.Decision:
        """Return a decision; the same key gives the same one."""
        return self.decide_many(name, 1, key)[0]

    def decide_many(self, name: str, count: int, key: str | None = None) -> list[types.Decision]:
        """Return many decisions at once."""
        return self._send(_decide(name, count, key)).decisions

    def reward(self, decision: str, reward: float) -> types.Rewarded:
        """Tell the reward of a decision."""
        return self._send(_reward(decision, reward))

    def reward_many(self, rewards: Iterable[tuple[str, float]]) -> list[types.RewardResult]:
        """Tell many rewards, each a pair (decision, reward); each has its own status."""
        return self._send(_rewards(rewards)).results

    def add_arm(self, name: str, arm: str) -> types.Changed:
        """Add an arm."""
        return self._send(_Call("POST", f"{_bandit(name)}/arms", types.Changed, types.AddArm(arm)))

    def change_arm(self, name: str, arm: str, **change: Any) -> types.Changed:
        """Change an arm: paused=True or False, retired=True, min_share=..., max_share=..."""
        return self._send(_change_arm(name, arm, change))

    def set_policy(self, name: str, policy: str, **parameters: Any) -> types.Changed:
        """Go on with another policy, warmed by all rewards so far."""
        return self._send(_set_policy(name, policy, parameters))

    def preview_policy(self, name: str, policy: str, draws: int = 1000, **parameters: Any) -> types.Preview:
        """Return what another policy would believe and choose now; nothing is changed."""
        return self._send(_preview(name, policy, draws, parameters))

    def events(self, name: str, after: int = 0, limit: int = 1000, kind: str = "all") -> Iterator[types.Event]:
        """Return the log after a sequence number: all, or each "decision", "reward" or "change"."""
        while page := self._send(_events(name, after, limit, kind)).events:
            yield from page
            after = page[-1].sequence

    def export(self, name: str, draws: int = 200) -> Iterator[types.Exported]:
        """Return all decisions with rewards and propensities; a broken stream is not asked for again."""
        with self._http.stream("GET", f"{_bandit(name)}/export", params={"draws": str(draws)}) as answer:
            if not answer.is_success:
                answer.read()
                self._read(_Call("GET", "", types.Exported), answer, self._tries - 1)
            for line in answer.iter_lines():
                yield msgspec.json.decode(line, type=types.Exported)

    def delete(self, name: str, erase: bool = False) -> types.Deleted:
        """Delete a bandit; its log stays, unless `erase`."""
        bandit = self.state(name)
        try:
            return self._send(_delete(bandit, erase))
        except ServiceError as error:
            return _erased(bandit, erase, error)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncClient(_Base):
    """The same as `Client`, with coroutines."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        super().__init__(url, key, timeout, tries)
        self._http = httpx.AsyncClient(**self._settings)

    async def _send(self, call: _Call[Result]) -> Result:
        for attempt in range(self._tries):
            answer = None
            with contextlib.suppress(httpx.TransportError):
                answer = await self._http.request(**self._request(call))
            result = self._read(call, answer, attempt)
            if result is not None:
                return result
            await asyncio.sleep(self._pause(attempt))
        raise AssertionError("unreachable")

    async def create(
        self, name: str, arms: Iterable[str], policy: str = "aff-ots", **settings: Any
    ) -> types.BanditState:
        """Create a bandit; `settings` are parameters, reward_window, default_reward and seed."""
        return await self._send(_create(name, arms, policy, settings))

    async def bandits(self) -> list[types.BanditSummary]:
        """Return all bandits."""
        found: list[types.BanditSummary] = []
        after: str | None = ""
        while after is not None:
            page = await self._send(_Call("GET", "/v1/bandits", types.BanditList, query={"after": after}))
            found += page.bandits
            after = page.next
        return found

    async def state(self, name: str) -> types.BanditState:
        """Return what a bandit knows."""
        return await self._send(_Call("GET", _bandit(name), types.BanditState))

    async def decide(self, name: str, key: str | None = None) -> types.Decision:
        """Return a decision; the same key gives the same one."""
        return (await self.decide_many(name, 1, key))[0]

    async def decide_many(self, name: str, count: int, key: str | None = None) -> list[types.Decision]:
        """Return many decisions at once."""
        return (await self._send(_decide(name, count, key))).decisions

    async def reward(self, decision: str, reward: float) -> types.Rewarded:
        """Tell the reward of a decision."""
        return await self._send(_reward(decision, reward))

    async def reward_many(self, rewards: Iterable[tuple[str, float]]) -> list[types.RewardResult]:
        """Tell many rewards, each a pair (decision, reward); each has its own status."""
        return (await self._send(_rewards(rewards))).results

    async def add_arm(self, name: str, arm: str) -> types.Changed:
        """Add an arm."""
        return await self._send(_Call("POST", f"{_bandit(name)}/arms", types.Changed, types.AddArm(arm)))

    async def change_arm(self, name: str, arm: str, **change: Any) -> types.Changed:
        """Change an arm: paused=True or False, retired=True, min_share=..., max_share=..."""
        return await self._send(_change_arm(name, arm, change))

    async def set_policy(self, name: str, policy: str, **parameters: Any) -> types.Changed:
        """Go on with another policy, warmed by all rewards so far."""
        return await self._send(_set_policy(name, policy, parameters))

    async def preview_policy(self, name: str, policy: str, draws: int = 1000, **parameters: Any) -> types.Preview:
        """Return what another policy would believe and choose now; nothing is changed."""
        return await self._send(_preview(name, policy, draws, parameters))

    async def events(self, name: str, after: int = 0, limit: int = 1000, kind: str = "all") -> list[types.Event]:
        """Return a page of the log after a sequence number: all, or each "decision", "reward" or "change"."""
        return (await self._send(_events(name, after, limit, kind))).events

    async def export(self, name: str, draws: int = 200) -> AsyncIterator[types.Exported]:
        """Return all decisions with rewards and propensities; a broken stream is not asked for again."""
        async with self._http.stream("GET", f"{_bandit(name)}/export", params={"draws": str(draws)}) as answer:
            if not answer.is_success:
                await answer.aread()
                self._read(_Call("GET", "", types.Exported), answer, self._tries - 1)
            async for line in answer.aiter_lines():
                yield msgspec.json.decode(line, type=types.Exported)

    async def delete(self, name: str, erase: bool = False) -> types.Deleted:
        """Delete a bandit; its log stays, unless `erase`."""
        bandit = await self.state(name)
        try:
            return await self._send(_delete(bandit, erase))
        except ServiceError as error:
            return _erased(bandit, erase, error)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
