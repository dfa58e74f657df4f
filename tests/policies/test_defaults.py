"""What a policy is made of: its defaults, the limits of its parameters, and the numbers that its kernels read."""

import math
from typing import Any

import pytest

import dynabandit as db
from dynabandit.core.context import Context
from dynabandit.core.records import NoParams, to_row
from dynabandit.policies import CONTEXTUAL_POLICIES, POLICIES
from tools.limits import LAST_STEP, NOT_NEGATIVE, POSITIVE, POSITIVE_UNIT, UNIT, Values, numbers, wholes

OPEN: dict[str, Any] = {"changes": None, "horizon": None}  # what a simulation fills in
# Section 4 of the paper: eta is 0.001, and truncation is at 0
ADAPTIVE: dict[str, Any] = {"burn_in": 1, "step_size": 0.001, "floor": 0.0, "loss": "squared-error"}
UNIT_FREE: dict[str, Any] = {"burn_in": 2, "step_size": 0.0001, "floor": 0.0}
TEST: dict[str, Any] = {
    "burn_in": 1, "restart": "local", "scale": 1.0, "delta": None, "every": 10, "spacing": 10, "capacity": 128,
}  # fmt: skip
CUSUM: dict[str, Any] = {
    "burn_in": 1, "drift": 0.05, "reference_plays": 100, "threshold": None, "exploration": None,
}  # fmt: skip
MONITORED: dict[str, Any] = {"burn_in": 1, "window": 800, "threshold": None, "exploration": None}
MIXTURE: dict[str, Any] = {
    "burn_in": 0, "strength": 2.0, "share": 0.005, "shared_share": 0.0001, "sharpness": 2.0, "surplus": 0.1,
    "idle": 0.2,
}  # fmt: skip
LINEAR: dict[str, Any] = {"burn_in": 0, "prior": 1.0, "model": "auto"}
ADAPTIVE_MEMORY: dict[str, Any] = {"step_size": 0.2, "memory": 1000.0, "width": 1.0}
DEFAULTS: dict[str, dict[str, Any]] = {
    "eps-greedy": {"burn_in": 1, "epsilon": 0.1},
    "ucb": {"burn_in": 1},
    "ts": {"burn_in": 0, "prior": (2.0, 2.0)},
    "ots": {"burn_in": 0, "prior": (2.0, 2.0)},
    "d-ucb": OPEN | {"burn_in": 1, "discount": None},
    "sw-ucb": OPEN | {"burn_in": 1, "window": None},
    "dts": {"burn_in": 0, "memory": 10.0, "prior": (2.0, 2.0)},
    "odts": {"burn_in": 0, "memory": 10.0, "prior": (2.0, 2.0)},
    "aff-d-greedy": ADAPTIVE | {"threshold": None},
    "aff-ucb1": ADAPTIVE | {"burn_in": 10, "variance_floor": 0.0},
    "aff-ucb2": ADAPTIVE,
    "aff-ucb2-growing": ADAPTIVE,
    "aff-ts": ADAPTIVE | {"prior": (2.0, 2.0)},
    "aff-ots": ADAPTIVE | {"prior": (2.0, 2.0)},
    "aff-dts1": ADAPTIVE | {"burn_in": 10, "memory": 10.0, "prior": (2.0, 2.0)},
    "aff-dts2": ADAPTIVE | {"memory": 10.0, "prior": (2.0, 2.0)},
    "d-ts": OPEN | {"burn_in": 0, "discount": None, "prior": (1.0, 1.0)},
    "d-ots": OPEN | {"burn_in": 0, "discount": None, "prior": (1.0, 1.0)},
    "sw-ts": OPEN | {"burn_in": 0, "window": None, "prior": (1.0, 1.0)},
    "f-dsw-ts": {"burn_in": 0, "combine": "max", "discount": 0.99, "window": 50, "prior": (1.0, 1.0)},
    "changepoint-ts": OPEN | {"burn_in": 0, "rate": "learnt", "particles": 32, "prior": (1.0, 1.0)},
    "kalman-ts": {"burn_in": 0, "drift": "learnt", "persistence": 1.0, "prior": (1.0, 1.0)},
    "predictive-sampling": {"burn_in": 0, "drift": "learnt", "persistence": 1.0, "prior": (1.0, 1.0)},
    "mix-ts": MIXTURE,
    "sw-ucb-sharp": {"burn_in": 1, "alpha": 0.5, "scale": 12.3, "capacity": 10_000},
    "lm-dsee": {"burn_in": 0, "min_gap": 0.5, "nu": 0.0, "a": 1.0, "b": 0.25},
    "borl": OPEN | {"burn_in": 1, "block": None, "exploration": None, "capacity": 10_000},
    "exp3-s": OPEN | {"burn_in": 0, "exploration": None, "sharing": None},
    "rexp3": OPEN | {"burn_in": 0, "exploration": None, "batch": None, "variation": None},
    "kl-ucb": {"burn_in": 1, "loglog": 0.0},
    "d-kl-ucb": OPEN | {"burn_in": 1, "discount": None},
    "sw-kl-ucb": OPEN | {"burn_in": 1, "window": None},
    "glr-kl-ucb": OPEN | TEST | {"scale": 0.1, "schedule": "growing"},
    "glr-kl-ucb-diminishing": OPEN | TEST,
    "cusum-ucb": OPEN | CUSUM,
    "cusum-kl-ucb": OPEN | CUSUM,
    "m-ucb": OPEN | MONITORED,
    "m-kl-ucb": OPEN | MONITORED,
    "r-bocpd-ucb": OPEN
    | {"burn_in": 1, "index": "kl-ucb", "restart": "local", "rate": None, "scale": 0.1, "particles": 32},
    "master-ucb": OPEN | {"burn_in": 0, "scale": 1.0},
    "ad-switch": OPEN | {"burn_in": 0, "constant": 1.0, "scale": 1.0, "every": 10, "capacity": 32},
    "aff-kl-ucb": ADAPTIVE | {"confidence": 0.05},
    "raw-ucb": {"burn_in": 1, "alpha": 1.4, "sigma": 0.5},
    "fewa": {"burn_in": 1, "alpha": 0.06, "sigma": 0.5},
    "w-swa": {"burn_in": 0, "alpha": 0.2, "sigma": 0.5, "capacity": 1000},
    "r-ed-ucb": {"burn_in": 0, "alpha": 2.0, "sigma": 0.5, "epsilon": 0.25, "window": 1000},
    "mix-normal-ts": MIXTURE | {"burn_in": 2, "strength": 0.5},
    "mix-poisson-ts": MIXTURE | {"burn_in": 1, "strength": 0.5},
    "mix-revenue-ts": MIXTURE | {"burn_in": 1, "strength": 0.5},
    "normal-ts": {"burn_in": 4},
    "aff-normal-ts": UNIT_FREE,
    "aff-normal-ucb": UNIT_FREE | {"confidence": 0.05},
    "aff-poisson-ts": UNIT_FREE | {"burn_in": 1, "prior": (0.5, 0.1)},
    "aff-revenue-ts": UNIT_FREE | {"burn_in": 1, "prior_weight": 0.5},
    "robust-ucb": {"burn_in": 2, "window": 100, "confidence": 0.05, "exploration": 4.0},
    "oracle-restart": {"burn_in": 1, "index": "kl-ucb", "tolerance": 0.0},
    "uniform": {"burn_in": 0},
    "best-arm": {"burn_in": 0},
    "lin-ucb": LINEAR | {"discount": 1.0, "width": 1.0},
    "lin-ts": LINEAR | {"discount": 1.0, "width": 1.0},
    "d-lin-ucb": LINEAR | {"discount": 0.99, "width": 1.0},
    "sw-lin-ucb": LINEAR | {"window": 500, "width": 1.0},
    "weight-ucb": LINEAR | {"discount": 0.99, "noise": 1.0, "bound": 1.0, "confidence": 0.05},
    "restart-lin-ucb": LINEAR | {"period": 1000, "width": 1.0},
    "lin-eps-greedy": LINEAR | {"discount": 1.0, "epsilon": 0.1},
    "square-cb": LINEAR | {"discount": 1.0, "scale": 10.0, "exponent": 0.5},
    "logistic-ts": LINEAR | {"discount": 1.0, "width": 1.0},
    "log-linear-ts": LINEAR | {"discount": 1.0, "width": 1.0},
    "aff-lin-ucb": LINEAR | ADAPTIVE_MEMORY,
    "aff-lin-ts": LINEAR | ADAPTIVE_MEMORY,
    "aff-logistic-ts": LINEAR | ADAPTIVE_MEMORY,
    "aff-log-linear-ts": LINEAR | ADAPTIVE_MEMORY,
    "mix-lin-ucb": {"burn_in": 0, "prior": 1.0, "share": 0.0005, "sharpness": 2.0, "idle": 1.0},
}


