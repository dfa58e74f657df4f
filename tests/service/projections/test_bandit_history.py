"""The history behind the live pages: bounded size, true to the log, saved and loaded."""

import contextlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import httpx
import msgspec
import numpy as np
import pytest

from dynabandit.bandit import Bandit
from dynabandit.service.api_types import Create
from dynabandit.service.domain.changes import create
from dynabandit.service.domain.events import KINDS, EventRow, HeldDecision, Settlement
from dynabandit.service.projections import log_follower
from dynabandit.service.projections.arm_comparison import MAX_COMPARED
from dynabandit.service.projections.bandit_history import MAX_TRACKED_ARMS, BanditHistory
from dynabandit.service.projections.chart_points import MAX_POINTS
from dynabandit.service.projections.live_page_data import bandit_page_data, compared_with, overview_entry
from dynabandit.service.projections.log_follower import BanditPage, LogFollower, Overview
from dynabandit.service.projections.uniform_baseline import UniformBaseline
from dynabandit.service.service import Service
from dynabandit.service.stores import open_store
from tools.demo_shop import BANNERS, play
from tools.harness import running, talking
from tools.shop import Shop

ARMS = ["a", "b", "c"]


class Log:
    """Events as the service would have written them, and the bandit that decided."""

    def __init__(self, arms: Sequence[str] = ARMS, policy: str = "aff-ots", seed: int = 1, **parameters: Any) -> None:
        body = {"name": "b", "arms": list(arms), "policy": policy, "parameters": parameters, "seed": seed,
                "reward_window": None, "default_reward": None}  # fmt: skip
        self.bandit = Bandit(policy, list(arms), seed=seed, **parameters)
        self.rows: list[EventRow] = []
        self.add("create", body=json.dumps(body))

    def add(
        self,
        kind: str,
        *,
        step: int | None = None,
        settles: int | None = None,
        arm: int | None = None,
        value: float | None = None,
        body: str | None = None,
    ) -> None:
        number = len(self.rows) + 1
        self.rows.append(EventRow(1, number, kind, step, settles, arm, value, float(number), 1e9 + number, None, body))

    def play(self, means: Sequence[float], steps: int, dice: np.random.Generator, settled: float = 1.0) -> None:
        for _ in range(steps):
            column = self.bandit.choose_column()
            step = self.bandit.step
            self.add("decision", step=step, arm=column)
            if dice.random() < settled:
                value = float(dice.random() < means[column])
                self.bandit.reward_column(column, value)
                self.add("reward", settles=step, arm=column, value=value)

    def change(self, **body: Any) -> None:
        self.add("arm", body=json.dumps(body))

    def history(self, rows: list[EventRow] | None = None) -> BanditHistory:
        history = BanditHistory(1, self)
        for row in self.rows if rows is None else rows:
            history.apply(row)
        return history

    def settlement_pages(self, bandit: int, after: int, before: int) -> Iterator[list[Settlement]]:
        found = [row for row in self.rows if after < row.sequence < before and row.kind in KINDS["reward"]]
        yield [Settlement(*(getattr(row, field) for field in Settlement._fields)) for row in found]

    def decision_bodies(self, bandit: int, steps: Sequence[int]) -> dict[int, str | None]:
        return {row.step: row.body for row in self.rows if row.step is not None and row.step in steps}

    def held_decisions(self, bandit: int, after: int, to: int, before: int) -> list[HeldDecision]:
        rewards = {row.settles: row.value for row in self.rows if row.sequence < before and row.settles is not None}
        steps = {row.step: row for row in self.rows if row.step is not None}
        return [HeldDecision(step, steps[step].arm or 0, rewards.get(step)) for step in range(after + 1, to + 1)]


@pytest.fixture
def dice() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_number_of_points_is_bounded_and_no_play_is_lost(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 5_000, dice, settled=0.9)
    history = log.history()
    series = history.series()
    assert len(series.step) <= MAX_POINTS
    assert series.step[-1] == 5_000
    assert np.all(np.diff(series.step) > 0)
    assert series.plays.sum(axis=0).tolist() == [log.bandit.arms[arm].plays for arm in ARMS]
    assert series.total[-1] == sum(row.value for row in log.rows if row.value is not None)


