"""Slow reference for the tests: baselines with upper bounds, each from its own paper over the whole history.

Nothing is kept from one step to the next: every call reads the history from its first step. `t` is how many steps
have been played, so the step being decided is t + 1. An arm without a reward that counts scores infinity. Where a
paper leaves a number open, the choice is said and the kernels make the same.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from oracles import paper as oracle

History = Sequence[tuple[int, float]]  # (arm, reward) of steps 1..t, arms counted from 0
Parameters = Mapping[str, object]

BISECTIONS = 200
BURN_IN = {
    "kl-ucb": 1,  # Garivier & Cappe (2011), algorithm 1: every arm once
    "d-kl-ucb": 1,
    "sw-kl-ucb": 1,
    "glr-kl-ucb": 1,  # the forced exploration begins with every arm once
    "glr-kl-ucb-diminishing": 1,
    "cusum-ucb": 1,
    "cusum-kl-ucb": 1,
    "m-ucb": 1,
    "m-kl-ucb": 1,
    "oracle-restart": 1,
    "aff-kl-ucb": 1,
}


# --- The Kullback-Leibler index -----------------------------------------------------------------------------


def kl(p: float, q: float) -> float:
    """Relative entropy of two Bernoulli laws, with 0 log 0 = 0 (Garivier & Cappe, section 2)."""
    total = 0.0
    if p > 0:
        total += math.inf if q <= 0 else p * math.log(p / q)
    if p < 1:
        total += math.inf if q >= 1 else (1 - p) * math.log((1 - p) / (1 - q))
    return total


def kl_index(mean: float, plays: float, level: float) -> float:
    """max { q in [mean, 1] : plays * kl(mean, q) <= level }, by bisection."""
    low, high = min(max(mean, 0.0), 1.0), 1.0
    if plays * kl(low, 1.0) <= level:
        return 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if plays * kl(min(max(mean, 0.0), 1.0), middle) <= level:
            low = middle
        else:
            high = middle
    return low


def average(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def kl_bounds(rewards: Sequence[Sequence[float]], levels: Sequence[float]) -> list[float]:
    """The index of every arm from the rewards that count."""
    return [
        kl_index(average(values), len(values), level) if values else math.inf
        for values, level in zip(rewards, levels, strict=True)
    ]


# --- Without detection of changes ---------------------------------------------------------------------------


def kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Garivier & Cappe, algorithm 1: level log t + c log log t; log log t counts from where it is positive."""
    t = len(history)
    level = math.log(t) + oracle.number(parameters, "loglog", 0.0) * math.log(max(math.log(t), 1.0))
    return kl_bounds([oracle.rewards_of(history, arm) for arm in range(arms)], [level] * arms)


