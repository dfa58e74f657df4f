import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dynabandit as db
from dynabandit import Bandit
from dynabandit.bandit import serialization
from dynabandit.bandit.decision_making import TABLE_HORIZON
from dynabandit.bandit.serialization import VERSION, checksum as _checksum
from dynabandit.core.compilation import compiled
from dynabandit.core.streams import TIE, stream, uniform
from dynabandit.policies import POLICIES
from dynabandit.policies.whole.adaptive import growth
from tools.ready import READY, TRIED

PARAMETERS: dict[str, dict[str, Any]] = {
    "d-ucb": {"discount": 0.98},
    "sw-ucb": {"window": 25},
    "aff-ucb1": {"burn_in": 2},
    "aff-dts1": {"burn_in": 2, "step_size": 0.05},
    "aff-d-greedy": {"step_size": "variance-scaled"},
    **READY,
}
COLOURS = ["red", "green", "blue"]
each_policy = pytest.mark.parametrize("name", TRIED)


def make(name: str, seed: int = 7) -> Bandit:
    return Bandit(name, arms=COLOURS, seed=seed, **PARAMETERS.get(name, {}))


def play(bandit: Bandit, steps: int) -> list[str]:
    """Play with rewards that follow from the step and the arm alone."""
    choices = []
    for _ in range(steps):
        arm = bandit.choose()
        quarters = (bandit.step * 7 + len(arm)) % 5
        bandit.reward(arm, quarters if bandit.rewards.whole else quarters / 4)
        choices.append(arm)
    return choices


# --- The same decisions as a simulation ---------------------------------------------------------------------


@each_policy
def test_fed_the_same_rewards_it_chooses_as_the_simulator_does(name: str) -> None:
    policy = db.policy(name, **PARAMETERS.get(name, {}))
    world = db.environment("case-1", arms=3)
    run = db.simulate(policy, world, horizon=300, seed=5, keep=("arms", "rewards"))
    assert run.arms is not None
    assert run.rewards is not None
    bandit = Bandit(policy, arms=["0", "1", "2"], seed=5)
    for arm, reward in zip(run.arms[0], run.rewards[0], strict=True):
        assert bandit.choose() == str(arm)
        bandit.reward(str(arm), int(reward))


@pytest.mark.parametrize("max_share", [1.0, 0.4])
def test_decisions_that_are_told_leave_the_state_of_those_that_were_made(max_share: float) -> None:
    made, told = (make("aff-ucb2-growing") for _ in range(2))
    for bandit in (made, told):
        bandit.limit_arm("blue", max_share=max_share)
    for _ in range(20):
        column = made.choose_column()
        told.play_column(column)
        for bandit in (made, told):
            bandit.reward_column(column, column / 2)
    assert told.state_hash() == made.state_hash()
    assert told.step == 20


@pytest.mark.parametrize("column", [-1, 3])
def test_a_told_decision_for_a_column_that_is_none_is_refused_and_changes_nothing(column: int) -> None:
    bandit = make("ucb")
    before = bandit.state_hash()
    with pytest.raises(ValueError, match=rf"column must be a whole number of at least 0 and at most 2, got {column}"):
        bandit.play_column(column)
    assert bandit.state_hash() == before


@pytest.mark.parametrize("arms", [2, 3, 50])
def test_numbers_beyond_a_table_are_those_that_a_longer_table_holds(arms: int) -> None:
    table = POLICIES["aff-ucb1"].functions.table(arms, 4 * TABLE_HORIZON)
    fast = compiled(growth)
    assert [fast(idle, arms) for idle in range(table.size)] == table.tolist()


def test_the_seed_decides_and_is_known() -> None:
    first, second = Bandit("ts", arms=COLOURS), Bandit("ts", arms=COLOURS)
    assert first.seed != second.seed
    assert play(Bandit("ts", arms=COLOURS, seed=first.seed), 50) == play(first, 50)


# --- What it tells ------------------------------------------------------------------------------------------


