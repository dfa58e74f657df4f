"""Slow reference for the tests: the paper's definitions as plain sums and products over the whole history.

Nothing here is updated from step to step. Coordinates are those of Lu, Adams & Kantas: "(2)" is an equation
by its printed number, "Alg. 3" an algorithm box, "notes" docs/paper-notes.md. Paper indices start at
1, so lambda_p is `forgettings[p - 1]` and Y_i is `ys[i - 1]`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, cast

History = Sequence[tuple[int, float]]  # (arm, reward) of steps 1..t-1, arms counted from 0
Draw = Callable[[float, float, int], float]  # (alpha, beta, arm) -> one Beta(alpha, beta) variate

PROBABILITY_CLIP = 1e-6  # keeps the Bernoulli log-likelihood finite
NO_SPREAD = 1e-12  # a v_t or s^2_t up to this is rounding: one observation, or equal ones
VANISHED = 1e-250  # below this a squared, discounted weight is no longer trustworthy in a float


# --- Section 2: the adaptive forgetting factor estimator of one arm -----------------------------------------


class Aff(NamedTuple):
    """State after the last observation of one arm's stream; time counts plays of that arm."""

    forgetting: float  # lambda_t
    previous_forgetting: float  # lambda_{t-1}
    mean: float  # Y-hat_t, (2)
    variance: float  # s^2_t, (10)
    weight: float  # w_t, below (2)
    squared_weight: float  # k_t, below (10)
    m: float  # m_t = w_t * mean, appendix A


def product(forgettings: Sequence[float], first: int, last: int) -> float:
    """prod_{p=first}^{last} lambda_p; an empty range gives 1 (below (2))."""
    return math.prod(forgettings[first - 1 : last])


def weights(forgettings: Sequence[float], t: int) -> list[float]:
    """The factor in front of each Y_i, i = 1..t, in (2): prod_{p=i}^{t-1} lambda_p."""
    return [product(forgettings, i, t - 1) for i in range(1, t + 1)]


def weight_slopes(forgettings: Sequence[float], t: int) -> list[float]:
    """d/d(eps) at 0 of each factor of (2) once every lambda_p has become lambda_p + eps.

    By the product rule this is sum_{q=i}^{t-1} of the product over p = i..t-1 with p = q left out. It is what
    (6) means by a derivative with respect to the whole sequence.
    """
    return [
        math.fsum(product(forgettings, i, q - 1) * product(forgettings, q + 1, t - 1) for q in range(i, t))
        for i in range(1, t + 1)
    ]


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """sum_i left_i right_i, the shape of every sum in (2) and (10)."""
    return math.fsum(x * y for x, y in zip(left, right, strict=True))


def mean_of(ys: Sequence[float], forgettings: Sequence[float]) -> float:
    """Y-hat_t, (2)."""
    factors = weights(forgettings, len(ys))
    return dot(factors, ys) / math.fsum(factors)


def mean_slope(ys: Sequence[float], forgettings: Sequence[float]) -> float:
    """d Y-hat_t / d(eps): quotient rule on (2), the bracket of (9) one step later."""
    t = len(ys)
    slopes = weight_slopes(forgettings, t)
    m_dot, w_dot = dot(slopes, ys), math.fsum(slopes)
    return (m_dot - w_dot * mean_of(ys, forgettings)) / math.fsum(weights(forgettings, t))


def variance_of(ys: Sequence[float], forgettings: Sequence[float]) -> float:
    """s^2_t, (10), at the latest t whose v_t is positive, and 0 where there is none.

    One observation says nothing about a variance. Where forgetting leaves just one, v_t is 0 and (10) divides
    by it; the notes update s^2 at positive v only, so that its last value stands.
    """
    for t in range(len(ys), 0, -1):
        factors = weights(forgettings, t)
        w, k = math.fsum(factors), math.fsum(factor**2 for factor in factors)
        v = w * (1 - k / w**2)
        if v > NO_SPREAD:
            mean = mean_of(ys[:t], forgettings)
            return dot(factors, [(y - mean) ** 2 for y in ys[:t]]) / v
    return 0.0


