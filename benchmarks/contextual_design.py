"""The environments on which the recommended contextual policy is designed, and those on which it is evaluated once.

    python benchmarks/contextual_design.py design POLICY ... [--base lin-ts] [--results FILE]

runs policies in the environments of the design set and prints their regret relative to the best fixed discount in
hindsight: the smallest mean regret of the base policy over a grid of discounts, in each environment. At the end it
prints the geometric mean over families and the worst environment, with bootstrap intervals over replications. All
policies have the same seeds. Finished environments are kept in the file of results and not computed again.

The sets differ in their families, sizes, speeds of change and data sets. They were fixed before any policy was tuned.
Whoever designs the policy does not run the evaluation set; `evaluation` is for the finished policy.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dynabandit as db
from dynabandit.core.one_line_syntax import read_one_line

HORIZON = 10_000
SEED = 2026
DISCOUNTS = (
    0.9,
    0.95,
    0.97,
    0.99,
    0.995,
    0.998,
    0.999,
    0.9997,
    1.0,
)  # of the base policy; the best one has the regret 1
RESAMPLES, LEVEL = 2000, 0.95

Regrets = dict[str, np.ndarray]  # by label: the total regret of each replication


class Trial(NamedTuple):
    """One environment of a family; the environments of a family count as one."""

    family: str
    make: Callable[[], db.Environment]
    horizon: int = HORIZON


def _trial(family: str, name: str, horizon: int = HORIZON, **parameters: object) -> Trial:
    return Trial(family, lambda: db.environment(name, **parameters), horizon)


def _noisy(deviation: float) -> dict[str, object]:
    return {"name": "normal", "low": -8.0, "high": 8.0, "deviation": deviation}


def design() -> dict[str, Trial]:
    """Return the environments that may be looked at while a policy is designed."""
    return {
        "still-4x5": _trial("still", "lin-drift", arms=4, dimension=5, change="none"),
        "still-shared-20x10": _trial("still", "lin-drift", arms=20, dimension=10, models="shared", change="none"),
        "flip-4x5": _trial("flip", "lin-drift", arms=4, dimension=5, change="flip", period=1500),
        "flip-shared-10x8": _trial(
            "flip", "lin-drift", arms=10, dimension=8, models="shared", change="flip", period=2500
        ),
        "turn-4x5": _trial("turn", "lin-drift", arms=4, dimension=5, change="turn", period=8000),
        "turn-shared-20x3": _trial(
            "turn", "lin-drift", arms=20, dimension=3, models="shared", change="turn", period=5000
        ),
        "abrupt-50x2": _trial("abrupt", "lin-abrupt", 6000, arms=50, dimension=2),
        "abrupt-10x6": _trial("abrupt", "lin-abrupt", 12_000, arms=10, dimension=6, segment=2000),
        "redraw-2x2": _trial("redraw", "lin-drift", arms=2, dimension=2, change="redraw", period=1000),
        "redraw-3x30": _trial("redraw", "lin-drift", arms=3, dimension=30, change="redraw", period=4000),
        "logistic-flip-4x5": _trial("logistic-flip", "logistic-drift", arms=4, dimension=5, period=2000),
        "logistic-still-shared-10x5": _trial(
            "logistic-still", "logistic-drift", arms=10, dimension=5, models="shared", change="none"
        ),
        "moving-contexts-4x5": _trial("moving-contexts", "moving-contexts", arms=4, dimension=5),
        "digits": _trial("labels", "digits", rotation=2500),
        "phishing": _trial("labels", "phishing", rotation=1500),
    }


def evaluation() -> dict[str, Trial]:
    """Return the environments for the single evaluation of a finished policy: other families, sizes and data."""
    return {
        "slow-50x2": _trial("slow", "lin-slow", 6000, arms=50, dimension=2),
        "slow-15x4": _trial("slow", "lin-slow", 12_000, arms=15, dimension=4, turning=9000),
        "jump-4x5": _trial("jump", "lin-drift", arms=4, dimension=5, change="jump", period=800),
        "jump-10x12": _trial("jump", "lin-drift", 20_000, arms=10, dimension=12, change="jump", period=1500),
        "walk-5x4": _trial("walk", "lin-drift", arms=5, dimension=4, change="walk", period=3000),
        "walk-shared-50x8": _trial(
            "walk", "lin-drift", arms=50, dimension=8, models="shared", change="walk", period=1500
        ),
        "breakpoints-3x3": _trial("breakpoints", "lin-drift", arms=3, dimension=3, change="breakpoints", period=2500),
        "breakpoints-shared-12x15": _trial(
            "breakpoints", "lin-drift", arms=12, dimension=15, models="shared", change="breakpoints", period=1200
        ),
        "large-2x50": _trial("large", "lin-drift", 20_000, arms=2, dimension=50, change="breakpoints", period=8000),
        "large-shared-50x50": _trial("large", "lin-drift", arms=50, dimension=50, models="shared", change="none"),
        "noisy-still-6x8": _trial("noisy", "lin-drift", arms=6, dimension=8, change="none", rewards=_noisy(2.0)),
        "noisy-walk-6x4": _trial(
            "noisy", "lin-drift", 20_000, arms=6, dimension=4, change="walk", period=8000, rewards=_noisy(1.0)
        ),
        "logistic-walk-shared-15x6": _trial(
            "logistic-walk", "logistic-drift", arms=15, dimension=6, models="shared", change="walk", period=4000
        ),
        "logistic-jump-3x4": _trial(
            "logistic-jump", "logistic-drift", arms=3, dimension=4, change="jump", period=1500, scale=3.0
        ),
        "logistic-still-6x10": _trial("logistic-constant", "logistic-drift", arms=6, dimension=10, change="none"),
        "moving-jump-5x7": _trial(
            "moving-changes", "moving-contexts", arms=5, dimension=7, change="jump", period=1200, travel=1.5
        ),
        "short-8x6": _trial("short", "lin-drift", 1500, arms=8, dimension=6, change="breakpoints", period=700),
        "image-segments": _trial("image-segments", "image-segments", rotation=1800),
        "bananas": _trial("bananas", "bananas", rotation=3000),
        "prompts": _trial("prompts", "prompts", rotation=3500),
        "flights": _trial("flights", "flights", 15_000),
    }


def base_policies(base: str) -> dict[str, db.Policy]:
    """Return the base policy with each discount, by label."""
    return {f"{base} {discount:g}": db.policy(base, discount=discount) for discount in DISCOUNTS}


def regrets(trial: Trial, policies: Mapping[str, db.Policy], replications: int, backend: str = "auto") -> Regrets:
    """Return the total regret of every replication of each policy."""
    runs = db.compare(
        dict(policies), trial.make(), horizon=trial.horizon, replications=replications, seed=SEED, times=1,
        backend=backend,
    )  # fmt: skip
    return {label: run.total_regret for label, run in runs.items()}


def run(
    trials: Mapping[str, Trial],
    policies: Mapping[str, db.Policy],
    replications: int,
    results: Path | None = None,
    backend: str = "auto",
) -> dict[str, Regrets]:
    """Return the regrets by environment; those in the file of results, with as many replications, are not computed.

    The file is written after every environment.
    """
    known: dict[str, dict[str, list[float]]] = {}
    if results is not None and results.exists():
        known = json.loads(results.read_text(encoding="utf-8"))
    found: dict[str, Regrets] = {}
    for name, trial in trials.items():
        of_trial = known.setdefault(name, {})
        missing = {label: one for label, one in policies.items() if len(of_trial.get(label, ())) != replications}
        if missing:
            new = regrets(trial, missing, replications, backend)
            of_trial |= {label: [float(f"{one:.6g}") for one in totals] for label, totals in new.items()}
            if results is not None:
                results.write_text(json.dumps(known), encoding="utf-8")
        found[name] = {label: np.array(of_trial[label]) for label in policies}
        print_ratios(name, found[name])
    return found


def print_ratios(name: str, of_trial: Regrets) -> None:
    """Print the mean regrets of one environment relative to the best fixed discount."""
    means = {label: float(totals.mean()) for label, totals in of_trial.items()}
    best = min(base_labels(means), key=means.__getitem__)
    others = [f"{label} {mean / means[best]:.3f}" for label, mean in means.items() if label not in base_labels(means)]
    print(f"{name}: best {best}, regret {means[best]:.1f};", "; ".join(others) or "no other policies", flush=True)


def base_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels of the base policy with a fixed discount."""
    return [label for label in labels if label.rpartition(" ")[2] in {f"{discount:g}" for discount in DISCOUNTS}]


