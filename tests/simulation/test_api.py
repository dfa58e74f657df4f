import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dynabandit as db
from dynabandit.core.streams import REWARD, stream, uniform
from dynabandit.simulation import cpu
from dynabandit.simulation.stepper import Paths
from tools.laws import assert_share
from tools.ready import EACH_SHAPE

HORIZON = 130
SHORT = {"aff-ucb1": {"burn_in": 2}, "aff-dts1": {"burn_in": 2}}
WORLDS = {
    "clock": db.environment("exponential-clock", rates=[0.02, 0.2], low=[0.0, 0.1], high=[1.0, 0.9], arms=3),
    "walk": db.environment("reflected-walk", arms=3, variance=0.01),
}
WORLD = WORLDS["clock"]
# One policy of each shape is compiled; tests/test_checks.py tries all of them without compiled code
each_policy = pytest.mark.parametrize("name", EACH_SHAPE)


def policy(name: str) -> db.Policy:
    return db.policy(name, **SHORT.get(name, {}))


def run(name: str, world: db.Environment = WORLD, replications: int = 5, **arguments: Any) -> db.Simulation:
    return db.simulate(
        policy(name),
        world,
        horizon=HORIZON,
        replications=replications,
        seed=3,
        keep=("arms", "rewards"),
        **arguments,
    )


def assert_same(left: db.Simulation, right: db.Simulation) -> None:
    for part in ("times", "regret", "correct", "arms", "rewards"):
        assert (getattr(left, part) == getattr(right, part)).all(), part


# --- What does not matter -----------------------------------------------------------------------------------


@each_policy
def test_neither_threads_nor_blocks_change_a_bit(name: str) -> None:
    reference = run(name, threads=1, block=HORIZON)
    for threads in (1, 2, 3):
        for block in (1, 7, 64, 10 * HORIZON, None):
            assert_same(run(name, threads=threads, block=block), reference)


def test_other_policies_do_not_change_a_bit() -> None:
    policies = {name: policy(name) for name in EACH_SHAPE}
    together = db.compare(
        policies, WORLD, horizon=HORIZON, replications=5, seed=3, keep=("arms", "rewards"), threads=2, block=50
    )
    assert list(together) == list(EACH_SHAPE)
    for name in EACH_SHAPE:
        assert_same(together[name], run(name))


@each_policy
def test_pieces_of_the_replications_are_the_whole(name: str) -> None:
    whole = run(name, replications=7)
    pieces = [run(name, replications=count, first_replication=first) for first, count in ((0, 1), (1, 4), (5, 2))]
    for part in ("regret", "arms", "rewards"):
        assert (np.concatenate([getattr(piece, part) for piece in pieces]) == getattr(whole, part)).all()


def test_what_runs_beside_does_not_change_a_bit() -> None:
    names = ["aff-ots", "d-ucb", "eps-greedy", "aff-ots", "sw-ucb", "aff-ots"]
    with ThreadPoolExecutor(3) as pool:
        beside = list(pool.map(lambda name: run(name, threads=2, block=11), names))
    for name, simulation in zip(names, beside, strict=True):
        assert_same(simulation, run(name, threads=1))


def test_seeds_differ_and_replications_differ() -> None:
    totals = {
        total
        for seed in (0, 1, 2**63, 2**64 - 1)
        for total in db.simulate("uniform", "case-3", horizon=50, replications=20, seed=seed).total_regret
    }
    assert len(totals) == 80


# --- What the numbers mean ----------------------------------------------------------------------------------


@each_policy
@pytest.mark.parametrize("world", WORLDS)
def test_regret_and_correct_follow_from_the_arms_and_the_path(name: str, world: str) -> None:
    simulation = run(name, WORLDS[world], times=HORIZON, threads=2, block=9)
    assert simulation.arms is not None
    correct = []
    for replication, arms in enumerate(simulation.arms):
        path = WORLDS[world].path(HORIZON, seed=3, replication=replication)
        played = path[np.arange(HORIZON), arms]
        assert (simulation.regret[replication] == np.cumsum(path.max(axis=1) - played)).all()
        correct.append(played == path.max(axis=1))
    assert (simulation.correct == np.mean(correct, axis=0)).all()
    assert (simulation.total_regret == simulation.regret[:, -1]).all()