def test_the_table_of_arms_tells_mean_variance_size_idle_steps_and_plays() -> None:
    bandit = Bandit("ucb", arms=["a", "b"], seed=1)
    assert bandit.arms["a"].plays == bandit.arms["a"].idle == 0
    assert math.isnan(bandit.arms["a"].mean)
    for value in (1.0, 0.0):
        assert bandit.choose() == ("a" if value else "b")
        bandit.reward("a" if value else "b", value)
    a, b = bandit.arms["a"], bandit.arms["b"]
    assert (a.mean, a.variance, a.forgetting, a.effective_size, a.idle, a.plays) == (1.0, 0.0, 1.0, 1.0, 1, 1)
    assert (b.mean, b.idle, b.plays) == (0.0, 0, 1)
    assert list(bandit.arms) == ["a", "b"]


def test_the_table_of_arms_is_readable() -> None:
    bandit = make("aff-ots")
    play(bandit, 30)
    header, *rows = repr(bandit.arms).splitlines()
    assert header.split() == ["arm", "mean", "variance", "forgetting", "effective", "size", "idle", "plays"]
    assert [row.split()[0] for row in rows] == COLOURS
    assert sum(int(row.split()[-1]) for row in rows) == 30
    assert len({len(line) for line in (header, *rows)}) == 1
    assert repr(bandit) == "Bandit(aff-ots, arms [red, green, blue], step 30)"


@pytest.mark.parametrize("name", ["dts", "aff-dts2", "ts", "aff-ots"])
def test_before_any_reward_thompson_sampling_tells_the_mean_of_its_prior(name: str) -> None:
    assert Bandit(name, arms=COLOURS, prior=(1, 3)).arms["red"].mean == 0.25


def test_a_choice_without_its_reward_moves_neither_window_nor_decay() -> None:
    for bandit in (Bandit("sw-ucb", arms=COLOURS, window=3), Bandit("d-ucb", arms=COLOURS, discount=0.5)):
        play(bandit, 3)
        before = [arm.effective_size for arm in bandit.arms.values()]
        for _ in range(5):
            bandit.choose()
        assert [arm.effective_size for arm in bandit.arms.values()] == before
        bandit.reward("blue", 1)
        assert [arm.effective_size for arm in bandit.arms.values()] != before


def test_the_effective_size_of_d_ucb_is_its_discounted_count() -> None:
    bandit = Bandit("d-ucb", arms=["a", "b"], discount=0.5)
    for arm in ("a", "b", "a"):
        bandit.reward(arm, 1)
    assert [arm.effective_size for arm in bandit.arms.values()] == [1.25, 0.5]


@each_policy
def test_every_policy_tells_a_mean_that_lies_between_its_rewards(name: str) -> None:
    bandit = make(name)
    play(bandit, 60)
    # The mean of a log-normal law may be above all rewards so far
    most = math.inf if name == "aff-revenue-ts" else 4.0 if bandit.rewards.whole else 1.0
    for arm in bandit.arms.values():
        if name == "borl" and math.isnan(arm.mean):
            continue  # a new block has no reward of this arm yet
        assert 0.0 <= arm.mean <= most
        assert 0.0 <= arm.variance <= most
        assert 0.0 <= arm.forgetting <= 1.0
        assert 0.0 < arm.effective_size <= 70.0
    assert sum(arm.plays for arm in bandit.arms.values()) == bandit.step == 60


# --- Stop and go on -----------------------------------------------------------------------------------------


@each_policy
def test_it_goes_on_bit_for_bit_from_json_at_every_step(name: str) -> None:
    whole, parts = make(name), make(name)
    for _ in range(40):
        parts = Bandit.from_json(parts.to_json())
        assert play(parts, 1) == play(whole, 1)
    assert parts.to_json() == whole.to_json()
    assert parts.arms == whole.arms


@each_policy
def test_json_has_no_words_of_its_own_for_infinity(name: str) -> None:
    def refuse(word: str) -> float:
        raise AssertionError(word)

    text = make(name).to_json()
    json.loads(text, parse_constant=refuse)
    assert ("inf" in text) == bool(np.isinf(make(name)._memory).any())


def test_arms_that_came_and_went_survive_json() -> None:
    bandit = make("aff-ucb1")
    play(bandit, 20)
    bandit.remove_arm("green")
    bandit.add_arm("violet")
    play(bandit, 10)
    bandit.remove_arm("red")
    bandit.add_arm("green")
    again = Bandit.from_json(bandit.to_json())
    assert again.to_json() == bandit.to_json()
    assert list(again.arms) == ["blue", "violet", "green"]
    assert play(again, 50) == play(bandit, 50)


