"""The environments on which the recommended policy is designed, and those on which it is evaluated once.

    python benchmarks/policy_design.py design POLICY ...

runs policies in the environments of the design set and prints their regret relative to the best of the reference
policies in each environment: the geometric mean over families, and the worst environment. Whoever designs the policy
does not run the evaluation set; `python benchmarks/policy_design.py evaluation` is for the finished policy.
"""

import argparse
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

import dynabandit as db

HORIZON = 10_000
SIZES = (2, 10, 50, 100)
# The policies of which the best one in hindsight, in each environment, has the regret 1. Each is set up as a user would
# who knows nothing about the future
REFERENCES: dict[str, dict[str, float]] = {
    "ucb": {}, "kl-ucb": {}, "ots": {}, "ts": {}, "dts": {}, "aff-ots": {}, "aff-dts1": {}, "aff-dts2": {},
    "aff-ucb2": {}, "aff-kl-ucb": {}, "glr-kl-ucb": {"changes": 1, "scale": 0.1}, "glr-kl-ucb-diminishing": {},
    "changepoint-ts": {},
}  # fmt: skip


class Trial(NamedTuple):
    """One environment of a family; the environments of a family count as one."""

    family: str
    environment: db.Environment
    horizon: int = HORIZON
    delay: db.Delay | None = None


def design() -> dict[str, Trial]:
    """Return the environments that may be looked at while a policy is designed."""
    sized = ("case-1", "case-2", "case-3", "case-4", "seasonal", "rotting", "burst")
    trials = {f"{name}-{arms}": Trial(name, db.environment(name, arms=arms)) for name in sized for arms in SIZES}
    trials |= {name: Trial(name, db.environment(name)) for name in ("small-changes", "pb-1", "pb-2", "needle")}
    trials["stationary-2"] = Trial("stationary", _fixed([0.5, 0.55]))
    trials["stationary-10"] = Trial("stationary", _fixed([0.5] * 9 + [0.6]))
    trials["stationary-50"] = Trial("stationary", _fixed(np.linspace(0.1, 0.7, 50).tolist()))
    trials["clicks-10"] = Trial("clicks", _rotating([0.01 + 0.001 * arm for arm in range(10)], 5000, 20_000), 20_000)
    trials["clicks-drift-10"] = Trial("clicks", _waves(10, 0.01, 0.008, 20_000), 20_000)
    delay = db.delay("geometric", mean=100, lost=0.01)
    trials["delayed-case-3-10"] = Trial("delayed", db.environment("case-3", arms=10), delay=delay)
    return trials


def evaluation() -> dict[str, Trial]:
    """Return the environments for the single evaluation of a finished policy: other families, sizes and horizons."""
    trials = {
        # Changes of one arm at a time, at different rates, and of all arms at once
        "clock-10": Trial("clock", _clocks(10, 0.0005)),
        "clock-30": Trial("clock", _clocks(30, 0.002)),
        "random-pieces-5": Trial("random-pieces", _random_pieces(5, 6, 1)),
        "random-pieces-20": Trial("random-pieces", _random_pieces(20, 10, 2)),
        "random-pieces-200": Trial("random-pieces", _random_pieces(200, 4, 3)),
        # One arm is poor until it becomes the best
        "late-riser-5": Trial("late-riser", _late_riser(5, 0.5, 7000)),
        "late-riser-30": Trial("late-riser", _late_riser(30, 0.4, 4000)),
        # An arm without value until it appears, and after it has gone
        "come-and-go-12": Trial("come-and-go", _come_and_go(12, 4)),
        "come-and-go-40": Trial("come-and-go", _come_and_go(40, 5)),
        "high-means-10": Trial("high-means", _waves(10, 0.9, 0.08, HORIZON)),
        "high-means-50": Trial("high-means", _rotating(np.linspace(0.80, 0.97, 50).tolist(), 2500, HORIZON)),
        "low-clicks-5": Trial("low-clicks", _waves(5, 0.005, 0.004, 50_000), 50_000),
        "low-clicks-30": Trial("low-clicks", _rotating(np.linspace(0.002, 0.02, 30).tolist(), 25_000, 50_000), 50_000),
        "crossing-4": Trial("crossing", _crossing(4)),
        "crossing-16": Trial("crossing", _crossing(16)),
        "slow-walk-10": Trial("walks", db.environment("reflected-walk", arms=10, variance=0.00001)),
        "fast-walk-10": Trial("walks", db.environment("reflected-walk", arms=10, variance=0.001)),
        "thousand-arms-fixed": Trial("thousand-arms", _fixed(_beta_means(1000, 6))),
        "thousand-arms-walk": Trial("thousand-arms", db.environment("case-3", arms=1000)),
        "short-walk-10": Trial("short", db.environment("case-3", arms=10), 1000),
        "short-pieces-5": Trial("short", _random_pieces(5, 3, 7, 1000), 1000),
        "long-walk-10": Trial("long", db.environment("reflected-walk", arms=10, variance=0.00001), 100_000),
        "long-pieces-10": Trial("long", _random_pieces(10, 8, 8, 100_000), 100_000),
        "fixed-uniform-20": Trial("fixed-uniform", _fixed(_beta_means(20, 9))),
        "fixed-close-5": Trial("fixed-uniform", _fixed([0.30, 0.31, 0.32, 0.33, 0.35])),
    }
    window = db.delay("uniform", low=0, high=600, lost=0.05)
    trials["late-pieces-10"] = Trial("late-rewards", _random_pieces(10, 4, 10), delay=window)
    trials["late-fixed-10"] = Trial("late-rewards", _fixed(_beta_means(10, 11)), delay=window)
    return trials


