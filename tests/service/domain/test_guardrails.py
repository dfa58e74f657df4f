"""Guardrails: values count once, violations pause the arm and raise an alert in the same commit, replays are exact."""

import functools
import json
from typing import Any

import numpy as np
import pytest

from dynabandit.service import api_types
from dynabandit.service.compaction import compact
from dynabandit.service.decider_contacts import DeciderContacts
from dynabandit.service.domain import changes
from dynabandit.service.domain.alerts import api_alert
from dynabandit.service.domain.events import ALERT, ARM, METRIC, read_metric_key
from dynabandit.service.domain.guardrails import Guardrails
from dynabandit.service.domain.metric_values import add_metrics
from dynabandit.service.domain.rewards import reward
from dynabandit.service.errors import ConflictError, InvalidValueError, LateRewardError, NotFoundError
from dynabandit.service.http.responses import bandit_view
from dynabandit.service.monitoring_types import Alert, Guardrail, SetGuardrails
from dynabandit.service.projections.bandit_history import BanditHistory
from tools.harness import captured_log
from tools.shop import Shop

LATENCY = Guardrail(0.5, "max", [0.0, 10.0])
RULES = {"latency": LATENCY, "stock": Guardrail(2.0, "min")}


def measure(shop: Shop, step: int, **values: float) -> None:
    shop.run(lambda: add_metrics(shop.work, shop.bandit_number, step, values))


def serve(shop: Shop, decisions: int, slow: str = "red", seed: int = 0) -> None:
    """Decide and measure; the latency of one arm is 0.9 on average, that of the others 0.3."""
    rng = np.random.default_rng(seed)
    for _ in range(decisions):
        made = shop.decide()
        measure(shop, made.step, latency=float(rng.uniform(0, 1.8 if made.arm == slow else 0.6)))


def alerts_of(shop: Shop) -> list[Alert]:
    return [api_alert(event) for event in shop.store.events(shop.bandit_number, 0, 100, (ALERT,))]


@pytest.mark.promise(165, 167)
def test_an_arm_that_violates_a_guardrail_is_paused_with_an_alert(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", guardrails=RULES)
    serve(shop, 200)
    [alert] = alerts_of(shop)
    events = shop.store.events(shop.bandit_number, alert.sequence - 3, 3)
    assert [event.kind for event in events] == [METRIC, ARM, ALERT], "in one commit: they follow each other"
    assert events[1].body == '{"arm": "red", "paused": true, "guardrail": "latency"}'
    assert (alert.alert, alert.arm, alert.metric, alert.paused) == ("guardrail", "red", "latency", True)
    said = f"arm 'red' is paused: the mean of latency is {alert.mean:.4g} in {alert.count} decisions, and must be"
    assert alert.message == f"{said} at most 0.5"
    assert shop.state.bandit.paused("red")
    [latency, stock] = bandit_view(shop.state, DeciderContacts())().guardrails
    assert (latency.metric, latency.bound, latency.range) == ("latency", 0.5, [0.0, 10.0])
    assert [(arm.arm, arm.violated) for arm in latency.arms] == [("red", True), ("green", False), ("blue", False)]
    red, green, _ = latency.arms
    assert (red.count, red.mean) == (alert.count, alert.mean)
    assert green.evidence < 0.1
    assert green.mean == pytest.approx(0.3, abs=0.1)
    assert (stock.direction, stock.arms) == ("min", [])
    shop.assert_replays()
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.assert_replays()
    serve(shop, 5)
    shop.work.states.clear()  # a restart: the arm is not reported again
    for one in range(1, 6):
        measure(shop, one, stock=3.0)
    assert len(alerts_of(shop)) == 1


@pytest.mark.promise(166)
def test_a_metric_of_a_decision_counts_once(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES)
    made = shop.decide()
    measure(shop, made.step, latency=0.25)
    measure(shop, made.step, latency=0.25)
    measure(shop, made.step, latency=0.25, stock=3.0)  # of two sources
    with pytest.raises(ConflictError, match=r"has the latency 0\.25 already, got 0\.5"):
        measure(shop, made.step, stock=3.0, latency=0.5)
    events = shop.store.events(shop.bandit_number, 0, 100, (METRIC,))
    assert [(event.arm, event.value) for event in events] == [(0, 0.25), (0, 3.0)]

    def twice() -> None:
        add_metrics(shop.work, shop.bandit_number, made.step + 1, {"latency": 0.75})
        add_metrics(shop.work, shop.bandit_number, made.step + 1, {"latency": 0.75})

    shop.reward(shop.decide(), 1.0)
    shop.run(twice)  # in one batch
    assert len(shop.store.events(shop.bandit_number, 0, 100, (METRIC,))) == 3
    with pytest.raises(NotFoundError):
        measure(shop, 99, latency=0.25)
    shop.assert_replays()


@pytest.mark.promise(166)
def test_a_decision_that_is_rewarded_in_the_same_commit_keeps_its_arm(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES)
    shop.decide()
    made = shop.decide()

    def both() -> None:
        reward(shop.work, shop.bandit_number, made.step, 1.0)
        add_metrics(shop.work, shop.bandit_number, made.step, {"latency": 0.75})

    shop.run(both)
    [event] = shop.store.events(shop.bandit_number, 0, 100, (METRIC,))
    assert shop.state.bandit.names[event.arm or 0] == made.arm != "red"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"latency": 10.5}, r"metrics\.latency must be a number from 0 to 10, got 10\.5"),
        ({"latency": 0.5, "errors": 1.0}, r"metrics: .*'errors'.*latency"),
    ],
)
def test_invalid_metrics_change_nothing(make_shop: Any, values: dict[str, float], problem: str) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES)
    made = shop.decide()
    with pytest.raises(InvalidValueError, match=problem):
        measure(shop, made.step, **values)
    assert shop.work.events == []