def test_parameters_and_a_large_seed_survive_json() -> None:
    bandit = Bandit("aff-ots", arms=["é", '"', "\\", "🎲", " "], seed=2**64 - 1, prior=(1, 3), step_size=0.1 + 0.2)
    again = Bandit.from_json(bandit.to_json())
    assert again.policy == bandit.policy
    assert again.seed == bandit.seed
    assert list(again.arms) == list(bandit.arms)


def test_parameters_that_are_numbers_of_numpy_survive_json() -> None:
    seed: Any = np.uint64(3)
    bandit = Bandit("sw-ucb", arms=COLOURS, seed=seed, window=np.int64(9), burn_in=np.int32(2))
    assert Bandit.from_json(bandit.to_json()).policy == bandit.policy
    bandit = Bandit("aff-ts", arms=COLOURS, prior=(np.float32(0.5), np.int64(2)), step_size=np.float32(0.25))
    assert Bandit.from_json(bandit.to_json()).policy == bandit.policy


def changed(text: str, **changes: Any) -> str:
    """Change what a bandit wrote, with a checksum that fits."""
    content = {**json.loads(text), **changes}
    content.pop("checksum")
    content = {key: value for key, value in content.items() if value is not ...}
    return json.dumps({**content, "checksum": _checksum(content)})


TEXT = make("ucb").to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text must be what Bandit.to_json wrote, but is no JSON"),
        ("{", "text must be what Bandit.to_json wrote, but is no JSON"),
        pytest.param("[" * 100_000, "text must be what Bandit.to_json wrote, but is no JSON", id="deep"),
        (None, "text must be what Bandit.to_json wrote, but is no JSON"),
        ("[]", "text must be what Bandit.to_json wrote, with format 'dynabandit.bandit'"),
        ("{}", "text must be what Bandit.to_json wrote, with format 'dynabandit.bandit'"),
        (changed(TEXT, format="other"), "text must be what Bandit.to_json wrote, with format 'dynabandit.bandit'"),
        (changed(TEXT, version=2), f"text has format version 2, but this release reads version {VERSION}"),
        (changed(TEXT, version=...), f"text has format version None, but this release reads version {VERSION}"),
        (TEXT.replace('"step": 0', '"step": 1'), "text is damaged: its checksum does not fit its content"),
        (TEXT.replace("red", "rad"), "text is damaged: its checksum does not fit its content"),
        (TEXT.replace('"checksum"', '"sum"'), "text is damaged: its checksum does not fit its content"),
        (changed(TEXT, memory=...), "text must be what Bandit.to_json wrote, but cannot be read"),
        (
            changed(TEXT, memory=[[0.0]]),
            r"but cannot be read: its state has shape \(1, 1\)",
        ),
        (changed(TEXT, policy="ucb3"), "cannot be read: unknown policy 'ucb3'. Did you mean 'ucb'"),
        (changed(TEXT, parameters={"width": 1}), "cannot be read: policy 'ucb' has no parameter 'width'"),
    ],
)
def test_json_of_another_version_or_damaged_is_refused(text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bandit.from_json(text)


def at_step(step: int, policy: str = "ts") -> Bandit:
    """Return a bandit without rewards that is said to have made so many decisions."""
    return Bandit.from_json(changed(Bandit(policy, arms=COLOURS, seed=3).to_json(), step=step))


def test_a_bandit_goes_on_after_2_to_the_32_decisions_with_new_random_numbers() -> None:
    bandit = at_step(2**32 - 2, "uniform")
    chosen = [bandit.choose() for _ in range(30)]
    assert bandit.step == 2**32 + 28
    shares = [uniform(stream(3), TIE, step, 0) for step in range(2**32 - 1, 2**32 + 29)]
    assert chosen == [COLOURS[int(3 * share)] for share in shares]
    again = at_step(0, "uniform")
    assert chosen[2:] != [again.choose() for _ in range(28)]
    assert Bandit.from_json(bandit.to_json()).state_hash() == bandit.state_hash()


@pytest.mark.parametrize("name", ["ts", "ucb", "aff-ots"])
def test_an_arm_that_was_idle_for_2_to_the_40_steps_is_chosen_and_rewarded(name: str) -> None:
    bandit = at_step(2**40, name)
    assert play(bandit, 20)
    assert sum(arm.plays for arm in bandit.arms.values()) == 20


def test_the_last_of_2_to_the_48_decisions_is_the_last() -> None:
    bandit = at_step(2**48 - 2)
    bandit.choose()
    before = bandit.state_hash()
    with pytest.raises(ValueError, match=r"step must be .* at most 281474976710655, got 281474976710656"):
        bandit.choose()
    assert bandit.state_hash() == before


def arms_with(**changes: Any) -> list[dict[str, Any]]:
    """Return the arms of TEXT, the first one changed."""
    first, *others = json.loads(TEXT)["arms"]
    return [{**first, **changes}, *others]


STATE = json.loads(TEXT)["memory"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": 2**48}, "step must be .* at most 281474976710655, got 281474976710656"),
        ({"step": -1}, "step must be a whole number of at least 0"),
        ({"step": 1.5}, "step must be a whole number of at least 0 .*, got 1.5"),
        ({"step": True}, "step must be a whole number of at least 0 .*, got True"),
        ({"step": math.inf}, "step must be a whole number of at least 0 .*, got inf"),
        ({"step": None}, "step must be a whole number"),
        ({"seed": "7"}, "seed must be a whole number"),
        ({"parameters": None}, "must be a mapping"),
        ({"arms": None}, "not iterable"),
        ({"arms": ["red", "green", "blue"]}, "indices must be integers"),
        ({"arms": []}, "at least 2 arms must be active, got 0"),
        ({"arms": arms_with(name="green")}, "arms must have different names, got 'green' twice"),
        ({"arms": arms_with(name=3)}, "an arm's name must be a string that is not empty, got 3"),
        ({"arms": arms_with(name=["red"])}, "an arm's name must be a string that is not empty, got "),
        ({"arms": arms_with(active=1)}, "active must be true or false, got 1"),
        ({"arms": [{**arm, "active": arm["name"] == "red"} for arm in arms_with()]}, "at least 2 arms .*, got 1"),
        ({"arms": arms_with(last=1)}, "last must be 0, got 1"),
        ({"arms": arms_with(plays=-1)}, "plays must be 0, got -1"),
        ({"arms": arms_with(plays="many")}, "plays must be 0, got 'many'"),
        ({"arms": arms_with(plays=math.nan)}, "plays must be 0, got nan"),
        ({"memory": [[math.nan, *STATE[0][1:]], *STATE[1:]]}, "each number of the state must be a number .*, got nan"),
        ({"memory": [["nan", *STATE[0][1:]], *STATE[1:]]}, "each number of the state must be .*, got 'nan'"),
        ({"memory": [[True, *STATE[0][1:]], *STATE[1:]]}, "each number of the state must be .*, got True"),
        ({"memory": [STATE[0][1:], *STATE[1:]]}, "inhomogeneous"),
        ({"memory": 3}, "not iterable"),
        ({"shared": [None]}, "each number of the state must be .*, got None"),
        ({"shared": []}, "its state has shape"),
    ],
)
def test_content_that_no_bandit_wrote_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^text must be what Bandit.to_json wrote, but cannot be read: .*{message}"):
        Bandit.from_json(changed(TEXT, **changes))


