"""Compare GLR-klUCB, D-TS and d-klUCB with the tables of Besson's thesis (2019, chapter 6), which SMPyBandits computed.

    python benchmarks/published_tables.py [--replications 200]

For each policy it prints the published regret, that of our policy, and that of the rule as the source code of
SMPyBandits has it, written again here. docs/baselines-ucb.md explains the differences. It takes about two minutes.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from numba import njit

import dynabandit as db
from dynabandit.core.bernoulli_kl import kl, negentropy, upper_bound

HORIZON, CHANGES, ARMS = 5000, 4, 3
EQUAL = (1, 1001, 2001, 3001, 4001)
PROBLEMS: dict[str, tuple[tuple[int, ...], list[list[float]]]] = {
    "1": (EQUAL, [[0.3, 0.5, 0.9], [0.3, 0.2, 0.9], [0.3, 0.2, 0.1], [0.7, 0.2, 0.1], [0.7, 0.5, 0.1]]),
    "2": (EQUAL, [[0.4, 0.5, 0.9], [0.5, 0.4, 0.7], [0.6, 0.3, 0.5], [0.7, 0.2, 0.3], [0.8, 0.1, 0.1]]),
    "4": (
        (1, 2501, 3126, 3751, 4376),
        [[0.1, 0.5, 0.9], [0.3, 0.4, 0.1], [0.5, 0.3, 0.2], [0.7, 0.4, 0.3], [0.1, 0.5, 0.2]],
    ),
}
SCALE, EVERY = 0.05, 10  # of GLR-klUCB in the thesis
DISCOUNT = 0.95  # of D-TS in the thesis


@njit
def index(mean: float, level: float) -> float:
    """Return the KL index; a mean above 1, which a wrong count can cause, is its own index."""
    return mean if mean > 1.0 else upper_bound(mean, negentropy(mean), level)


@njit
def largest(scores: np.ndarray, random: np.random.Generator) -> int:
    """Return an arm with the largest score, ties broken at random."""
    ties = np.flatnonzero(scores == scores.max())
    return ties[int(random.random() * ties.size)]


@njit
def has_changed(rewards: np.ndarray, delta: float) -> bool:
    """Test splits after 1, 11, 21, ... rewards with the threshold log(3 n^(3/2) / delta)."""
    n, total, before = rewards.size, rewards.sum(), 0.0
    mean = total / n
    threshold = math.log(3.0) + 1.5 * math.log(n) - math.log(delta)
    for s in range(1, n):
        before += rewards[s - 1]
        if s % EVERY == 1:
            ratio = s * kl(before / s, mean) + (n - s) * kl((total - before) / (n - s), mean)
            if ratio >= threshold:
                return True
    return False


@njit
def glr_kl_ucb(means: np.ndarray, random: np.random.Generator, factor: float, restart_all: bool) -> float:
    """GLR-klUCB with the level factor x log t, deterministic exploration, and restarts that keep the last reward."""
    horizon, arms = means.shape
    product = CHANGES * (1 if restart_all else arms)
    delta = 1.0 / math.sqrt(product * horizon)
    period = math.ceil(arms / (SCALE * math.sqrt(product * math.log(horizon) / horizon)))
    rewards, totals = np.zeros((arms, horizon)), np.zeros(arms)
    plays, started = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    regret = 0.0
    for t in range(horizon):
        arm = (t - started.max()) % period
        if arm >= arms:
            scores = np.full(arms, np.inf)
            for one in range(arms):
                if plays[one] > 0:
                    level = factor * math.log(max(t - started[one], 1)) / plays[one]
                    scores[one] = index(totals[one] / plays[one], level)
            arm = largest(scores, random)
        reward = 1.0 if random.random() < means[t, arm] else 0.0
        regret += means[t].max() - means[t, arm]
        rewards[arm, plays[arm]] = reward
        plays[arm] += 1
        totals[arm] += reward
        if plays[arm] % EVERY == 0 and has_changed(rewards[arm, : plays[arm]], delta):
            if restart_all:
                plays[:] = 0
                totals[:] = 0.0
                started[:] = t + 1
            plays[arm], started[arm], rewards[arm, 0], totals[arm] = 1, t + 1, reward, reward
    return regret


@njit
def d_ts(means: np.ndarray, random: np.random.Generator) -> float:
    """D-TS that discounts the arm that was played once for each arm, and no other."""
    horizon, arms = means.shape
    successes, failures = np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(horizon):
        draws = np.array([random.beta(1.0 + successes[arm], 1.0 + failures[arm]) for arm in range(arms)])
        arm = largest(draws, random)
        reward = 1.0 if random.random() < means[t, arm] else 0.0
        regret += means[t].max() - means[t, arm]
        rest = DISCOUNT ** (arms - 1)
        successes[arm] = (DISCOUNT * successes[arm] + reward) * rest
        failures[arm] = (DISCOUNT * failures[arm] + 1.0 - reward) * rest
    return regret


@njit
def d_kl_ucb(means: np.ndarray, random: np.random.Generator) -> float:
    """d-klUCB whose counts are whole numbers, and which discounts an arm only when it is played."""
    horizon, arms = means.shape
    discount = 1.0 - math.sqrt(CHANGES / horizon) / 4.0
    totals, counts, idle = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(horizon):
        scores = np.full(arms, np.inf)
        for one in range(arms):
            if counts[one] >= 1.0:
                mean, level = totals[one] / counts[one], math.log(counts.sum()) / counts[one]
                # their bisection between the mean and an upper bound of at most 1 returns the middle of the two
                scores[one] = index(mean, level) if mean <= 1.0 else 0.5 * (mean + 1.0)
        arm = largest(scores, random)
        reward = 1.0 if random.random() < means[t, arm] else 0.0
        regret += means[t].max() - means[t, arm]
        weight = discount ** (1.0 + idle[arm])
        counts[arm] = math.floor(weight * counts[arm] + 1.0)
        totals[arm] = weight * totals[arm] + reward
        idle += 1.0
        idle[arm] = 0.0
    return regret


Rule = Callable[[np.ndarray, np.random.Generator], float]
ROWS: dict[str, tuple[tuple[int, int, int], db.Policy, Rule]] = {
    "GLR-klUCB, local": (
        (74, 113, 99),
        db.policy("glr-kl-ucb", scale=SCALE),
        lambda means, random: glr_kl_ucb(means, random, 3.0, False),
    ),
    "GLR-klUCB, global": (
        (97, 134, 128),
        db.policy("glr-kl-ucb", scale=SCALE, restart="global"),
        lambda means, random: glr_kl_ucb(means, random, 3.0, True),
    ),
    "GLR-klUCB, local, with log t": (
        (74, 113, 99),
        db.policy("glr-kl-ucb", scale=SCALE),
        lambda means, random: glr_kl_ucb(means, random, 1.0, False),
    ),
    "D-TS": ((209, 249, 250), db.policy("d-ts", discount=DISCOUNT), d_ts),
    "d-klUCB": ((1456, 1442, 911), db.policy("d-kl-ucb", changes=CHANGES), d_kl_ucb),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--replications", type=int, default=200)
    replications = parser.parse_args().replications
    print(f"{'policy':30}{'problem':>8}{'published':>11}{'ours':>6}{'their rule':>12}")
    for name, (published, policy, rule) in ROWS.items():
        for (problem, (starts, means)), regret in zip(PROBLEMS.items(), published, strict=True):
            environment = db.environment("piecewise", starts=starts, means=means)
            ours = db.simulate(policy, environment, horizon=HORIZON, replications=replications, seed=1).total_regret
            path = environment.path(HORIZON, seed=1)
            theirs = np.mean([rule(path, np.random.default_rng(seed)) for seed in range(replications)])
            print(f"{name:30}{problem:>8}{regret:>11}{ours.mean():>6.0f}{theirs:>12.0f}", flush=True)


if __name__ == "__main__":
    main()
