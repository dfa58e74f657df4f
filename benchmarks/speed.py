"""Measure the microseconds per step of each policy on one core, next to a plain NumPy loop.

    python benchmarks/speed.py [--quick]

Both play the same Bernoulli arms with constant means for the same number of steps. The numbers depend on the machine;
compare numbers of the same run.
"""

import argparse

import numpy as np

import dynabandit as db
from report import shortest

ARMS = (2, 50, 100)
HORIZON = 10_000


def means(arms: int) -> list[float]:
    return [0.1 + 0.8 * arm / (arms - 1) for arm in range(arms)]


def dynabandit_step(name: str, arms: int, replications: int) -> float:
    world, policy = db.environment("fixed", means=means(arms)), db.policy(name)

    def action() -> None:
        db.simulate(policy, world, horizon=HORIZON, replications=replications, seed=1, threads=1, times=1)

    db.simulate(policy, world, horizon=max(100, 20 * arms), replications=1, threads=1)
    return shortest(action) / (HORIZON * replications)


def numpy_step(name: str, arms: int, steps: int) -> float | None:
    """Return the time per step of a textbook loop in NumPy, one decision at a time."""
    rng = np.random.default_rng(1)
    mu = np.array(means(arms))

    def ucb() -> None:
        total, plays = np.zeros(arms), np.zeros(arms)
        for t in range(steps):
            arm = t if t < arms else int(np.argmax(total / plays + np.sqrt(2.0 * np.log(t) / plays)))
            total[arm] += rng.random() < mu[arm]
            plays[arm] += 1

    def ts() -> None:
        a, b = np.full(arms, 2.0), np.full(arms, 2.0)
        for _ in range(steps):
            arm = int(np.argmax(rng.beta(a, b)))
            reward = rng.random() < mu[arm]
            a[arm] += reward
            b[arm] += 1 - reward

    loops = {"ucb": ucb, "ts": ts}
    return shortest(loops[name], 2) / steps if name in loops else None


def cell(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value * 1e6:9.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer replications")
    quick = parser.parse_args().quick
    print("microseconds per step, one core, T = 10,000")
    print(
        f"{'policy':18s}"
        + "".join(f"{f'K={arms}':>9}" for arms in ARMS)
        + "   NumPy loop:"
        + "".join(f"{f'K={a}':>9}" for a in ARMS)
    )
    for name in db.policies.POLICIES:
        row = [dynabandit_step(name, arms, replications=(5 if quick else 20) if arms > 2 else 50) for arms in ARMS]
        plain = [numpy_step(name, arms, steps=1000 if quick else 3000) for arms in ARMS]
        print(f"{name:18s}" + "".join(map(cell, row)) + "              " + "".join(map(cell, plain)), flush=True)


if __name__ == "__main__":
    main()