def test_every_policy_is_in_the_table_of_defaults() -> None:
    assert set(DEFAULTS) == {*POLICIES, *CONTEXTUAL_POLICIES}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_those_that_are_documented(name: str) -> None:
    assert db.policy(name).parameters == DEFAULTS[name]


# --- Limits -------------------------------------------------------------------------------------------------

EVEN = (2, 4, LAST_STEP - 1), (0, 1, 3, 9, LAST_STEP, LAST_STEP + 1)
PAIR = (
    ((1e-12, 1), (1, 1e-12), [1e12, 2]),
    ((0.0, 1), (1, 0.0), (-0.5, 1), (1, -0.5), (1, 1e-13), (2e12, 1), (math.inf, 1)),
)
NAMES = {"loss", "combine", "restart", "index", "schedule", "model"}  # parameters that are not numbers
LIMITS: dict[str, tuple[Values, Values]] = {  # of each parameter, valid and not
    **dict.fromkeys(["epsilon", "step_size", "floor", "variance_floor", "tolerance", "exponent"], UNIT),
    **dict.fromkeys(["share", "shared_share"], UNIT),
    **dict.fromkeys(["discount", "rate", "persistence", "sharing", "delta"], POSITIVE_UNIT),
    **dict.fromkeys(["alpha", "sigma", "prior_weight"], POSITIVE),
    **dict.fromkeys(["loglog", "constant", "scale", "threshold"], NOT_NEGATIVE),
    **dict.fromkeys(["min_gap", "b"], numbers(1e-8, 1)),
    "a": numbers(1e-8, 1e12),
    "variation": numbers(1e-9, 1e12),
    **dict.fromkeys(["strength", "sharpness"], numbers(1e-9, 1e6)),
    **dict.fromkeys(["surplus", "idle"], numbers(0, 1e6)),
    **dict.fromkeys(["width", "noise", "bound"], numbers(0, 1e12)),
    **dict.fromkeys(["changes", "horizon", "window", "every", "spacing", "reference_plays", "period"], wholes(1)),
    "burn_in": wholes(0),
    "particles": wholes(2),
    "prior": PAIR,
    "nu": numbers(0, 1, opened="high"),
    "block": wholes(1, 10_000),  # the capacity
    "batch": ((1, 2, 2**40, 2**48 - 1), (0, -1, 2**48)),
    "memory": POSITIVE,
    "capacity": wholes(1),
    "drift": UNIT,
    "exploration": UNIT,
    "confidence": POSITIVE_UNIT,
}
OWN_LIMITS: dict[tuple[str, str], tuple[Values, Values]] = {  # of policies whose parameter differs from that of others
    **{(name, "prior"): numbers(1e-12, 1e12) for name in CONTEXTUAL_POLICIES},
    **{(name, "memory"): numbers(10, 10_000) for name in CONTEXTUAL_POLICIES if name.startswith("aff")},
    **{
        (name, "drift"): ((0.0, 1e12, "learnt"), (-5e-324, 2e12, math.inf, "known"))
        for name in ("kalman-ts", "predictive-sampling")
    },
    **{(name, "exploration"): POSITIVE_UNIT for name in ("borl", "exp3-s", "rexp3")},
    **{(name, "window"): EVEN for name in ("m-ucb", "m-kl-ucb")},
    **{(name, "capacity"): EVEN for name in ("glr-kl-ucb", "glr-kl-ucb-diminishing", "ad-switch")},
    **{("w-swa", parameter): numbers(0, 1e12, opened="low") for parameter in ("alpha", "sigma")},
    ("robust-ucb", "window"): wholes(1, 10**6),
    ("sw-lin-ucb", "window"): wholes(1, 100_000),
    ("robust-ucb", "exploration"): numbers(0, 1e12),
    ("robust-ucb", "confidence"): numbers(0, 1, opened="low high"),
    ("r-ed-ucb", "epsilon"): numbers(0, 0.499, opened="low"),
    ("sw-ucb-sharp", "alpha"): UNIT,
    ("sw-ucb-sharp", "scale"): POSITIVE,
    ("square-cb", "scale"): numbers(0, 1e12),
    ("aff-d-greedy", "threshold"): UNIT,
    ("changepoint-ts", "rate"): ((5e-324, math.nextafter(1.0, 0.0), "learnt", None), (0.0, -0.5, 1.0, 1.5)),
}
NUMERIC = [(name, parameter) for name, known in DEFAULTS.items() for parameter in known if parameter not in NAMES]


