"""Another policy: what it would do, and the change to it while decisions go on."""

import re
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import httpx
import pytest

import dynabandit as db
from dynabandit.client import Client, ServiceError
from dynabandit.policies.memories import regression
from dynabandit.service import preview_worker
from dynabandit.service.api_types import ArmState, PreviewArm, SetPolicy
from dynabandit.service.compaction import compact
from dynabandit.service.domain import changes
from dynabandit.service.domain.events import Settlement
from dynabandit.service.domain.log_start import read_start, state_at_start
from dynabandit.service.domain.unit_of_work import read_snapshot
from dynabandit.service.domain.warm_start import WarmStart
from dynabandit.service.errors import UnusablePolicyError
from dynabandit.service.service import MAX_PREVIEWS
from dynabandit.service.stores import SqliteStore, open_store
from dynabandit.service.verify import verify_bandit
from tools.harness import ARMS, Running, assert_replay_agrees, running, status_of, talking
from tools.shop import FEATURES, Shop
from tools.waiting import PATIENCE, wait_for


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


def learn(client: Client, name: str, steps: int) -> None:
    made = client.decide_many(name, steps)
    client.reward_many([(decision.decision, decision.arm == "blue") for decision in made])


def beliefs(arms: Iterable[ArmState | PreviewArm]) -> list[tuple[object, ...]]:
    return [(arm.arm, arm.mean, arm.variance, arm.forgetting, arm.effective_size) for arm in arms]


@pytest.mark.promise(40)
@pytest.mark.parametrize(("policy", "parameters"), [("aff-ots", {}), ("sw-ucb", {"window": 20})])
def test_a_preview_shows_what_the_policy_change_then_gives_and_changes_nothing(
    client: Client, policy: str, parameters: dict[str, Any]
) -> None:
    client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=2)
    learn(client, "b", 60)
    client.decide("b")
    before = client.state("b")
    preview = client.preview_policy("b", policy, draws=300, **parameters)
    assert client.state("b") == before
    assert (preview.policy, preview.current_policy, preview.rewards) == (policy, "eps-greedy", 60)
    assert (preview.step, preview.sequence) == (before.step, before.sequence)
    client.set_policy("b", policy, **parameters)
    assert beliefs(preview.arms) == beliefs(client.state("b").arms)
    after = client.preview_policy("b", "eps-greedy", draws=300, epsilon=0.5)
    assert [arm.current_propensity for arm in after.arms] == [arm.propensity for arm in preview.arms]
    assert sum(arm.propensity for arm in preview.arms) == pytest.approx(1.0)


def test_a_preview_knows_pauses_shares_and_arms_that_were_never_rewarded(client: Client) -> None:
    client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=2)
    preview = client.preview_policy("b", "aff-ots")
    assert [arm.mean for arm in preview.arms] == [0.5] * 3  # the mean of the prior
    learn(client, "b", 30)
    client.change_arm("b", "blue", paused=True)
    client.change_arm("b", "red", min_share=0.5)
    shares = {arm.arm: arm.propensity for arm in client.preview_policy("b", "aff-ots").arms}
    assert shares["blue"] == 0.0
    assert shares["red"] >= 0.5
    for arm in ARMS:
        client.change_arm("b", arm, paused=True)
    assert [arm.propensity for arm in client.preview_policy("b", "aff-ots").arms] == [0.0] * 3


def test_a_preview_of_what_is_not_there_or_not_valid_is_refused(client: Client) -> None:
    client.create("b", ARMS)
    for name, policy, status in (("c", "ots", 404), ("b", "nonsense", 422), ("b", "best-arm", 422)):
        with pytest.raises(ServiceError) as refused:
            client.preview_policy(name, policy)
        assert refused.value.status == status
    with pytest.raises(ServiceError, match="422"):
        client.preview_policy("b", "ots", draws=0)


@pytest.mark.parametrize("policy", ["aff-ots", "d-ucb"])
def test_learning_many_rewards_at_once_is_learning_them_one_by_one(policy: str) -> None:
    parameters: dict[str, Any] = {"discount": 0.99} if policy == "d-ucb" else {}
    one, many = (db.Bandit(policy, ARMS, seed=1, **parameters) for _ in range(2))
    rewards = [(step % 3, float(step % 7 < 3), step) for step in range(5000)]
    for reward in rewards:
        one.reward_column(*reward)
    many.reward_columns(rewards)
    assert one.state_hash() == many.state_hash()