def d_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Discounted means and counts of Garivier & Moulines; level log of the discounted count of all plays."""
    discount = discount_of(parameters)
    t = len(history)
    weights = [discount ** (t - step) for step in range(1, t + 1)]
    level = max(0.0, math.log(math.fsum(weights)))
    scores = []
    for arm in range(arms):
        own = [(w, reward) for w, (played, reward) in zip(weights, history, strict=True) if played == arm]
        count = math.fsum(w for w, _ in own)
        mean = math.fsum(w * reward for w, reward in own) / count if count > 0 else math.inf
        scores.append(kl_index(mean, count, level) if count > 0 else math.inf)
    return scores


def sw_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """The latest `window` steps only; level log min(t, window)."""
    window = window_of(parameters)
    recent = history[max(0, len(history) - window) :]
    level = math.log(min(len(history), window))
    return kl_bounds([oracle.rewards_of(recent, arm) for arm in range(arms)], [level] * arms)


def discount_of(parameters: Parameters) -> float:
    """1 - sqrt(Y / T) / 4, where it is not given."""
    if "discount" in parameters:
        return cast(float, parameters["discount"])
    return oracle.tuned_discount(cast(int, parameters["changes"]), cast(int, parameters["horizon"]))


def window_of(parameters: Parameters) -> int:
    """2 sqrt(T log T / Y), where it is not given."""
    if "window" in parameters:
        return cast(int, parameters["window"])
    return oracle.tuned_window(cast(int, parameters["changes"]), cast(int, parameters["horizon"]))


# --- GLR-klUCB: Besson, Kaufmann, Maillard & Seznec ---------------------------------------------------------


class Restarts(NamedTuple):
    """What a policy that restarts knows after t steps."""

    rewards: list[list[float]]  # of each arm since its latest restart
    started: list[int]  # the step of each arm's latest restart, 0 for none
    restarts: int  # how many so far, of any arm


def glr(rewards: Sequence[float], candidates: Sequence[int]) -> float:
    """The generalized likelihood ratio: the best split of the rewards in two, against no split."""
    n, mean = len(rewards), average(rewards)
    best = -math.inf
    for s in candidates:
        first, second = average(rewards[:s]), average(rewards[s:])
        best = max(best, s * kl(first, mean) + (n - s) * kl(second, mean))
    return best


def glr_candidates(n: int, spacing: int, capacity: int) -> Sequence[int]:
    """The splits that are tried: multiples of `spacing`, doubled until at most `capacity` of them are up to n."""
    stride = spacing
    while n // stride > capacity:
        stride *= 2
    return range(stride, n, stride)


def glr_threshold(n: int, delta: float) -> float:
    """beta(n, delta) of the paper's experiments."""
    return math.log(n**1.5 / delta)


def glr_restarts(history: History, arms: int, parameters: Parameters) -> Restarts:
    """Algorithm 1 over the whole history; the test is made at every `every`-th play of an arm since its restart."""
    every, spacing = cast(int, parameters["every"]), cast(int, parameters["spacing"])
    capacity, horizon = cast(int, parameters["capacity"]), cast(int, parameters["horizon"])
    delta = oracle.number(parameters, "delta", 1 / math.sqrt(horizon))
    rewards: list[list[float]] = [[] for _ in range(arms)]
    started, count = [0] * arms, 0
    for t, (arm, reward) in enumerate(history, start=1):
        rewards[arm].append(reward)
        n = len(rewards[arm])
        if n % every == 0 and glr(rewards[arm], glr_candidates(n, spacing, capacity)) >= glr_threshold(n, delta):
            count += 1
            for other in range(arms) if parameters["restart"] == "global" else [arm]:
                rewards[other], started[other] = [], t
    return Restarts(rewards, started, count)


def glr_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """UCB_a(t) of algorithm 1 with f(t) = log t, from the rewards since the arm's restart tau_a."""
    state = glr_restarts(history, arms, parameters)
    levels = [math.log(max(len(history) - start, 1)) for start in state.started]
    return kl_bounds(state.rewards, levels)


def in_turn(step: int, arms: int, exploration: float) -> int | None:
    """The arm whose turn it is where step mod floor(K / exploration) is one of 1..K, and None elsewhere."""
    if exploration <= 0:
        return None
    period = max(arms, math.floor(arms / exploration))
    turn = step % period if step % period > 0 else period
    return turn - 1 if turn <= arms else None


def glr_forced(history: History, arms: int, parameters: Parameters) -> int | None:
    """Algorithm 1's forced exploration: alpha_k = sqrt(k K log T / T), k - 1 restarts so far; or Y in place of k."""
    horizon = cast(int, parameters["horizon"])
    if parameters["schedule"] == "growing":
        factor = glr_restarts(history, arms, parameters).restarts + 1
    else:
        factor = cast(int, parameters["changes"])
    alpha = oracle.number(parameters, "scale", 1.0) * math.sqrt(factor * arms * math.log(horizon) / horizon)
    return in_turn(len(history) + 1, arms, alpha)