def gradient(ys: Sequence[float], forgettings: Sequence[float], loss: str) -> float:
    """Delta(L_t, lambda_{t-2}), (9): dL_t / d(eps), lambda_1..lambda_{t-2} all shifted by eps; 0 at t = 1."""
    past, y = ys[:-1], ys[-1]
    if len(past) == 0:
        return 0.0
    mean, slope = mean_of(past, forgettings), mean_slope(past, forgettings)
    if loss == "squared-error":  # L_t = (mean - y)^2, below (6)
        return 2 * (mean - y) * slope
    if loss == "bernoulli":  # L_t = -(y log p + (1 - y) log(1 - p)), the alternative named below (6)
        p = min(max(mean, PROBABILITY_CLIP), 1 - PROBABILITY_CLIP)
        return (p - y) / (p * (1 - p)) * slope
    raise ValueError(f"unknown loss {loss!r}")


def step_size_at(ys: Sequence[float], forgettings: Sequence[float], step_size: float | str) -> float:
    """eta, or eta_4(t) = 0.0001 / s^2_t of section 4.3.1 with s^2_t = 1/4 where it vanishes (notes)."""
    if step_size == "variance-scaled":
        variance = variance_of(ys, forgettings)
        return 0.0001 / (variance if variance > NO_SPREAD else 0.25)
    if isinstance(step_size, str):
        raise ValueError(f"unknown step size {step_size!r}")
    return float(step_size)


@lru_cache(maxsize=200_000)
def next_forgetting(
    ys: tuple[float, ...], forgettings: tuple[float, ...], step_size: float | str, floor: float, loss: str
) -> float:
    """lambda_t of (6), truncated, from Y_1..Y_t and lambda_1..lambda_{t-1}. Cached, being pure."""
    previous = forgettings[-1] if forgettings else 1.0
    stepped = previous - step_size_at(ys, forgettings, step_size) * gradient(ys, forgettings, loss)
    return min(max(stepped, floor), 1.0)


def aff_path(
    ys: Sequence[float], step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error"
) -> list[Aff]:
    """The states after 0, 1, ..., len(ys) observations, section 2."""
    stream = tuple(float(y) for y in ys)
    forgettings: tuple[float, ...] = ()
    path = [Aff(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)]  # nothing seen yet (notes, "Start")
    for t in range(1, len(stream) + 1):
        seen = stream[:t]
        factors = weights(forgettings, t)
        forgetting = next_forgetting(seen, forgettings, step_size, floor, loss)
        path.append(
            Aff(
                forgetting=forgetting,
                previous_forgetting=path[-1].forgetting,
                mean=mean_of(seen, forgettings),
                variance=variance_of(seen, forgettings),
                weight=math.fsum(factors),
                squared_weight=math.fsum(factor**2 for factor in factors),
                m=dot(factors, seen),
            )
        )
        forgettings += (forgetting,)
    return path


def aff(ys: Sequence[float], step_size: float | str = 0.001, floor: float = 0.0, loss: str = "squared-error") -> Aff:
    """State after the last observation of the stream, section 2."""
    return aff_path(ys, step_size, floor, loss)[-1]


def window_mean(ys: Sequence[float], window: int) -> float:
    """Plain average of the last `window` observations, the estimate behind SW-UCB; 0 without any."""
    recent = [float(y) for y in ys][-window:]
    return math.fsum(recent) / len(recent) if recent else 0.0


def fixed_forgetting_mean(ys: Sequence[float], forgetting: float) -> float:
    """sum_i lambda^(t-i) Y_i / sum_i lambda^(t-i), section 2 before (2); 0 without data."""
    t = len(ys)
    factors = [forgetting ** (t - i) for i in range(1, t + 1)]
    return dot(factors, ys) / math.fsum(factors) if t else 0.0


def fixed_forgetting_effective_size(ys: Sequence[float], forgetting: float) -> float:
    """w^2 / k of (14) with one fixed factor; 0 without data."""
    t = len(ys)
    factors = [forgetting ** (t - i) for i in range(1, t + 1)]
    return math.fsum(factors) ** 2 / math.fsum(factor**2 for factor in factors) if t else 0.0