def test_estimates_are_those_of_the_bandit(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 700, dice)
    view = bandit_page_data(log.history(), 0)
    for arm in view["arms"]:
        there = log.bandit.arms[arm["arm"]]
        assert arm["mean"] == pytest.approx(there.mean, rel=1e-4)
        assert arm["forgetting"] == pytest.approx(there.forgetting, rel=1e-4)
        assert (arm["plays"], arm["low"] <= there.mean <= arm["high"]) == (there.plays, True)


@pytest.mark.parametrize("back", [900, 1, 0])
def test_a_saved_history_continues_as_if_it_had_not_been_saved(dice: np.random.Generator, back: int) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 900, dice)
    log.change(arm="a", paused=True)
    log.change(arm="d", add=True)
    log.change(arm="b", retired=True)
    log.change(arm="c", min_share=0.1)
    log.add("policy", body=json.dumps({"policy": "ucb", "parameters": {}}))
    cut = len(log.rows) - back
    whole = log.history()
    saved = BanditHistory.from_json(1, log.history(log.rows[:cut]).to_json(), log)
    for row in log.rows[cut:]:
        saved.apply(row)
    assert saved.to_json() == whole.to_json()


@pytest.mark.promise(51)
@pytest.mark.parametrize("saved_before", [None, 5, 13])
def test_held_decisions_count_when_they_are_learned(saved_before: int | None) -> None:
    log = Log(policy="ucb")
    body = json.loads(log.rows[0].body or "{}")
    settled = {"reward_window": 60, "default_reward": 0, "learn": "settled"}
    log.rows[0] = log.rows[0]._replace(body=json.dumps({**body, **settled}))
    for step in range(1, 7):
        log.add("decision", step=step, arm=step % 3)
    log.add("reward", settles=1, arm=1, value=1.0)
    before = bandit_page_data(log.history(), 0)
    assert (before["held"], before["settling_age"], before["rate"], before["pending"]) == (6, 60, None, 5)
    log.add("learn", body=json.dumps({"to": 4, "age": 2.5}))
    log.add("reward", settles=2, arm=2, value=1.0)  # late, one more observation
    log.add("reward", settles=3, arm=0, value=0.0)  # late, but as it was learned
    log.add("reward", settles=5, arm=2, value=1.0)  # still held
    log.add("close", settles=4, arm=1, value=0.0)
    log.add("policy", body=json.dumps({"policy": "eps-greedy", "parameters": {"epsilon": 0.1}, "rules": 2}))
    history = log.history(log.rows[:saved_before]) if saved_before else log.history()
    if saved_before:
        history = BanditHistory.from_json(1, history.to_json(), log)
        for row in log.rows[saved_before:]:
            history.apply(row)
    data = bandit_page_data(history, 0)
    assert (data["held"], data["settling_age"], data["rate"], data["total"]) == (2, 2.5, 0.4, 2.0)
    assert (data["pending"], data["expired"]) == (1, 1)
    assert [(arm["effective_size"], arm["mean"], arm["pending"]) for arm in data["arms"]] == [
        (1.0, 0.0, 1), (2.0, 0.5, 0), (2.0, 0.5, 1),
    ]  # fmt: skip


def test_repeated_events_change_nothing(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 50, dice)
    history = log.history()
    before = history.to_json()
    for row in log.rows:
        history.apply(row)
    assert history.to_json() == before


def test_arms_without_curves_are_counted_together(dice: np.random.Generator) -> None:
    arms = [f"arm {number}" for number in range(3 * MAX_TRACKED_ARMS)]
    log = Log(arms=arms, policy="uniform")
    log.play([0.5] * len(arms), 2_000, dice)
    history = log.history()
    view = bandit_page_data(history, 0)
    assert history.series().plays.shape[1] == MAX_TRACKED_ARMS
    low, middle, high = view["uniform"]
    assert middle == pytest.approx(view["total"], rel=0.1)
    assert low < view["total"] < high
    assert len(view["lines"]) == 12
    assert view["others"]["arms"] == len(arms) - 12
    assert sum(arm["plays"] for arm in view["arms"]) == 2_000


