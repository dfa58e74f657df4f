"""Measures the confidence sequence of the lift, the guardrail test and the sample-ratio test of `dynabandit.stats`.

    python benchmarks/lift_coverage.py docs/measured/lift-coverage.json

Each run is monitored after every reward. An interval of the lift misses if it does not contain the true running mean at
any of the steps; an alarm is false if it is raised at any step although no mean violates its bound. The widths are
those after the last step, relative to the interval for the difference of two means that may be looked at once.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from dynabandit.stats.confidence_sequences import bounded_log_evidence, normal_limit
from dynabandit.stats.intervals import Z, wilson
from dynabandit.stats.lift import (
    HOLDOUT_ALPHA,
    LIFT_ALPHA,
    LiftSums,
    add_reward,
    estimate_lift,
    has_interval,
)
from dynabandit.stats.sequential_tests import (
    SIZE,
    SIZE_WITH_RANGE,
    add_excess,
    needed_evidence,
    sample_ratio_evidence,
)

STEPS = 10_000
RUNS = 2_000
CLICKS, NORMAL, REVENUE = 0, 1, 2
NEEDED = needed_evidence(0, 5, 1)
SIGMA = 1.0  # of the logarithm of the revenue of a purchase
compiled_add = numba.njit(add_reward)
compiled_evidence = numba.njit(bounded_log_evidence)
compiled_limit = numba.njit(normal_limit)
compiled_has_interval = numba.njit(has_interval)
compiled_excess = numba.njit(add_excess)


class Trial(NamedTuple):
    """A case: the law of the rewards, the share of the holdout, and the mean of both groups at each step.

    With `learning`, the lift grows with the rewards of the policy.
    """

    law: int
    share: float
    holdout: np.ndarray
    policy: np.ndarray
    learning: bool = False


def trials() -> dict[str, Trial]:
    """Return the cases of the lift."""
    one, long = np.ones(STEPS), np.ones(10 * STEPS)
    day, long_day = (np.sin(np.arange(len(steps)) * 2.0 * math.pi / 2_000) for steps in (one, long))
    jump = np.where(np.arange(STEPS) < STEPS // 2, 0.1, 0.4)
    falling = np.where(np.arange(STEPS) < 3_000, 1.5, 0.8)
    return {
        "clicks of 1 %, no lift, share 0.01": Trial(CLICKS, 0.01, 0.01 * one, 0.01 * one),
        "clicks of 1 %, no lift, share 0.1": Trial(CLICKS, 0.1, 0.01 * one, 0.01 * one),
        "clicks of 1 %, no lift, share 0.5": Trial(CLICKS, 0.5, 0.01 * one, 0.01 * one),
        "clicks of 1 %, lift of 0.5 %, share 0.1": Trial(CLICKS, 0.1, 0.01 * one, 0.015 * one),
        "clicks of 30 %, no lift, share 0.1": Trial(CLICKS, 0.1, 0.3 * one, 0.3 * one),
        "clicks that change by the hour, share 0.1": Trial(CLICKS, 0.1, 0.05 + 0.04 * day, 0.06 + 0.04 * day),
        "clicks that jump from 10 to 40 %, no lift, share 0.2": Trial(CLICKS, 0.2, jump, jump),
        "a policy that learns, share 0.1": Trial(CLICKS, 0.1, 0.1 * one, 0.2 * one, learning=True),
        "a lift that becomes negative, share 0.2": Trial(CLICKS, 0.2, 0.1 * one, 0.1 * falling),
        "normal rewards of mean 100, no lift, share 0.1": Trial(NORMAL, 0.1, 100.0 * one, 100.0 * one),
        "revenue, 5 % buy, no lift, share 0.1": Trial(REVENUE, 0.1, 0.05 * long, 0.05 * long),
        "revenue, 5 % buy, no lift, share 0.5": Trial(REVENUE, 0.5, 0.05 * one, 0.05 * one),
        "revenue, 2 to 8 % buy, lift, share 0.2": Trial(REVENUE, 0.2, 0.05 + 0.03 * long_day, 0.06 + 0.03 * long_day),
    }


@numba.njit
def draw(rng: np.random.Generator, law: int, mean: float) -> float:
    """Return a reward; a purchase has a mean revenue of 1."""
    if law == NORMAL:
        return rng.normal(mean, 1.0)
    if rng.random() >= mean:
        return 0.0
    return 1.0 if law == CLICKS else math.exp(rng.normal(-(SIGMA**2) / 2.0, SIGMA))


@numba.njit
def simulate(
    rng: np.random.Generator, law: int, share: float, holdout: np.ndarray, policy: np.ndarray, learning: bool
) -> Any:
    """Return whether the intervals of the lift and of the holdout's mean missed at any step, and the sums at the end.

    A bounded limit is at least 2.5 standard deviations, so most steps need no logarithms.
    """
    sums = LiftSums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    bounded = law == CLICKS
    lift_missed, holdout_missed = False, False
    true_lift, true_holdout = 0.0, 0.0
    for step in range(len(holdout)):
        learned = sums.policy_total / (sums.policy_total + 50.0) if learning else 1.0
        means = holdout[step], holdout[step] + learned * (policy[step] - holdout[step])
        in_holdout = rng.random() < share
        reward = draw(rng, law, means[0] if in_holdout else means[1])
        terms = sums.terms
        sums = compiled_add(sums, share, bounded, reward, in_holdout)
        if sums.terms > terms:
            true_lift += means[1] - means[0]
            true_holdout += means[0]
        lift_error = sums.policy_terms - sums.holdout_terms - true_lift
        holdout_error = sums.holdout_terms - true_holdout
        if bounded:
            scale = 1.0 / min(share, 1.0 - share)
            if lift_error**2 > 6.0 * sums.difference_errors:
                found = compiled_evidence(abs(lift_error), sums.difference_errors, scale)
                lift_missed |= found > math.log(2.0 / LIFT_ALPHA)
            if holdout_error**2 > 6.0 * sums.holdout_errors:
                found = compiled_evidence(abs(holdout_error), sums.holdout_errors, 1.0 / share)
                holdout_missed |= found > math.log(2.0 / HOLDOUT_ALPHA)
        elif compiled_has_interval(sums):
            limit = compiled_limit(sums.difference_errors, sums.difference_start, LIFT_ALPHA)
            lift_missed |= abs(lift_error) > limit
            limit = compiled_limit(sums.holdout_errors, sums.holdout_start, HOLDOUT_ALPHA)
            holdout_missed |= abs(holdout_error) > limit
    return lift_missed, holdout_missed, sums


def measure_lift(trial: Trial) -> dict[str, Any]:
    """Return how often the intervals of a case missed, and their widths."""
    lift_missed, missed, widths = 0, 0, []
    for seed in range(RUNS):
        of_lift, of_holdout, sums = simulate(np.random.default_rng(seed), *trial)
        lift_missed += of_lift
        missed += of_lift or of_holdout
        lift = estimate_lift(LiftSums(*sums), trial.share, trial.law == CLICKS).absolute if seed < 50 else None
        if lift is not None and not math.isnan(lift.low):
            once = 2.0 * Z * math.sqrt(sums.difference_errors) / sums.terms
            widths.append((lift.high - lift.low) / once)
    return {
        "missed": missed / RUNS,
        "missed_interval": list(wilson(missed / RUNS, RUNS)),
        "lift_missed": lift_missed / RUNS,
        "width_relative_to_one_look": float(np.median(widths)) if widths else None,
    }


@numba.njit
def guard(
    rng: np.random.Generator, low: float, bound: float, high: float, after: float, sign: float, steps: int
) -> int:
    """Return the first value at which the evidence exceeds that of five arms with one metric each, 0 if none does.

    Values are `low` or `high`. Their mean is `bound`, and `after` times that from the middle of the run.
    """
    state = np.zeros(SIZE_WITH_RANGE)
    room = bound - low if sign > 0.0 else high - bound
    for step in range(steps):
        mean = bound if step < steps // 2 else bound * after
        value = high if rng.random() < (mean - low) / (high - low) else low
        if compiled_excess(state, sign * (value - bound), room) >= NEEDED:
            return step + 1
    return 0


GUARDRAILS: dict[str, tuple[float, float, float, float]] = {
    "errors of 1 %, at most": (0.0, 0.01, 1.0, 1.0),
    "errors of 20 %, at most": (0.0, 0.2, 1.0, 1.0),
    "errors of 20 %, at least": (0.0, 0.2, 1.0, -1.0),
}


def measure_guardrail(low: float, bound: float, high: float, sign: float) -> dict[str, Any]:
    """Return the false alarms of five arms at the bound, and the delay when the mean then changes by a half."""
    alarms = [guard(np.random.default_rng(seed), low, bound, high, 1.0, sign, STEPS) for seed in range(5 * RUNS)]
    any_arm = float(np.mean(np.reshape(np.array(alarms) > 0, (RUNS, 5)).any(axis=1)))
    after = 1.5 if sign > 0.0 else 0.5
    found = np.array(
        [guard(np.random.default_rng(seed), low, bound, high, after, sign, 4 * STEPS) for seed in range(200)]
    )
    delays = np.where(found > 0, found - 2 * STEPS, np.inf)
    return {
        "false_alarms": any_arm,
        "false_alarms_interval": list(wilson(any_arm, RUNS)),
        "median_delay": float(np.median(delays)),
        "detected": float(np.mean(found > 2 * STEPS)),
    }


class Unranged(NamedTuple):
    """A law of values without a known range, whose mean is at the bound.

    They are normal, or log-normal with `sigma`. After 1,000 values their standard deviation is `growth` times as large,
    and `dependence` is the correlation of consecutive ones.
    """

    sigma: float = 0.0
    sign: float = 1.0
    growth: float = 1.0
    dependence: float = 0.0


UNRANGED = {
    "normal": Unranged(),
    "normal, standard deviation x 10 after 1,000 values": Unranged(growth=10.0),
    "normal, standard deviation x 3 after 1,000 values": Unranged(growth=3.0),
    "log-normal, sigma 2, at least": Unranged(2.0, -1.0),
    "log-normal, sigma 1.5, at least": Unranged(1.5, -1.0),
    "log-normal, sigma 1, at least": Unranged(1.0, -1.0),
    "log-normal, sigma 1, at most": Unranged(1.0),
    "normal, correlation 0.9": Unranged(dependence=0.9),
}


@numba.njit
def guard_unranged(
    rng: np.random.Generator, sigma: float, sign: float, growth: float, dependence: float, shifted: int, steps: int
) -> int:
    """Return the first value at which the evidence exceeds that of five arms with one metric each, 0 if none does.

    From value `shifted` on, the mean is beyond the bound by half of the first standard deviation.
    """
    state, normal = np.zeros(SIZE), rng.standard_normal()
    for step in range(steps):
        normal = dependence * normal + math.sqrt(1.0 - dependence**2) * rng.standard_normal()
        value = normal
        if sigma > 0.0:
            value = (math.exp(sigma * normal - sigma**2 / 2.0) - 1.0) / math.sqrt(math.expm1(sigma**2))
        excess = sign * value * (growth if step >= 1_000 else 1.0) + (0.5 if step >= shifted else 0.0)
        if compiled_excess(state, excess, math.inf) >= NEEDED:
            return step + 1
    return 0


def measure_unranged(law: Unranged) -> dict[str, float]:
    """Return the false alarms of five arms at the bound in 20,000 values, and how soon a shift is found.

    It begins with the first value, or after 20,000 values at the bound.
    """
    alarms = [guard_unranged(np.random.default_rng(seed), *law, 2 * STEPS, 2 * STEPS) for seed in range(RUNS // 2)]
    any_arm = float(np.mean(np.reshape(np.array(alarms) > 0, (RUNS // 10, 5)).any(axis=1)))
    first = np.array([guard_unranged(np.random.default_rng(seed), *law, 0, 2 * STEPS) for seed in range(50)])
    late = np.array([guard_unranged(np.random.default_rng(seed), *law, 2 * STEPS, 4 * STEPS) for seed in range(50)])
    late = late[(late == 0) | (late > 2 * STEPS)]
    return {
        "false_alarms": any_arm,
        "error": math.sqrt(any_arm * (1.0 - any_arm) / (RUNS // 10)),
        "median_at_start": float(np.median(np.where(first > 0, first, np.inf))),
        "median_late": float(np.median(np.where(late > 0, late - 2 * STEPS, np.inf))),
    }


def measure_sample_ratio(share: float, actual: float) -> float:
    """Return how often the sample-ratio test raises an alarm at 1 % within all steps."""
    rng, alarms = np.random.default_rng(7), 0
    for _ in range(RUNS // 10):
        inside = np.cumsum(rng.random(STEPS) < actual)
        steps = np.arange(1, STEPS + 1)
        pairs = zip(inside.tolist(), steps.tolist(), strict=True)
        alarms += any(sample_ratio_evidence(one, step - one, share) >= 100.0 for one, step in pairs)
    return alarms / (RUNS // 10)


def main() -> None:
    """Measure everything and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    results: dict[str, Any] = {
        "runs": RUNS,
        "steps": STEPS,
        "lift": {},
        "guardrails": {},
        "unranged": {},
        "sample_ratio": {},
    }
    for name, trial in trials().items():
        results["lift"][name] = measure_lift(trial)
        print(name, results["lift"][name], flush=True)
    for name, case in GUARDRAILS.items():
        results["guardrails"][name] = measure_guardrail(*case)
        print(name, results["guardrails"][name], flush=True)
    for name, law in UNRANGED.items():
        results["unranged"][name] = measure_unranged(law)
        print(name, results["unranged"][name], flush=True)
    for share, actual in ((0.1, 0.1), (0.5, 0.5), (0.1, 0.11), (0.1, 0.12), (0.5, 0.52)):
        results["sample_ratio"][f"share {share}, actually {actual}"] = measure_sample_ratio(share, actual)
    print(results["sample_ratio"])
    output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