@each_policy
def test_a_reward_is_the_coin_of_its_step_and_arm(name: str) -> None:
    simulation = run(name, replications=2)
    assert simulation.arms is not None
    assert simulation.rewards is not None
    for replication in range(2):
        path = WORLD.path(HORIZON, seed=3, replication=replication)
        source = stream(3, replication)
        for step in range(1, HORIZON + 1):
            arm = int(simulation.arms[replication, step - 1])
            coin = uniform(source, REWARD, step, arm) < path[step - 1, arm]
            assert simulation.rewards[replication, step - 1] == coin


def test_rewards_follow_the_means() -> None:
    means = [0.1, 0.5, 0.97, 0.0, 1.0]
    world = db.environment("fixed", means=means)
    simulation = db.simulate("uniform", world, horizon=4000, replications=5, seed=6, keep=("arms", "rewards"))
    assert simulation.arms is not None
    assert simulation.rewards is not None
    for arm, mean in enumerate(means):
        rewards = simulation.rewards[simulation.arms == arm]
        assert_share(rewards.sum(), rewards.size, mean)
        assert_share((simulation.arms == arm).sum(), simulation.arms.size, 0.2)


@each_policy
def test_the_burn_in_plays_the_arms_in_turn(name: str) -> None:
    arms = run(name).arms
    assert arms is not None
    steps = 3 * policy(name).burn_in
    assert (arms[:, :steps] == np.arange(steps) % 3).all()


def test_the_best_arm_has_no_regret_and_is_always_correct() -> None:
    simulation = run("best-arm", times=HORIZON)
    assert (simulation.regret == 0.0).all()
    assert (simulation.correct == 1.0).all()


@pytest.mark.parametrize(("parameters", "explores"), [({"threshold": 0.0}, True), ({"step_size": 0.0}, False)])
def test_a_threshold_of_zero_explores_after_every_change_and_no_change_is_none(
    parameters: dict[str, float], explores: bool
) -> None:
    world = db.environment("fixed", means=[0.1, 0.9])
    simulation = db.simulate(db.policy("aff-d-greedy", **parameters), world, horizon=4000, seed=4, keep="arms")
    assert simulation.arms is not None
    assert (0.2 < (simulation.arms[0, 2:] == 0).mean() < 0.5) == explores
    assert explores or (simulation.arms[0, 2:] == 1).all()


def test_ties_count_as_correct() -> None:
    world = db.environment("fixed", means=[0.5, 0.5, 0.1])
    simulation = db.simulate("uniform", world, horizon=300, replications=4, seed=1, times=300, keep="arms")
    assert simulation.arms is not None
    assert (simulation.correct == (simulation.arms < 2).mean(axis=0)).all()


# --- What is recorded ---------------------------------------------------------------------------------------

STILL = db.environment("fixed", means=[0.2, 0.8])


@given(st.integers(1, 300), st.integers(1, 400))
def test_times_are_even_rise_and_end_at_the_horizon(horizon: int, count: int) -> None:
    times = db.simulate("uniform", STILL, horizon=horizon, times=count, threads=1).times
    assert len(times) == min(count, horizon)
    assert times[0] >= 1
    assert times[-1] == horizon
    gaps = np.diff(times, prepend=0)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


@given(st.sets(st.integers(1, 99)))
def test_regret_is_recorded_at_the_times_asked_for(chosen: set[int]) -> None:
    times = [*sorted(chosen), 100]
    every = db.simulate("uniform", STILL, horizon=100, replications=2, times=100, threads=1)
    some = db.simulate("uniform", STILL, horizon=100, replications=2, times=times, threads=1, block=13)
    assert some.times.tolist() == times
    assert (some.regret == every.regret[:, np.array(times) - 1]).all()
    assert (some.correct == every.correct[np.array(times) - 1]).all()


def test_arms_and_rewards_are_kept_on_request_only() -> None:
    plain = db.simulate("ucb", STILL, horizon=20)
    assert plain.arms is None
    assert plain.rewards is None
    arms = db.simulate("ucb", STILL, horizon=20, keep="arms")
    assert arms.arms is not None
    assert arms.arms.shape == (1, 20)
    assert arms.rewards is None
    assert db.simulate("ucb", STILL, horizon=20, keep=["rewards"]).arms is None


def test_a_simulation_says_what_it_is() -> None:
    simulation = db.simulate("best-arm", STILL, horizon=20, replications=2, seed=9)
    expected = "Simulation(best-arm on fixed, 2 arms, 20 steps, 2 replications: mean total regret 0)"
    assert repr(simulation) == expected
    assert (simulation.replications, simulation.horizon, simulation.seed) == (2, 20, 9)
    assert simulation.policy == db.policy("best-arm")
    assert simulation.environment is STILL


