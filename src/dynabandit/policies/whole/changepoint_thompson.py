"""Change-point TS: Thompson sampling with a posterior of the time of each arm's last change."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynabandit.core.compilation import kernel
from dynabandit.core.draws import beta_odds
from dynabandit.core.streams import LARGEST_STEP, SCORE, SECOND, uniform
from dynabandit.policies.base import PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.policies.beta_posterior import Prior, checked_prior
from dynabandit.policies.horizons.tuning_rules import HorizonTuned
from dynabandit.policies.pending_plays import assumed_zeros
from dynabandit.validation import check_field, integer, number, set_fields

# Runs of an arm that contain the same rewards have the same Beta posterior: they are one particle here. So an arm has
# as many particles as rewards; the probability of a run without rewards is called "fresh".
SLOTS = ("latest", "particles")  # latest: the number of rewards of all arms at the arm's latest one
LATEST, PARTICLES = range(2)
HEAD = len(SLOTS)  # then the fresh probability under each rate, then the particles, the longest run first
# Equally likely a priori, if the rate is learned. With larger rates idle arms return to their prior so fast that many
# arms are explored forever (docs/baselines-forgetting.md).
RATES = (1e-3, 1e-4, 1e-5, 1e-6)
LEARNT = "learnt"
LARGEST_RATE = 0.5  # if there are more changes than steps
CLOCK = 0  # shared: how many rewards there were, of all arms


class Params(NamedTuple):
    prior: Prior
    particles: int
    rates: np.ndarray


@kernel
def start(state: PolicyState, arm: int, params: Params) -> None:
    memory, rates = state.memory, params.rates.size
    memory[:, arm] = 0.0
    memory[LATEST, arm] = state.shared[CLOCK]
    for rate in range(rates):
        memory[HEAD + rate, arm] = 1.0 / rates


@kernel
def common(state: PolicyState, number: int, params: Params) -> float:
    return state.shared[CLOCK]


@kernel
def particle_row(particle: int, rates: int) -> int:
    """Return the first row of a particle: its a and b, then its probability under each rate."""
    return HEAD + rates + particle * (2 + rates)


@kernel
def survival(rate: float, idle: float) -> float:
    """Return the probability that a run continues for so many steps."""
    return (1.0 - rate) ** idle


@kernel
def score(state: PolicyState, arm: int, step: Step, params: Params) -> float:
    # Inverse transform: the runs under the first rate, then those under the next; the rest is fresh
    memory, rates = state.memory, params.rates.size
    left = uniform(step.random, SECOND, step.number, arm)
    held = int(memory[PARTICLES, arm])
    waited = step.common - memory[LATEST, arm]
    for rate in range(rates):
        survives = survival(params.rates[rate], waited)
        for particle in range(held):
            row = particle_row(particle, rates)
            left -= memory[row + 2 + rate, arm] * survives
            if left < 0.0:
                return beta_odds(memory[row, arm], memory[row + 1, arm], step.random, SCORE, step.number, arm)
    b = params.prior.b + assumed_zeros(state, arm, memory[PARTICLES, arm])
    return beta_odds(params.prior.a, b, step.random, SCORE, step.number, arm)


@kernel
def learn(state: PolicyState, arm: int, reward: Reward, params: Params) -> None:
    memory, shared = state.memory, state.shared
    wait(memory, arm, shared[CLOCK] - memory[LATEST, arm], params)
    shared[CLOCK] += 1.0
    memory[LATEST, arm] = shared[CLOCK]
    pass_messages(memory, arm, reward.value, params)


@kernel
def wait(memory: np.ndarray, arm: int, waited: float, params: Params) -> None:
    """Let runs end while the arm is idle; a run without rewards since is fresh."""
    rates = params.rates.size
    for rate in range(rates):
        survives = survival(params.rates[rate], waited)
        for particle in range(int(memory[PARTICLES, arm])):
            row = particle_row(particle, rates) + 2 + rate
            memory[HEAD + rate, arm] += (1.0 - survives) * memory[row, arm]
            memory[row, arm] *= survives


@kernel
def predict(a: float, b: float, reward: float) -> float:
    """Return the predictive probability of a reward; a reward between 0 and 1 is a fraction of a success."""
    return (reward * a + (1.0 - reward) * b) / (a + b)


@kernel
def pass_messages(memory: np.ndarray, arm: int, value: float, params: Params) -> None:
    """Weight every run by the likelihood of the reward, then let it continue or end; the fresh run becomes one more."""
    rates = params.rates.size
    held = make_room(memory, arm, params)
    row = particle_row(held, rates)
    memory[row, arm] = params.prior.a
    memory[row + 1, arm] = params.prior.b
    for rate in range(rates):
        memory[row + 2 + rate, arm] = memory[HEAD + rate, arm]
        memory[HEAD + rate, arm] = 0.0
    memory[PARTICLES, arm] = held + 1.0
    total = 0.0
    for particle in range(held + 1):
        row = particle_row(particle, rates)
        likelihood = predict(memory[row, arm], memory[row + 1, arm], value)
        memory[row, arm] += value
        memory[row + 1, arm] += 1.0 - value
        for rate in range(rates):
            seen = likelihood * memory[row + 2 + rate, arm]
            memory[HEAD + rate, arm] += params.rates[rate] * seen
            memory[row + 2 + rate, arm] = (1.0 - params.rates[rate]) * seen
            total += seen
    for row in range(HEAD, HEAD + rates):
        memory[row, arm] /= total
    for particle in range(held + 1):
        for row in range(particle_row(particle, rates) + 2, particle_row(particle + 1, rates)):
            memory[row, arm] /= total


@kernel
def make_room(memory: np.ndarray, arm: int, params: Params) -> int:
    """Return the number of particles, after removing the least likely one if there is no room for another."""
    held = int(memory[PARTICLES, arm])
    rates = params.rates.size
    if held < params.particles:
        return held
    least = 0
    smallest = math.inf
    for particle in range(held):
        row = particle_row(particle, rates)
        probability = 0.0
        for rate in range(rates):
            probability += memory[row + 2 + rate, arm]
        if probability < smallest:
            least = particle
            smallest = probability
    for row in range(particle_row(least, rates), particle_row(held - 1, rates)):
        memory[row, arm] = memory[row + 2 + rates, arm]
    return held - 1


@dataclass(frozen=True, kw_only=True)
class ChangepointTS(HorizonTuned):
    r"""Thompson sampling that guesses when each arm changed last, and uses only its rewards since then. Use it for
    large changes after long constant periods with few arms.

    It draws the time of an arm's last change, then its mean from the rewards since. The distribution of an arm's run
    length comes from Bayesian online change-point detection. It is exact while an arm has at most `particles` rewards;
    after that, the least likely run is dropped for each new one. (The paper resamples; here learning draws no random
    numbers.) Arms change independently, the paper's per-arm switching. Time moves with the rewards of all arms.

    Parameters
    ----------
    rate
        The probability that an arm changes at a step, in (0, 1). ``"learnt"`` estimates it from the arm's rewards:
        1e-3, 1e-4, 1e-5 or 1e-6, with equal prior probabilities. None uses `changes` / `horizon`.
    particles
        The maximum number of runs per arm, at least 2.
    prior
        The Beta prior of a mean after a change, a pair of numbers in [1e-12, 1e12].

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("changepoint-ts", arms=["old", "new"], seed=1)
    >>> for reward in [1] * 30 + [0] * 6:
    ...     bandit.reward("old", reward)
    >>> bandit.arms["old"].mean < 0.3
    True

    Notes
    -----
    A run consists of the rewards of an arm since a possible change. A reward y multiplies the weight p of each run by
    its likelihood under the run, and a step ends a run with probability h, the rate:

    .. math:: p_r \leftarrow (1 - h) \, p_r \; P(y \mid S_r, F_r), \quad P(1 \mid S, F) = \frac{a + S}{a + b + S + F}

    The score is a draw from Beta(a + S, b + F) of a run that is drawn with these weights.

    Pending plays of an arm without any reward count as failures.

    Cost per step: O(K x particles).

    References
    ----------
    Mellor & Shapiro (2013), Thompson sampling in switching environments with Bayesian online change detection. AISTATS.
    Adams & MacKay (2007), Bayesian online changepoint detection. arXiv 0710.3742.
    """

    name = "changepoint-ts"
    slots = SLOTS
    functions = PolicyFunctions(start=start, score=score, learn=learn, common=common, params=Params)

    burn_in: int = 0
    rate: float | str | None = LEARNT
    particles: int = 32
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.rate, str):
            if self.rate != LEARNT:
                raise ValueError(f"rate must be a number in (0, 1), 'learnt' or None, got {self.rate!r}")
        elif self.rate is not None:
            rate = number("rate", self.rate, 0.0, 1.0, open_low=True)
            if rate == 1.0:
                raise ValueError(f"rate must be a number in (0, 1), 'learnt' or None, got {self.rate!r}")
            set_fields(self, rate=rate)
        check_field(self, "particles", integer, 2, LARGEST_STEP)
        set_fields(self, prior=checked_prior(self.prior))

    def _follows_from_changes(self) -> bool:
        return self.rate is None

    def _rates(self) -> tuple[float, ...]:
        changes, horizon = self._expected()
        if self.rate is None:
            return (min(changes / horizon, LARGEST_RATE),)
        return RATES if isinstance(self.rate, str) else (self.rate,)

    def params(self, arms: int) -> Params:
        return Params(Prior(*self.prior), self.particles, np.array(self._rates()))

    def memory_size(self) -> int:
        rates = len(self._rates())
        return particle_row(self.particles, rates)

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        """Return an arm's mean and size, a + b, averaged over its runs; its forgetting is the chance of no change."""
        rates = self._rates()
        waited = float(shared[CLOCK]) - float(column[LATEST])
        survives = np.array([survival(rate, waited) for rate in rates])
        rows = column[HEAD + len(rates) :].reshape(self.particles, 2 + len(rates))[: int(column[PARTICLES])]
        weights = rows[:, 2:] @ survives
        fresh = max(0.0, 1.0 - float(weights.sum()))
        sizes = rows[:, 0] + rows[:, 1]
        a, b = self.prior
        mean = fresh * a / (a + b) + float((weights * rows[:, 0] / sizes).sum())
        likely = column[HEAD : HEAD + len(rates)] + rows[:, 2:].sum(axis=0)
        forgetting = 1.0 - float(likely @ np.array(rates))
        size = fresh * (a + b) + float((weights * sizes).sum())
        return Belief(mean, mean * (1.0 - mean), forgetting, size)