def _fixed(means: list[float]) -> db.Environment:
    return db.environment("fixed", means=means)


def _piecewise(starts: list[int], means: np.ndarray) -> db.Environment:
    return db.environment("piecewise", starts=starts, means=means.round(6).tolist())


def _rotating(means: list[float], segment: int, horizon: int) -> db.Environment:
    """Return fixed means that move to other arms after every segment, so that another arm is the best."""
    segments, shift = horizon // segment, max(1, len(means) // 3)
    rows = np.array([np.roll(means, shift * index) for index in range(segments)])
    return _piecewise([1 + segment * index for index in range(segments)], rows)


def _waves(arms: int, centre: float, height: float, horizon: int) -> db.Environment:
    """Return sines of different phases and periods."""
    time, arm = np.linspace(0.0, 1.0, horizon)[:, None], np.arange(arms)[None, :]
    periods = 1.0 + 2.0 * arm / arms
    return db.environment("path", means=centre + height * np.sin(2.0 * np.pi * (periods * time + arm / arms)))


def _clocks(arms: int, rate: float) -> db.Environment:
    rates = rate * np.linspace(0.2, 2.0, arms)
    return db.environment("exponential-clock", rates=rates.tolist(), low=[0.1] * arms, high=[0.8] * arms)


def _random_pieces(arms: int, segments: int, seed: int, horizon: int = HORIZON) -> db.Environment:
    """Return uniform means that are drawn again after every segment; segments have different lengths."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.choice(np.arange(horizon // 20, horizon), segments - 1, replace=False))
    return _piecewise([1, *(int(cut) for cut in cuts)], random.uniform(0.05, 0.95, (segments, arms)))


def _late_riser(arms: int, best: float, change: int) -> db.Environment:
    before = np.array([best, *[best - 0.1] * (arms - 2), 0.1])
    after = np.array([*before[:-1], best + 0.3])
    return _piecewise([1, change], np.array([before, after]))


def _come_and_go(arms: int, seed: int) -> db.Environment:
    """Return arms that have a mean of 0 outside of an interval of their own; a few are always there."""
    random = np.random.default_rng(seed)
    means = np.tile(random.uniform(0.2, 0.8, arms), (20, 1))
    for arm in range(3, arms):
        first, length = random.integers(0, 18), random.integers(3, 12)
        means[:first, arm] = means[first + length :, arm] = 0.0
    return _piecewise([1 + 500 * index for index in range(20)], means)


def _crossing(arms: int) -> db.Environment:
    """Return straight lines of which each is the best for a while."""
    time, peak = np.linspace(0.0, 1.0, HORIZON)[:, None], np.linspace(0.0, 1.0, arms)[None, :]
    return db.environment("path", means=0.75 - 0.5 * np.abs(time - peak))


def _beta_means(arms: int, seed: int) -> list[float]:
    found: list[float] = np.random.default_rng(seed).beta(2.0, 5.0, arms).round(6).tolist()
    return found


def regrets(trial: Trial, policies: Mapping[str, db.Policy], replications: int, seed: int) -> dict[str, float]:
    """Return the mean regret of each policy."""
    runs = db.compare(
        dict(policies), trial.environment, horizon=trial.horizon, replications=replications, seed=seed,
        delay=trial.delay,
    )  # fmt: skip
    return {label: float(run.total_regret.mean()) for label, run in runs.items()}


def summarise(ratios: Mapping[str, float], trials: Mapping[str, Trial]) -> tuple[float, float]:
    """Return the geometric mean over families, and the largest ratio."""
    families: dict[str, list[float]] = {}
    for name, ratio in ratios.items():
        families.setdefault(trials[name].family, []).append(math.log(ratio))
    return math.exp(np.mean([np.mean(logs) for logs in families.values()])), max(ratios.values())


def main() -> None:
    """Compare policies with the references."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("design", "evaluation"))
    parser.add_argument("policies", nargs="*")
    parser.add_argument("--replications", type=int, default=200)
    options = parser.parse_args()
    trials = design() if options.set == "design" else evaluation()
    ratios: dict[str, dict[str, float]] = {}
    for name, trial in trials.items():
        policies = {one: db.policy(one, **REFERENCES.get(one, {})) for one in (*REFERENCES, *options.policies)}
        found = regrets(trial, policies, options.replications, seed=2026)
        best = min(found[one] for one in REFERENCES)
        for one, regret in found.items():
            ratios.setdefault(one, {})[name] = regret / best
        print(name, *(f"{one} {ratios[one][name]:.2f}" for one in options.policies or REFERENCES), flush=True)
    for one, of_policy in ratios.items():
        mean, worst = summarise(of_policy, trials)
        print(f"{one}: {mean:.3f}, worst {worst:.2f}")


if __name__ == "__main__":
    main()
