"""The loop that replays a log through a policy; it is compiled for each policy."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynabandit.bandit import Bandit
from dynabandit.bandit.decision_making import TABLE_HORIZON
from dynabandit.choosing.choose_arm import Workspace, make_choose, make_count_choices, new_workspace
from dynabandit.core.compilation import kernel
from dynabandit.core.context import Context
from dynabandit.core.records import vector_reader
from dynabandit.core.streams import LARGEST_STEP, REPLAY, Stream, shifted, stream, uniform
from dynabandit.core.tie_breaking import break_tie
from dynabandit.features import FeatureEncoder
from dynabandit.offline.log import Logged
from dynabandit.policies import Policy, PolicyFunctions, PolicyState, Reward
from dynabandit.policies.base import compiled_for
from dynabandit.simulation.request import initial_states
from dynabandit.simulation.stepper import Replications, least_played_arm


class ReplayProgress(NamedTuple):
    """What is carried from one part of the log to the next."""

    states: Replications
    shares: np.ndarray  # (arms,): the expected number of choices of each arm
    burning: np.ndarray  # (1,): rows that passed during the burn-in
    counts: np.ndarray  # (arms,): scratch


class Played(NamedTuple):
    """What a policy would have done at each row, averaged over the replications."""

    weight: np.ndarray  # its probability of the logged arm, over the propensity
    direct: np.ndarray  # the mean reward that the reward model expects of its choice
    accepted: np.ndarray  # the share of replications that chose the logged arm and learned from it


@functools.cache
def _compiled_play(functions: PolicyFunctions) -> Callable[..., None]:
    return compiled_for(functions, make_play(functions))


class ReplaySettings(NamedTuple):
    """How a log is replayed."""

    burn_in: int
    draws: int  # for the probability of each choice
    least: float  # smaller propensities are replaced by this one
    log_clock: bool  # whether a step is a row of the log, not a row that the policy accepted
    learn_all: bool  # whether the policy learns from every row, not only from rows that it accepted


def make_play(functions: PolicyFunctions) -> Callable[..., None]:
    """Return play(progress, played, logged, expected, space, settings, first, random), which replays some rows.

    At each row every replication estimates the probability of each choice, and chooses. If that is the arm of the row,
    it accepts the row, with a probability that corrects for unequal propensities (rejection sampling). It learns from
    accepted rows or, with `learn_all`, from every row. Then the burn-in chooses any of the least played arms, with
    equal probability, except if the logging policy had no choice either. `expected` has what a reward model expects of
    each arm.
    """
    choose = make_choose(functions)
    count_choices = make_count_choices(choose)
    learn, read_params, contextual = functions.learn, vector_reader(functions.params), functions.contextual

    @kernel
    def play(
        progress: ReplayProgress,
        played: Played,
        logged: Logged,
        expected: np.ndarray,
        space: Workspace,
        settings: ReplaySettings,
        first: int,
        random: Stream,
    ) -> None:
        states, counts, draws = progress.states, progress.counts, settings.draws
        replications, arms = states.plays.shape
        for row in range(logged.arms.size):
            target, value = logged.arms[row], logged.rewards[row]
            propensity = max(logged.propensities[row], settings.least)
            chance = settings.least / propensity
            features = logged.features[row] if contextual else logged.features[0]
            here = Workspace(space.scratch, space.tree, space.table, features)
            for replication in range(replications):
                memory, shared = states.memory[replication], states.shared[replication]
                models = states.models[replication] if contextual else None
                state = PolicyState(memory, shared, states.last_played[replication], None, models)
                params, plays = read_params(states.params[replication]), states.plays[replication]
                own = shifted(random, replication)
                number = first + row if settings.log_clock else plays.sum() + 1
                counts[:] = 0
                total = draws
                arm = least_played_arm(plays, settings.burn_in)
                if arm >= 0:
                    least_played = plays[arm]
                    if not settings.learn_all:
                        counts[arm] = draws
                    elif logged.propensities[row] >= 1.0 and plays[target] == least_played:
                        arm = target  # also in a burn-in, in another order of the arms
                        counts[arm] = draws
                    else:  # the logged arm must not decide: its reward would be weighted by a choice that knows it
                        arm = break_tie(plays, least_played, number, own)
                        for other in range(arms):
                            counts[other] = draws if plays[other] == least_played else 0
                        total = counts.sum()
                    progress.burning[0] += 1.0 / replications
                else:
                    others = shifted(random, replications - 1 + replication * draws)
                    arm = choose(state, number, params, here, own)
                    count_choices(state, number, params, here, others, counts, draws)
                for other in range(arms):
                    if counts[other] > 0:
                        probability = counts[other] / total / replications
                        progress.shares[other] += probability
                        played.direct[row] += probability * expected[row, other]
                played.weight[row] += counts[target] / total / replications / propensity
                is_accepted = arm == target and (chance >= 1.0 or uniform(own, REPLAY, first + row, 0) < chance)
                if is_accepted:
                    played.accepted[row] += 1.0 / replications
                if is_accepted or settings.learn_all:
                    state.last_played[target] = number
                    known = features[0] if contextual else None
                    learn(state, target, Reward(value, number, number, known), params)
                    plays[target] += 1

    return play


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
        features: FeatureEncoder | None = None,
    ) -> None:
        Bandit(policy, arms, seed=seed, features=features)  # raises an error for policies that need a simulation
        context = None if features is None else Context(features.dimension, per_arm=False)
        self.policy = policy
        self.settings = ReplaySettings(policy.burn_in, draws, least, log_clock, learn_all)
        self.random = stream(seed)
        states = initial_states(policy, len(arms), np.ones(replications, dtype=np.int64), LARGEST_STEP, context=context)
        self.progress = ReplayProgress(
            states=states._replace(plays=np.zeros((replications, len(arms)), dtype=np.int64)),
            shares=np.zeros(len(arms)),
            burning=np.zeros(1),
            counts=np.zeros(len(arms), dtype=np.int64),
        )
        self.shares, self.burning = self.progress.shares, self.progress.burning
        self.space = new_workspace(policy.functions, len(arms), TABLE_HORIZON)
        self.rows = 0

    def play(self, logged: Logged, expected: np.ndarray) -> Played:
        """Replay the next rows; `expected` is the prediction of a reward model (`offline.reward_model`)."""
        played = Played(*(np.zeros(len(logged.arms)) for _ in Played._fields))
        play = _compiled_play(self.policy.functions)
        play(self.progress, played, logged, expected, self.space, self.settings, self.rows + 1, self.random)
        self.rows += len(logged.arms)
        return played
