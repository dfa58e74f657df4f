"""The groups in which the pages list policies and environments."""

from collections.abc import Mapping

POLICIES = {
    "Recommended": (
        "mix-ts", "mix-poisson-ts", "mix-revenue-ts", "mix-normal-ts", "mix-lin-ucb",
    ),
    "Adaptive forgetting: the paper": (
        "aff-d-greedy", "aff-ucb1", "aff-ucb2", "aff-ts", "aff-ots", "aff-dts1", "aff-dts2",
    ),
    "Adaptive forgetting: our variants": ("aff-ucb2-growing", "aff-kl-ucb"),
    "Baselines of the paper": ("eps-greedy", "ucb", "ts", "ots", "d-ucb", "sw-ucb", "dts"),
    "Other baselines that forget": (
        "odts", "d-ts", "d-ots", "sw-ts", "f-dsw-ts", "changepoint-ts", "exp3-s", "rexp3", "d-kl-ucb", "sw-kl-ucb",
        "sw-ucb-sharp", "lm-dsee", "borl", "kalman-ts", "predictive-sampling",
    ),
    "Other baselines with upper confidence bounds": (
        "kl-ucb", "glr-kl-ucb", "glr-kl-ucb-diminishing", "cusum-ucb", "cusum-kl-ucb", "m-ucb", "m-kl-ucb",
        "r-bocpd-ucb", "master-ucb", "ad-switch",
    ),
    "Decisions by features": (
        "lin-ucb", "lin-ts", "d-lin-ucb", "sw-lin-ucb", "weight-ucb", "restart-lin-ucb", "lin-eps-greedy", "square-cb",
        "logistic-ts", "log-linear-ts", "aff-lin-ucb", "aff-lin-ts", "aff-logistic-ts", "aff-log-linear-ts",
    ),
    "Rested arms": ("raw-ucb", "fewa", "w-swa", "r-ed-ucb"),
    "Rewards that are not in [0, 1]": (
        "normal-ts", "aff-normal-ts", "aff-normal-ucb", "aff-poisson-ts", "aff-revenue-ts", "robust-ucb",
    ),
    "References and oracles": ("uniform", "best-arm", "oracle-restart"),
}  # fmt: skip

ENVIRONMENTS = {
    "The paper's": ("small-changes", "case-1", "case-2", "case-3", "case-4"),
    "Benchmarks": (
        "pb-1", "pb-2", "pb-3", "pb-4", "random-breakpoints", "ar-1", "seasonal", "rotting", "burst", "needle",
    ),
    "General": (
        "fixed", "piecewise", "exponential-clock", "reflected-walk", "logistic-walk", "path", "recorded",
    ),
    "Rested arms": ("rested-rotting", "rested-drops", "rested-rising"),
    "With features": (
        "lin-abrupt", "lin-slow", "lin-drift", "logistic-drift", "moving-contexts", "recorded-contexts",
    ),
    "With features: real data": ("digits", "image-segments", "phishing", "bananas", "prompts", "flights"),
}  # fmt: skip


def grouped(families: Mapping[str, tuple[str, ...]], registry: Mapping[str, type]) -> dict[str, tuple[str, ...]]:
    """Return the families; those that no family lists come last.

    >>> grouped({"Vowels": ("a", "e")}, {"a": int, "b": int, "e": int})
    {'Vowels': ('a', 'e'), 'Others': ('b',)}
    """
    listed = [name for names in families.values() for name in names]
    others = tuple(name for name in registry if name not in listed)
    return {**families, **({"Others": others} if others else {})}
