"""Policies that decide without a simulation: which of them a test tries, and parameters that need no tuning."""

from typing import Any

from dynabandit.checks import allows_changing_arms, decides_alike_in_a_bandit
from dynabandit.policies import POLICIES
from laws import INTERPRETED

# One of each kind of score. Compiling a decision and a reward takes seconds per policy, so only these are
# tried compiled; `make interpreted` tries all. Simulations, which call the same functions, are compiled for all.
COMPILED = ("ucb", "aff-d-greedy", "aff-ots", "glr-kl-ucb", "exp3-s")
LIVE = [name for name, kind in POLICIES.items() if not kind.informed]
TRIED = LIVE if INTERPRETED else list(COMPILED)
BANDIT_CHECKS = (decides_alike_in_a_bandit, allows_changing_arms)

# Small enough to make a policy restart in a test

READY: dict[str, dict[str, Any]] = {
    "d-kl-ucb": {"discount": 0.98},
    "sw-kl-ucb": {"window": 25},
    "glr-kl-ucb": {"horizon": 300, "every": 2, "spacing": 3, "capacity": 8},
    "glr-kl-ucb-diminishing": {"delta": 0.1, "every": 2, "spacing": 3, "capacity": 8, "restart": "global"},
    "cusum-ucb": {"changes": 2, "horizon": 300, "reference_plays": 5},
    "m-ucb": {"changes": 2, "horizon": 300, "window": 10, "threshold": 2.0},
    "cusum-kl-ucb": {"changes": 2, "horizon": 300, "reference_plays": 5},
    "m-kl-ucb": {"changes": 2, "horizon": 300, "window": 10, "threshold": 2.0},
    "r-bocpd-ucb": {"horizon": 300, "rate": 0.1, "particles": 8},
    "master-ucb": {"horizon": 300, "scale": 0.003},
    "ad-switch": {"horizon": 300, "constant": 0.1, "every": 2, "capacity": 8},
    "d-ts": {"discount": 0.9},
    "d-ots": {"discount": 0.9},
    "sw-ts": {"window": 25},
    "f-dsw-ts": {"discount": 0.9, "window": 5},
    "changepoint-ts": {"particles": 5},
    "borl": {"block": 10, "exploration": 0.2},
    "exp3-s": {"changes": 2, "horizon": 100},
    "rexp3": {"changes": 2, "horizon": 100},
}
