"""Every decision has its propensity in the answer, in the log and in the export."""

import itertools
from typing import Any

import numpy as np
import pytest

from dynabandit import Bandit, offline
from dynabandit.bandit.decision import ColumnProbabilities
from dynabandit.service import api_types, export
from dynabandit.service.domain import changes, preview
from dynabandit.service.domain.bandit_state import RULES
from dynabandit.service.domain.decision_details import read_details
from tools.harness import ARMS
from tools.shop import FEATURES, Shop


def exported(shop: Shop, draws: int = 7) -> list[api_types.Exported]:
    return list(itertools.chain.from_iterable(export.decisions(shop.store, shop.bandit_number, draws)))


def decide_and_check(shop: Shop, steps: int, **asked: Any) -> list[api_types.Decision]:
    """Decide and reward; each propensity must be that of the library's bandit in the same state."""
    made = []
    for step in range(steps):
        expected = shop.state.bandit.exact_propensities(asked.get("context"))
        made.append(shop.decide(**asked))
        assert made[-1].propensity == expected[made[-1].arm]
        shop.reward(made[-1], float(made[-1].arm == "blue" or step % 3 == 0))
    return made


@pytest.mark.promise(150)
def test_answer_event_and_export_have_the_same_propensity(make_shop: Any) -> None:
    """Without draws: the number of draws of the export makes no difference."""
    shop = make_shop(policy="ts")
    made = decide_and_check(shop, 8)
    shop.run(lambda: changes.change_arm(shop.work, "b", "red", api_types.ChangeArm(min_share=0.25)))
    shop.run(lambda: changes.change_arm(shop.work, "b", "green", api_types.ChangeArm(paused=True)))
    made += decide_and_check(shop, 8)
    known = [one.propensity for one in made]
    assert min(filter(None, known)) > 0.0
    assert len(set(known)) > 5
    assert [event.value for event in shop.store.log(shop.bandit_number, kinds=("decision",))] == known
    assert [one.propensity for one in exported(shop)] == known
    assert [one.propensity for one in exported(shop, draws=1)] == known
    shop.assert_replays()
    shop.store.write([("UPDATE events SET value = 0.125 WHERE kind = 'decision'", ())])
    assert {one.propensity for one in exported(shop)} == {0.125}, "the recorded one"


@pytest.mark.parametrize(("policy", "rewards", "since"), [("kl-ucb", 3, 2), ("ts", 0, 4), ("kalman-ts", 0, 4)])
def test_pending_plays_count_in_propensities_since_the_rules_by_which_they_count_in_decisions(
    make_shop: Any, policy: str, rewards: int, since: int
) -> None:
    shop = make_shop(policy=policy)
    for _ in range(rewards):
        shop.reward(shop.decide(), 0.0)
    for _ in range(12):
        shop.decide()
    shop.store.write([("UPDATE events SET value = NULL WHERE kind = 'decision'", ())])
    found = []
    for rules in range(1, RULES + 1):
        body = f"json_set(body, '$.rules', {rules})"
        shop.store.write([(f"UPDATE events SET body = {body} WHERE kind = 'create'", ())])
        found.append([one.propensity for one in exported(shop, draws=200)])
    assert all(one == found[0] for one in found[: since - 1])
    assert all(one == found[-1] for one in found[since - 1 :])
    assert found[0] != found[-1]


@pytest.mark.promise(150)
def test_a_decision_that_is_given_again_has_its_first_propensity(make_shop: Any) -> None:
    shop = make_shop(policy="ts", sticky_for=100)
    decide_and_check(shop, 5)
    first = shop.decide(unit="u"), shop.decide(key="k")
    decide_and_check(shop, 5)
    again = shop.decide(unit="u"), shop.decide(key="k")
    assert [one.propensity for one in again] == [one.propensity for one in first]


@pytest.mark.promise(151)
def test_what_is_not_known_is_null_and_estimated_in_the_export(make_shop: Any) -> None:
    shop = make_shop(policy="f-dsw-ts", holdout=api_types.HoldoutSettings(0.5, "red"))
    made = [shop.decide() for _ in range(12)]
    assert {one.propensity for one in made} == {None}
    for one in exported(shop):  # before the first reward all arms are equal: (7 p + 1) / 8 of draws, or a share of 7
        shares = [0.5 * (one.arm == "red") + 0.5 * part for n in range(8) for part in (n / 7, (n + 1) / 8)]
        assert any(one.propensity == pytest.approx(share) for share in shares)
        assert one.propensity > 0.0


