"""A policy on the rows of a log: the loop that is compiled for each policy."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.bandit.bandit import TABLE_HORIZON, Bandit
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.streams import LARGEST_STEP, REPLAY, Stream, shifted, stream, uniform
from dynabandit.estimators import adaptive_forgetting
from dynabandit.offline.log import Logged
from dynabandit.policies import Policy
from dynabandit.policies.base import Kernels
from dynabandit.policies.choose_arm import SCRATCH_ROWS, make_choose, make_count_choices
from dynabandit.simulation.stepper import State
from dynabandit.simulation.work import initial_state

__all__ = ["Played", "Player"]


class Model(NamedTuple):
    """What the rows so far, whoever chose them, say about the mean reward of each arm."""

    memory: np.ndarray  # (slots of the adaptive estimator, arms)
    overall: np.ndarray  # rows and their total reward, for an arm that had no row yet


class Played(NamedTuple):
    """What a policy would have done at each row, averaged over replications."""

    weight: np.ndarray  # its probability of the logged arm, over the propensity
    direct: np.ndarray  # the mean reward that the model expects of its choice
    expected: np.ndarray  # the mean reward that the model expects of the logged arm
    accepted: np.ndarray  # the share of replications that chose the logged arm and learned from it


@functools.cache
def _compiled_play(kernels: Kernels) -> Callable[..., None]:
    return compiled(make_play(kernels))


def make_play(kernels: Kernels) -> Callable[..., None]:
    """Return play(state, plays, model, shares, burning, played, logged, table, scratch, counts, ..., source).

    At each row every replication says how likely it would choose each arm, and chooses. Where that is the arm of
    the row it learns from it, with a probability that makes up for unequal propensities (rejection sampling).
    The model learns from every row, after all have chosen.
    """
    choose = make_choose(kernels)
    count_choices = make_count_choices(choose)
    learn = kernels.learn

    @kernel
    def play(
        state: State,
        plays: np.ndarray,
        model: Model,
        shares: np.ndarray,
        burning: np.ndarray,
        played: Played,
        logged: Logged,
        table: np.ndarray,
        scratch: np.ndarray,
        counts: np.ndarray,
        first: int,
        burn_in: int,
        draws: int,
        least: float,
        log_clock: bool,
        source: Stream,
    ) -> None:
        replications, arms = plays.shape
        for row in range(logged.arms.size):
            target, reward = logged.arms[row], logged.rewards[row]
            propensity = max(logged.propensities[row], least)
            chance = least / propensity
            played.expected[row] = expected(model, target)
            for replication in range(replications):
                memory, shared = state.memory[replication], state.shared[replication]
                last, parameters = state.last[replication], state.parameters[replication]
                own = shifted(source, replication)
                step = first + row if log_clock else plays[replication].sum() + 1
                counts[:] = 0
                rarest = plays[replication].argmin()
                if plays[replication, rarest] < burn_in:
                    arm = rarest
                    counts[rarest] = draws
                    burning[0] += 1.0 / replications
                else:
                    others = shifted(source, replications - 1 + replication * draws)
                    arm = choose(memory, shared, last, scratch, step, parameters, table, own)
                    count_choices(memory, shared, last, scratch, step, parameters, table, others, counts, draws)
                for other in range(arms):
                    if counts[other] > 0:
                        probability = counts[other] / draws / replications
                        shares[other] += probability
                        played.direct[row] += probability * expected(model, other)
                played.weight[row] += counts[target] / draws / replications / propensity
                if arm == target and (chance >= 1.0 or uniform(own, REPLAY, first + row, 0) < chance):
                    played.accepted[row] += 1.0 / replications
                    learn(memory, shared, arm, reward, parameters)
                    last[arm] = step
                    plays[replication, arm] += 1
            model.overall[0] += 1.0
            model.overall[1] += reward
            observe(model.memory, target, reward)

    return play


@kernel
def expected(model: Model, arm: int) -> float:
    """Return the mean reward that the model expects of an arm."""
    known = adaptive_forgetting.load(model.memory, arm)
    if known.w > 0.0:
        return known.mean
    return model.overall[1] / model.overall[0] if model.overall[0] > 0.0 else 0.0


TUNING = adaptive_forgetting.tuning()


@kernel
def observe(memory: np.ndarray, arm: int, reward: float) -> None:
    """Let the model take in a reward; it forgets as fast as the arm changes."""
    known = adaptive_forgetting.load(memory, arm)
    adaptive_forgetting.store(memory, arm, adaptive_forgetting.observe(known, reward, TUNING))


class Player:
    """One policy, on its way through a log."""

    def __init__(
        self,
        policy: Policy,
        arms: tuple[str, ...],
        *,
        least: float,
        replications: int,
        draws: int,
        log_clock: bool,
        seed: int,
    ) -> None:
        Bandit(policy, arms, seed=seed)  # refuses what cannot decide without knowing the world
        self.policy, self.draws, self.least, self.log_clock = policy, draws, least, log_clock
        self.source = stream(seed)
        self.state = initial_state(policy, len(arms), np.ones(replications, dtype=np.int64), LARGEST_STEP)
        self.plays = np.zeros((replications, len(arms)), dtype=np.int64)
        self.model = Model(np.zeros((adaptive_forgetting.SIZE, len(arms))), np.zeros(2))
        self.model.memory[:] = np.array(adaptive_forgetting.START)[:, None]
        self.shares = np.zeros(len(arms))
        self.burning = np.zeros(1)  # rows that went by during the burn-in
        self.table = policy.kernels.table(len(arms), TABLE_HORIZON)
        self.scratch = np.zeros((SCRATCH_ROWS, len(arms)))
        self.counts = np.zeros(len(arms), dtype=np.int64)
        self.rows = 0

    def play(self, logged: Logged) -> Played:
        """Go through some more rows."""
        played = Played(*(np.zeros(len(logged.arms)) for _ in Played._fields))
        _compiled_play(self.policy.kernels)(
            self.state, self.plays, self.model, self.shares, self.burning, played, logged, self.table, self.scratch,
            self.counts, self.rows + 1, self.policy.burn_in, self.draws, self.least, self.log_clock, self.source,
        )  # fmt: skip
        self.rows += len(logged.arms)
        return played