def diminishing_forced(history: History, arms: int, parameters: Parameters) -> int | None:
    """Li, Hsieh & Huang: sessions of K steps begin u steps after a restart, sqrt(u) growing by K / (2 alpha)."""
    alpha = oracle.number(parameters, "scale", 1.0)
    if alpha <= 0:
        return None
    age = len(history) + 1 - max(glr_restarts(history, arms, parameters).started)
    u = 1
    while age >= u + arms:
        u = max(math.ceil(u + arms * math.sqrt(u) / alpha + arms**2 / (4 * alpha**2)), u + arms)
    return age - u if age >= u else None


# --- CUSUM-UCB: Liu, Lee & Shroff ---------------------------------------------------------------------------


def cusum_alarm(rewards: Sequence[float], drift: float, reference_plays: int, threshold: float) -> bool:
    """Algorithm 3, the two-sided CUSUM: walks above and below the mean of the first M rewards."""
    if len(rewards) <= reference_plays:
        return False
    reference = average(rewards[:reference_plays])
    up = down = 0.0
    for reward in rewards[reference_plays:]:
        up = max(0.0, up + reward - reference - drift)
        down = max(0.0, down + reference - reward - drift)
    return up >= threshold or down >= threshold


def cusum_threshold(parameters: Parameters) -> float:
    """h = log(T / Y)."""
    if "threshold" in parameters:
        return cast(float, parameters["threshold"])
    return math.log(cast(int, parameters["horizon"]) / cast(int, parameters["changes"]))


def cusum_exploration(parameters: Parameters) -> float:
    """alpha = sqrt(Y / T log(T / Y))."""
    if "exploration" in parameters:
        return cast(float, parameters["exploration"])
    ratio = cast(int, parameters["horizon"]) / cast(int, parameters["changes"])
    return math.sqrt(math.log(ratio) / ratio)


def cusum_rewards(history: History, arms: int, parameters: Parameters) -> list[list[float]]:
    """Every arm's rewards since its latest alarm."""
    rewards: list[list[float]] = [[] for _ in range(arms)]
    for arm, reward in history:
        rewards[arm].append(reward)
        drift, plays = cast(float, parameters["drift"]), cast(int, parameters["reference_plays"])
        if cusum_alarm(rewards[arm], drift, plays, cusum_threshold(parameters)):
            rewards[arm] = []
    return rewards


def cusum_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Mean plus sqrt(xi log n_t / N_t(i)), xi = 1, where n_t counts what the arms hold since their alarms."""
    rewards = cusum_rewards(history, arms, parameters)
    total = sum(map(len, rewards))
    return [average(values) + math.sqrt(math.log(total) / len(values)) if values else math.inf for values in rewards]


def cusum_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Besson et al., experiments: CUSUM-UCB with the index of KL-UCB, level log n_t."""
    rewards = cusum_rewards(history, arms, parameters)
    total = sum(map(len, rewards))
    return kl_bounds(rewards, [math.log(max(total, 1))] * arms)


# --- M-UCB: Cao, Wen, Kveton & Xie --------------------------------------------------------------------------


def m_ucb_threshold(arms: int, parameters: Parameters) -> float:
    """b = sqrt(w / 2 log(2 K T^2))."""
    if "threshold" in parameters:
        return cast(float, parameters["threshold"])
    window, horizon = cast(int, parameters["window"]), cast(int, parameters["horizon"])
    return math.sqrt(window / 2 * math.log(2 * arms * horizon**2))


def m_ucb_exploration(arms: int, parameters: Parameters) -> float:
    """gamma = sqrt((M - 1) K (2 b + 3 sqrt(w)) / (2 T)), M - 1 changes; our own bound of 1/4, where it may exceed 1."""
    if "exploration" in parameters:
        return cast(float, parameters["exploration"])
    window, horizon = cast(int, parameters["window"]), cast(int, parameters["horizon"])
    cost = 2 * m_ucb_threshold(arms, parameters) + 3 * math.sqrt(window)
    return min(math.sqrt(cast(int, parameters["changes"]) * arms * cost / (2 * horizon)), 0.25)