# --- The history seen from one arm --------------------------------------------------------------------------


def rewards_of(history: History, arm: int) -> list[float]:
    """This arm's rewards in the order of its plays."""
    return [float(reward) for played, reward in history if played == arm]


def idle_of(history: History, arm: int) -> int:
    """t' - t_last, (15): steps since the last play, 0 for the arm just played (and for one never played)."""
    plays = [step for step, (played, _) in enumerate(history, start=1) if played == arm]
    return len(history) - plays[-1] if plays else 0


def number(parameters: Mapping[str, object], key: str, default: float) -> float:
    """A numeric parameter, or its default from the notes."""
    return float(cast(float, parameters.get(key, default)))


def aff_path_of(history: History, arm: int, parameters: Mapping[str, object]) -> list[Aff]:
    """Section 2.1: an arm's estimator moves only at its own plays, its own rewards are its whole stream."""
    step_size = cast("float | str", parameters.get("step_size", 0.001))
    loss = cast(str, parameters.get("loss", "squared-error"))
    return aff_path(rewards_of(history, arm), step_size, number(parameters, "floor", 0.0), loss)


# --- Section 3: the policies --------------------------------------------------------------------------------

BURN_IN = {  # section 3 opening and the algorithm boxes; notes, "Conventions"
    "eps-greedy": 1,
    "ucb": 1,
    "ts": 0,
    "ots": 0,
    "dts": 0,
    "odts": 0,
    "d-ucb": 1,  # neither text says: Garivier & Moulines play every arm once first
    "sw-ucb": 1,
    "aff-d-greedy": 1,
    "aff-ucb1": 10,
    "aff-ucb2": 1,
    "aff-ucb2-growing": 1,
    "aff-ts": 1,
    "aff-ots": 1,
    "aff-dts1": 10,
    "aff-dts2": 1,
}
BAYESIAN = {"ts", "ots", "dts", "odts", "aff-ts", "aff-ots", "aff-dts1", "aff-dts2"}
OPTIMISTIC = {"ots", "odts", "aff-ots"}


def burn_in(name: str) -> int:
    """How often each arm is played before the index rules; M = 10 where a variance is needed (notes)."""
    return BURN_IN[name]


def index(
    name: str, history: History, arms: int, parameters: Mapping[str, object], draw: Draw | None = None
) -> list[float]:
    """The score of every arm at step len(history) + 1; D-UCB needs `discount` and SW-UCB `window`."""
    if name not in BURN_IN:
        raise ValueError(f"unknown policy {name!r}")
    if name not in BAYESIAN:
        return [bound(name, history, arm, arms, parameters) for arm in range(arms)]
    if draw is None:
        raise ValueError(f"{name} scores arms by Beta draws: pass `draw`")
    scores = []
    for arm in range(arms):
        alpha, beta = posterior(name, history, arm, arms, parameters)
        score = draw(alpha, beta, arm)
        if name in OPTIMISTIC:  # section 3.3.1 and Alg. 5: at least the posterior mean
            score = max(score, alpha / (alpha + beta))
        scores.append(score)
    return scores


def bound(name: str, history: History, arm: int, arms: int, parameters: Mapping[str, object]) -> float:
    """Estimate plus exploration bonus of one arm; infinite where nothing has been observed."""
    rewards = rewards_of(history, arm)
    if not rewards:
        return math.inf
    match name:
        case "eps-greedy":  # section 3.1
            return math.fsum(rewards) / len(rewards)
        case "ucb":  # section 3.2
            return math.fsum(rewards) / len(rewards) + math.sqrt(2 * math.log(len(history)) / len(rewards))
        case "d-ucb":
            return discounted_bound(history, arm, cast(float, parameters["discount"]))
        case "sw-ucb":
            return window_bound(history, arm, cast(int, parameters["window"]))
    state = aff_path_of(history, arm, parameters)[-1]
    idle = idle_of(history, arm)
    match name:
        case "aff-d-greedy":  # Alg. 1
            return state.mean
        case "aff-ucb1":  # Alg. 2
            return state.mean + adjusted_bonus(state, idle, arms)
        case "aff-ucb2":  # Alg. 3
            return state.mean + hoeffding_bonus(discounted_effective_size(state, idle, arms))
        case "aff-ucb2-growing":  # notes, the repaired variant
            return state.mean + hoeffding_bonus(growing_effective_size(state, idle, arms))
    raise ValueError(f"unknown policy {name!r}")


