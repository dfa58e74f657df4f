"""Measure what late and lost rewards cost each policy, for docs/delayed-rewards.md.

python benchmarks/delayed_rewards.py [--out docs/measured/delayed-rewards.json] [--replications 200] [--horizon 10000]
                                     [--policies ucb ts ...] [--parts delays clicks silent new-arm]

Every number is written to the file as soon as it is known, and a later run computes only what is missing. It needs
NumPy and Numba alone; ``python docs/pictures/delayed_rewards.py`` draws the figures and writes the tables.
"""

import argparse
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynabandit as db
from dynabandit.policies import POLICIES

Compute = Callable[[], list[float]]

ARMS = 5
DELAYS = (0, 100, 1000)
LOST = (0.0, 0.01, 0.2)
RULES = ("at-once", "held", "settled")
WINDOW = 1000
CLICK_DELAY = 50
PARTS = ("delays", "clicks", "silent", "new-arm")
NEW_ARM_DECISIONS = 1000
SEED = 1


def changing(horizon: int) -> db.Environment:
    """Return an environment whose best arm changes three times; a uniform policy loses 0.24 per step."""
    starts = [1 + quarter * horizon // 4 for quarter in range(4)]
    means = [[0.7 if arm == quarter else 0.4 for arm in range(ARMS)] for quarter in range(4)]
    return db.environment("piecewise", starts=starts, means=means)


def clicks() -> db.Environment:
    """Return an environment with rare rewards; a uniform policy loses 0.04 per step."""
    return db.environment("fixed", means=[0.1, *[0.05] * (ARMS - 1)])


def cases(name: str, parts: list[str], horizon: int, replications: int) -> Iterator[tuple[str, Compute]]:
    """Yield the key of each number of a policy, and the function that computes it."""
    regret = functools.partial(mean_regret, name, horizon, replications)
    if "delays" in parts:
        for mean in DELAYS:
            for lost in LOST:
                late = db.delay("geometric", mean=mean, lost=lost)
                yield f"delays/{name}/{mean}/{lost}", functools.partial(regret, changing(horizon), late)
    if "clicks" in parts:
        yield f"clicks/{name}/immediate", functools.partial(regret, clicks(), db.delay("fixed", steps=0))
        for rule in RULES:
            late = db.delay("geometric", mean=CLICK_DELAY, window=WINDOW, rule=rule)
            yield f"clicks/{name}/{rule}", functools.partial(regret, clicks(), late)
    if "silent" in parts:
        yield f"silent/{name}", functools.partial(silent_share, name, horizon, replications)
    if "new-arm" in parts and not (POLICIES[name].informed or POLICIES[name]().left_open):
        yield f"new-arm/{name}", functools.partial(new_arm_share, name)


def mean_regret(name: str, horizon: int, replications: int, environment: db.Environment, late: db.Delay) -> list[float]:
    """Return the mean total regret and its standard error."""
    run = db.simulate(name, environment, horizon=horizon, replications=replications, seed=SEED, times=1, delay=late)
    return [float(run.total_regret.mean()), float(run.total_regret.std() / replications**0.5)]


def silent_share(name: str, horizon: int, replications: int) -> list[float]:
    """Return the share of the plays of an arm whose rewards never arrive."""
    delay = db.delay("fixed", steps=0, lost=[1.0, *[0.0] * (ARMS - 1)])
    run = db.simulate(
        name, db.environment("fixed", means=[0.5] * ARMS), horizon=horizon, replications=min(replications, 20),
        seed=SEED, times=1, keep="arms", delay=delay,
    )  # fmt: skip
    assert run.arms is not None
    return [float((run.arms == 0).mean())]


def new_arm_share(name: str) -> list[float]:
    """Return the share of an added poor arm in the next decisions, of which no reward arrives."""
    shares = []
    for seed in range(5):
        bandit = db.Bandit(name, arms=["0", "1", "2", "3"], seed=seed)
        generator = np.random.default_rng(seed)
        for _ in range(2000):
            arm = bandit.choose()
            bandit.reward(arm, int(generator.random() < (0.6 if arm == "0" else 0.4)))
        bandit.add_arm("new")
        shares.append(np.mean([bandit.choose() == "new" for _ in range(NEW_ARM_DECISIONS)]))
    return [float(np.mean(shares))]


def main() -> None:
    """Compute what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/measured/delayed-rewards.json"))
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    arguments = parser.parse_args()
    settings = {"replications": arguments.replications, "horizon": arguments.horizon}
    content: dict[str, Any] = {"settings": settings, "numbers": {}}
    if arguments.out.exists():
        content = json.loads(arguments.out.read_text(encoding="utf-8"))
        if content["settings"] != settings:
            parser.error(f"{arguments.out} has numbers for {content['settings']}, not {settings}: choose another --out")
    wanted = (
        case
        for name in arguments.policies
        for case in cases(name, arguments.parts, arguments.horizon, arguments.replications)
    )
    for key, compute in wanted:
        if key in content["numbers"]:
            continue
        began = time.perf_counter()
        content["numbers"][key] = compute()
        print(f"{key} {content['numbers'][key]} {time.perf_counter() - began:.1f} s", flush=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        partial = arguments.out.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, arguments.out)


if __name__ == "__main__":
    main()