def test_labels_name_what_differs_or_are_your_own() -> None:
    policies: list[str | db.Policy] = [
        "ucb",
        db.policy("eps-greedy", epsilon=0.2),
        db.policy("eps-greedy", epsilon=0.3),
    ]
    runs = db.compare(policies, STILL, horizon=10)
    assert list(runs) == ["ucb", "eps-greedy(epsilon=0.2)", "eps-greedy(epsilon=0.3)"]
    assert list(db.compare({"mine": "ucb", "yours": "ucb"}, STILL, horizon=10)) == ["mine", "yours"]
    assert list(db.compare("ucb", STILL, horizon=10)) == ["ucb"]
    assert list(db.compare(db.policy("ucb"), STILL, horizon=10)) == ["ucb"]


# --- Progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_progress_rises_to_the_total(threads: int) -> None:
    reports: list[tuple[int, int]] = []
    db.compare(
        ["ucb", "uniform"], STILL, horizon=100, replications=7, threads=threads, block=30,
        progress=lambda done, total: reports.append((done, total)),
    )  # fmt: skip
    assert {total for _, total in reports} == {700}
    assert all(before < after for (before, _), (after, _) in pairwise(reports))
    assert reports[-1][0] == 700


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_of_the_callback_ends_the_run(threads: int, error: type[BaseException]) -> None:
    calls: list[int] = []
    before = set(threading.enumerate())

    def report(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == 3:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        db.simulate("ucb", STILL, horizon=1000, replications=20, threads=threads, block=10, progress=report)
    assert len(calls) == 3
    assert set(threading.enumerate()) <= before
    assert db.simulate("ucb", STILL, horizon=10, threads=threads).horizon == 10


# --- Memory -------------------------------------------------------------------------------------------------


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the means of all blocks: replications x steps x arms. Nothing else grows with a simulation."""
    noted: list[tuple[int, ...]] = []
    write_blocks = cpu._blocks

    def note(*arguments: Any) -> Iterator[tuple[int, int, Paths]]:
        for block in write_blocks(*arguments):
            noted.append(block[2].means.shape)
            yield block

    monkeypatch.setattr(cpu, "_blocks", note)
    return noted


def simulate_uniform(horizon: int, replications: int, arms: int = 20, threads: int = 2) -> None:
    world = db.environment("case-3", arms=arms)
    db.simulate("uniform", world, horizon=horizon, replications=replications, times=10, threads=threads)


@pytest.mark.parametrize(("horizon", "replications"), [(10_000, 8), (100_000, 8), (2_000, 320)])
def test_memory_grows_neither_with_the_horizon_nor_with_the_replications(
    shapes: list[tuple[int, ...]], horizon: int, replications: int
) -> None:
    simulate_uniform(horizon, replications)
    assert all(math.prod(shape) <= cpu.BLOCK_CELLS for shape in shapes)
    assert len(shapes) >= horizon * replications * 20 // cpu.BLOCK_CELLS


def test_with_many_arms_as_many_replications_run_at_a_time_as_memory_allows(
    shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arms, pools = 100_000, Mock(wraps=ThreadPoolExecutor)
    monkeypatch.setattr(cpu, "ThreadPoolExecutor", pools)
    bytes_per_replication, noted = cpu.bytes_per_replication, Mock(return_value=20 * arms)
    monkeypatch.setattr(cpu, "bytes_per_replication", noted)
    for together, expected in ((1, []), (3, [3])):
        monkeypatch.setattr(cpu, "MOST_BYTES", together * 20 * arms)
        shapes.clear()
        simulate_uniform(10, 6, arms, threads=6)
        assert {shape[0] for shape in shapes} == {1}
        assert [call.args[0] for call in pools.call_args_list] == expected
    assert bytes_per_replication(noted.call_args.args[0]) >= 8 * arms


def test_large_states_are_divided_into_tasks_of_one_replication(
    shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = run("uniform", replications=8, threads=1)
    assert {shape[0] for shape in shapes} == {8}
    monkeypatch.setattr(cpu, "TASK_BYTES", 1)
    shapes.clear()
    assert_same(run("uniform", replications=8, threads=1), reference)
    assert {shape[0] for shape in shapes} == {1}


# --- Bad input ----------------------------------------------------------------------------------------------

CASE_1 = db.environment("case-1")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "horizon must be a whole number of at least 1 .*, got 0"),
        ({"horizon": -5}, ValueError, "horizon must be a whole number of at least 1 .*, got -5"),
        ({"horizon": 1e4}, TypeError, "horizon must be a whole number .*, got 10000.0"),
        ({"horizon": True}, TypeError, "horizon must be a whole number .*, got True"),
        (
            {"horizon": 19, "policies": "aff-ucb1"},
            ValueError,
            r"horizon must be at least 20, the burn-in of 'aff-ucb1' \(10 for each of 2 arms\), got 19",
        ),
        ({"replications": 0}, ValueError, "replications must be a whole number of at least 1 .*, got 0"),
        ({"replications": 2**32}, ValueError, "replications must be .* at most 4294967295, got 4294967296"),
        ({"first_replication": -1}, ValueError, "first_replication must be .* at least 0 .*, got -1"),
        (
            {"first_replication": 2**32},
            ValueError,
            "first_replication must be .* at most 4294967295, got 4294967296",
        ),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0 .*, got -1"),
        ({"seed": None}, TypeError, "seed must be a whole number of at least 0 .*, got None"),
        ({"threads": 0}, ValueError, "threads must be a whole number of at least 1, got 0"),
        ({"block": 0}, ValueError, "block must be a whole number of at least 1, got 0"),
        ({"times": 0}, ValueError, "times must be a whole number of at least 1, got 0"),
        ({"times": "all"}, TypeError, "times must be a whole number of at least 1, got 'all'"),
        ({"times": []}, ValueError, r"times must be whole numbers that rise .* to the horizon 30, got \[\]"),
        (
            {"times": [1, 2]},
            ValueError,
            r"times must be whole numbers that rise .*, got \[1, 2\]",
        ),
        ({"times": [5, 5, 30]}, ValueError, r"times must be .*, got \[5, 5, 30\]"),
        ({"times": [0, 30]}, ValueError, r"times must be .*, got \[0, 30\]"),
        ({"times": [1.5, 30]}, ValueError, r"times must be .*, got \[1.5, 30\]"),
        ({"times": [[1, 2], [3, 30]]}, ValueError, r"times must be .*, got \[\[1, 2\], \[3, 30\]\]"),
        (
            {"keep": ("arm",)},
            ValueError,
            "unknown thing to keep 'arm'. Did you mean 'arms'\\? Known: ",
        ),
        ({"keep": "regret"}, ValueError, "unknown thing to keep 'regret'.* Known: arms, rewards"),
        ({"progress": 3}, TypeError, "progress must be a function .*, got 3"),
        ({"policies": []}, ValueError, "policies must hold at least one policy"),
        ({"policies": ["ucb", "ucb"]}, ValueError, "policies must be different, got 'ucb' twice: give them labels"),
        ({"policies": 5}, TypeError, "policies must be policies or their names, got 5"),
        ({"policies": ["ucb", "tss"]}, ValueError, "unknown policy 'tss'. Did you mean 'ts'\\? Known: "),
        ({"environment": "case-5"}, ValueError, "unknown environment 'case-5'. Did you mean 'case-4'\\? Known: "),
        ({"environment": None}, ValueError, "unknown environment None"),
    ],
)
def test_a_run_that_cannot_be_is_refused(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    good: dict[str, object] = {"policies": ["ucb"], "environment": CASE_1, "horizon": 30}
    with pytest.raises(error, match=message):
        db.compare(**{**good, **arguments})  # type: ignore[arg-type]


# --- What a call can leave out, and what it gets to replay a piece ------------------------------------------


@pytest.mark.parametrize(("length", "horizon"), [(30, 30), (10_050, 10_000)])
def test_without_a_horizon_a_short_path_is_taken_whole(length: int, horizon: int) -> None:
    world = db.environment("path", means=np.tile([0.2, 0.8], (length, 1)))
    assert db.simulate("uniform", world).horizon == horizon
    assert db.compare(["uniform"], world)["uniform"].times[-1] == horizon


def test_a_piece_says_how_to_replay_it() -> None:
    piece = db.simulate("ts", "case-1", horizon=50, replications=2, seed=np.uint64(7), first_replication=5)  # type: ignore[arg-type]
    assert type(piece.seed) is int
    again = db.simulate(
        piece.policy, piece.environment, horizon=piece.horizon, replications=piece.replications,
        seed=piece.seed, first_replication=piece.first_replication,
    )  # fmt: skip
    assert again.first_replication == 5
    assert (again.regret == piece.regret).all()
    assert (db.simulate("ts", "case-1", horizon=50, replications=7, seed=7).regret[5:] == piece.regret).all()