def discounted_bound(history: History, arm: int, discount: float) -> float:
    """D-UCB (notes): weights discount^age over global steps, age 0 for the latest; B = 1, xi = 0.6."""
    t = len(history)
    ages = [(t - step, played, reward) for step, (played, reward) in enumerate(history, start=1)]
    total = math.fsum(discount**age for age, _, _ in ages)
    count = math.fsum(discount**age for age, played, _ in ages if played == arm)
    if count == 0.0:  # underflow after a long idle time: the bonus has no bound left
        return math.inf
    mean = math.fsum(discount**age * reward for age, played, reward in ages if played == arm) / count
    return mean + 2 * math.sqrt(0.6 * max(0.0, math.log(total)) / count)


def window_bound(history: History, arm: int, window: int) -> float:
    """SW-UCB (notes): only the last `window` global steps; B = 1, xi = 0.6."""
    t = len(history)
    recent = rewards_of(history[max(0, t - window) :], arm)
    if not recent:
        return math.inf
    return math.fsum(recent) / len(recent) + math.sqrt(0.6 * math.log(min(t, window)) / len(recent))


def hoeffding_bonus(effective_size: float) -> float:
    """(14) and appendix A, with w^2 / k as the effective number of observations."""
    return math.sqrt(-math.log(0.05) / (2 * effective_size))


def adjusted_bonus(state: Aff, idle: int, arms: int) -> float:
    """B_t of (15)."""
    just_played = 1 if idle == 0 else 0
    hoeffding = hoeffding_bonus(state.weight**2 / state.squared_weight)
    return hoeffding * just_played + math.sqrt(state.variance / state.weight) * math.pow(idle, 1 / arms)


def discounted(state: Aff, idle: int, arms: int) -> tuple[float, float, float]:
    """m~, w~, k~ of (16), (17), (18)."""
    return (
        math.pow(state.forgetting, idle / arms) * state.m,
        math.pow(state.forgetting, idle / arms) * state.weight,
        math.pow(state.forgetting**2, idle / arms) * state.squared_weight,
    )


def discounted_effective_size(state: Aff, idle: int, arms: int) -> float:
    """w~^2 / k~ of (19) as printed; where both have vanished, its limit w^2 / k (the discount cancels)."""
    _, weight, squared_weight = discounted(state, idle, arms)
    if min(weight**2, squared_weight) < VANISHED:
        return state.weight**2 / state.squared_weight
    return weight**2 / squared_weight


def growing_effective_size(state: Aff, idle: int, arms: int) -> float:
    """w~^2 / k~ with k~ discounted once, as w~ is, but at least 1 (notes, repaired AFF-UCB2)."""
    _, weight, _ = discounted(state, idle, arms)
    squared_weight = math.pow(state.forgetting, idle / arms) * state.squared_weight
    return max(1.0, weight**2 / squared_weight) if squared_weight > 0 else 1.0


def posterior(
    name: str, history: History, arm: int, arms: int, parameters: Mapping[str, object]
) -> tuple[float, float]:
    """(alpha, beta) of the arm's Beta law before the next draw; the prior where nothing has been observed."""
    alpha0, beta0 = cast("tuple[float, float]", parameters.get("prior", (2.0, 2.0)))
    rewards = rewards_of(history, arm)
    match name:
        case "ts" | "ots":  # the sums below (23)
            successes = math.fsum(rewards)
            return alpha0 + successes, beta0 + len(rewards) - successes
        case "aff-ts" | "aff-ots":  # (24), (25), Alg. 4, Alg. 5: the prior keeps its full weight
            m, weight, _ = discounted(aff_path_of(history, arm, parameters)[-1], idle_of(history, arm), arms)
            return alpha0 + m, beta0 + weight - m
    return dynamic_posterior(rewards, (alpha0, beta0), memories(name, history, arm, parameters))


