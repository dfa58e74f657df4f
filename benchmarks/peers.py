"""Compare dynabandit with pymab's Rust loop, vectorised NumPy, river and MABWiser on the same work in one run.

    python benchmarks/peers.py            print the tables
    python benchmarks/peers.py --write    also write docs/measured/peers.json, docs/performance.md and README.md
    python benchmarks/peers.py --memory   measure the peak memory of 1,000 replications x 1,000,000 steps x 10 arms

All libraries play the same Bernoulli arms with constant means, evenly spaced from 0.1 to 0.9 in a shuffled order, draw
the rewards, and keep the chosen arm and the reward of each step. Constant means need no sample path, so the times
include none.
pymab's Rust loop is called directly, without its `Experiment`, which would dominate the time.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dynabandit as db
import numpy_vectorised
import readme_speed
from dynabandit.validation import BOUNDED
from report import Contestant, in_turns, machine, table, write

ARMS = (2, 50, 100)
HORIZON = 10_000
LANES = 100  # replications that NumPy vectorises over
SETTINGS: dict[str, dict[str, Any]] = {
    "d-ucb": {"discount": numpy_vectorised.DISCOUNT},
    "sw-ucb": {"window": numpy_vectorised.WINDOW},
}
STANDARD = ("ucb", "ts", "ots", "d-ucb", "sw-ucb")
ADAPTIVE = tuple(
    name for name, kind in db.policies.POLICIES.items() if name.startswith("aff-") and kind.rewards is BOUNDED
)
COUNTERPARTS = {"aff-d-greedy": "eps-greedy"}  # the names of the others contain that of their counterpart
WINDOWS = (10, 100, 1000, 10_000)
FIRST_USES = {
    "first `Bandit.choose()` of the recommended policy": "Bandit('auto', arms=['a', 'b', 'c'], seed=1).choose()",
    "first simulation, 100 x 1,000 steps": "simulate('aff-ots', 'case-1', horizon=1000, replications=100, seed=1)",
}
MEMORY = """
import resource, sys, time
import dynabandit as db
replications, horizon = int(sys.argv[1]), int(sys.argv[2])
world = db.environment("case-3", arms=10)
db.simulate("aff-ots", world, horizon=10)  # compiles
began = time.perf_counter()
db.simulate("aff-ots", world, horizon=horizon, replications=replications, seed=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.perf_counter() - began)
"""


def means_of(arms: int) -> np.ndarray:
    return np.random.default_rng(7).permutation(np.linspace(0.1, 0.9, arms))


def ours(name: str, arms: int, replications: int = 10, **settings: Any) -> Contestant:
    policy = db.policy(name, **(settings or SETTINGS.get(name, {})))
    world = db.environment("fixed", means=means_of(arms))
    db.simulate(policy, world, horizon=max(1, policy.burn_in * arms), threads=1)  # compiles

    def play() -> object:
        return db.simulate(
            policy, world, horizon=HORIZON, replications=replications, seed=1, threads=1, keep=("arms", "rewards")
        )

    return Contestant(HORIZON * replications, play)


def in_numpy(name: str, arms: int) -> Contestant:
    return Contestant(HORIZON * LANES, lambda: numpy_vectorised.run(name, means_of(arms), HORIZON, LANES))


def in_rust(name: str, arms: int, window: int = numpy_vectorised.WINDOW) -> Contestant:
    """Call pymab's compiled loop; it has no optimistic Thompson sampling, so `ots` is compared with its plain one."""
    from pymab import BanditEnvironment, BernoulliReward, _native, policies
    from pymab._backend import _environment_configuration

    made = {
        "ucb": lambda: policies.UCBPolicy(n_arms=arms, c=math.sqrt(2.0)),
        "ts": lambda: policies.BernoulliThompsonSamplingPolicy(n_arms=arms, alpha_prior=2.0, beta_prior=2.0),
        "d-ucb": lambda: policies.DiscountedUCBPolicy(n_arms=arms, discount_factor=numpy_vectorised.DISCOUNT),
        "sw-ucb": lambda: policies.SlidingWindowUCBPolicy(n_arms=arms, window_size=window),
    }[name.replace("ots", "ts")]()
    world = BanditEnvironment(means=means_of(arms), reward_model=BernoulliReward())
    handle = _native.create_environment(json.dumps(_environment_configuration(world)))

    def play() -> object:
        return _native.run_experiment(handle, [("it", made._native_handle)], HORIZON, 1, 1, "common", False)

    return Contestant(HORIZON, play)