@pytest.mark.parametrize(("name", "parameter"), NUMERIC)
def test_a_parameter_may_be_at_its_limit_but_not_beyond(name: str, parameter: str) -> None:
    inside, outside = OWN_LIMITS.get((name, parameter)) or LIMITS[parameter]
    for value in inside:
        kept = db.policy(name, **{parameter: value}).parameters[parameter]
        assert kept == (tuple(value) if isinstance(value, list) else value)
    for value in (*outside, "x"):
        with pytest.raises((TypeError, ValueError), match=f"{parameter} must be|unknown {parameter} 'x'"):
            db.policy(name, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, one) for name, known in DEFAULTS.items() for one in known if one in NAMES]
)
@pytest.mark.parametrize("value", ["x", None, 3])
def test_a_choice_is_one_of_those_that_there_are(name: str, parameter: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"(unknown {parameter} {value!r}|{parameter} must be)"):
        db.policy(name, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "parameter"), [("m-ucb", "window"), ("glr-kl-ucb", "capacity"), ("ad-switch", "capacity")]
)
def test_too_few_is_told_apart_from_odd(name: str, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"{parameter} must be a whole number of at least 2 and at most .*, got 1"):
        db.policy(name, **{parameter: 1})
    with pytest.raises(ValueError, match=f"{parameter} must be an even number of at least 2, got 3"):
        db.policy(name, **{parameter: 3})