def test_recent_numbers_are_those_of_the_last_n_decisions(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 1_700, dice)
    entry = overview_entry(log.history(), 0)
    n = entry["recent_decisions"]
    assert n == 100  # one of the points ends exactly at step 1,600
    last = [row for row in log.rows if row.value is not None][-n:]
    assert entry["recent_rate"] == pytest.approx(np.mean([row.value for row in last]), rel=1e-4)
    plays = np.bincount([row.arm or 0 for row in last])
    assert (entry["leader"], entry["leader_share"]) == (ARMS[plays.argmax()], pytest.approx(plays.max() / n, rel=1e-4))
    data = bandit_page_data(log.history(), 0)
    assert [arm["recent_share"] for arm in data["arms"]] == pytest.approx((plays / n).tolist(), abs=1e-4)
    known = log.history().bandit.exact_propensities()
    assert known is not None
    assert {arm["arm"]: arm["propensity"] for arm in data["arms"]} == pytest.approx(known, abs=1e-4)


def test_the_sparkline_shows_the_reward_rate_of_all_decisions(dice: np.random.Generator) -> None:
    log = Log(policy="uniform")
    assert overview_entry(log.history(), 0)["sparkline"] == {"decisions": 0, "points": []}
    log.play([0.0] * 3, 1_000, dice)
    log.play([1.0] * 3, 1_000, dice)
    history = log.history()
    found = overview_entry(history, 0)["sparkline"]
    assert found["decisions"] == 2_000
    places = [place for place, _ in found["points"]]
    assert len(places) == 60
    assert (places[0], places[-1]) == (history.series().step[0] / 2_000, 1.0)
    assert np.diff(places) == pytest.approx(1 / 60, abs=0.01)
    for place, rate in found["points"]:
        assert rate == (0.0 if place <= 0.5 else pytest.approx(1.0) if place > 0.54 else rate)


def test_arms_that_can_be_chosen_have_a_probability_of_being_best(dice: np.random.Generator) -> None:
    log = Log(policy="ts")
    log.play([0.2, 0.5, 0.3], 150, dice)
    history = log.history()
    chosen = history.bandit.exact_propensities()  # Thompson sampling chooses an arm as often as it is the best one
    assert {arm["arm"]: arm["best"] for arm in bandit_page_data(history, 0)["arms"]} == pytest.approx(chosen, abs=1e-4)
    log.change(arm="b", paused=True)
    best = {arm["arm"]: arm["best"] for arm in bandit_page_data(log.history(), 0)["arms"]}
    assert best["b"] is None
    assert best["a"] + best["c"] == pytest.approx(1.0, abs=1e-4)
    unplayed = bandit_page_data(Log(policy="ucb").history(), 0)
    assert [arm["best"] for arm in unplayed["arms"]] == pytest.approx([1 / 3] * 3, abs=1e-4)
    many = Log(arms=[f"arm {number}" for number in range(MAX_COMPARED + 1)], policy="ucb")
    assert {arm["best"] for arm in bandit_page_data(many.history(), 0)["arms"]} == {None}


def test_arms_are_compared_with_a_control_arm(dice: np.random.Generator) -> None:
    log = Log(policy="ucb")
    log.play([0.3, 0.8, 0.4], 300, dice)
    log.change(arm="d", add=True)
    history = log.history()
    data = bandit_page_data(history, 0)
    assert data["uplift"] is None
    control, better, other, unknown = compared_with("a", data, history)["uplift"]
    assert control is unknown is None
    means = [arm["mean"] for arm in data["arms"]]
    assert better["absolute"][0] == pytest.approx(means[1] - means[0], abs=1e-4)
    assert better["relative"][0] == pytest.approx(means[1] / means[0] - 1.0, rel=1e-3)
    assert 0.0 < better["absolute"][1] < better["absolute"][0] < better["absolute"][2] < 1.0
    assert other["absolute"][1] < other["absolute"][0] < other["absolute"][2]
    assert compared_with("no such arm", data, history)["uplift"] is None


def test_a_change_is_detected_where_it_was_and_is_recent_for_1000_decisions(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.6, 0.3, 0.2], 2_000, dice)
    log.play([0.1, 0.3, 0.2], 600, dice)
    history = log.history()
    column, change = history.changes[0]
    assert (column, len(history.changes)) == (0, 1)
    assert 1_900 <= change.since <= change.step <= 2_600
    assert change.before == pytest.approx(0.6, abs=0.05)
    assert overview_entry(history, 0)["change"]["arm"] == "a"
    log.play([0.1, 0.3, 0.2], 1_500, dice)
    assert overview_entry(log.history(), 0)["change"] is None