@pytest.mark.promise(151)
def test_the_log_of_an_earlier_release_gets_exact_propensities_in_the_export(make_shop: Any) -> None:
    shop = make_shop(policy="ts")
    known = [one.propensity for one in decide_and_check(shop, 8)]
    shop.store.write([("UPDATE events SET value = NULL WHERE kind = 'decision'", ())])
    assert [one.propensity for one in exported(shop, draws=1)] == known


@pytest.mark.promise(230)
def test_the_propensity_of_a_holdout_is_that_over_all_units(make_shop: Any) -> None:
    shop = make_shop(policy="ts", holdout=api_types.HoldoutSettings(0.4, "red"))
    for step in range(20):
        policy = shop.state.bandit.exact_propensities()
        made = shop.decide(unit=f"u{step}")
        assert made.propensity == pytest.approx(0.4 * (made.arm == "red") + 0.6 * policy[made.arm])
        shop.reward(made, float(made.arm == "blue"))
    events = shop.store.log(shop.bandit_number, kinds=("decision",))
    assert {read_details(event.body).holdout for event in events} == {True, False}


@pytest.mark.promise(150)
@pytest.mark.parametrize("policy", ["lin-ucb", "mix-lin-ucb", "lin-ts"])
def test_contexts(make_shop: Any, policy: str) -> None:
    shop = make_shop(policy=policy, features=FEATURES, rewards="normal")
    shop.learn(20)
    decide_and_check(shop, 3, context={"hour": 9.0, "new": True, "country": "NO"})
    shop.assert_replays()


@pytest.mark.promise(40)
def test_a_preview_is_exact(make_shop: Any) -> None:
    shop = make_shop(policy="ucb")
    for step in range(6):
        shop.reward(shop.decide(), float(step % 2))
    found = [
        [(one.propensity, one.current_propensity) for one in shown.arms]
        for shown in (
            preview.preview(shop.store, shop.state, api_types.PreviewPolicy("ts", draws=draws)) for draws in (1, 50)
        )
    ]
    assert found[0] == found[1]
    assert sum(new for new, _ in found[0]) == pytest.approx(1.0)
    assert sum(now for _, now in found[0]) == pytest.approx(1.0)


@pytest.mark.promise(153)
def test_the_value_of_the_logged_policy_is_the_mean_reward(make_shop: Any) -> None:
    """Inverse propensity scoring of a log of TS: its own value, and that of always playing blue."""
    shop = make_shop(policy="ts", holdout=api_types.HoldoutSettings(0.1))
    rng = np.random.default_rng(1)
    for _ in range(400):
        made = shop.decide()
        shop.reward(made, float(rng.random() < {"red": 0.3, "green": 0.5, "blue": 0.6}[made.arm]))
    rows = exported(shop)
    table: dict[str, list[Any]] = {
        "arm": [one.arm for one in rows], "reward": [one.reward for one in rows],
        "propensity": [one.propensity for one in rows],
    }  # fmt: skip
    found = offline.replay(offline.from_columns(table), "ts", replications=1, draws=20, seed=3)
    assert found.ips.low < found.logged.value < found.ips.high
    assert abs(found.ips.value - found.logged.value) < 0.1
    rewards, weights = np.array(table["reward"]), (np.array(table["arm"]) == "blue") / np.array(table["propensity"])
    error = float(np.std(weights * rewards)) / np.sqrt(len(rows))
    assert abs(float(np.mean(weights * rewards)) - 0.6) < 4.0 * error  # fails by chance with probability 1e-4
    assert abs(float(np.mean(weights)) - 1.0) < 4.0 * float(np.std(weights)) / np.sqrt(len(rows))


def test_an_arm_whose_probability_is_rounded_to_0_has_no_propensity(
    make_shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = make_shop(policy="ts")
    monkeypatch.setattr(Bandit, "_mixed", lambda *_: ColumnProbabilities(np.arange(len(ARMS)), np.zeros(len(ARMS))))
    assert shop.decide().propensity is None