def one_by_one(
    arms: int, start: Callable[[], tuple[Callable[[], int], Callable[[int, int], object]]]
) -> Callable[[], None]:
    """Return a simulation loop around a library that has none; `start` returns its choose and learn functions."""
    means = means_of(arms).tolist()

    def play() -> None:
        choose, learn = start()
        luck = random.Random(1).random
        kept = []
        for _ in range(HORIZON):
            arm = choose()
            reward = int(luck() < means[arm])
            learn(arm, reward)
            kept.append((arm, reward))

    return play


def in_river(name: str, arms: int) -> Contestant:
    from river import bandit, proba

    def start() -> Any:
        if name == "ucb":
            policy = bandit.UCB(delta=1, seed=1)
        else:
            policy = bandit.ThompsonSampling(reward_obj=proba.Beta(2, 2), seed=1)
        every = range(arms)
        return lambda: policy.pull(every), policy.update

    return Contestant(HORIZON, one_by_one(arms, start))


def in_mabwiser(name: str, arms: int) -> Contestant:
    from mabwiser.mab import MAB, LearningPolicy

    def start() -> Any:
        learner = LearningPolicy.UCB1(alpha=1.0) if name == "ucb" else LearningPolicy.ThompsonSampling()
        bandit = MAB(arms=list(range(arms)), learning_policy=learner, seed=1)
        bandit.fit(np.arange(arms), np.ones(arms))
        return bandit.predict, lambda arm, reward: bandit.partial_fit(np.array([arm]), np.array([reward]))

    return Contestant(HORIZON, one_by_one(arms, start))


PEERS: dict[str, tuple[Callable[[str, int], Contestant], tuple[str, ...]]] = {
    "pymab's Rust loop": (in_rust, ("ucb", "ts", "ots", "d-ucb", "sw-ucb")),
    "NumPy, 100 replications": (in_numpy, tuple(numpy_vectorised.POLICIES)),
    "river": (in_river, ("ucb", "ts")),
    "MABWiser": (in_mabwiser, ("ucb", "ts")),
}


def measured() -> list[str]:
    """Return the policies of dynabandit that are timed, in the order of the registry."""
    wanted = {*STANDARD, *ADAPTIVE, *map(counterpart, ADAPTIVE)}
    return [name for name in db.policies.POLICIES if name in wanted]


def contestants(arms: int) -> dict[tuple[str, str], Contestant]:
    every = {("dynabandit", name): ours(name, arms) for name in measured()}
    for peer, (make, names) in PEERS.items():
        every |= {(peer, name): make(name, arms) for name in names}
    return every


def counterpart(adaptive: str) -> str:
    """Return the standard counterpart of an adaptive policy: the longest policy name that follows `aff-`."""
    rest = adaptive.removeprefix("aff-")
    alike = [name for name in db.policies.POLICIES if rest.startswith(name)]
    return COUNTERPARTS.get(adaptive) or max(alike, key=len)


def two_threads() -> float:
    """Return the speed-up of two threads over one, in wall-clock time."""
    world = db.environment("case-1", arms=50)
    taken: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for threads in taken:
            began = time.perf_counter()
            db.simulate("aff-ots", world, horizon=HORIZON, replications=32, seed=1, threads=threads)
            taken[threads].append(time.perf_counter() - began)
    return statistics.median(taken[1]) / statistics.median(taken[2])


def first_use(call: str) -> tuple[float, float]:
    """Return the seconds of a Python process with one call of dynabandit, with an empty and with a filled cache."""

    def seconds(folder: str, interpreted_first: str = "1") -> float:
        began = time.perf_counter()
        command = [sys.executable, "-c", f"import dynabandit; dynabandit.{call}"]
        settings = {"NUMBA_CACHE_DIR": folder, "DYNABANDIT_INTERPRETED_FIRST": interpreted_first}
        subprocess.run(command, env={**os.environ, **settings}, check=True)
        return time.perf_counter() - began

    with tempfile.TemporaryDirectory() as unused:
        seconds(unused)  # Python writes its compiled modules
    cold = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as empty:
            cold.append(seconds(empty))
    with tempfile.TemporaryDirectory() as folder:
        seconds(folder, interpreted_first="0")  # compiles everything
        warm = [seconds(folder) for _ in range(3)]
    return statistics.median(cold), statistics.median(warm)


