"""Which policies a test tries, and parameters with which they decide without a simulation."""

from typing import Any

from dynabandit.checks.policies import allows_changing_arms, decides_alike_in_a_bandit
from dynabandit.policies import POLICIES, PolicyFunctions
from tools.laws import INTERPRETED


def shape_of(name: str) -> tuple[bool, ...]:
    """Return which optional parts of the contract a policy has: with the same parts it takes the same code paths."""
    functions, default = POLICIES[name].functions, PolicyFunctions._field_defaults
    optional = ("posterior", "common", "explore", "reveal", "static_index", "table")
    return tuple(getattr(functions, part) is not default[part] for part in optional)


# Compiling takes a second per policy and purpose, so only these make decisions in compiled code, and only one policy
# of each shape is simulated in it. `make interpreted` tries all. The functions of every policy are compiled alone in
# tests/simulation/test_compiled_functions.py.
COMPILED = ("ucb", "aff-d-greedy", "aff-ots", "glr-kl-ucb")
EACH_SHAPE = tuple({shape_of(name): name for name in reversed((*COMPILED, *POLICIES))}.values())
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
    "ad-switch": {"horizon": 30, "constant": 0.1, "scale": 10.0, "every": 1, "capacity": 8},
    "d-ts": {"discount": 0.9},
    "d-ots": {"discount": 0.9},
    "sw-ts": {"window": 25},
    "f-dsw-ts": {"discount": 0.9, "window": 5},
    "changepoint-ts": {"particles": 5},
    "borl": {"block": 10, "exploration": 0.2},
    "exp3-s": {"changes": 2, "horizon": 100},
    "rexp3": {"changes": 2, "horizon": 100},
}
