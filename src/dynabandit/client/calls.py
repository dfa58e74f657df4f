"""The calls of the service as data, one function a call: what to send, and what the answer is read as."""

import secrets
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from dynabandit.service import types

__all__ = [
    "Call", "Found", "add_arm", "bandits", "change_arm", "create", "decide", "delete", "events", "path", "preview",
    "reward", "rewards", "set_policy", "state",
]  # fmt: skip

Result = TypeVar("Result")
Found = types.BanditState | types.BanditSummary


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


def bandits(after: str) -> Call[types.BanditList]:
    return Call("GET", path(), types.BanditList, query={"after": after})


def state(name: str) -> Call[types.BanditState]:
    return Call("GET", path(name), types.BanditState)


def create(name: str, arms: Iterable[str], policy: str, settings: dict[str, Any]) -> Call[types.BanditState]:
    body = types.Create(arms=list(arms), policy=policy, **settings)
    return Call("PUT", path(name), types.BanditState, body)


def decide(name: str, count: int, key: str | None) -> Call[types.Decisions]:
    headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else key}
    return Call("POST", path(name, "decisions"), types.Decisions, types.Decide(count), headers)


def reward(decision: str, reward: float) -> Call[types.Rewarded]:
    place = f"/v1/decisions/{quote(decision, safe='')}/reward"
    return Call("PUT", place, types.Rewarded, types.Reward(float(reward)))


def rewards(given: Iterable[tuple[str, float]]) -> Call[types.RewardResults]:
    body = types.Rewards([types.GivenReward(decision, float(reward)) for decision, reward in given])
    return Call("POST", "/v1/rewards", types.RewardResults, body)


def add_arm(name: str, arm: str) -> Call[types.Changed]:
    return Call("POST", path(name, "arms"), types.Changed, types.AddArm(arm))


def change_arm(name: str, arm: str, change: dict[str, Any]) -> Call[types.Changed]:
    return Call("PATCH", path(name, "arms", arm), types.Changed, types.ChangeArm(**change))


def set_policy(name: str, policy: str, parameters: dict[str, Any]) -> Call[types.Changed]:
    return Call("PUT", path(name, "policy"), types.Changed, types.SetPolicy(policy, parameters))


def preview(name: str, policy: str, draws: int, parameters: dict[str, Any]) -> Call[types.Preview]:
    body = types.PreviewPolicy(policy, parameters, draws)
    return Call("POST", path(name, "policy", "preview"), types.Preview, body)


def events(name: str, after: int, limit: int, kind: str) -> Call[types.Events]:
    query = {"after": str(after), "limit": str(limit), "kind": kind}
    return Call("GET", path(name, "events"), types.Events, query=query)


def delete(bandit: Found, erase: bool) -> Call[types.Deleted]:
    # By its id a bandit can be deleted again after a lost answer, and whoever has its name by then is left alone
    query = {"confirm": bandit.name, "id": bandit.id, "erase": "true" if erase else "false"}
    return Call("DELETE", path(bandit.name), types.Deleted, query=query)