@pytest.mark.parametrize("prior", [(1,), (1, 2, 3), 2.0, "12", {1: 2, 3: 4}, None])
def test_a_prior_is_a_pair(prior: Any) -> None:
    with pytest.raises(TypeError, match="prior must be a pair of positive numbers such as"):
        db.policy("ts", prior=prior)


@pytest.mark.parametrize("name", ["no-such-policy", 3, ["ucb"], None])
def test_an_unknown_name_is_told_with_the_known_ones(name: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown policy .* Known: .*ucb"):
        db.policy(name)


# --- Numbers ------------------------------------------------------------------------------------------------

ESTIMATOR = [0.001, 0.0, 0.0, 0.0]  # step size, whether it is scaled, floor, whether the loss is a likelihood
HOEFFDING = [math.log(20) / 2, math.sqrt(math.log(20) / 2)]  # of a confidence of 0.05: level and largest bonus
LOG_T = math.log(1000)
M_THRESHOLD = math.sqrt(100 / 2 * math.log(2 * 3 * 1000**2))
NUMBERS: list[tuple[str, dict[str, Any], int, list[float]]] = [
    ("eps-greedy", {}, 3, [0.1]),
    ("ts", {"prior": (1, 3)}, 3, [1, 3]),
    ("d-ucb", {"discount": 0.9}, 3, [0.9]),
    ("sw-ucb", {"window": 7}, 3, [7]),
    ("dts", {"prior": (1, 3)}, 3, [1, 3, 10, 1, 3]),
    ("aff-d-greedy", {}, 3, [*ESTIMATOR, -1]),
    ("aff-d-greedy", {"threshold": 0.0}, 3, [*ESTIMATOR, 0]),
    ("aff-ucb1", {"variance_floor": 0.25}, 3, [*ESTIMATOR, *HOEFFDING, 0.25]),
    ("aff-ucb2", {}, 3, [*ESTIMATOR, *HOEFFDING]),
    ("aff-ucb2-growing", {}, 3, [*ESTIMATOR, *HOEFFDING]),
    ("aff-ts", {"prior": (1, 3)}, 3, [*ESTIMATOR, 1, 3]),
    ("aff-dts1", {"prior": (1, 3), "memory": 7}, 3, [*ESTIMATOR, 1, 3, 7, 10, 1, 3]),
    ("aff-dts2", {"prior": (1, 3)}, 3, [*ESTIMATOR, 1, 3, 10, 1, 1, 3]),
    ("aff-kl-ucb", {}, 3, [*ESTIMATOR, math.log(20)]),
    ("raw-ucb", {"alpha": 2, "sigma": 1}, 3, [2, 1]),
    ("fewa", {}, 3, [0.06, 0.5]),
    ("w-swa", {"capacity": 7}, 3, [3, 0.2, 0.5, 7]),
    ("r-ed-ucb", {"window": 7}, 3, [2, 0.5, 0.25, 7]),
    ("d-ts", {"prior": (1, 3), "discount": 0.9}, 3, [1, 3, 0.9]),
    ("d-ts", {"changes": 4, "horizon": 1000}, 3, [1, 1, 1 - math.sqrt(4 / 1000) / 4]),
    ("sw-ts", {"prior": (1, 3), "window": 9}, 3, [1, 3, 9]),
    ("f-dsw-ts", {"prior": (1, 3), "combine": "min"}, 3, [1, 3, 0.99, 50, 0]),
    ("f-dsw-ts", {"combine": "max"}, 3, [1, 1, 0.99, 50, 1]),
    ("f-dsw-ts", {"combine": "mean"}, 3, [1, 1, 0.99, 50, 2]),
    ("changepoint-ts", {"prior": (1, 3)}, 3, [1, 3, 32, 1e-3, 1e-4, 1e-5, 1e-6]),
    ("changepoint-ts", {"rate": 0.2, "particles": 7}, 3, [1, 1, 7, 0.2]),
    ("changepoint-ts", {"rate": None, "changes": 4, "horizon": 1000}, 3, [1, 1, 32, 0.004]),
    ("changepoint-ts", {"rate": None, "changes": 800, "horizon": 1000}, 3, [1, 1, 32, 0.5]),
    ("kalman-ts", {"prior": (1, 3), "drift": 0.1}, 3, [1 / 4, 3 / 80, 1, 0.01]),
    ("kalman-ts", {"persistence": 0.9}, 3, [1 / 2, 1 / 12, 0.9, 0, 9e-8, 1e-6, 9e-6, 1e-4, 9e-4]),
    ("mix-ts", {"strength": 3, "idle": 0.6}, 3, [3, 0.005, 0.0001, 2, 0.1, 0.6 / 3]),
    ("sw-ucb-sharp", {"scale": 2}, 3, [0.5, 2, 10_000]),
    ("lm-dsee", {"nu": 0.25, "a": 2}, 3, [3, 8, 0.6, 2, 0.25, 20]),
    ("exp3-s", {"exploration": 0.2, "sharing": 0.3}, 3, [0.2, 0.3, 3]),
    ("rexp3", {"batch": 100}, 2, [math.sqrt(2 * math.log(2) / ((math.e - 1) * 100)), 100, 2]),
    ("rexp3", {"batch": 100}, 1, [math.sqrt(math.log(2) / ((math.e - 1) * 100)), 100, 1]),  # as if of two arms
    ("rexp3", {"batch": 1}, 3, [1, 1, 3]),
    ("rexp3", {"batch": 1, "exploration": 0.2}, 3, [0.2, 1, 3]),
    ("kl-ucb", {"loglog": 3}, 3, [3]),
    ("d-kl-ucb", {"discount": 0.9}, 3, [0.9]),
    ("sw-kl-ucb", {"window": 9}, 3, [9]),
    ("glr-kl-ucb", {"horizon": 1000}, 3, [0, 3, 0.1 * math.sqrt(3 * LOG_T / 1000), 1, LOG_T / 2, 10, 10, 128, 0]),
    (
        "glr-kl-ucb",
        {"horizon": 1000, "schedule": "constant", "changes": 5, "delta": 0.01, "restart": "global", "scale": 0.5},
        3,
        [0, 3, 0.5 * math.sqrt(5 * 3 * LOG_T / 1000), 0, math.log(100), 10, 10, 128, 1],
    ),
    (
        "glr-kl-ucb-diminishing",
        {"horizon": 1000, "scale": 0.5, "every": 2, "spacing": 3, "capacity": 8},
        3,
        [0, 3, 0.5, 0, LOG_T / 2, 2, 3, 8, 0],
    ),
    (
        "cusum-ucb",
        {"changes": 4, "horizon": 1000},
        3,
        [1, math.sqrt(math.log(250) / 250), 0.05, 100, math.log(250)],
    ),
    ("cusum-ucb", {"changes": 9, "horizon": 6}, 3, [1, 0, 0.05, 100, 0]),
    ("cusum-ucb", {"changes": 2, "horizon": 3}, 3, [1, math.sqrt(math.log(1.5) / 1.5), 0.05, 100, math.log(1.5)]),
    ("cusum-ucb", {"threshold": 5, "exploration": 0.3}, 3, [1, 0.3, 0.05, 100, 5]),
    (
        "m-ucb",
        {"changes": 40, "horizon": 1000, "window": 100},
        3,
        [2, 3, 0.25, 100, M_THRESHOLD],  # not 1, with which it would be uniform
    ),
    ("m-kl-ucb", {"changes": 1, "horizon": 10_000}, 100, [0, 100, 0.25, 800, math.sqrt(400 * math.log(200 * 10**8))]),
    (
        "m-ucb",
        {"changes": 2, "horizon": 1000, "window": 4, "threshold": 5.0},
        3,
        [2, 3, math.sqrt(2 * 3 * (2 * 5 + 3 * 2) / (2 * 1000)), 4, 5],
    ),
    ("m-ucb", {"threshold": 5.0, "exploration": 0.3}, 3, [2, 3, 0.3, 800, 5]),
    ("r-bocpd-ucb", {"horizon": 1000}, 3, [3, 0.1 * math.sqrt(3 * LOG_T / 1000), 1, -LOG_T, 32, 0, 0]),
    (
        "r-bocpd-ucb",
        {"horizon": 1000, "rate": 0.5, "scale": 1.0, "particles": 7, "restart": "global", "index": "ucb"},
        3,
        [3, math.sqrt(3 * LOG_T / 1000), 1, math.log(0.5), 7, 1, 1],
    ),
    ("master-ucb", {"horizon": 1024, "scale": 0.5}, 3, [3, math.log(1024), 0.5 * 6 * 11 * math.log(1024)]),
    ("master-ucb", {"horizon": 1}, 3, [3, 1, 6]),
    ("ad-switch", {"horizon": 1000}, 3, [3, 1000, LOG_T, 1, 1, 10, 32]),
    ("oracle-restart", {"tolerance": 0.1}, 3, [0.1, 0]),
    ("oracle-restart", {"index": "ucb"}, 3, [0, 1]),
    *((name, {"prior": 0.3, "width": 0.5}, 3, [0.3, 0, 0.5]) for name in ("lin-ucb", "lin-ts", "d-lin-ucb")),
    *((name, {"prior": 0.3, "width": 0.5}, 3, [0.3, 0, 0.5]) for name in ("logistic-ts", "log-linear-ts")),
    *(
        (name, {"prior": 0.3, "width": 0.5, "step_size": 0.1}, 3, [0.3, 0.1, 0.5])
        for name in ("aff-lin-ucb", "aff-lin-ts", "aff-logistic-ts", "aff-log-linear-ts")
    ),
    ("sw-lin-ucb", {"prior": 0.3, "width": 0.5, "window": 7}, 3, [0.3, 0.5, 7]),
    ("restart-lin-ucb", {"prior": 0.3, "width": 0.5, "period": 7}, 3, [0.3, 0.5, 7]),
    ("square-cb", {"prior": 0.3, "scale": 5, "exponent": 0.25}, 3, [0.3, 0, 5, 0.25]),
    *(  # a bandit may have a single arm, and none at first
        (name, {"idle": 0.6}, arms, [*before, 0.6 / max(arms, 1)])
        for name, before in (("mix-ts", [2, 0.005, 0.0001, 2, 0.1]), ("mix-lin-ucb", [1, 0.0005, 2]))
        for arms in (0, 1, 2, 3)
    ),
]


def given_numbers(params: Any) -> list[float]:
    """Return the numbers of the parameters, without those of parts that have none."""
    if any(isinstance(part, NoParams) for part in params):
        return [number for part in params if not isinstance(part, NoParams) for number in to_row(part).tolist()]
    found: list[float] = to_row(params).tolist()
    return found


@pytest.mark.parametrize(("name", "parameters", "arms", "numbers"), NUMBERS)
def test_the_kernels_read_the_numbers_that_the_papers_give(
    name: str, parameters: dict[str, Any], arms: int, numbers: list[float]
) -> None:
    found = given_numbers(db.policy(name, **parameters).params(arms))
    for expected in numbers:  # parts may have fixed numbers besides, and those of a memory come before those of a rule
        same = [one for one in found if one == pytest.approx(expected, rel=1e-12, abs=0.0)]
        assert same, f"{expected} is not among {found}"
        found.remove(same[0])


# --- Sizes --------------------------------------------------------------------------------------------------

SIZES: list[tuple[str, dict[str, Any], int, int]] = [  # rows of the memory, length of what arms share
    ("ucb", {}, 5, 1),
    ("d-ucb", {"discount": 0.9}, 5, 2),
    ("d-kl-ucb", {"discount": 0.9}, 6, 2),
    ("sw-ucb", {"window": 7}, 5, 1 + 2 * 7),
    ("sw-ucb", {}, 5, 1 + 2),
    ("sw-kl-ucb", {"window": 7}, 6, 1 + 2 * 7),
    ("sw-ts", {"window": 7}, 3, 1 + 2 * 7),
    ("d-ts", {"discount": 0.9}, 2, 1),
    ("f-dsw-ts", {"window": 7}, 5 + 7, 1),
    ("changepoint-ts", {"particles": 7}, 2 + 4 + 7 * (2 + 4), 1),
    ("changepoint-ts", {"particles": 7, "rate": 0.1}, 2 + 1 + 7 * (2 + 1), 1),
    ("kalman-ts", {}, 1 + 2 * 6, 2 * 6),
    ("predictive-sampling", {"drift": 0.01}, 1 + 2, 2),
    ("mix-ts", {}, 3 * 8 + 4, 2 + 8),
    ("sw-ucb-sharp", {"capacity": 7}, 5, 1 + 2 * 7),
    ("lm-dsee", {}, 3, 2),
    ("exp3-s", {}, 4, 1),
    ("rexp3", {}, 4, 2),
    ("glr-kl-ucb", {"capacity": 8}, 8 + 8, 4),
    ("glr-kl-ucb-diminishing", {"capacity": 8}, 8 + 8, 4),
    ("cusum-ucb", {}, 8, 1),
    ("cusum-kl-ucb", {}, 9, 1),
    ("m-ucb", {"window": 10}, 5 + 10, 2),
    ("m-kl-ucb", {"window": 10}, 6 + 10, 2),
    ("r-bocpd-ucb", {"particles": 7}, 8 + 3 * 7, 4),
    ("master-ucb", {}, 3 + 2 * 32, 6 + 2 * 32),
    ("ad-switch", {"capacity": 8}, 9 + 2 * 8, 4),
    ("borl", {"block": 9}, 5, 7 + 32 + 1 + 2 * 9),
    ("raw-ucb", {}, 3 + 2 * 32, 1),
    ("fewa", {}, 3 + 2 * 32, 1 + 32),
    ("w-swa", {"capacity": 7}, 4 + 7, 3),
    ("r-ed-ucb", {"window": 7}, 7 + 2 * 7, 1),
    ("mix-normal-ts", {}, 3 * 8 + 4 + 2, 2 + 8 + 3),
    ("mix-poisson-ts", {}, 3 * 8 + 4, 2 + 8),
    ("mix-revenue-ts", {}, 2 * (3 * 8 + 4) + 2, 2 * (2 + 8) + 3),
    ("normal-ts", {}, 3, 3),
    ("aff-normal-ts", {}, 10 + 3, 3),
    ("aff-revenue-ts", {}, 2 * (10 + 3), 3 + 2),
    ("robust-ucb", {"window": 7}, 3 + 7, 3),
    ("aff-normal-ucb", {}, 10 + 3, 3),
    ("aff-poisson-ts", {}, 10 + 3, 3),
    ("square-cb", {}, 1, 2),
    ("mix-lin-ucb", {}, 1, 18),
]


@pytest.mark.parametrize(("name", "parameters", "rows", "shared"), SIZES)
def test_a_policy_keeps_no_more_numbers_than_it_needs(
    name: str, parameters: dict[str, Any], rows: int, shared: int
) -> None:
    policy = db.policy(name, **parameters)
    assert (policy.memory_size(), policy.shared_size()) == (rows, shared)


@pytest.mark.parametrize(
    ("names", "parameters", "size"),
    [
        (("lin-ucb", "lin-eps-greedy", "square-cb", "restart-lin-ucb"), {}, 0),
        (("d-lin-ucb",), {}, 4),
        (("aff-lin-ucb",), {}, 2 * 4),
        (("lin-ts", "logistic-ts", "log-linear-ts"), {"model": "separate"}, 0),
        (("lin-ts", "logistic-ts", "log-linear-ts"), {"model": "shared"}, 2 * 3),
        (("lin-ts",), {"model": "hybrid"}, 2 * 3),
        (("aff-lin-ts", "aff-logistic-ts", "aff-log-linear-ts"), {}, 2 * 4 + 2 * 3),
        (("sw-lin-ucb",), {"window": 7}, 2 + 7 * (2 + 2)),
    ],
)
def test_a_model_keeps_no_more_numbers_than_it_needs(names: Values, parameters: dict[str, Any], size: int) -> None:
    """With two features: 3 vectors, P and 2 numbers of a linear model, 4 numbers and 4 vectors of any regression."""
    for name in names:
        models = db.policy(name, **parameters).initial_models(3, Context(2, per_arm=True))
        assert models.shape[1] == 2 + 3 * 2 + 4 + 4 + 4 * 2 + size


# --- What kind of policy it is ------------------------------------------------------------------------------


def test_contextual_policies_are_those_that_read_features() -> None:
    kinds = {**POLICIES, **CONTEXTUAL_POLICIES}
    assert {name for name, kind in kinds.items() if kind.functions.contextual} == set(CONTEXTUAL_POLICIES)


def test_what_grows_or_fades_without_bound_is_kept_in_double_precision() -> None:
    double = {name for name, policy in POLICIES.items() if policy.needs_double}
    assert double == {"d-ucb", "d-kl-ucb", "d-ts", "d-ots", "f-dsw-ts", "rexp3", "r-ed-ucb"}
    assert all(policy.needs_double for policy in CONTEXTUAL_POLICIES.values())


# --- Tuning -------------------------------------------------------------------------------------------------

NEEDS: list[tuple[str, dict[str, Any], bool, bool]] = [  # the number of changes, the horizon
    ("ucb", {}, False, False),
    ("d-ucb", {}, True, True),
    ("d-ucb", {"discount": 0.9}, False, False),
    ("sw-ucb", {}, True, True),
    ("sw-ucb", {"window": 9}, False, False),
    ("d-ts", {}, True, True),
    ("sw-ts", {"changes": 1}, False, True),
    ("exp3-s", {}, True, True),
    ("exp3-s", {"exploration": 0.1}, False, True),
    ("exp3-s", {"sharing": 0.1}, True, True),
    ("exp3-s", {"exploration": 0.1, "sharing": 0.1}, False, False),
    ("rexp3", {}, False, True),
    ("borl", {}, False, True),
    ("borl", {"block": 9}, False, True),
    ("borl", {"exploration": 0.1}, False, True),
    ("borl", {"block": 9, "exploration": 0.1}, False, False),
    ("rexp3", {"variation": 1.0}, False, True),
    ("rexp3", {"exploration": 0.1}, False, True),
    ("rexp3", {"batch": 9}, False, False),
    ("changepoint-ts", {}, False, False),
    ("changepoint-ts", {"rate": None}, True, True),
    ("glr-kl-ucb", {}, False, True),
    ("glr-kl-ucb", {"delta": 0.1}, False, True),
    ("glr-kl-ucb", {"delta": 0.1, "scale": 0.5}, False, True),
    ("glr-kl-ucb", {"scale": 0.0}, False, True),
    ("glr-kl-ucb", {"delta": 0.1, "scale": 0.0}, False, False),
    ("glr-kl-ucb", {"schedule": "constant"}, True, True),
    ("glr-kl-ucb-diminishing", {}, False, True),
    ("glr-kl-ucb-diminishing", {"delta": 0.1}, False, False),
    ("cusum-ucb", {}, True, True),
    ("cusum-ucb", {"threshold": 1.0}, True, True),
    ("cusum-ucb", {"exploration": 0.1}, True, True),
    ("cusum-ucb", {"threshold": 1.0, "exploration": 0.1}, False, False),
    ("m-ucb", {}, True, True),
    ("m-ucb", {"exploration": 0.1}, False, True),
    ("m-ucb", {"threshold": 1.0}, True, True),
    ("m-ucb", {"threshold": 1.0, "exploration": 0.1}, False, False),
    ("r-bocpd-ucb", {}, False, True),
    ("r-bocpd-ucb", {"rate": 0.1}, False, True),
    ("r-bocpd-ucb", {"scale": 0.0}, False, True),
    ("r-bocpd-ucb", {"rate": 0.1, "scale": 0.0}, False, False),
    ("master-ucb", {}, False, True),
    ("ad-switch", {}, False, True),
]


@pytest.mark.parametrize(("name", "parameters", "changes", "horizon"), NEEDS)
def test_a_policy_asks_for_what_is_left_open(
    name: str, parameters: dict[str, Any], changes: bool, horizon: bool
) -> None:
    policy = db.policy(name, **parameters)
    assert (policy.needs_tuning, policy.needs_horizon) == (changes, horizon)


@pytest.mark.parametrize(("switches", "counted"), [(0, 1), (1, 1), (2, 2), (9, 9)])
def test_a_path_without_a_switch_is_tuned_for_as_one_with_a_single_switch(switches: int, counted: int) -> None:
    discount = 1 - math.sqrt(counted / 1000) / 4
    window = round(2 * math.sqrt(1000 * math.log(1000) / counted))
    assert db.policy("d-ucb").tuned(switches, 1000).params(2).memory.discount == pytest.approx(discount, rel=1e-12)
    assert db.policy("d-ucb", discount=0.9).tuned(switches, 1000).params(2).memory.discount == 0.9
    assert db.policy("sw-ucb").tuned(switches, 1000).params(2).memory.window == window
    assert db.policy("sw-ucb", window=9).tuned(switches, 1000).params(2).memory.window == 9
    assert db.policy("sw-ucb", window=2000).tuned(switches, 1000).params(2).memory.window == 1000


def test_a_window_that_is_not_known_yet_has_room_for_one_reward() -> None:
    assert db.policy("sw-ucb").params(2).memory.window == 1