def most_memory(replications: int, horizon: int) -> tuple[float, float]:
    """Return the peak memory in MB and the duration in seconds of a simulation in a separate process."""
    command = [sys.executable, "-c", MEMORY, str(replications), str(horizon)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    megabytes, seconds = map(float, out.split())
    return megabytes, seconds


def measure(turns: int, every_arms: tuple[int, ...]) -> dict[str, Any]:
    times: dict[str, dict[str, dict[str, float]]] = {}
    for arms in every_arms:
        for (peer, name), microseconds in in_turns(contestants(arms), turns).items():
            times.setdefault(peer, {}).setdefault(name, {})[str(arms)] = microseconds
        print(f"{arms} arms measured", file=sys.stderr)
    windows = {("dynabandit", w): ours("sw-ucb", 100, window=w) for w in WINDOWS}
    windows |= {("pymab's Rust loop", w): in_rust("sw-ucb", 100, w) for w in WINDOWS}
    by_window: dict[str, dict[str, float]] = {}
    for (peer, window), microseconds in in_turns(windows, turns).items():
        by_window.setdefault(peer, {})[str(window)] = microseconds
    return {
        "machine": machine(), "horizon": HORIZON, "arms": every_arms, "microseconds": times, "windows": by_window,
        "two_threads": two_threads(), "first_use": {use: first_use(call) for use, call in FIRST_USES.items()},
    }  # fmt: skip


def text_of(numbers: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    every_arms = numbers["arms"]
    found = numbers["machine"]
    times = numbers["microseconds"]
    rows = [
        [f"`{name}`" if peer == "dynabandit" else f"{peer}: `{name}`", *(f"{of[name][str(k)]:.3f}" for k in every_arms)]
        for name in measured()
        for peer, of in times.items()
        if name in of
    ]
    ratios = [
        [f"`{name}`", peer, *(f"{of[name][str(k)] / times['dynabandit'][name][str(k)]:.1f}" for k in every_arms)]
        for peer, of in times.items()
        if peer != "dynabandit"
        for name in of
    ]
    adaptive = [
        [f"`{name}`", f"`{counterpart(name)}`"]
        + [
            f"{times['dynabandit'][name][str(k)] / times['dynabandit'][counterpart(name)][str(k)]:.2f}"
            for k in every_arms
        ]
        for name in ADAPTIVE
    ]
    windows = [[peer, *(f"{of[str(w)]:.3f}" for w in WINDOWS)] for peer, of in numbers["windows"].items()]
    heads = [f"K = {arms}" for arms in every_arms]
    first = [[use, f"{cold:.2f}", f"{warm:.2f}"] for use, (cold, warm) in numbers["first_use"].items()]
    opening = (
        f"{found['processor']}, {found['cores']} cores; Python {found['python']}, NumPy {found['numpy']}, Numba "
        f"{found['numba']}. CPU time per step in microseconds, one thread, T = {HORIZON:,}:"
    )
    threads = f"Two threads are {numbers['two_threads']:.2f} times as fast as one (AFF-OTS, 50 arms, Case 1)."
    return "\n\n".join(
        [
            opening,
            table(["policy", *heads], rows),
            "Speed-up of dynabandit:",
            table(["policy", "compared with", *heads], ratios),
            "Time of an adaptive policy divided by that of its standard counterpart:",
            table(["policy", "counterpart", *heads], adaptive),
            "SW-UCB with 100 arms, by window length, microseconds per step:",
            table(["", *(f"{window:,}" for window in WINDOWS)], windows),
            threads,
            "[First use](#first-use), in seconds, including the start of Python and all imports:",
            table(["", "empty cache of compiled code", "filled cache"], first),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/performance.md")
    parser.add_argument("--turns", type=int, default=7, help="maximum number of measurements per contestant")
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS, help="numbers of arms")
    parser.add_argument("--memory", action="store_true", help="measure only the peak memory; takes some minutes")
    parser.add_argument("--replications", type=int, default=1000, help="number of replications for --memory")
    parser.add_argument("--steps", type=int, default=1_000_000, help="number of steps for --memory")
    given = parser.parse_args()
    if given.memory:
        short, seconds = most_memory(16, 20_000)
        expected = seconds * given.replications * given.steps / (16 * 20_000)
        print(f"16 x 20,000 steps: {short:.0f} MB; the full measurement takes about {expected:.0f} s", flush=True)
        megabytes, seconds = most_memory(given.replications, given.steps)
        print(f"{given.replications} x {given.steps} steps x 10 arms: {megabytes:.0f} MB, {seconds:.0f} s")
        return
    numbers = measure(given.turns, tuple(given.arms))
    text = text_of(numbers)
    print(text)
    if given.write:
        write("peers", numbers, text)
        readme_speed.write()


if __name__ == "__main__":
    main()