def memories(name: str, history: History, arm: int, parameters: Mapping[str, object]) -> list[float]:
    """C at each play of the arm: constant for DTS, C_0 then C_t for AFF-DTS1/2 (section 3.3.2, notes)."""
    memory = number(parameters, "memory", 10.0)
    if name in ("dts", "odts"):
        return [memory for _ in rewards_of(history, arm)]
    initial_plays = number(parameters, "burn_in", burn_in(name))
    values = []
    for play, state in enumerate(aff_path_of(history, arm, parameters)[1:], start=1):
        if play <= initial_plays:
            values.append(memory)
        elif name == "aff-dts1":
            values.append(4 / state.variance - 1 if state.variance > 0 else math.inf)
        elif name == "aff-dts2":
            values.append(state.weight - 1)
        else:
            raise ValueError(f"unknown policy {name!r}")
    return values


def dynamic_posterior(
    rewards: Sequence[float], prior: tuple[float, float], memory: Sequence[float]
) -> tuple[float, float]:
    """DTS, section 3.3.2: grow while alpha + beta < C, else add and shrink by C / (C + 1).

    Exact fractions, because alpha + beta = C reproduces itself: in floats a rounding just below C would
    switch the shrinking off at a play where the rule keeps it on.
    """
    alpha, beta = Fraction(prior[0]), Fraction(prior[1])
    for reward, c in zip(rewards, memory, strict=True):
        full = c != math.inf and alpha + beta >= Fraction(c)
        shrink = Fraction(c) / (Fraction(c) + 1) if full else Fraction(1)
        alpha, beta = (alpha + Fraction(reward)) * shrink, (beta + 1 - Fraction(reward)) * shrink
    return float(alpha), float(beta)


def explores(history: History, arms: int, parameters: Mapping[str, object], leader: int) -> bool:
    """Alg. 1: |lambda_{t-1} - lambda_{t-2}| >= d in global time, so 0 unless the leader was just played.

    Without a `threshold`, d is the step size (section 3.1) with which the leader's lambda last moved.
    """
    assert 0 <= leader < arms
    path = aff_path_of(history, leader, parameters)
    rewards = rewards_of(history, leader)
    change = 0.0
    if len(history) > 0 and history[-1][0] == leader:
        change = abs(path[-1].forgetting - path[-1].previous_forgetting)
    threshold = cast("float | None", parameters.get("threshold"))
    if threshold is None:
        step_size = cast("float | str", parameters.get("step_size", 0.001))
        forgettings = [state.forgetting for state in path[1:-1]]  # lambda_1..lambda_{t-1}, behind the start
        threshold = step_size_at(rewards, forgettings, step_size)
    return change >= threshold


# --- Section 4: tuning of the benchmarks, and the reflecting walk -------------------------------------------


def tuned_discount(switches: int, horizon: int) -> float:
    """D-UCB's lambda = 1 - sqrt(Upsilon_T / T) / 4, section 4 opening; no switch counts as one (notes)."""
    return 1 - math.sqrt(max(switches, 1) / horizon) / 4


def tuned_window(switches: int, horizon: int) -> int:
    """SW-UCB's W = 2 sqrt(T log T / Upsilon_T), section 4 opening, as a whole number of steps."""
    return max(1, round(2 * math.sqrt(horizon * math.log(horizon) / max(switches, 1))))


def switches(means: Sequence[Sequence[float]]) -> int:
    """Upsilon_T: how often the best arm changes. Ties keep the incumbent; else the lowest arm takes over."""
    best = [[arm for arm, mean in enumerate(row) if mean == max(row)] for row in means]
    count = 0
    incumbent = best[0][0] if best else 0
    for candidates in best:
        if incumbent not in candidates:
            incumbent = candidates[0]
            count += 1
    return count


def reflect(x: float) -> float:
    """f below (28)."""
    folded = abs(x) % 2
    return folded if folded <= 1 else 1 - (folded - 1)