@given(st.integers(0, len(TEXT) - 1))
def test_truncated_json_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="text must be what"):
        Bandit.from_json(TEXT[:length])


@given(st.integers(0, len(TEXT) - 1), st.characters(max_codepoint=126))
@settings(max_examples=300)
def test_one_wrong_character_is_noticed_or_means_the_same(place: int, character: str) -> None:
    text = TEXT[:place] + character + TEXT[place + 1 :]
    try:
        same = Bandit.from_json(text).to_json() == TEXT
    except ValueError:
        return
    assert same


def test_a_policy_of_your_own_is_given_again_and_must_be_the_same() -> None:
    text = make("eps-greedy").to_json()
    assert Bandit.from_json(text, policy=db.policy("eps-greedy")).to_json() == text
    with pytest.raises(ValueError, match="it holds policy 'eps-greedy', not 'ucb'"):
        Bandit.from_json(text, policy=db.policy("ucb"))
    with pytest.raises(ValueError, match=r"it holds .*'epsilon': 0.1.*, not .*'epsilon': 0.2"):
        Bandit.from_json(text, policy=db.policy("eps-greedy", epsilon=0.2))


# --- Arms that come and go ----------------------------------------------------------------------------------


@each_policy
def test_a_removed_arm_is_not_chosen_and_a_new_one_is(name: str) -> None:
    bandit = make(name)
    play(bandit, 30)
    bandit.remove_arm("red")
    bandit.add_arm("violet")
    choices = play(bandit, 200)
    assert set(choices) <= {"green", "blue", "violet"}
    assert "violet" in choices
    assert list(bandit.arms) == ["green", "blue", "violet"]