def test_the_interval_of_the_uniform_baseline_contains_independent_runs() -> None:
    # 40 runs, each against a run of its own that chooses at random. The interval has 95 % at best; the bias
    # that the docstring speaks of leaves it near 90 %. 30 of 40 or fewer have probability 0.005 at 0.9
    dice = np.random.default_rng(11)
    inside = 0
    for seed in range(40):
        log = Log(arms="abcde", policy="aff-ots", seed=seed)
        rival = 0.0
        for means in ([0.1, 0.15, 0.3, 0.12, 0.2], [0.25, 0.15, 0.1, 0.12, 0.2]):
            log.play(means, 400, dice)
            rival += float((dice.random(400) < np.array(means)[dice.integers(5, size=400)]).sum())
        low, _, high = bandit_page_data(log.history(), 0)["uniform"]
        inside += low <= rival <= high
    assert inside > 30


def test_the_uniform_baseline_follows_a_change_of_an_arm_that_is_then_hardly_played() -> None:
    log = Log(arms="ab")
    worth = {0: 1.0, 1: 0.0}
    for step in range(1, 2_001):
        if step == 1_001:
            worth[0] = 0.0
        column = int(step % 20 == 0) if step <= 1_000 else int(step % 20 != 0)
        log.add("decision", step=step, arm=column)
        log.add("reward", settles=step, arm=column, value=worth[column])
    view = bandit_page_data(log.history(), 0)
    # At random: half of 1,000 rewards of 1, then nothing; the block of 16 rewards that the change cuts blurs it
    assert view["uniform"][1] == pytest.approx(500, rel=0.15)


def test_the_uniform_baseline_leaves_out_arms_that_cannot_be_chosen() -> None:
    uniform = UniformBaseline()
    for _ in range(2):
        uniform.add_arm()
    for _ in range(100):
        uniform.reward(0, 1.0)
        uniform.reward(1, 0.0)
    uniform.allow(1, False)
    for _ in range(100):
        uniform.reward(0, 1.0)
    estimate, variance = uniform.along(np.array([[uniform.expected_plays(arm) for arm in range(2)]]))
    assert estimate == pytest.approx(100 + 100)
    assert variance > 0
    uniform.allow(1, True)
    uniform.reward(1, 0.0)
    assert uniform.expected_plays(1) == pytest.approx(100.5)


def test_rewards_without_bounds_have_means_in_their_unit_and_no_intervals_for_proportions() -> None:
    log = Log(policy="uniform")
    body = json.loads(log.rows[0].body or "")
    log.rows[0] = log.rows[0]._replace(body=json.dumps({**body, "rewards": "normal"}))
    for step in range(1, 1200):
        column = log.bandit.choose_column()
        log.add("decision", step=step, arm=column)
        log.add("reward", settles=step, arm=column, value=-40.0 + step % 3 + (500.0 if step > 600 else 0.0))
    history = log.history()
    page, entry = bandit_page_data(history, 1), overview_entry(history, 1)
    json.dumps([{**page, "events": []}, entry], allow_nan=False)
    assert not page["bounded"]
    assert not entry["bounded"]
    assert history.changes == type(history.changes)(), "the test for changes is for rewards in [0, 1]"
    assert page["uniform"][0] is page["uniform"][2] is None
    assert page["uniform"][1] == pytest.approx(page["total"], rel=0.2)
    for arm in page["arms"]:
        assert 150 < arm["low"] < arm["mean"] < arm["high"] < 270
    assert sum(arm["best"] for arm in page["arms"]) == pytest.approx(1.0, abs=1e-4)
    first = compared_with("b", page, history)["uplift"][0]
    error = np.hypot(*(arm["high"] - arm["mean"] for arm in page["arms"][:2]))
    assert first["absolute"][2] - first["absolute"][0] == pytest.approx(error, rel=1e-3)
    assert bandit_page_data(Log().history(), 1)["bounded"]


def test_a_retired_name_that_is_used_again_is_another_arm(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 100, dice)
    log.change(arm="a", retired=True)
    log.change(arm="a", add=True)
    view = bandit_page_data(log.history(), 0)
    assert [(arm["arm"], arm["plays"] == 0) for arm in view["arms"]] == [("b", False), ("c", False), ("a", True)]


