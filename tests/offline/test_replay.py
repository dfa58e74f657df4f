"""Replays agree with the truth in simulated logs."""

from unittest import mock

import numpy as np
import pytest

import dynabandit as db
from dynabandit import offline
from dynabandit.offline.log import Logged
from dynabandit.offline.off_policy_estimators import doubly_robust
from dynabandit.offline.replay_loop import Player
from dynabandit.offline.reward_model import RewardModel
from tools.laws import INTERPRETED
from tools.true_log import ARMS, TrueLog, make_log


def test_idle_time_counts_rows_of_the_log() -> None:
    # None of the last rows is accepted: only time passes
    arms = [0, 1, 2] * 20 + [2] * 200
    rewards = [1.0, 0.0, 0.0] * 20 + [0.0] * 200
    table = {"arm": [ARMS[arm] for arm in arms], "reward": rewards}
    log = offline.from_columns(table)
    idle = {}
    for clock in ("log", "accepted"):
        player = Player(
            db.policy("ts"), log.arms, least=1 / 3, replications=1, draws=1, log_clock=clock == "log",
            learn_all=False, seed=1,
        )  # fmt: skip
        for chunk in log.chunks():
            player.play(chunk, np.zeros((len(chunk.arms), 3)))
        idle[clock] = int(player.progress.states.last_played.max())
        assert player.progress.states.last_played.max() <= (
            260 if clock == "log" else player.progress.states.plays.sum()
        )
    assert idle["log"] > 2 * idle["accepted"]


def test_the_size_of_batches_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(seed=2).log()
    whole = offline.replay(log, "aff-ots", seed=5, replications=3)
    monkeypatch.setattr("dynabandit.offline.readers.BATCH", 7)
    pieces = offline.replay(log, "aff-ots", seed=5, replications=3)
    assert pieces.dr.value == pytest.approx(whole.dr.value, abs=1e-12)
    assert pieces.accepted == pytest.approx(whole.accepted)


def test_the_choice_of_the_burn_in_does_not_depend_on_the_logged_arm() -> None:
    def played(logged: int, plays: list[int], propensity: float) -> tuple[list[float], list[float]]:
        player = Player(
            db.policy("aff-ots", burn_in=3), ARMS, least=0.2, replications=40, draws=5, log_clock=True,
            learn_all=True, seed=1,
        )  # fmt: skip
        player.progress.states.plays[:] = plays
        rows = Logged(np.array([logged]), np.array([1.0]), np.array([propensity]), np.zeros((1, 1, 0)))
        found = player.play(rows, np.array([[1.0, 2.0, 4.0]]))
        assert 0.0 < found.accepted[0] < 1.0 or propensity == 1.0 or plays[logged] > min(plays)
        return player.shares.tolist(), [found.weight[0] * propensity, found.direct[0]]

    for plays, shares, direct in (
        ([0, 0, 0], [1 / 3, 1 / 3, 1 / 3], 7 / 3),
        ([2, 1, 1], [0.0, 0.5, 0.5], 3.0),
        ([2, 2, 1], [0.0, 0.0, 1.0], 4.0),
    ):
        for logged in range(3):
            found, (weight, found_direct) = played(logged, plays, propensity=0.5)
            assert found == pytest.approx(shares)
            assert (weight, found_direct) == pytest.approx((shares[logged], direct))
    # The logging policy could not choose another arm, so its order of the arms is taken
    assert played(2, [2, 1, 1], propensity=1.0)[0] == pytest.approx([0.0, 0.0, 1.0])
    assert played(0, [2, 1, 1], propensity=1.0)[0] == pytest.approx([0.0, 0.5, 0.5])


def truth(one: TrueLog, seed: int, learn: str) -> tuple[float, np.ndarray]:
    """Return the mean value of the decisions of a replay, and its doubly robust terms."""
    log = one.log()
    player = Player(
        db.policy("aff-ots"), log.arms, least=log.least_propensity, replications=2, draws=20, log_clock=True,
        learn_all=learn == "all", seed=seed,
    )  # fmt: skip
    before, total, terms = np.zeros(3), 0.0, []
    (chunk,) = log.chunks()
    expected = RewardModel(len(log.arms)).predict(chunk)
    for row in range(log.rows):
        arms, rewards, propensities = (part[row : row + 1] for part in chunk[:3])
        piece = Logged(arms, rewards, propensities, chunk.features)
        terms.append(doubly_robust(piece, player.play(piece, expected[row : row + 1]), expected[row : row + 1])[0])
        total += (player.shares - before) @ one.means[row]
        before = player.shares.copy()
    return total / log.rows, np.array(terms)