def summarise(found: Mapping[str, Regrets], trials: Mapping[str, Trial]) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return for each policy the geometric mean over families, and the worst ratio: estimate, low, high.

    The intervals resample replications, the same ones for all policies. The best discount and the worst environment are
    chosen once, before resampling.
    """
    labels = list(next(iter(found.values())))
    families = sorted({trials[name].family for name in found})
    of_family = np.array([[trials[name].family == family for name in found] for family in families], dtype=float)
    of_family /= of_family.sum(axis=1, keepdims=True)
    best = {name: min(base_labels(one), key=lambda label: one[label].mean()) for name, one in found.items()}
    random = np.random.default_rng(SEED)
    summary: dict[str, dict[str, tuple[float, ...]]] = {}
    for label in labels:
        logs = []
        for name, one in found.items():
            count = len(one[label])
            weights = np.vstack([np.ones(count) / count, random.multinomial(count, np.ones(count) / count, RESAMPLES)])
            weights[1:] /= count
            logs.append(np.log(weights @ one[label]) - np.log(weights @ one[best[name]]))
        ratios = np.array(logs)  # (environments, 1 + resamples)
        worst = int(ratios[:, 0].argmax())
        mean = (of_family @ ratios).mean(axis=0)
        summary[label] = {"mean": _interval(mean), "worst": _interval(ratios[worst])}
    return summary


def _interval(logs: np.ndarray) -> tuple[float, ...]:
    low, high = np.quantile(logs[1:], (0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0))
    return tuple(float(np.exp(value)) for value in (logs[0], low, high))


def main() -> None:
    """Compare policies with the best fixed discount."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("design", "evaluation"))
    parser.add_argument("policies", nargs="*", help="such as lin-ucb or d-lin-ucb:discount=0.999")
    parser.add_argument("--base", default="lin-ts", help="the policy with a parameter discount")
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--environment", action="append", help="only this environment; may be repeated")
    parser.add_argument("--results", type=Path, help="a JSON file, which is continued if it exists")
    parser.add_argument("--backend", default="auto")
    options = parser.parse_args()
    trials = design() if options.set == "design" else evaluation()
    if options.environment:
        trials = {name: trials[name] for name in options.environment}
    policies = base_policies(options.base)
    for text in options.policies:
        name, parameters = read_one_line(text)
        policies[text] = db.policy(name, **parameters)
    found = run(trials, policies, options.replications, options.results, options.backend)
    for label, row in summarise(found, trials).items():
        (mean, low, high), (worst, worst_low, worst_high) = row["mean"], row["worst"]
        print(f"{label}: {mean:.3f} ({low:.3f} to {high:.3f}), worst {worst:.2f} ({worst_low:.2f} to {worst_high:.2f})")


if __name__ == "__main__":
    main()