def test_a_new_policy_has_learned_all_rewards_and_is_marked(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 200, dice)
    log.add("policy", body=json.dumps({"policy": "ts", "parameters": {}}))
    view = bandit_page_data(log.history(), 0)
    assert view["policy"] == "ts"
    (mark,) = view["interventions"]
    assert (mark["step"], mark["policy"], mark["arm"]) == (200, "ts", None)
    assert all(arm["effective_size"] > 1 for arm in view["arms"])


def test_interventions_are_marked_where_they_happened_unless_they_changed_nothing(dice: np.random.Generator) -> None:
    log = Log()
    log.play([0.2, 0.5, 0.3], 100, dice)
    log.change(arm="a", paused=True)
    log.change(arm="a", paused=True)
    log.change(arm="b", min_share=0.1, max_share=0.3)
    log.change(arm="b", max_share=0.3)
    log.play([0.2, 0.5, 0.3], 50, dice)
    log.change(arm="a", paused=False)
    log.change(arm="d", add=True)
    log.change(arm="b", min_share=0.0, max_share=1.0, paused=True)
    log.change(arm="c", retired=True)
    view = bandit_page_data(log.history(), 0)
    listed = [
        (one.pop("step"), one.pop("arm"), one.pop("column"), one.pop("wall") > 1e9, one)
        for one in view["interventions"]
    ]
    assert listed == [
        (100, "a", 0, True, {"paused": True}),
        (100, "b", 1, True, {"limits": [0.1, 0.3]}),
        (150, "a", 0, True, {"resumed": True}),
        (150, "d", 3, True, {"added": True}),
        (150, "b", 1, True, {"limits": [0.0, 1.0], "paused": True}),
        (150, "c", 2, True, {"retired": True}),
    ]
    assert [one["arm"] for one in view["retired"]] == ["c"]
    states = [(line["arm"], line["paused"], line["retired"]) for line in view["lines"]]
    assert states == [("a", False, False), ("b", True, False), ("c", False, True), ("d", False, False)]


# In a service


def first_data(http: httpx.Client, name: str) -> dict[str, Any]:
    """Return the first data of a bandit's page that includes the whole log."""
    with http.stream("GET", "/pages/bandit", params={"name": name}) as answer:
        assert answer.status_code == 200
        for text in answer.iter_lines():
            if text.startswith("data: "):
                data: dict[str, Any] = json.loads(text.removeprefix("data: "))
                if data["sequence"] == data["last_sequence"]:
                    return data
    raise AssertionError("the stream ended")


@pytest.mark.promise(42)
def test_a_page_that_is_opened_again_does_not_show_what_was_erased_since(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ["red", "green"], seed=1)
        follower = LogFollower(server.service)  # not started: it reads the log when told to
        with contextlib.closing(server.store.reader()) as store:
            with follower.following(BanditPage("b")):
                follower._update(store)
                assert follower.page_data(BanditPage("b")) is not None
            client.delete("b", erase=True)
            client.create("b", ["red", "green"], seed=2)
            with follower.following(BanditPage("b")):
                assert follower.page_data(BanditPage("b")) is None


@pytest.mark.promise(293)
def test_nothing_is_kept_of_pages_that_are_closed(sqlite_url: str) -> None:
    """The texts in the address of a page are chosen by callers."""
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, _):
        client.create("b", ["red", "green"], seed=1)
        follower = LogFollower(server.service)  # not started: it reads the log when told to
        with contextlib.closing(server.store.reader()) as store:
            for number in range(20):
                for page in (BanditPage("b", f"control {number}"), Overview(search=f"search {number}")):
                    with follower.following(page), follower.following(page):
                        follower._update(store)
                        assert follower.page_data(page) is not None
            follower._update(store)
        kept = (follower._open_pages, follower._page_data, follower._shown, follower._listed.keys() - {Overview()})
        assert [len(one) for one in kept] == [0, 0, 0, 0]