def test_a_new_arm_gets_its_burn_in_at_once() -> None:
    bandit = make("aff-ucb1")
    assert play(bandit, 6) == [*COLOURS, *COLOURS]
    bandit.add_arm("violet")
    assert play(bandit, 2) == ["violet", "violet"]
    assert bandit.arms["violet"].idle == 0


def test_a_name_used_again_starts_from_nothing() -> None:
    bandit = make("ucb")
    play(bandit, 30)
    bandit.remove_arm("red")
    bandit.add_arm("red")
    assert bandit.arms["red"].plays == 0
    assert math.isnan(bandit.arms["red"].mean)


def test_two_arms_stay() -> None:
    bandit = Bandit("ucb", arms=["a", "b"], seed=1)
    before = bandit.to_json()
    with pytest.raises(ValueError, match="cannot remove arm 'a': a bandit needs at least 2 arms"):
        bandit.remove_arm("a")
    assert bandit.to_json() == before


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("red", ValueError, "arms must have different names, got 'red' twice"),
        ("", TypeError, "an arm's name must be a string that is not empty, got ''"),
        (3, TypeError, "an arm's name must be a string that is not empty, got 3"),
    ],
)
def test_a_name_that_is_none_or_taken_is_refused(name: Any, error: type[Exception], message: str) -> None:
    bandit = make("ucb")
    before = bandit.to_json()
    with pytest.raises(error, match=message):
        bandit.add_arm(name)
    assert bandit.to_json() == before


# --- Rewards ------------------------------------------------------------------------------------------------


@each_policy
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, ValueError),
        ("below", ValueError),
        ("above", ValueError),
        (math.inf, ValueError),
        ("1", TypeError),
        (None, TypeError),
        (np.array([0.1, 0.2]), TypeError),
    ],
)
def test_a_wrong_reward_is_refused_and_changes_nothing(name: str, value: Any, error: type[Exception]) -> None:
    bandit = make(name)
    play(bandit, 10)
    arm = bandit.choose()
    before = bandit.to_json()
    low, high = bandit.rewards.low, bandit.rewards.high
    value = {"below": 1.1 * low - 0.1, "above": 1.1 * high}.get(value, value) if isinstance(value, str) else value
    with pytest.raises(error, match=re.escape(f"number in [{low:g}, {high:g}], got {value!r}")):
        bandit.reward(arm, value)
    assert bandit.to_json() == before


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ("gren", "unknown arm 'gren'. Did you mean 'green'\\? Arms: 'green', 'blue'"),
        ("xyz", "unknown arm 'xyz'. Arms: 'green', 'blue'"),
        ("red", "arm 'red' was removed. Arms: 'green', 'blue'"),
        (0, "unknown arm 0. Arms: 'green', 'blue'"),
    ],
)
def test_a_reward_for_an_unknown_or_removed_arm_is_refused(arm: Any, message: str) -> None:
    bandit = make("ucb")
    play(bandit, 10)
    bandit.remove_arm("red")
    before = bandit.to_json()
    with pytest.raises(ValueError, match=message):
        bandit.reward(arm, 1)
    with pytest.raises(ValueError, match=message):
        bandit.remove_arm(arm)
    assert bandit.to_json() == before


@pytest.mark.parametrize("value", [True, False, np.True_, np.float32(1.0), np.int8(0), 1])
def test_yes_and_no_and_numbers_of_numpy_are_rewards(value: Any) -> None:
    bandit, twin = make("aff-ts"), make("aff-ts")
    bandit.reward(bandit.choose(), value)
    twin.reward(twin.choose(), float(value))
    assert bandit.to_json() == twin.to_json()


@each_policy
def test_rewards_may_come_late_and_out_of_order(name: str) -> None:
    bandit = make(name)
    waiting: list[str] = []
    for step in range(80):
        waiting.append(bandit.choose())
        if step % 7 == 6:
            for arm in reversed(waiting):
                bandit.reward(arm, len(arm) % 2)
            waiting.clear()
    assert bandit.step == sum(arm.plays for arm in bandit.arms.values()) == 80
    known = [arm.mean for arm in bandit.arms.values() if not (name == "borl" and math.isnan(arm.mean))]
    assert all(bandit.rewards.contains(round(mean)) for mean in known)


