"""Held decisions: when a policy learns them, that it learns each once, and that a replay learns the same."""

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import dynabandit as db
from dynabandit.client import Client
from dynabandit.service import api_types
from dynabandit.service.domain import changes
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.events import EventRow
from dynabandit.service.domain.learning import SETTLED, SettlingAge
from dynabandit.service.domain.rewards import SETTLE_PAGE, reward, settle_due
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import ConflictError, DomainError, InvalidValueError, LateRewardError
from dynabandit.service.stores import open_store
from tools.harness import (
    ARMS,
    ManualClock,
    Running,
    assert_replay_agrees,
    copied_store,
    failed_command,
    running,
    status_of,
    talking,
)

WINDOW = 100.0


class Shop:
    """A bandit "b" whose decisions are held, without HTTP or threads; tests move the time."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.clock = ManualClock()
        self.store = open_store(url)
        self.store.prepare()
        self.work = UnitOfWork(self.store, self.clock)
        given = {"policy": "ucb", "seed": 3, "reward_window": WINDOW, "default_reward": 0.0, **settings}
        self.bandit_number = self.commit(lambda: changes.create(self.work, "b", api_types.Create(arms=ARMS, **given)))[
            0
        ].bandit_number

    @property
    def now(self) -> float:
        return self.clock.seconds

    @now.setter
    def now(self, seconds: float) -> None:
        self.clock.seconds = seconds

    def commit(self, run: Callable[[], Any]) -> Any:
        self.store.begin({self.bandit_number: 0} if hasattr(self, "bandit_number") else {})
        result = run()
        self.store.commit(self.work.events, self.work.created, self.work.deleted)
        self.work.clear()
        return result

    @property
    def state(self) -> Any:
        return self.work.state(self.bandit_number)

    def decide(self, count: int = 1) -> list[int]:
        return [one.step for one in self.commit(lambda: decide(self.work, "b", api_types.Decide(count)))]

    def reward(self, step: int, value: float = 1.0) -> None:
        def give() -> Exception | None:
            try:
                reward(self.work, self.bandit_number, step, value)
            except DomainError as error:  # its events are written, too
                return error
            return None

        error = self.commit(give)
        if error is not None:
            raise error

    def maintain(self, page: int = SETTLE_PAGE) -> None:
        while self.commit(lambda: settle_due(self.work, self.bandit_number, page)):
            pass

    def settle(self, rewards: int = 100, age: float = 1.0) -> None:
        """Let so many rewards arrive at an age, and learn them."""
        steps = self.decide(rewards)
        self.now += age
        for step in steps:
            self.reward(step)
        self.now += 5.0 * age  # during most of that time no reward came
        self.maintain()

    def observations(self) -> float:
        """Return how many rewards the policy has learned."""
        return sum(arm.effective_size for arm in self.state.bandit.arms.values())

    def replayed(self) -> Any:
        return UnitOfWork(self.store, self.clock).state(self.bandit_number)


@contextlib.contextmanager
def opened(url: str, **settings: Any) -> Iterator[Shop]:
    shop = Shop(url, **settings)
    yield shop
    assert shop.replayed().state_hash() == shop.state.state_hash()
    shop.store.close()
    assert_replay_agrees(url)


@pytest.mark.promise(46)
def test_until_ten_rewards_came_decisions_are_learned_at_the_end_of_the_window(store_url: str) -> None:
    with opened(store_url) as shop:
        shop.decide(100)
        shop.now = 1.0
        for step in range(1, 10):
            shop.reward(step)
        shop.now = WINDOW
        shop.maintain()
        assert (shop.observations(), shop.state.learner.held(100)) == (0, 100)
        shop.now = WINDOW + 0.001
        shop.maintain()
        assert (shop.observations(), shop.state.learner.held(100)) == (100, 0)
        assert sum(arm.mean * arm.effective_size for arm in shop.state.bandit.arms.values()) == pytest.approx(9)


@pytest.mark.promise(44, 46)
def test_later_ones_are_learned_at_the_age_by_which_99_percent_of_the_rewards_came(store_url: str) -> None:
    with opened(store_url) as shop:
        shop.settle(rewards=100, age=1.0)
        age = shop.state.learner.age
        assert 1.0 <= age < 1.2
        assert shop.observations() == 100, "once the age is known, nothing waits for the end of the window"
        start = shop.now
        clicked, _ = shop.decide(2)
        shop.reward(clicked)
        shop.now = start + age
        shop.maintain()
        assert shop.observations() == 100
        shop.now = start + age + 0.001
        shop.maintain()
        assert shop.observations() == 102, "a click, and a decision that counts as none"


@pytest.mark.promise(46)
def test_the_settling_age_becomes_known_although_no_more_rewards_come(sqlite_url: str) -> None:
    with opened(sqlite_url) as shop:
        for step in shop.decide(100):
            shop.now = 1.0
            shop.reward(step)
        shop.maintain()
        assert (shop.observations(), shop.state.learner.held(100)) == (0, 100)
        looks = []
        while shop.state.learner.held(100) > 0:
            looks.append(shop.now)
            shop.now = shop.state.due_at + 0.001
            shop.maintain()
        assert shop.now < 10.0
        assert len(looks) < 10
        assert shop.observations() == 100


@pytest.mark.promise(48, 49)
def test_a_reward_after_its_decision_was_learned_is_one_more_observation_unless_it_is_the_default(
    store_url: str,
) -> None:
    with opened(store_url) as shop:
        shop.settle()
        clicked, not_clicked, silent = shop.decide(3)
        shop.now += 2.0
        shop.maintain()
        assert shop.observations() == 103
        shop.reward(clicked, 1.0)
        assert shop.observations() == 104
        shop.reward(clicked, 1.0)
        shop.reward(not_clicked, 0.0)
        assert shop.observations() == 104
        with pytest.raises(ConflictError):
            shop.reward(clicked, 0.0)
        shop.now += WINDOW
        shop.maintain()
        assert shop.observations() == 104, "the end of the window adds nothing to what was learned"
        with pytest.raises(LateRewardError):
            shop.reward(silent, 1.0)


@pytest.mark.promise(22)
def test_a_late_reward_closes_a_held_decision_which_is_learned_once(sqlite_url: str) -> None:
    with opened(sqlite_url) as shop:
        late, other = shop.decide(2)
        shop.now = WINDOW + 1
        with pytest.raises(LateRewardError):
            shop.reward(late)
        assert shop.observations() == 0
        shop.maintain()
        assert shop.observations() == 2
        assert [(row.kind, row.settles) for row in shop.store.log(shop.bandit_number)][-3:] == [
            ("close", late),
            ("learn", None),
            ("close", other),
        ]


@pytest.mark.promise(32, 44)
def test_with_the_rule_held_a_reward_that_is_repeated_after_the_window_is_learned_once(sqlite_url: str) -> None:
    with opened(sqlite_url, learn="held") as shop:
        refused, _ = shop.decide(2)
        shop.clock.grace_seconds = 10.0
        shop.now = WINDOW
        shop.clock.note_refusal()
        shop.now = WINDOW + 5
        shop.maintain()
        assert shop.observations() == 0
        shop.reward(refused)
        shop.now = WINDOW + 11
        shop.maintain()
        assert (shop.observations(), shop.state.learner.age) == (2, WINDOW)


@pytest.mark.promise(44)
def test_with_the_rule_held_the_age_is_always_the_window(sqlite_url: str) -> None:
    with opened(sqlite_url, learn="held") as shop:
        shop.settle()
        assert shop.observations() == 0
        shop.now += WINDOW
        shop.maintain()
        assert (shop.observations(), shop.state.learner.age) == (100, WINDOW)
        other = shop.state.copy()
        other.learner.learned_to -= 1
        assert other.state_hash() != shop.state.state_hash(), "the decisions that are held are part of the state"


@pytest.mark.promise(26, 44)
def test_with_the_rule_at_once_a_reward_is_learned_when_it_comes(sqlite_url: str) -> None:
    with opened(sqlite_url, learn="at-once") as shop:
        clicked, _ = shop.decide(2)
        shop.reward(clicked)
        assert shop.observations() == 1
        assert sum(arm.pending for arm in shop.state.bandit.arms.values()) == 1
        shop.now = WINDOW + 1
        shop.maintain()
        assert shop.observations() == 2
        assert sum(arm.pending for arm in shop.state.bandit.arms.values()) == 0
        assert [row.kind for row in shop.store.log(shop.bandit_number)].count("learn") == 0


@pytest.mark.promise(50)
def test_arms_and_policy_may_change_while_decisions_are_held(store_url: str) -> None:
    with opened(store_url) as shop:
        shop.settle()
        shop.decide(30)
        work = shop.work
        shop.commit(lambda: changes.change_arm(work, "b", "red", api_types.ChangeArm(retired=True)))
        shop.commit(lambda: changes.add_arm(work, "b", "red"))
        for step in range(101, 116):
            shop.reward(step)
        shop.commit(lambda: changes.set_policy(work, "b", api_types.SetPolicy("eps-greedy", {"epsilon": 0.5})))
        assert shop.observations() <= 100, "the new policy has learned what the old one had"
        shop.now += 2.0
        shop.maintain()
        shop.commit(lambda: changes.set_policy(work, "b", api_types.SetPolicy("ucb")))
        learned = sum(shop.state.bandit.belief(column).effective_size for column in range(4))
        assert learned == 130
        shop.decide(5)
        shop.commit(lambda: changes.delete(work, "b", None, erase=False))


def test_a_policy_that_cannot_learn_a_held_reward_is_refused(sqlite_url: str) -> None:
    with opened(sqlite_url, policy="normal-ts") as shop:
        [step] = shop.decide()
        shop.reward(step, 5.0)
        with pytest.raises(
            InvalidValueError, match=r"policy 'ucb' cannot learn from the log: reward must be .*, got 5"
        ):
            shop.commit(lambda: changes.set_policy(shop.work, "b", api_types.SetPolicy("ucb")))
        shop.store.rollback()
        shop.now = WINDOW + 1
        shop.maintain()


def test_an_idle_bandit_is_not_looked_at_and_a_decision_or_a_reward_wakes_it(sqlite_url: str) -> None:
    with opened(sqlite_url) as shop:
        shop.settle()
        shop.now += WINDOW
        shop.maintain()
        assert shop.state.due_at == shop.now + WINDOW
        [step] = shop.decide()
        assert shop.state.due_at == shop.now + shop.state.learner.age
        shop.reward(step)
        assert shop.state.due_at == 0.0


def test_a_restart_without_a_snapshot_reads_the_ages_again_page_by_page(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(sqlite_url) as shop:
        shop.settle()
        age = shop.state.learner.age
        monkeypatch.setattr("dynabandit.service.domain.rewards.PAGE", 30)
        for keep in (True, False):
            if keep:
                shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
            else:
                shop.store.write([("DELETE FROM snapshots", ())])
            shop.work.discard()
            assert (shop.state.settling.read_to > 0) == keep
            shop.decide()
            shop.now += 2.0
            shop.maintain(page=30)
            assert shop.state.settling.seconds(WINDOW, shop.now) == shop.state.learner.age == age


def expected_bandit(events: list[EventRow]) -> db.Bandit:
    """The bandit that a plain reading of the log gives: each decision is learned once, and so is a reward after it."""
    bandit = db.Bandit("aff-ots", ARMS, seed=3)
    arms: dict[int, int] = {}
    rewards: dict[int, float] = {}
    learned = 0
    for event in events:
        if event.kind == "decision":
            assert event.step is not None
            arms[event.step] = bandit.choose_column()
            assert arms[event.step] == event.arm
        elif event.kind in ("reward", "close"):
            assert event.settles is not None
            assert event.value is not None
            rewards[event.settles] = event.value
            if event.settles <= learned and event.kind == "reward" and event.value != 0.0:
                bandit.reward_column(arms[event.settles], event.value, event.settles, ends_play=False)
        elif event.kind == "learn":
            to = int((event.body or "").partition('"to": ')[2].partition(",")[0])
            for step in range(learned + 1, to + 1):
                bandit.reward_column(arms[step], rewards.get(step, 0.0), step)
            learned = to
    held = [arm for step, arm in arms.items() if step > learned]
    assert [bandit.pending(column) for column in range(3)] == [held.count(column) for column in range(3)]
    return bandit


@pytest.mark.promise(47)
@pytest.mark.parametrize("seed", range(4))
def test_random_clicks_are_learned_as_a_plain_reading_of_the_log_says(sqlite_url: str, seed: int) -> None:
    dice = random.Random(seed)
    with opened(sqlite_url, policy="aff-ots") as shop:
        acknowledged: dict[int, float] = {}
        for _ in range(600):
            shop.now += dice.choice([0.0, 0.3, 3.0, 30.0 if dice.random() < 0.1 else 1.0])
            made = shop.decide(dice.choice([1, 1, 5]))
            for step in made + [dice.randint(1, made[-1]) for _ in range(2)]:
                value = float(dice.random() < 0.7)
                with contextlib.suppress(DomainError):
                    if dice.random() < 0.6:
                        shop.reward(step, value)
                        acknowledged[step] = value
            if dice.random() < 0.3:
                shop.maintain()
            if dice.random() < 0.03:
                shop.work.discard()
            if dice.random() < 0.03:
                shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
        events = list(shop.store.log(shop.bandit_number))
        assert expected_bandit(events).state_hash() == shop.state.bandit.state_hash()
        assert {row.settles: row.value for row in events if row.kind == "reward"} == acknowledged
        assert sum(row.kind == "learn" for row in events) > 20


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ('{"to": 3, "age": 1}', "it learns the decisions after step 0, but some are missing"),
        ('{"to": 0, "age": 1}', "it learns the decisions after step 0, but some are missing"),
        ('{"age": 1}', "it cannot be read: KeyError"),
        ("[]", "it cannot be read: TypeError"),
    ],
)
def test_a_damaged_event_of_learning_is_reported(
    sqlite_url: str, tmp_path_factory: pytest.TempPathFactory, damage: str, problem: str
) -> None:
    with opened(sqlite_url) as shop:
        shop.decide(2)
        shop.now = WINDOW + 1
        shop.maintain()
    damaged = copied_store(
        sqlite_url, tmp_path_factory.mktemp("damaged"), f"UPDATE events SET body = '{damage}' WHERE kind = 'learn'"
    )
    assert problem in failed_command("verify", "--store", damaged)


@pytest.mark.promise(46)
def test_the_settling_age_counts_every_reward_but_the_default() -> None:
    settling = SettlingAge()
    assert settling.seconds(WINDOW, 6.0) == WINDOW
    settling.add([(sequence, 0.5, 0.0, 1.0) for sequence in range(200)], 0.5, WINDOW)
    assert (settling.seconds(WINDOW, 6.0), settling.read_to) == (WINDOW, 199)
    settling.add([(sequence, sequence % 2, 0.0, 1.0) for sequence in range(200, 300)], 0.5, WINDOW)
    assert settling.seconds(WINDOW, 3.0) == WINDOW
    assert 1.0 <= settling.seconds(WINDOW, 6.0) < 1.2


@pytest.mark.promise(46)
def test_the_settling_age_of_a_snapshot_of_release_0_2_0_is_estimated_again_from_the_log(sqlite_url: str) -> None:
    with opened(sqlite_url) as shop:
        shop.settle()
        snapshot = json.loads(shop.state.to_json())
        snapshot["settling"] = {"read_to": shop.state.settling.read_to, "bins": [1.0] * 66}
        older = type(shop.state).from_json(shop.bandit_number, json.dumps(snapshot), shop.store)
        assert (older.settling.read_to, older.settling.bins) == (0, [])
        assert older.state_hash() == shop.state.state_hash()


# Over HTTP


@pytest.fixture
def server(sqlite_server: Running) -> Running:
    return sqlite_server


@pytest.mark.promise(13, 45)
def test_the_default_rule_depends_on_window_and_default_reward(client: Client, http: httpx.Client) -> None:
    made = client.create("a", ARMS)
    assert (made.learn, made.policy, made.reward_window, made.default_reward) == ("at-once", "mix-ts", None, None)
    assert client.create("b", ARMS, reward_window=10).learn == "at-once"
    assert client.create("c", ARMS, reward_window=10, default_reward=0).learn == SETTLED
    assert client.create("c", ARMS, reward_window=10, default_reward=0, learn="settled").learn == SETTLED
    assert status_of(client.create, "c", ARMS, reward_window=10, default_reward=0, learn="at-once") == 409
    for body in ({}, {"reward_window": 10}, {"default_reward": 0}):
        refused = http.put("/v1/bandits/d", json={"arms": ARMS, "learn": "held", **body})
        assert refused.status_code == 422
        assert "learn must be 'at-once' without both a reward_window and a default_reward" in refused.json()["problem"]
    refused = http.put("/v1/bandits/d", json={"arms": ARMS, "learn": "never"})
    assert refused.json()["problem"] == "learn must be 'at-once' or 'held' or 'settled', or null, got 'never'"
    assert status_of(client.state, "d") == 404


@pytest.mark.promise(52)
def test_a_bandit_of_0_1_0_learns_at_once_and_is_created_again_by_the_body_that_created_it(
    sqlite_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    body: dict[str, Any] = {"reward_window": 10, "default_reward": 0, "seed": 1}
    with running(open_store(sqlite_url), clock=ManualClock()) as server, talking(server.url) as (client, _):
        client.create("b", ARMS, **body)
    old = "UPDATE events SET body = json_remove(body, '$.learn', '$.rules')"
    url = copied_store(sqlite_url, tmp_path_factory.mktemp("old"), old, "DELETE FROM snapshots")
    with running(open_store(url), clock=ManualClock()) as server, talking(server.url) as (client, _):
        state = client.create("b", ARMS, **body)
        assert (state.learn, state.settling_age, state.held) == ("at-once", None, 0)
        assert status_of(client.create, "b", ARMS, **body, learn="at-once") == 200
        assert status_of(client.create, "b", ARMS, **body, learn="settled") == 409


@pytest.mark.promise(44)
def test_the_state_says_how_many_decisions_are_held_and_how_long(client: Client, clock: ManualClock) -> None:
    client.create("b", ARMS, "ucb", reward_window=10, default_reward=0)
    clicked, *_ = client.decide_many("b", 4)
    client.reward(clicked.decision, 1)
    state = client.state("b")
    assert (state.learn, state.settling_age, state.held) == ("settled", 10.0, 4)
    assert [arm.pending for arm in state.arms] == [arm.plays for arm in state.arms]
    assert sum(arm.effective_size or 0.0 for arm in state.arms) == 0
    assert [event.kind for event in client.events("b", kind="reward")] == ["reward"], "it is stored at once"