def m_ucb_restarts(history: History, arms: int, parameters: Parameters) -> Restarts:
    """Algorithms 1 and 2: compare the halves of an arm's latest w rewards; a difference above b restarts all."""
    window, threshold = cast(int, parameters["window"]), m_ucb_threshold(arms, parameters)
    rewards: list[list[float]] = [[] for _ in range(arms)]
    tau, count = 0, 0
    for t, (arm, reward) in enumerate(history, start=1):
        rewards[arm].append(reward)
        if len(rewards[arm]) >= window:
            latest = rewards[arm][-window:]
            older, newer = math.fsum(latest[: window // 2]), math.fsum(latest[window // 2 :])
            if abs(newer - older) > threshold:
                rewards, tau, count = [[] for _ in range(arms)], t, count + 1
    return Restarts(rewards, [tau] * arms, count)


def m_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Algorithm 2: mean plus sqrt(2 log(t - tau) / n), where t is the step being decided."""
    state = m_ucb_restarts(history, arms, parameters)
    age = len(history) + 1 - state.started[0]
    return [
        average(values) + math.sqrt(2 * math.log(age) / len(values)) if values else math.inf for values in state.rewards
    ]


def m_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """Besson et al., experiments: M-UCB with the index of KL-UCB, level log of the steps played since the restart."""
    state = m_ucb_restarts(history, arms, parameters)
    return kl_bounds(state.rewards, [math.log(max(len(history) - state.started[0], 1))] * arms)


def m_ucb_forced(history: History, arms: int, parameters: Parameters) -> int | None:
    """Algorithm 2: (t - tau) mod floor(K / gamma) in 1..K is the arm to play."""
    tau = m_ucb_restarts(history, arms, parameters).started[0]
    return in_turn(len(history) + 1 - tau, arms, m_ucb_exploration(arms, parameters))


# --- The oracle policy, and AFF with a KL index -----------------------------------------------------------------


def oracle_restart(
    history: History, arms: int, parameters: Parameters, means: Sequence[Sequence[float]]
) -> list[float]:
    """Each arm from its own latest change on; `means` has a row for every step, the one being decided included."""
    tolerance = oracle.number(parameters, "tolerance", 0.0)
    scores = []
    for arm in range(arms):
        began, reference = 1, means[0][arm]
        for step, row in enumerate(means, start=1):
            if abs(row[arm] - reference) > tolerance:
                began, reference = step, row[arm]
        values = oracle.rewards_of(history[began - 1 :], arm)
        level = math.log(max(len(means) - began, 1))
        if not values:
            scores.append(math.inf)
        elif parameters["index"] == "ucb":
            scores.append(average(values) + math.sqrt(2 * level / len(values)))
        else:
            scores.append(kl_index(average(values), len(values), level))
    return scores


def aff_kl_ucb(history: History, arms: int, parameters: Parameters) -> list[float]:
    """The KL index on the adaptive mean, its effective size discounted as in the repaired AFF-UCB2."""
    level = -math.log(oracle.number(parameters, "confidence", 0.05))
    scores = []
    for arm in range(arms):
        state = oracle.aff_path_of(history, arm, parameters)[-1]
        if state.weight == 0.0:
            scores.append(math.inf)
        else:
            size = oracle.growing_effective_size(state, oracle.idle_of(history, arm), arms)
            scores.append(kl_index(state.mean, size, level))
    return scores


# --- One door -----------------------------------------------------------------------------------------------

SCORES = {
    "kl-ucb": kl_ucb,
    "d-kl-ucb": d_kl_ucb,
    "sw-kl-ucb": sw_kl_ucb,
    "glr-kl-ucb": glr_kl_ucb,
    "glr-kl-ucb-diminishing": glr_kl_ucb,
    "cusum-ucb": cusum_ucb,
    "cusum-kl-ucb": cusum_kl_ucb,
    "m-ucb": m_ucb,
    "m-kl-ucb": m_kl_ucb,
    "aff-kl-ucb": aff_kl_ucb,
}
FORCED = {
    "glr-kl-ucb": glr_forced,
    "glr-kl-ucb-diminishing": diminishing_forced,
    "m-ucb": m_ucb_forced,
    "m-kl-ucb": m_ucb_forced,
}