@each_policy
def test_it_chooses_on_without_any_reward(name: str) -> None:
    bandit = make(name)
    assert {bandit.choose() for _ in range(200)} == set(COLOURS)


def pending(bandit: Bandit) -> list[int]:
    return [arm.pending for arm in bandit.arms.values()]


def test_a_decision_is_pending_until_its_reward_arrives_or_it_is_closed() -> None:
    bandit = make("ucb")
    for column in (0, 1, 2, 1, 1):  # steps 1 to 5
        bandit.play_column(column)
    assert pending(bandit) == [1, 3, 1]
    bandit.reward("red", 1, step=1)
    bandit.close("blue", step=3)
    assert pending(bandit) == [0, 3, 0]
    bandit.reward("green", 1, step=4)  # at most the play at step 5 is left
    assert pending(bandit) == [0, 1, 0]
    bandit.close("green")
    assert pending(bandit) == [0, 0, 0]


def test_pending_plays_survive_json_and_are_part_of_the_state() -> None:
    bandit, other = make("ucb"), make("ucb")
    for one in (bandit, other):
        for _ in range(4):
            one.choose()
    assert '"pending": 2' in bandit.to_json()
    assert Bandit.from_json(bandit.to_json()).state_hash() == bandit.state_hash()
    other.close("red", step=4)
    assert other.state_hash() != bandit.state_hash()
    other.close("green")
    other.close("blue")
    assert "pending" not in other.to_json()


@pytest.mark.parametrize("step", [0, 4])
def test_a_reward_of_a_decision_that_was_not_made_is_refused_and_changes_nothing(step: int) -> None:
    bandit = make("ucb")
    for _ in range(3):
        bandit.choose()
    before = bandit.state_hash()
    message = rf"step must be a whole number of at least 1 and at most 3, got {step}"
    with pytest.raises(ValueError, match=message):
        bandit.reward("red", 1, step=step)
    with pytest.raises(ValueError, match=message):
        bandit.close("red", step=step)
    assert bandit.state_hash() == before


def test_many_rewards_end_the_plays_that_single_ones_would() -> None:
    single, many = make("aff-ucb2"), make("aff-ucb2")
    for one in (single, many):
        for _ in range(9):
            one.choose()
    rewards = [(0, 1.0, 1), (1, 0.5, 2), (0, 0.0, single._arms.last_played[0].item())]
    for reward in rewards:
        single.reward_column(*reward)
    many.reward_columns(rewards)
    assert many.state_hash() == single.state_hash()
    assert many.arms["red"].pending == 0


# --- What cannot be a bandit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policy": "best-arm"}, ValueError, "policy 'best-arm' needs to be told the true means"),
        ({"policy": "aff-otss"}, ValueError, "unknown policy 'aff-otss'. Did you mean 'aff-ots'\\? Known: "),
        (
            {"policy": db.policy("ucb"), "burn_in": 2},
            TypeError,
            r"parameters \['burn_in'\] go with a ",
        ),
        ({"epsilonn": 0.1}, TypeError, "policy 'eps-greedy' has no parameter 'epsilonn'. Did you mean 'epsilon'"),
        ({"arms": []}, ValueError, r"arms must be a list with at least 2 different names, got \[\]"),
        ({"arms": ["a"]}, ValueError, r"arms must be a list with at least 2 different names, got \['a'\]"),
        ({"arms": "ab"}, ValueError, "arms must be a list with at least 2 different names, got 'ab'"),
        ({"arms": 2}, ValueError, "arms must be a list with at least 2 different names, got 2"),
        ({"arms": ["a", "a"]}, ValueError, "arms must have different names, got 'a' twice"),
        ({"arms": ["a", 1]}, TypeError, "an arm's name must be a string that is not empty, got 1"),
        ({"arms": ["a", ""]}, TypeError, "an arm's name must be a string that is not empty, got ''"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0 .*, got -1"),
        ({"seed": 1.5}, TypeError, "seed must be a whole number of at least 0 .*, got 1.5"),
    ],
)
def test_a_bandit_that_cannot_be_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Bandit(**{"policy": "eps-greedy", "arms": COLOURS, **arguments})