@pytest.mark.parametrize(
    ("metric", "rule", "problem"),
    [
        (
            "latency",
            Guardrail(0.5, "max", [1.0, 2.0]),
            r"guardrails\.latency\.bound must be above 1 and below 2, got 0\.5",
        ),
        ("a\nb", LATENCY, "name of printable characters, got 'a"),
    ],
)
def test_invalid_guardrails(make_shop: Any, metric: str, rule: Guardrail, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        make_shop(guardrails={metric: rule})


def test_arms_times_guardrails_are_limited(make_shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_TESTS", 7)
    shop = make_shop(policy="ucb", guardrails=RULES)
    many = SetGuardrails({"a": LATENCY, "b": LATENCY, "c": LATENCY})
    with pytest.raises(InvalidValueError, match="guardrails must be at most 2 with 3 arms, got 3"):
        changes.set_guardrails(shop.work, "b", many)
    with pytest.raises(ConflictError, match="with 2 guardrails must have at most 3 arms, got 4"):
        changes.add_arm(shop.work, "b", "pink")
    assert shop.work.events == []


def test_a_copy_of_a_state_does_not_change(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES, holdout=api_types.HoldoutSettings(0.3, "red"))
    serve(shop, 10)
    copied = shop.state.copy()
    before = copied.monitoring.to_plain()
    serve(shop, 10)
    shop.reward(shop.decide(), 1.0)
    assert copied.monitoring.to_plain() == before != shop.state.monitoring.to_plain()


@pytest.mark.promise(162, 165)
def test_guardrails_replay_exactly_and_can_be_changed(make_shop: Any) -> None:
    shop = make_shop(policy="ts", guardrails={"latency": LATENCY})
    serve(shop, 40)
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    shop.work.states.clear()  # a restart
    serve(shop, 40, seed=1)
    shop.assert_replays()
    change = lambda: changes.set_guardrails(shop.work, "b", SetGuardrails({"latency": LATENCY}))  # noqa: E731
    assert shop.run(change)[1] is False, "they are the same"
    other = SetGuardrails({"latency": Guardrail(5.0, "max", [0.0, 10.0])})
    assert shop.run(lambda: changes.set_guardrails(shop.work, "b", other))[1] is True
    guardrails = shop.state.monitoring.guardrails
    assert (guardrails.tests, guardrails.violations) == ({"latency": {}}, set()), "the tests start again"
    serve(shop, 20, seed=2)
    for step in range(1, 100):
        shop.run(functools.partial(reward, shop.work, shop.bandit_number, step, 1.0))
    before = shop.state.monitoring.to_plain()
    shop.store.write([("DELETE FROM snapshots", ())])
    shop.assert_replays()
    [compacted] = compact(shop.store, before=2e12, now=0.0)
    assert compacted.problem is None
    kept = shop.store.events(shop.bandit_number, 0, 100, (METRIC,))
    assert [read_metric_key(event.key)[0] for event in kept] == [100], "metrics go with their decisions"
    with pytest.raises(NotFoundError):
        measure(shop, 200, latency=0.1)
    shop.work.states.clear()
    assert shop.state.monitoring.to_plain() == before
    shop.assert_replays()


@pytest.mark.promise(168)
def test_tests_without_a_range_of_an_earlier_release_start_again(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES)
    for _ in range(10):
        made = shop.decide()
        measure(shop, made.step, latency=0.3, stock=1.0)
        shop.reward(made, 1.0)
    shop.store.save_snapshot(shop.bandit_number, shop.work.snapshot(shop.bandit_number))
    compact(shop.store, before=2e12, now=0.0)
    before = shop.state.monitoring.guardrails
    start = json.loads(shop.store.start_of_log(shop.bandit_number))
    state = json.loads(start["state"])
    tests = state["monitoring"][1][2]
    tests["stock"] = [[column, test[:10]] for column, test in tests["stock"]]  # as release 0.2.0 wrote them
    start |= {"state": json.dumps(state), "state_hash": "3:its hash"}
    shop.store.write([("UPDATE events SET body = ? WHERE sequence = 0", (json.dumps(start),))])
    shop.store.write([("UPDATE snapshots SET state_hash = '3:its hash'", ())])
    shop.work.states.clear()
    with captured_log("domain.log_start", "service_log") as logged:
        guardrails = shop.state.monitoring.guardrails
    assert guardrails.tests == {"latency": before.tests["latency"], "stock": {}}
    assert [(one["event"], one["bandit"], one["metric"]) for one in logged] == [("guardrail restarted", "b", "stock")]
    made = shop.decide()
    measure(shop, made.step, stock=1.0)
    assert sum(test[0] for test in shop.state.monitoring.guardrails.tests["stock"].values()) == 1.0
    shop.assert_replays()
    history = json.loads(BanditHistory.at_start(shop.bandit_number, shop.store).to_json())
    history["monitoring"][1][2] = tests
    with pytest.raises(ValueError, match="of an earlier release"):
        BanditHistory.from_json(shop.bandit_number, json.dumps(history), shop.store)


def test_an_arm_shows_why_its_test_may_not_hold() -> None:
    guardrails = Guardrails({"stock": RULES["stock"]}, 3)
    for n in range(4_000):
        guardrails.add("stock", 1, 1e9 if n == 100 else 1.0)
    [stock] = guardrails.views(["red", "green", "blue"])
    [green] = stock.arms
    assert (green.evidence, green.problem) == (0.0, "a few values make up most of the distance from the bound")


def test_metrics_of_removed_decisions_are_late(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", guardrails=RULES)
    for _ in range(5):
        shop.reward(shop.decide(), 1.0)
    compact(shop.store, before=2e12, now=0.0)
    with pytest.raises(LateRewardError, match="was removed"):
        measure(shop, 1, latency=0.5)


@pytest.mark.promise(169)
def test_the_last_arm_is_not_paused(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", guardrails={"latency": LATENCY})
    for arm in ("green", "blue"):
        shop.run(lambda arm=arm: changes.change_arm(shop.work, "b", arm, api_types.ChangeArm(paused=True)))
    serve(shop, 100)
    [alert] = alerts_of(shop)
    assert alert.paused is False
    assert "arm 'red' is not paused, as the only one that can be chosen" in alert.message
    assert not shop.state.bandit.paused("red")
    shop.assert_replays()


def test_an_arm_that_is_paused_already_gets_an_alert_for_another_metric(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", guardrails={"latency": LATENCY, "errors": Guardrail(0.1, "max", [0.0, 1.0])})
    made = [shop.decide() for _ in range(120)]
    for metric in ("latency", "errors"):
        for one in made:
            measure(shop, one.step, **{metric: float(one.arm == "red")})
    assert [(alert.metric, alert.arm, alert.paused) for alert in alerts_of(shop)] == [
        ("latency", "red", True),
        ("errors", "red", True),
    ]
    assert len(shop.store.events(shop.bandit_number, 0, 100, (ARM,))) == 1
    shop.assert_replays()


@pytest.mark.promise(169)
def test_a_resumed_arm_starts_again(make_shop: Any) -> None:
    shop = make_shop(policy="uniform", guardrails={"latency": LATENCY})
    serve(shop, 100)
    assert shop.state.bandit.paused("red")
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(paused=False)))
    assert 0 not in shop.state.monitoring.guardrails.tests["latency"]
    serve(shop, 100, seed=3)
    assert [alert.arm for alert in alerts_of(shop)] == ["red", "red"]
    shop.assert_replays()


@pytest.mark.promise(164)
def test_a_sample_ratio_mismatch_raises_one_alert(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", holdout=api_types.HoldoutSettings(0.3, "red"))
    for n in range(150):
        made = shop.decide(unit=f"u{n}")
        if not made.holdout:  # the rewards of the holdout get lost
            shop.reward(made, 1.0)
    [alert] = alerts_of(shop)
    assert alert.alert == "sample-ratio"
    assert (alert.share, alert.holdout) == (0.3, 0)
    assert alert.message == f"the holdout has 0 of {alert.policy} rewards, which is not a share of 0.3"
    shop.assert_replays()


def test_equal_losses_raise_no_alert(make_shop: Any) -> None:
    shop = make_shop(policy="ucb", holdout=api_types.HoldoutSettings(0.3, "red"))
    for n in range(200):
        made = shop.decide(unit=f"u{n}")
        if n % 2:
            shop.reward(made, 1.0)
    assert alerts_of(shop) == []
