"""The loop that replays a log through a policy; it is compiled for each policy."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.bandit.decision_making import TABLE_HORIZON
from dynabandit.core.compilation import compiled, kernel
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import LARGEST_STEP, REPLAY, Stream, shifted, stream, uniform
from dynabandit.estimators import adaptive_forgetting
from dynabandit.offline.log import Logged
from dynabandit.policies import Policy, PolicyFunctions, PolicyState, Reward
from dynabandit.policies.choose_arm import Workspace, make_choose, make_count_choices, new_workspace
from dynabandit.simulation.request import initial_states
from dynabandit.simulation.stepper import Replications, least_played_arm, make_learn
from dynabandit.validation import BOUNDED, RewardDomain


class Model(NamedTuple):
    """Estimates of the mean reward of each arm from all rows so far."""

    memory: np.ndarray  # (slots of the adaptive estimator, arms)
    overall: np.ndarray  # rows and their total reward, for an arm that had no row yet


class Progress(NamedTuple):
    """What is carried from one part of the log to the next."""

    states: Replications
    model: Model
    shares: np.ndarray  # (arms,): the expected number of choices of each arm
    burning: np.ndarray  # (1,): rows that passed during the burn-in
    counts: np.ndarray  # (arms,): scratch


class Played(NamedTuple):
    """What a policy would have done at each row, averaged over the replications."""

    weight: np.ndarray  # its probability of the logged arm, over the propensity
    direct: np.ndarray  # the mean reward that the model expects of its choice
    expected: np.ndarray  # the mean reward that the model expects of the logged arm
    accepted: np.ndarray  # the share of replications that chose the logged arm and learned from it


@functools.cache
def _compiled_play(functions: PolicyFunctions, unit_free: bool) -> Callable[..., None]:
    return compiled(make_play(functions, unit_free=unit_free))


class Settings(NamedTuple):
    """How a log is replayed."""

    burn_in: int
    draws: int  # for the probability of each choice
    least: float  # smaller propensities are replaced by this one
    log_clock: bool  # whether a step is a row of the log, not a row that the policy accepted
    learn_all: bool  # whether the policy learns from every row, not only from rows that it accepted


def make_play(functions: PolicyFunctions, *, unit_free: bool = False) -> Callable[..., None]:
    """Return play(progress, played, logged, space, settings, first, random), which replays some rows of a log.

    At each row every replication estimates the probability of each choice, and chooses. If that is the arm of the row,
    it accepts the row, with a probability that corrects for unequal propensities (rejection sampling). It learns from
    accepted rows or, with `learn_all`, from every row. The model learns from every row, after all replications have
    chosen; `unit_free` for rewards that are not in [0, 1].
    """
    choose = make_choose(functions)
    count_choices = make_count_choices(choose)
    learn, read_params = make_learn(functions), vector_reader(functions.params)

    observe = observe_unit_free if unit_free else observe_bounded

    @kernel
    def play(
        progress: Progress,
        played: Played,
        logged: Logged,
        space: Workspace,
        settings: Settings,
        first: int,
        random: Stream,
    ) -> None:
        states, model, counts, draws = progress.states, progress.model, progress.counts, settings.draws
        replications, arms = states.plays.shape
        for row in range(logged.arms.size):
            target, value = logged.arms[row], logged.rewards[row]
            propensity = max(logged.propensities[row], settings.least)
            chance = settings.least / propensity
            played.expected[row] = expected(model, target)
            for replication in range(replications):
                memory, shared = states.memory[replication], states.shared[replication]
                state = PolicyState(memory, shared, states.last_played[replication], None, None)
                params, plays = read_params(states.params[replication]), states.plays[replication]
                own = shifted(random, replication)
                number = first + row if settings.log_clock else plays.sum() + 1
                counts[:] = 0
                arm = least_played_arm(plays, settings.burn_in)
                if arm >= 0:
                    if settings.learn_all and plays[target] == plays[arm]:
                        arm = target  # the burn-in of the logging policy had another order of the arms
                    counts[arm] = draws
                    progress.burning[0] += 1.0 / replications
                else:
                    others = shifted(random, replications - 1 + replication * draws)
                    arm = choose(state, number, params, space, own)
                    count_choices(state, number, params, space, others, counts, draws)
                for other in range(arms):
                    if counts[other] > 0:
                        probability = counts[other] / draws / replications
                        progress.shares[other] += probability
                        played.direct[row] += probability * expected(model, other)
                played.weight[row] += counts[target] / draws / replications / propensity
                is_accepted = arm == target and (chance >= 1.0 or uniform(own, REPLAY, first + row, 0) < chance)
                if is_accepted:
                    played.accepted[row] += 1.0 / replications
                if is_accepted or settings.learn_all:
                    learn(state, target, Reward(value, number, number, None), params)
                    plays[target] += 1
            model.overall[0] += 1.0
            model.overall[1] += value
            observe(model.memory, target, value)

    return play


@kernel
def expected(model: Model, arm: int) -> float:
    """Return the mean reward that the model expects of an arm."""
    known = adaptive_forgetting.load(model.memory, arm)
    if known.w > 0.0:
        return known.mean
    return model.overall[1] / model.overall[0] if model.overall[0] > 0.0 else 0.0


PARAMS = adaptive_forgetting.make_params()
UNIT_FREE_PARAMS = adaptive_forgetting.make_unit_free_params(0.001, 0.0)


@kernel
def observe_unit_free(memory: np.ndarray, arm: int, value: float) -> None:
    """Update the model with a reward in any unit."""
    known = adaptive_forgetting.load(memory, arm)
    adaptive_forgetting.store(memory, arm, adaptive_forgetting.observe_unit_free(known, value, UNIT_FREE_PARAMS))


@kernel
def observe_bounded(memory: np.ndarray, arm: int, value: float) -> None:
    """Update the model with a reward; it forgets as fast as the arm changes."""
    known = adaptive_forgetting.load(memory, arm)
    adaptive_forgetting.store(memory, arm, adaptive_forgetting.observe(known, value, PARAMS))


class Player:
    """The replay of a log through one policy."""

    def __init__(
        self,
        policy: Policy,
        arms: tuple[str, ...],
        *,
        least: float,
        replications: int,
        draws: int,
        log_clock: bool,
        learn_all: bool,
        seed: int,
        domain: RewardDomain = BOUNDED,
    ) -> None:
        Bandit(policy, arms, seed=seed)  # raises an error for policies that need a simulation
        self.policy, self._unit_free = policy, not domain.is_within(BOUNDED)
        self.settings = Settings(policy.burn_in, draws, least, log_clock, learn_all)
        self.random = stream(seed)
        states = initial_states(policy, len(arms), np.ones(replications, dtype=np.int64), LARGEST_STEP)
        model = Model(np.zeros((adaptive_forgetting.SIZE, len(arms))), np.zeros(2))
        model.memory[:] = np.array(adaptive_forgetting.START)[:, None]
        self.progress = Progress(
            states=states._replace(plays=np.zeros((replications, len(arms)), dtype=np.int64)),
            model=model,
            shares=np.zeros(len(arms)),
            burning=np.zeros(1),
            counts=np.zeros(len(arms), dtype=np.int64),
        )
        self.shares, self.burning = self.progress.shares, self.progress.burning
        self.space = new_workspace(policy.functions, len(arms), TABLE_HORIZON)
        self.rows = 0

    def play(self, logged: Logged) -> Played:
        """Replay the next rows."""
        played = Played(*(np.zeros(len(logged.arms)) for _ in Played._fields))
        play = _compiled_play(self.policy.functions, self._unit_free)
        play(self.progress, played, logged, self.space, self.settings, self.rows + 1, self.random)
        self.rows += len(logged.arms)
        return played
