"""The calls of the service as data, one function a call: what to send, and what the answer is read as."""

import secrets
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from dynabandit.service import api_types

__all__ = [
    "Call", "Found", "add_arm", "bandits", "change_arm", "create", "decide", "delete", "events", "path", "preview",
    "reward", "rewards", "set_policy", "state",
]  # fmt: skip

Result = TypeVar("Result")
Found = api_types.BanditState | api_types.BanditSummary


class Call(NamedTuple, Generic[Result]):
    """A call; `answer` is what comes back."""

    method: str
    path: str
    answer: type[Result]
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})


def path(*names: str) -> str:
    """Return the address of a bandit, or of something below it."""
    # A dot is encoded, too: "." and ".." are names here, not places
    return "/".join(["/v1/bandits", *(quote(name, safe="").replace(".", "%2E") for name in names)])


def bandits(after: str) -> Call[api_types.BanditList]:
    return Call("GET", path(), api_types.BanditList, query={"after": after})


def state(name: str) -> Call[api_types.BanditState]:
    return Call("GET", path(name), api_types.BanditState)


def create(name: str, arms: Iterable[str], policy: str, settings: dict[str, Any]) -> Call[api_types.BanditState]:
    body = api_types.Create(arms=list(arms), policy=policy, **settings)
    return Call("PUT", path(name), api_types.BanditState, body)


def decide(name: str, count: int, key: str | None) -> Call[api_types.Decisions]:
    headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else key}
    return Call("POST", path(name, "decisions"), api_types.Decisions, api_types.Decide(count), headers)


def reward(decision: str, reward: float) -> Call[api_types.Rewarded]:
    place = f"/v1/decisions/{quote(decision, safe='')}/reward"
    return Call("PUT", place, api_types.Rewarded, api_types.Reward(float(reward)))


def rewards(given: Iterable[tuple[str, float]]) -> Call[api_types.RewardResults]:
    body = api_types.Rewards([api_types.GivenReward(decision, float(reward)) for decision, reward in given])
    return Call("POST", "/v1/rewards", api_types.RewardResults, body)


def add_arm(name: str, arm: str) -> Call[api_types.Changed]:
    return Call("POST", path(name, "arms"), api_types.Changed, api_types.AddArm(arm))


def change_arm(name: str, arm: str, change: dict[str, Any]) -> Call[api_types.Changed]:
    return Call("PATCH", path(name, "arms", arm), api_types.Changed, api_types.ChangeArm(**change))


def set_policy(name: str, policy: str, parameters: dict[str, Any]) -> Call[api_types.Changed]:
    return Call("PUT", path(name, "policy"), api_types.Changed, api_types.SetPolicy(policy, parameters))


def preview(name: str, policy: str, draws: int, parameters: dict[str, Any]) -> Call[api_types.Preview]:
    body = api_types.PreviewPolicy(policy, parameters, draws)
    return Call("POST", path(name, "policy", "preview"), api_types.Preview, body)


def events(name: str, after: int, limit: int, kind: str) -> Call[api_types.Events]:
    query = {"after": str(after), "limit": str(limit), "kind": kind}
    return Call("GET", path(name, "events"), api_types.Events, query=query)


def delete(bandit: Found, erase: bool) -> Call[api_types.Deleted]:
    # By its id a bandit can be deleted again after a lost answer, and whoever has its name by then is left alone
    query = {"confirm": bandit.name, "id": bandit.id, "erase": "true" if erase else "false"}
    return Call("DELETE", path(bandit.name), api_types.Deleted, query=query)
