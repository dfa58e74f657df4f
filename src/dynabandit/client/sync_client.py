"""The synchronous client, generated from async_client.py by `make client`. Do not edit."""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import httpx
import msgspec

from dynabandit.client.base import DAMAGED, BaseClient, Call, FoundBandit, ServiceError, bandit_path, erased
from dynabandit.service import api_types, monitoring_types
from dynabandit.service.domain.names import clean_name

Result = TypeVar("Result")


class Client(BaseClient):
    """A client of the decision service.

    Every request is sent again if no response came or the service was busy. That is safe: a decision carries a key
    that gives the same decision again, and a reward counts once however often it is sent.

    Parameters
    ----------
    url
        Where the service is, such as ``"http://127.0.0.1:8000"``.
    key
        An API key, if the service needs one.
    timeout
        Seconds to wait for a response.
    tries
        How often a request is tried.

    Examples
    --------
    >>> import dynabandit
    >>> def show_banner() -> str:
    ...     with dynabandit.Client("http://127.0.0.1:8000") as client:
    ...         client.create("banner", arms=["red", "green"], reward_window=3600, default_reward=0)
    ...         decision = client.decide("banner")
    ...         client.reward(decision.decision, 1)
    ...         return decision.arm
    """

    def __init__(self, url: str, key: str | None = None, timeout: float = 10.0, tries: int = 6) -> None:
        super().__init__(url, key, timeout, tries)
        self._http = httpx.Client(**self._settings)

    def _send(self, call: Call[Result]) -> Result:
        for attempt in range(self._tries):  # tenacity would take more lines to tell these cases apart
            answer: httpx.Response | httpx.TransportError
            try:
                answer = self._http.request(**call.to_httpx())
            except httpx.TransportError as error:
                answer = error
            result = self._read(call, answer, attempt)
            if result is not None:
                return result
            time.sleep(self._pause(attempt))
        raise AssertionError("unreachable")

    def create(self, name: str, arms: Iterable[str], policy: str = "auto", **settings: Any) -> api_types.BanditState:
        """Create a bandit, and return its state.

        Parameters
        ----------
        name
            The name of the bandit.
        arms
            The names of its arms, at least two.
        policy
            The name of its policy; by default the recommended one.
        settings
            The other fields of the request (docs/service.md): parameters, reward_window, default_reward, learn,
            rewards, seed, features, arm_features, sticky_for, guardrails and holdout, such as ``{"share": 0.1,
            "control": "red"}``.
        """
        body = api_types.Create(arms=list(arms), policy=policy, **settings)
        return self._send(Call("PUT", bandit_path(name), api_types.BanditState, body))

    def bandits(self) -> Iterator[api_types.BanditSummary]:
        """Yield all bandits."""
        return self._bandits_after("")

    def _bandits_after(self, name: str) -> Iterator[api_types.BanditSummary]:
        after: str | None = name
        while after is not None:
            page = self._send(Call("GET", bandit_path(), api_types.BanditList, query={"after": after}))
            for bandit in page.bandits:
                yield bandit
            after = page.next

    def state(self, name: str) -> api_types.BanditState:
        """Return the state of the bandit with this name, and what it has learned."""
        return self._send(Call("GET", bandit_path(name), api_types.BanditState))

    def decide(
        self,
        name: str,
        key: str | None = None,
        *,
        context: dict[str, Any] | None = None,
        unit: str | None = None,
        among: list[str] | None = None,
        rank: int | None = None,
    ) -> api_types.Decision:
        """Return a decision: the arm to play, and the id to send its reward to.

        Parameters
        ----------
        name
            The name of the bandit.
        key
            The same key gives the same decision again; by default each call makes a new one.
        context
            The values of the features, by name, if the bandit has features.
        unit
            Whom the decision is for, such as a user.
        among
            The names of the arms to choose from; by default all that are not paused.
        rank
            How many arms the decision ranks; by default it has no ranking.
        """
        [decision] = self._decide(name, key, api_types.Decide(1, context, unit, among, rank))
        return decision

    def decide_many(
        self, name: str, count: int, key: str | None = None, *, context: dict[str, Any] | None = None
    ) -> list[api_types.Decision]:
        """Return several decisions in the same context.

        Parameters
        ----------
        name
            The name of the bandit.
        count
            How many decisions, at most 1,000.
        key, context
            As for `decide`.
        """
        return self._decide(name, key, api_types.Decide(count, context))

    def _decide(self, name: str, key: str | None, body: api_types.Decide) -> list[api_types.Decision]:
        headers = {"Idempotency-Key": secrets.token_hex(16) if key is None else key}
        result = self._send(Call("POST", bandit_path(name, "decisions"), api_types.Decisions, body, headers))
        return result.decisions

    def reward(
        self, decision: str, reward: float, name: str | None = None, *, arm: str | None = None
    ) -> api_types.Rewarded:
        """Send the reward of a decision, and return the reward that counts.

        Parameters
        ----------
        decision
            The id of the decision, `Decision.decision`.
        reward
            The reward; most policies need a number in [0, 1].
        name
            The name of the bandit, with which a load balancer can send the reward to the replica that decides for it.
        arm
            The arm of the ranking that was taken; by default the first.
        """
        path = self._decision_path(name, decision, "reward")
        return self._send(Call("PUT", path, api_types.Rewarded, api_types.Reward(float(reward), arm)))

    def reward_many(
        self, rewards: Iterable[tuple[str, float] | tuple[str, float, str]], name: str | None = None
    ) -> list[api_types.RewardResult]:
        """Send several rewards, and return the result of each, with a status of its own.

        Parameters
        ----------
        rewards
            At most 10,000 rewards, each as (decision, reward) or (decision, reward, arm).
        name
            The name of the bandit, if all of them are rewards of the same one; see `reward`.
        """
        given = [api_types.GivenReward(decision, float(reward), *arm) for decision, reward, *arm in rewards]
        path = "/v1/rewards" if name is None else bandit_path(name, "rewards")
        result = self._send(Call("POST", path, api_types.RewardResults, api_types.Rewards(given)))
        return result.results

    def metrics(
        self, decision: str, metrics: Mapping[str, float], name: str | None = None
    ) -> monitoring_types.CountedMetrics:
        """Send metrics of a decision, and return those that count.

        Parameters
        ----------
        decision, name
            As for `reward`.
        metrics
            The values of metrics that the bandit has guardrails for, by name.
        """
        path = self._decision_path(name, decision, "metrics")
        body = monitoring_types.Metrics({metric: float(value) for metric, value in metrics.items()})
        return self._send(Call("PUT", path, monitoring_types.CountedMetrics, body))

    def set_guardrails(self, name: str, guardrails: Mapping[str, Any]) -> api_types.Changed:
        """Replace the guardrails.

        Parameters
        ----------
        name
            The name of the bandit.
        guardrails
            The guardrails by metric, such as ``{"latency": {"bound": 0.5, "direction": "max", "range": [0, 10]}}``.
        """
        body = monitoring_types.SetGuardrails(dict(guardrails))
        return self._send(Call("PUT", bandit_path(name, "guardrails"), api_types.Changed, body))

    def alerts(self, name: str, after: int = 0) -> Iterator[monitoring_types.Alert]:
        """Yield the alerts; the parameters are those of `events`."""
        while True:
            query = {"after": str(after)}
            page = self._send(Call("GET", bandit_path(name, "alerts"), monitoring_types.Alerts, query=query))
            for alert in page.alerts:
                yield alert
            if not page.alerts:
                return
            after = page.alerts[-1].sequence

    def add_arm(self, name: str, arm: str, features: dict[str, Any] | None = None) -> api_types.Changed:
        """Add an arm.

        Parameters
        ----------
        name, arm
            The names of the bandit and of the arm.
        features
            Its features, by name, if the bandit has features of arms.
        """
        body = api_types.AddArm(arm, features)
        return self._send(Call("POST", bandit_path(name, "arms"), api_types.Changed, body))

    def change_arm(self, name: str, arm: str, **change: Any) -> api_types.Changed:
        """Change an arm.

        Parameters
        ----------
        name, arm
            The names of the bandit and of the arm.
        change
            What changes: ``paused=True`` or ``False``, ``retired=True``, ``min_share=...``, ``max_share=...``.
        """
        body = api_types.ChangeArm(**change)
        return self._send(Call("PATCH", bandit_path(name, "arms", arm), api_types.Changed, body))

    def set_policy(self, name: str, policy: str, **parameters: Any) -> api_types.Changed:
        """Continue with another policy, which first learns all rewards so far.

        Parameters
        ----------
        name, policy
            The names of the bandit and of the policy.
        parameters
            Its parameters that differ from the defaults.
        """
        body = api_types.SetPolicy(policy, parameters)
        return self._send(Call("PUT", bandit_path(name, "policy"), api_types.Changed, body))

    def preview_policy(
        self,
        name: str,
        policy: str,
        draws: int = 1000,
        *,
        context: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> api_types.Preview:
        """Return what another policy would estimate and choose now; nothing is changed.

        Parameters
        ----------
        name, policy, parameters
            As for `set_policy`.
        draws
            The number of draws from which the probability of each arm is estimated where it is not exact.
        context
            The values of the features, by name, if the bandit has features.
        """
        body = api_types.PreviewPolicy(policy, parameters, draws, context)
        return self._send(Call("POST", bandit_path(name, "policy", "preview"), api_types.Preview, body))

    def set_shadow(self, name: str, policy: str, **parameters: Any) -> api_types.Changed:
        """Let a second policy see the same decisions and rewards; it never decides. `state` compares the two.

        The parameters are those of `set_policy`.
        """
        body = api_types.SetPolicy(policy, parameters)
        return self._send(Call("PUT", bandit_path(name, "shadow"), api_types.Changed, body))

    def end_shadow(self, name: str) -> api_types.Changed:
        """End the shadow policy of the bandit with this name."""
        return self._send(Call("DELETE", bandit_path(name, "shadow"), api_types.Changed))

    def promote_shadow(self, name: str, keep: bool = False) -> api_types.Changed:
        """Let the shadow policy of bandit `name` decide; with `keep` the policy so far becomes the shadow policy."""
        shadow = (self.state(name)).shadow
        body = api_types.PromoteShadow(keep, None if shadow is None else shadow.seed)  # so that it can be sent again
        return self._send(Call("POST", bandit_path(name, "shadow", "promote"), api_types.Changed, body))

    def events(self, name: str, after: int = 0, limit: int = 1000, kind: str = "all") -> Iterator[api_types.Event]:
        """Yield the events.

        Parameters
        ----------
        name
            The name of the bandit.
        after
            The sequence number after which they begin; by default all.
        limit
            How many events a request asks for.
        kind
            ``"all"``, or only each ``"decision"``, ``"reward"``, ``"metric"`` or ``"change"``.
        """
        while True:
            query = {"after": str(after), "limit": str(limit), "kind": kind}
            page = self._send(Call("GET", bandit_path(name, "events"), api_types.Events, query=query))
            for event in page.events:
                yield event
            if not page.events:
                return
            after = page.events[-1].sequence

    def export(self, name: str, draws: int = 200) -> Iterator[api_types.Exported]:
        """Yield all decisions with rewards and propensities; an interrupted stream is not requested again.

        Parameters
        ----------
        name
            The name of the bandit.
        draws
            The number of draws from which a propensity is estimated where it is not exact.
        """
        path, query = bandit_path(name, "export"), {"draws": str(draws)}
        with self._http.stream("GET", path, params=query) as answer:
            if not answer.is_success:
                answer.read()
                self._read(Call("GET", path, api_types.Exported), answer, self._tries - 1)
            for line in answer.iter_lines():
                yield msgspec.json.decode(line, type=api_types.Exported)

    def delete(self, name: str, erase: bool = False, id: str | None = None) -> api_types.Deleted:  # noqa: A002
        """Delete a bandit, and keep its log unless it is erased, too; a long log is erased within minutes.

        Parameters
        ----------
        name
            The name of the bandit.
        erase
            Whether the log is erased.
        id
            The id of a bandit that was deleted before and whose log is to be erased; another call returns how many
            events are left.
        """
        bandit = self._find(name) if id is None else api_types.BanditSummary(clean_name(name), id, deleted=True)
        # With its id, a bandit can be deleted again after a lost response without touching a new one of the same name
        query = {"confirm": bandit.name, "id": bandit.id, "erase": "true" if erase else "false"}
        try:
            return self._send(Call("DELETE", bandit_path(bandit.name), api_types.Deleted, query=query))
        except ServiceError as error:
            return erased(bandit, erase, error)

    def _find(self, name: str) -> FoundBandit:
        """Return a bandit, also one whose log is so damaged that it has no state."""
        try:
            return self.state(name)
        except ServiceError as error:
            if error.status != DAMAGED:
                raise
            name = clean_name(name)
            for one in self._bandits_after(name[:-1]):  # the list is sorted, and may begin at any name
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