@pytest.mark.promise(293)
def test_searches_of_open_pages_take_a_small_part_of_the_time(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, now, bandits_on, encoded = list[Overview](), 0.0, log_follower._bandits_on, list[Any]()

    def search_slowly(page: Overview, store: Any) -> Any:
        nonlocal now
        now += 0.1
        listed.append(page)
        return bandits_on(page, store)

    def encode(content: Any) -> bytes:
        encoded.append(content)
        return msgspec.json.encode(content)

    shop = Shop(sqlite_url)
    service = Service(shop.store)
    service.writer._prepare()
    follower = LogFollower(service)  # neither is started
    monkeypatch.setattr(log_follower, "_bandits_on", search_slowly)
    monkeypatch.setattr(log_follower, "time", mock.Mock(wraps=time, monotonic=lambda: now))
    monkeypatch.setattr(log_follower, "msgspec", mock.Mock(json=mock.Mock(encode=encode)))
    pages = [Overview(search=text) for text in ("b", "B", "c")]

    def found(page: Overview) -> int:
        data = follower.page_data(page)
        assert data is not None
        return len(msgspec.json.decode(data.content)["bandits"])

    with contextlib.closing(shop.store.reader()) as store, contextlib.ExitStack() as opened:
        for page in pages:
            opened.enter_context(follower.following(page))
        for _ in range(10):
            follower._update(store)
        assert len(listed) == 4, "those pages and the one of all bandits, once each"
        assert len(encoded) == 3, "nothing has changed since"
        assert [found(page) for page in pages] == [1, 1, 0]
        shop.run(lambda: create(shop.work, "c", Create(arms=ARMS)))
        follower._update(store)
        assert len(listed) == 4
        now += log_follower.LISTING_PAUSE * 0.4 + 0.1
        follower._update(store)
        assert (len(listed), found(pages[2])) == (8, 1)
        opened.enter_context(follower.following(Overview(search="other")))
        follower._update(store)
        assert listed[8:] == [Overview(search="other")], "a new page does not wait"
        shop.decide()
        before = len(encoded)
        follower._update(store)
        assert len(encoded) == before + 2, "the pages of this bandit"
    shop.store.close()


def saved(url: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(open_store(url)) as store:
        return store.rows("SELECT bandit, sequence, body FROM histories")


def test_page_data_agrees_with_the_service_and_is_the_same_after_a_restart(store_url: str) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, http):
        client.create("banner", arms=list(BANNERS), seed=3, policy="aff-ots")
        play(client, "banner", BANNERS, 1_000, random.Random(1))
        state = client.state("banner")
        first = first_data(http, "banner")
        assert first["sequence"] == state.sequence
        assert first["decisions"] == 1_000
        assert first["pending"] == 1_000 - first["rewarded"]
        assert {arm["arm"]: arm["plays"] for arm in first["arms"]} == {arm.arm: arm.plays for arm in state.arms}
    ((_, sequence, _),) = saved(store_url)
    assert sequence == state.sequence, "the history was saved when the service stopped"
    with running(open_store(store_url)) as server, talking(server.url) as (client, http):
        assert first_data(http, "banner") == first
        client.delete("banner", erase=True)
        assert saved(store_url) == [], "nothing is kept of an erased bandit"
        client.create("other", arms=ARMS)
        client.decide("other")
        first_data(http, "other")
    assert len(saved(store_url)) == 1


def test_an_unreadable_saved_history_is_computed_again_from_the_log(sqlite_url: str) -> None:
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        client.create("b", arms=ARMS, seed=3)
        client.decide_many("b", 40)
        first = first_data(http, "b")
    with contextlib.closing(open_store(sqlite_url)) as store:
        store.write([("UPDATE histories SET body = ?", ('{"format": 99}',))])
    with running(open_store(sqlite_url)) as server, talking(server.url) as (client, http):
        assert first_data(http, "b") == first


def test_a_replica_shows_the_decisions_of_another_one(postgres_url: str) -> None:
    with running(open_store(postgres_url)) as one, running(open_store(postgres_url)) as other:
        with talking(one.url) as (client, _), talking(other.url) as (_, http):
            client.create("b", arms=ARMS, seed=3)
            client.decide_many("b", 30)
            assert first_data(http, "b")["decisions"] == 30


def test_a_history_in_memory_is_not_saved_after_its_bandit_was_erased(store_url: str) -> None:
    with running(open_store(store_url)) as server, talking(server.url) as (client, _):
        client.create("b", arms=ARMS, seed=3)
        follower = LogFollower(server.service)  # one that has not read since
        with contextlib.closing(server.store.reader()) as store:
            number = store.find("b")
            assert number is not None
            follower._histories[number] = BanditHistory(number, server.store)
            follower._catch_up(store, number, ())
        client.delete("b", erase=True)
        follower._save([number])
        assert saved(store_url) == []