@pytest.mark.parametrize("learn", ["accepted", "all"])
def test_every_estimate_is_unbiased_and_its_interval_has_the_stated_coverage(learn: str) -> None:
    """With a learning policy, changing means and varying propensities, in 120 logs with fixed seeds."""
    logs = 120
    errors: dict[str, list[float]] = {name: [] for name in ("replay", "ips", "snips", "dr")}
    held = dict.fromkeys(errors, 0)
    for seed in range(logs):
        one = make_log(seed)
        value, _ = truth(one, seed, learn)
        found = offline.replay(one.log(), "aff-ots", replications=2, draws=20, seed=seed, learn=learn)
        for name, found_errors in errors.items():
            estimate = getattr(found, name)
            found_errors.append(estimate.value - value)
            held[name] += estimate.low <= value <= estimate.high
    for name, found_errors in errors.items():
        spread = np.std(found_errors) / np.sqrt(logs)
        assert abs(np.mean(found_errors)) < 4.0 * spread + (0.005 if name == "snips" else 0.0), name
        assert held[name] >= 0.88 * logs, name  # 3.5 standard deviations below 95 %
    assert np.std(errors["dr"]) < np.std(errors["ips"])


def test_more_replications_average_the_randomness_of_the_policy_not_that_of_the_log() -> None:
    log = make_log(seed=4).log()
    one, many = (offline.replay(log, "ts", replications=count, learn="accepted", seed=1) for count in (1, 20))
    assert many.effective_rows > one.effective_rows
    assert many.dr.high - many.dr.low > 0.5 * (one.dr.high - one.dr.low)


def own_log(policy: str, seed: int, rows: int) -> offline.Log:
    """Return the log of a policy with the propensities that the service would export; the best arm changes halfway."""
    rng, draws = np.random.default_rng(seed), 200
    bandit = db.Bandit(policy, ["z", *ARMS], seed=seed)
    means = rng.random(4) * 0.3
    table: dict[str, list[object]] = {"arm": [], "reward": [], "propensity": []}
    for row in range(rows):
        means = rng.permutation(means) if row == rows // 2 else means
        before = bandit.propensities(draws)
        arm = bandit.choose()
        reward = float(rng.random() < means[bandit.names.index(arm)])
        bandit.reward(arm, reward)
        table["arm"].append(arm)
        table["reward"].append(reward)
        table["propensity"].append((before.get(arm, 0.0) * draws + 1.0) / (draws + 1.0))
    return offline.from_columns(table)


@pytest.mark.parametrize("policy", ["aff-ots"])
def test_a_policy_recovers_the_mean_of_its_own_log(policy: str) -> None:
    """The order of the arms differs from that of the bandit, as in an export; docs/offline.md has measured rates."""
    held, logs = dict.fromkeys(("ips", "snips", "dr"), 0), 3 if INTERPRETED else 20
    for seed in range(logs):
        log = own_log(policy, seed, 60 if INTERPRETED else 500)
        assert log.has_propensities
        found = offline.replay(log, policy, replications=2, draws=20, seed=seed)
        assert found.learn == "all"
        assert found.effective_rows > 0.5 * log.rows
        for name in held:
            estimate = getattr(found, name)
            held[name] += estimate.low <= found.logged.value <= estimate.high
    assert min(held.values()) >= logs - 2


def test_estimates_with_too_little_overlap_are_refused_with_the_reason() -> None:
    arms = ["a"] * 3000 + ["b"] * 3
    table = {"arm": arms, "reward": [0.0, 1.0, 0.0] * 1001, "propensity": [0.999] * 3000 + [0.001] * 3}
    found = offline.replay(offline.from_columns(table), "uniform", seed=1)
    assert found.is_refused
    assert found.effective_rows < 30
    assert all(np.isnan(part) for one in (found.ips, found.snips, found.dr) for part in one)
    (doubt,) = found.doubts
    assert doubt.startswith("uniform rarely chooses what the log chose: its weighted rows are worth only ")
    assert "of 3003 rows, so IPS, SNIPS and doubly robust are not estimated (at least 30 are needed)" in doubt


def test_clipping_accepts_more_rows() -> None:
    log = make_log(seed=5).log()
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
        ("ts", {"clock": "wall"}, "unknown clock 'wall'"),
        ("ts", {"learn": "some"}, "unknown learn 'some'"),
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


def test_a_log_of_other_rewards_is_replayed_with_the_policies_that_fit() -> None:
    generator = np.random.default_rng(3)
    arms = generator.integers(2, size=300)
    columns = {"arm": arms, "reward": np.array([2.0, 900.0])[arms] + generator.integers(3, size=300)}
    with pytest.raises(ValueError, match=r"column 'reward': must be a number in \[0, 1\], got"):
        offline.from_columns(columns)
    with pytest.raises(ValueError, match="unknown reward law 'count'"):
        offline.from_columns(columns, rewards="count")
    log = offline.from_columns(columns, rewards="counts")
    with pytest.raises(ValueError, match="policy 'ts' needs rewards that are a number in"):
        offline.replay(log, "ts")
    with mock.patch("dynabandit.offline.replay_loop.compiled_for", lambda functions, function: function):
        found = offline.replay(log, db.policy("aff-poisson-ts", burn_in=2), replications=1, draws=2)
    assert found.shares["1"] > 0.8
    for estimate in (found.replay, found.dr, found.logged):
        assert estimate.low < estimate.value < estimate.high
    assert 800 < found.dr.value < 905
    names = {one.name for one in offline.candidates(log.domain)}
    assert "aff-poisson-ts" in names
    assert "aff-revenue-ts" in names, "counts are amounts too"
    assert "ts" not in names