def test_a_policy_that_learns_the_log_in_portions_is_the_one_that_a_replay_makes(make_shop: Any) -> None:
    shop: Shop = make_shop(policy="ucb", features=FEATURES)
    shop.learn(20)
    asked = SetPolicy("d-lin-ucb", {"discount": 0.9})
    warm = WarmStart(shop.state, asked, read_start(shop.store, shop.bandit_number))
    for upto in range(5, shop.state.sequence, 3):
        warm.learn(shop.store, upto)
    shop.run(lambda: changes.set_policy(shop.work, "b", asked, warm))
    shop.assert_replays()


def is_follower() -> bool:
    return threading.current_thread().name == "dynabandit-log-follower"


class HeldReplayStore(SqliteStore):
    """A store that keeps previews and policy changes, which replay its rewards, until they are let go.

    The writer and the follower of the log, which reads for the pages, never wait.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.begun, self.go_on, self.replays = threading.Semaphore(0), threading.Semaphore(0), 0

    def reader(self) -> SqliteStore:
        reader, read = super().reader(), SqliteStore.settlement_pages

        def settlement_pages(bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
            if is_follower():
                return read(reader, bandit, after, before)
            self.replays += 1
            self.begun.release()
            assert self.go_on.acquire(timeout=PATIENCE)
            return read(reader, bandit, after, before)

        reader.settlement_pages = settlement_pages  # type: ignore[method-assign]
        return reader


Held = tuple[HeldReplayStore, Running, Client]


@pytest.fixture
def held(sqlite_url: str) -> Iterator[Held]:
    store = HeldReplayStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, seed=3)
        client.create("other", ARMS, seed=3)
        for _ in range(3):
            learn(client, "b", 200)
        yield store, server, client
    assert_replay_agrees(sqlite_url)


def change_policy_in_the_background(store: HeldReplayStore, url: str, policy: str) -> "Future[int]":
    """Ask for a swap, and return when the replay of the rewards has begun and stands still."""

    def swap() -> int:
        with Client(url, tries=1, timeout=PATIENCE) as client:
            return client.set_policy("b", policy).sequence

    answer = ThreadPoolExecutor(1).submit(swap)
    assert store.begun.acquire(timeout=PATIENCE)
    return answer


@pytest.mark.promise(39)
def test_a_policy_change_delays_no_decision_while_it_replays(held: Held) -> None:
    store, server, client = held
    swap = change_policy_in_the_background(store, server.url, "ts")
    assert client.decide("other").step == 1
    learn(client, "b", 50)
    assert client.state("b").policy == "mix-ts", "it has not swapped yet"
    assert not swap.done()
    before = client.state("b").sequence
    store.go_on.release(10)
    assert swap.result(PATIENCE) == before + 1
    assert store.replays == 1
    after = client.state("b")
    assert (after.policy, after.step) == ("ts", 650)
    assert sum((arm.effective_size or 0.0) - 4.0 for arm in after.arms) == 650, (
        "it knows what came during the replay, too"
    )


@pytest.mark.promise(113)
def test_previews_delay_neither_a_policy_change_nor_a_new_bandit(held: Held) -> None:
    store, server, client = held

    def ask() -> int:
        with Client(server.url, tries=1, timeout=PATIENCE) as one:
            return one.preview_policy("b", "eps-greedy", epsilon=0.5).rewards

    pool = server.service.previews
    with ThreadPoolExecutor(MAX_PREVIEWS) as callers:
        previews = [callers.submit(ask) for _ in range(MAX_PREVIEWS)]
        wait_for(lambda: pool.running == MAX_PREVIEWS)
        try:
            with pytest.raises(ServiceError, match="429"):
                client.preview_policy("b", "eps-greedy", epsilon=0.5)
            client.set_policy("other", "ts")
            assert client.create("new", ARMS, policy="uniform").policy == "uniform"
            assert not any(one.done() for one in previews)
        finally:
            store.go_on.release(10)
        assert [one.result(PATIENCE) for one in previews] == [600] * MAX_PREVIEWS


class EndlessStore(SqliteStore):
    """A store whose rewards have no end for previews and policy changes, which replay them."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.begun, self.ended = threading.Event(), threading.Event()

    def reader(self) -> SqliteStore:
        reader, read = super().reader(), SqliteStore.settlement_pages

        def settlement_pages(bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
            if is_follower():
                yield from read(reader, bandit, after, before)
                return
            self.begun.set()
            try:
                while True:
                    yield []
                    threading.Event().wait(0.001)
            finally:
                self.ended.set()

        reader.settlement_pages = settlement_pages  # type: ignore[method-assign]
        return reader


@pytest.fixture
def endless(sqlite_url: str) -> Iterator[tuple[EndlessStore, Running]]:
    store = EndlessStore(sqlite_url.removeprefix("sqlite:///"))
    with running(store) as server:
        with talking(server.url) as (client, _):
            client.create("b", ARMS, seed=3)
            learn(client, "b", 600)
        yield store, server


PREVIEW = {"policy": "eps-greedy", "parameters": {"epsilon": 0.5}}


def ask(url: str, method: str, path: str) -> httpx.Response:
    return httpx.request(method, f"{url}/v1/bandits/b/{path}", json=PREVIEW, timeout=PATIENCE, verify=False)


@pytest.mark.promise(40)
def test_a_preview_ends_when_its_caller_leaves(endless: tuple[EndlessStore, Running]) -> None:
    store, server = endless
    request = httpx.Request("POST", f"{server.url}/v1/bandits/b/policy/preview", json=PREVIEW)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((request.url.host, request.url.port or 80)) as caller:
        caller.sendall(f"POST {request.url.path} HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        assert store.begun.wait(PATIENCE)
    assert store.ended.wait(PATIENCE)
    wait_for(lambda: server.service.previews.running == 0)


@pytest.mark.promise(40)
@pytest.mark.parametrize(("method", "path"), [("POST", "policy/preview"), ("PUT", "policy")])
def test_the_service_stops_while_rewards_are_replayed(
    endless: tuple[EndlessStore, Running], method: str, path: str
) -> None:
    store, server = endless
    server.server.config.timeout_graceful_shutdown = 1
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, server.url, method, path)
        assert store.begun.wait(PATIENCE)
        server.stop()
        assert store.ended.wait(PATIENCE)
        assert (answer.result(PATIENCE).status_code, answer.result().headers["Retry-After"]) == (503, "1")


@pytest.mark.promise(84)
def test_a_preview_takes_a_bounded_time(endless: tuple[EndlessStore, Running]) -> None:
    _, server = endless
    server.service.previews._max_seconds = 0.1
    answer = ask(server.url, "POST", "policy/preview")
    assert (answer.status_code, answer.json()["problem"]) == (422, "this must take at most 0.1 seconds; ask for less")


HANGS = (sys.executable, "-c", "import sys; sys.stdin.read()")
FAILS = (sys.executable, "-c", "")
TOO_LARGE = (
    "from dynabandit.service import preview_process as p; p.LocalTrial = lambda *_: bytearray(1 << 40); p.main()"
)


@pytest.mark.promise(84, 280)
def test_a_preview_that_hangs_ends_with_its_process_and_the_next_one_has_another(
    client: Client, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, policy="eps-greedy", parameters={"epsilon": 0.5}, seed=2)
    learn(client, "b", 20)
    previews, before = server.service.previews, server.service.preview_worker.started
    server.service.preview_worker.end()
    with monkeypatch.context() as changed:
        changed.setattr(preview_worker, "COMMAND", HANGS)
        changed.setattr(previews, "_max_seconds", 0.5)
        with pytest.raises(ServiceError, match=r"this must take at most 0\.5 seconds; ask for less"):
            client.preview_policy("b", "ucb")
    with monkeypatch.context() as changed:
        changed.setattr(preview_worker, "COMMAND", FAILS)
        with pytest.raises(ServiceError, match="the process of this preview ended, perhaps for lack of memory"):
            client.preview_policy("b", "ucb")
    monkeypatch.setattr("dynabandit.service.domain.preview.LocalTrial.arms", None)  # of this process
    for _ in range(2):
        assert client.preview_policy("b", "ucb").rewards == 20
    assert server.service.preview_worker.started == before + 3


@pytest.mark.promise(282)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_preview_that_needs_too_much_memory_is_refused(
    client: Client, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create("b", ARMS, seed=2)
    server.service.preview_worker.end()
    monkeypatch.setattr(preview_worker, "COMMAND", (sys.executable, "-c", TOO_LARGE))
    with pytest.raises(ServiceError, match="this needs too much memory; ask for less"):
        client.preview_policy("b", "ucb")
    server.service.preview_worker.end()


@pytest.mark.promise(282)
def test_parameters_that_cannot_be_computed_with_are_refused(client: Client) -> None:
    client.create("b", ARMS, seed=2)
    refused = [("mix-ts", {"strength": 1e-15}), ("w-swa", {"sigma": 1e300}), ("lm-dsee", {"min_gap": 1e-300})]
    for policy, parameters in refused:
        for act in (client.preview_policy, client.set_policy, client.set_shadow):
            assert status_of(act, "b", policy, **parameters) == 422
        assert status_of(client.create, "c", ARMS, policy=policy, parameters=parameters) == 422


def test_propensities_do_not_depend_on_the_parts_in_which_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit, calls = db.Bandit("f-dsw-ts", ARMS, seed=1), list[None]()
    for _ in range(20):
        bandit.reward(bandit.choose(), 1)
    whole = bandit.propensities(100)
    monkeypatch.setattr("dynabandit.bandit.propensities.NUMBERS_AT_ONCE", 100)
    assert bandit.propensities(100, between=lambda: calls.append(None)) == whole
    assert len(calls) > 2


@pytest.mark.promise(77)
def test_a_preview_of_many_arms_takes_fewer_draws(client: Client) -> None:
    client.create("b", [f"arm {number}" for number in range(2000)], policy="eps-greedy", parameters={"epsilon": 0.5})
    with pytest.raises(ServiceError, match="draws must be at most 5000 with 2000 arms, got 5001"):
        client.preview_policy("b", "aff-ots", draws=5001)
    assert client.preview_policy("b", "aff-ots", draws=10).draws == 10


@pytest.mark.promise(39)
def test_an_arm_that_comes_during_the_replay_makes_it_start_again(held: Held) -> None:
    store, server, client = held
    swap = change_policy_in_the_background(store, server.url, "ucb")
    client.add_arm("b", "new")
    client.change_arm("b", "red", paused=True)
    store.go_on.release(10)
    swap.result(PATIENCE)
    assert store.replays == 2
    state = client.state("b")
    assert state.policy == "ucb"
    assert [arm.arm for arm in state.arms if not arm.paused] == ["green", "blue", "new"]
    learn(client, "b", 20)


def test_a_policy_change_ends_however_often_arms_are_added(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    store, server, client = held
    monkeypatch.setattr("dynabandit.service.policy_change.WARM_STARTS", 2)
    swap = change_policy_in_the_background(store, server.url, "ucb")
    for number in range(2):
        client.add_arm("b", f"new {number}")
        store.go_on.release()
        if number == 0:
            assert store.begun.acquire(timeout=PATIENCE)
    swap.result(PATIENCE)
    assert client.state("b").policy == "ucb"


def test_a_policy_change_of_a_bandit_that_is_deleted_meanwhile_is_404(held: Held) -> None:
    store, server, client = held
    swap = change_policy_in_the_background(store, server.url, "ucb")
    client.delete("b")
    store.go_on.release(10)
    with pytest.raises(ServiceError, match="404"):
        swap.result(PATIENCE)


@pytest.mark.promise(38)
def test_two_concurrent_policy_changes_take_effect_in_the_order_of_the_log(held: Held) -> None:
    store, server, client = held
    first = change_policy_in_the_background(store, server.url, "ucb")
    second = change_policy_in_the_background(store, server.url, "ts")
    store.go_on.release(20)
    order = sorted((one.result(PATIENCE), policy) for one, policy in ((first, "ucb"), (second, "ts")))
    assert client.state("b").policy == order[-1][1]
    assert [(event.change or {})["policy"] for event in client.events("b", limit=10_000) if event.kind == "policy"] == [
        policy for _, policy in order
    ]


def test_a_restart_after_a_policy_change_learns_no_reward_again(held: Held, sqlite_url: str) -> None:
    store, server, client = held
    store.go_on.release(10)
    client.set_policy("b", "ts")
    expected = client.state("b").state_hash
    server.stop()
    fresh = open_store(sqlite_url)
    fresh.settlement_pages = None  # type: ignore[method-assign, assignment]  # nothing may call it
    with running(fresh) as again, talking(again.url) as (client, _):
        assert client.state("b").state_hash == expected


def test_another_replica_applies_a_policy_change_without_learning_every_reward_again(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(2)]
    with running(stores[0]) as one, running(stores[1]) as other:
        with talking(one.url) as (client, _), talking(other.url) as (second, _):
            client.create("b", ARMS, seed=3)
            learn(client, "b", 100)
            learn(second, "b", 100)
            stores[1].settlement_pages = None  # type: ignore[method-assign, assignment]
            client.set_policy("b", "ts")
            assert second.state("b").state_hash == client.state("b").state_hash
            learn(second, "b", 10)
            client.set_policy("b", "ucb")
            learn(client, "b", 10)
            assert second.state("b").state_hash == client.state("b").state_hash
    assert_replay_agrees(postgres_url)


@pytest.mark.promise(38)
def test_a_new_policy_has_learned_all_rewards_so_far(client: Client) -> None:
    import dynabandit as db

    client.create("b", ARMS, policy="ucb", seed=9)
    learn(client, "b", 40)
    before = client.state("b")
    client.set_policy("b", "ts", prior=[1, 1])
    after = client.state("b")
    assert (after.policy, after.step) == ("ts", before.step)
    assert [(arm.effective_size or 0.0) - 2.0 for arm in after.arms] == [
        arm.effective_size for arm in before.arms
    ]  # prior (1, 1)
    twin = db.Bandit("ucb", ARMS, seed=9)
    rewards = []
    for _ in range(40):
        arm = twin.choose()
        twin.reward(arm, arm == "blue")
        rewards.append((ARMS.index(arm), float(arm == "blue"), twin.step))
    twin = twin.swapped("ts", rewards, prior=(1, 1))
    assert [one.arm for one in client.decide_many("b", 50)] == [twin.choose() for _ in range(50)]
    assert status_of(client.set_policy, "b", "nonsense") == 422
    assert status_of(client.set_policy, "b", "best-arm") == 422


@pytest.mark.parametrize("policy", ["log-linear-ts", "aff-log-linear-ts"])
@pytest.mark.parametrize("prior", [1e-12, 1e12])
def test_the_log_of_a_policy_with_the_least_or_the_largest_prior_can_be_read(
    make_shop: Any, policy: str, prior: float
) -> None:
    shop = make_shop(policy=policy, parameters={"prior": prior}, features={"hour": "number"}, rewards="counts")
    for number in range(40):
        made = shop.decide(context={"hour": (number * 7) % 24})
        shop.reward(made, [0.0, 3.0, 2.0**53, 1.0][number % 4])
    shop.assert_replays()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # with this prior they cannot compute
@pytest.mark.parametrize("policy", ["log-linear-ts", "aff-log-linear-ts"])
def test_a_log_of_0_2_0_with_a_parameter_out_of_its_range_says_the_way_out_which_works(
    make_shop: Any, policy: str
) -> None:
    """Release 0.2.0 accepted every positive prior, with which these policies soon computed no numbers."""
    release_0_2_0 = mock.patch.object(regression, "LEAST_FACTOR", 1e-300)
    with release_0_2_0:
        shop = make_shop(policy=policy, parameters={"prior": 1e-300}, features={"hour": "number"}, rewards="counts")
        for hour in (3, 14, 20):
            shop.reward(shop.decide(context={"hour": hour}), 1.0)

    way_out = (
        "prior must be a number in [1e-12, 1e+12], got 1e-300; change the policy with the release that made it, "
        "compact the log with that release, and open the store again"
    )
    problem = verify_bandit(shop.store, shop.bandit_number, "b").problem
    assert problem is not None
    assert way_out in problem
    shop.work.states.clear()
    with pytest.raises(UnusablePolicyError, match=re.escape(way_out)):
        shop.decide(context={"hour": 7})

    with release_0_2_0:
        shop.work.states.clear()
        shop.run(lambda: changes.set_policy(shop.work, "b", SetPolicy(policy, {"prior": 1.0})))
        [compacted] = compact(shop.store, before=2e12, now=0.0)
        assert compacted.problem is None
    shop.work.states.clear()
    shop.reward(shop.decide(context={"hour": 7}), 1.0)
    assert shop.state.bandit.step == 4
    shop.assert_replays()


def test_a_saved_state_with_a_parameter_out_of_its_range_says_the_way_out(make_shop: Any) -> None:
    with mock.patch.object(regression, "LEAST_FACTOR", 1e-300):
        asked = {"policy": "log-linear-ts", "parameters": {"prior": 1e-300}, "rewards": "counts"}
        shop = make_shop(**asked, features={"hour": "number"})
        shop.decide(context={"hour": 3})
        snapshot = shop.work.snapshot(shop.bandit_number)
        [compacted] = compact(shop.store, before=2e12, now=0.0)
        assert compacted.problem is None

    problem = "prior must be .* got 1e-300.* change the policy with the release that made it, compact the log"
    with pytest.raises(UnusablePolicyError, match=problem):
        state_at_start(shop.store, shop.bandit_number)
    with pytest.raises(UnusablePolicyError, match=problem):
        read_snapshot(shop.bandit_number, snapshot, shop.store)