def test_a_choice_among_some_columns_is_that_of_a_bandit_whose_other_arms_are_paused() -> None:
    bandit = Bandit("ts", arms=["a", "b", "c", "d"], seed=3)
    paused = bandit.copy()
    for name in ("b", "d"):
        paused.pause_arm(name)
    for step in range(50):
        assert bandit.propensities(among=[2, 0]) == paused.propensities()
        column = bandit.choose_column(among=[2, 0])
        assert column == paused.choose_column()
        assert column in (0, 2)
        for one in (bandit, paused):
            one.reward_column(column, float(step % 3 == column))
    bandit.pause_arm("a")
    bandit.remove_arm("c")
    before = bandit.state_hash()
    with pytest.raises(ValueError, match="every arm of among is paused or was removed"):
        bandit.choose_column(among=[2, 0])
    assert bandit.state_hash() == before


def test_a_play_that_does_not_count_for_shares_leaves_the_maximum_share_to_others() -> None:
    bandit = Bandit("uniform", arms=["a", "b"], seed=3)
    bandit.limit_arm("a", max_share=0.1)
    counted = bandit.copy()
    for _ in range(5):
        bandit.play_column(0, counts_for_shares=False)
        counted.play_column(0)
    assert "a" in {bandit.choose() for _ in range(5)}
    assert "a" not in {counted.choose() for _ in range(5)}
    assert bandit.arms["a"].plays > 5


def test_many_columns_are_saved_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = Bandit("ucb", arms=["a", "b", "c"], seed=1)
    for _ in range(5):
        bandit.reward(bandit.choose(), 1)
    bandit.choose()
    bandit.pause_arm("b")
    bandit.remove_arm("a")
    bandit.add_arm("a")
    lists = bandit.to_json()
    monkeypatch.setattr(serialization, "MANY_COLUMNS", 3)
    text = bandit.to_json()
    assert isinstance(json.loads(text)["memory"], dict)
    for again in (Bandit.from_json(text), Bandit.from_json(lists)):
        assert again.state_hash() == bandit.state_hash()
        one = bandit.copy()
        assert [again.choose() for _ in range(5)] == [one.choose() for _ in range(5)]
    content = json.loads(text)
    arms, memory = content["arms"], content["memory"]
    other = serialization.bytes_to_json(np.array([9, 0, 0, 0]))
    for damage in (
        {"memory": {**memory, "type": "int64"}},
        {"memory": {**memory, "bytes": "AAAA"}},
        {"memory": {**memory, "shape": [9, 4]}},
        {"memory": serialization.bytes_to_json(np.full(memory["shape"], np.nan))},
        {"arms": {**arms, "plays": other}},
        {"arms": {**arms, "names": ["a", "b", "c"]}},
        {"arms": {**arms, "names": ["a", "b", "b", "b"]}},
        {"arms": {**arms, "names": ["a", "b", "c", ""]}},
    ):
        state = {key: value for key, value in content.items() if key not in ("format", "version", "checksum")}
        with pytest.raises(ValueError, match="cannot be read"):
            Bandit.from_json(serialization.write({**state, **damage}))


def test_a_bandit_whose_scores_are_no_numbers_says_so_and_chooses_nothing() -> None:
    bandit = Bandit("ts", ["a", "b"], seed=1)
    bandit._memory[:] = math.nan
    with pytest.raises(ValueError, match="policy 'ts' cannot decide: what it has learned gives scores that are not"):
        bandit.choose()
    assert bandit.step == 0


def test_a_belief_that_cannot_be_computed_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = Bandit("ts", ["a", "b"], seed=1)
    monkeypatch.setattr(type(bandit.policy), "belief", lambda *_: math.exp(1000.0))
    assert bandit.arms["a"].mean == math.inf


def test_a_saved_bandit_whose_parameter_is_not_valid_any_more_says_the_way_out() -> None:
    content = json.loads(Bandit("mix-ts", ["a", "b"], seed=1).to_json())
    content.pop("checksum")
    content["parameters"]["strength"] = 1e-15
    text = json.dumps({**content, "checksum": _checksum(content)})
    with pytest.raises(ValueError, match=r"strength must be .*, got 1e-15. Load it with the release that saved it"):
        Bandit.from_json(text)
