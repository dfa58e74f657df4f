"""Parameters that let a policy decide without a simulation to tune it, small enough to make it restart in a test."""

from typing import Any

READY: dict[str, dict[str, Any]] = {
    "d-kl-ucb": {"discount": 0.98},
    "sw-kl-ucb": {"window": 25},
    "glr-kl-ucb": {"horizon": 300, "every": 2, "spacing": 3, "capacity": 8},
    "glr-kl-ucb-diminishing": {"delta": 0.1, "every": 2, "spacing": 3, "capacity": 8, "restart": "global"},
    "cusum-ucb": {"changes": 2, "horizon": 300, "reference_plays": 5},
    "m-ucb": {"changes": 2, "horizon": 300, "window": 10, "threshold": 2.0},
    "d-ts": {"discount": 0.9},
    "sw-ts": {"window": 25},
    "f-dsw-ts": {"discount": 0.9, "window": 5},
    "changepoint-ts": {"particles": 5},
    "exp3-s": {"changes": 2, "horizon": 100},
    "rexp3": {"changes": 2, "horizon": 100},
}
