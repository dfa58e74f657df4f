"""Replays against a slow, literal transcription, and against worlds whose truth is known."""

from typing import NamedTuple

import numpy as np
import pytest

import dynabandit as db
from dynabandit import offline
from dynabandit.core.streams import REPLAY, stream, uniform
from dynabandit.offline.replay import doubly_robust
from dynabandit.offline.replay_loop import Player

ARMS = ("a", "b", "c")
# One of each way to decide: at random now and then, by an index, by idle time, by a posterior, by what is shared
EACH_KIND: dict[str, dict[str, object]] = {
    "eps-greedy": {},
    "ucb": {},
    "aff-ucb2": {"step_size": 0.1},
    "aff-ots": {"step_size": 0.1},  # forgets fast, so that a step more or less of idle time can be seen
    "dts": {},
    "d-ucb": {"discount": 0.9},
    "sw-ucb": {"window": 20},
}


class World(NamedTuple):
    """A log together with the truth behind it."""

    arms: np.ndarray
    rewards: np.ndarray
    propensities: np.ndarray
    means: np.ndarray

    def log(self) -> offline.Log:
        table = {"arm": [ARMS[arm] for arm in self.arms], "reward": self.rewards, "p": self.propensities}
        return offline.from_columns(table, propensity="p")


def world(seed: int, rows: int = 300) -> World:
    """Arms that swap half way, logged with probabilities that go up and down."""
    generator = np.random.default_rng(seed)
    wave = 0.15 * np.sin(np.arange(rows) / 20.0)
    chances = np.stack([0.3 + wave, np.full(rows, 0.4), 0.3 - wave], axis=1)
    arms = np.array([generator.choice(3, p=row) for row in chances])
    means = np.where(np.arange(rows)[:, None] < rows // 2, [0.2, 0.5, 0.8], [0.9, 0.5, 0.1])
    rewards = (generator.random(rows) < means[np.arange(rows), arms]).astype(float)
    return World(arms, rewards, chances[np.arange(rows), arms], means)


def literal(one: World, policy: db.Policy, seed: int, draws: int, least: float) -> dict[str, np.ndarray]:
    """Replay with a Bandit, from the definitions: a row that is not taken is a step in which nothing was played."""
    bandit = db.Bandit(policy, ARMS, seed=seed)
    model = [db.estimators.AdaptiveForgetting() for _ in ARMS]
    taken, ips, dr = [], [], []
    for row, (arm, reward, p) in enumerate(zip(one.arms, one.rewards, one.propensities, strict=True), start=1):
        chances = np.array([bandit.propensities(draws)[name] for name in ARMS])
        overall = one.rewards[: row - 1].mean() if row > 1 else 0.0
        expected = np.array([overall if np.isnan(each.mean) else each.mean for each in model])
        ips.append(chances[arm] / p * reward)
        dr.append(chances @ expected + chances[arm] / p * (reward - expected[arm]))
        ahead = bandit.copy()
        if ahead.choose() == ARMS[arm] and uniform(stream(seed), REPLAY, row, 0) < least / p:
            bandit = ahead
            bandit.reward(ARMS[arm], reward)
            taken.append(reward)
        else:
            bandit._step += 1
        model[arm].update(reward)
    return {"replay": np.array(taken), "ips": np.array(ips), "dr": np.array(dr)}


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_replay_is_a_bandit_that_plays_the_rows_it_agrees_with(name: str) -> None:
    one = world(seed=1, rows=120)
    log = one.log()
    policy = db.policy(name, **EACH_KIND[name])
    found = offline.replay(log, policy, replications=1, draws=50, seed=3)
    slow = literal(one, policy, seed=3, draws=50, least=log.least_propensity)
    assert found.accepted == len(slow["replay"])
    for estimate in ("replay", "ips", "dr"):
        assert getattr(found, estimate).value == pytest.approx(slow[estimate].mean(), abs=1e-12)


@pytest.mark.parametrize("name", ["aff-ots", "sw-ucb"])
def test_on_the_clock_of_accepted_rows_it_is_a_bandit_that_waits_for_a_row_with_its_choice(name: str) -> None:
    one = world(seed=1, rows=200)
    policy = db.policy(name, **EACH_KIND[name])
    found = offline.replay(one.log(), policy, replications=1, draws=1, clock="accepted", clip=1.0, seed=3)
    bandit, taken = db.Bandit(policy, ARMS, seed=3), []
    choice = bandit.choose()
    for arm, reward in zip(one.arms, one.rewards, strict=True):
        if ARMS[arm] == choice:  # clipped at 1, every propensity is the same and every such row is taken
            taken.append(reward)
            bandit.reward(choice, reward)
            choice = bandit.choose()
    assert found.accepted == len(taken)
    assert found.replay.value == pytest.approx(np.mean(taken))


def test_idle_time_counts_rows_of_the_log() -> None:
    # The bandit never agrees with the last rows: all that changes meanwhile is the time
    arms = [0, 1, 2] * 20 + [2] * 200
    rewards = [1.0, 0.0, 0.0] * 20 + [0.0] * 200
    table = {"arm": [ARMS[arm] for arm in arms], "reward": rewards}
    log = offline.from_columns(table)
    idle = {}
    for clock in ("log", "accepted"):
        player = Player(
            db.policy("ucb"), log.arms, least=1 / 3, replications=1, draws=1, log_clock=clock == "log", seed=1
        )
        for chunk in log.chunks():
            player.play(chunk)
        idle[clock] = int(player.progress.states.last_played.max())
        assert player.progress.states.last_played.max() <= (
            260 if clock == "log" else player.progress.states.plays.sum()
        )
    assert idle["log"] > 2 * idle["accepted"]


def test_one_row_at_a_time_or_many_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    log = world(seed=2).log()
    whole = offline.replay(log, "aff-ots", seed=5, replications=3)
    monkeypatch.setattr("dynabandit.offline.readers.BATCH", 7)
    pieces = offline.replay(log, "aff-ots", seed=5, replications=3)
    assert pieces.dr.value == pytest.approx(whole.dr.value, abs=1e-12)
    assert pieces.accepted == pytest.approx(whole.accepted)


def truth(one: World, seed: int) -> tuple[float, np.ndarray]:
    """Return the mean value of the decisions of a replay, and its doubly robust terms."""
    log = one.log()
    player = Player(
        db.policy("aff-ots"), log.arms, least=log.least_propensity, replications=2, draws=20, log_clock=True, seed=seed
    )
    before, total, terms = np.zeros(3), 0.0, []
    (chunk,) = log.chunks()
    for row in range(log.rows):
        piece = type(chunk)(*(part[row : row + 1] for part in chunk))
        terms.append(doubly_robust(piece, player.play(piece))[0])
        total += (player.shares - before) @ one.means[row]
        before = player.shares.copy()
    return total / log.rows, np.array(terms)


def test_every_estimate_is_centred_on_the_truth_and_its_interval_holds_it_as_often_as_it_says() -> None:
    """Of a learning policy, in a world that changes, from propensities that vary; 200 worlds with fixed seeds."""
    worlds = 200
    errors: dict[str, list[float]] = {name: [] for name in ("replay", "ips", "snips", "dr")}
    held = dict.fromkeys(errors, 0)
    for seed in range(worlds):
        one = world(seed)
        value, _ = truth(one, seed)
        found = offline.replay(one.log(), "aff-ots", replications=2, draws=20, seed=seed)
        for name, found_errors in errors.items():
            estimate = getattr(found, name)
            found_errors.append(estimate.value - value)
            held[name] += estimate.low <= value <= estimate.high
    for name, found_errors in errors.items():
        spread = np.std(found_errors) / np.sqrt(worlds)
        assert abs(np.mean(found_errors)) < 4.0 * spread + (0.005 if name == "snips" else 0.0), name
        assert held[name] >= 0.9 * worlds, name  # 3.2 standard deviations below 95 %
    assert np.std(errors["dr"]) < np.std(errors["ips"])


def test_more_replications_share_the_luck_of_the_policy_not_that_of_the_log() -> None:
    log = world(seed=4).log()
    one, many = (offline.replay(log, "ts", replications=count, seed=1) for count in (1, 20))
    assert many.effective_rows > one.effective_rows
    assert many.dr.high - many.dr.low > 0.5 * (one.dr.high - one.dr.low)


def test_clipping_takes_more_rows() -> None:
    log = world(seed=5).log()
    assert offline.replay(log, "ts", clip=0.4).accepted > offline.replay(log, "ts").accepted


def test_a_log_without_any_reward_has_no_interval_but_that_of_wilson() -> None:
    log = offline.from_columns({"arm": ["a", "b"] * 50, "reward": [0] * 100})
    found = offline.replay(log, "ts")
    assert found.replay.value == 0.0
    assert 0.02 < found.replay.high < 0.15
    for estimate in (found.ips, found.snips, found.dr):
        assert estimate.value == 0.0
        assert np.isnan(estimate.high)


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("best-arm", {}, "needs to be told the true means"),
        ("d-ucb", {}, "or discount="),
        ("ts", {"clock": "wall"}, "unknown clock 'wall'"),
        ("ts", {"draws": 0}, "draws must be a whole number of at least 1"),
        ("ts", {"replications": 0}, "replications must be a whole number of at least 1"),
        ("ts", {"clip": 2}, "clip must be a number in"),
        ("tz", {}, "unknown policy 'tz'"),
    ],
)
def test_wrong_arguments_are_named(policy: str, options: dict[str, object], message: str) -> None:
    log = offline.from_columns({"arm": ["a", "b"], "reward": [0, 1]})
    with pytest.raises(ValueError, match=message):
        offline.replay(log, policy, **options)  # type: ignore[arg-type]
