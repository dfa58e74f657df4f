"""Bandit: named arms, one decision at a time."""

import copy
import itertools
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit import serialization
from dynabandit.bandit.arms import Arm, ArmColumns, Arms
from dynabandit.bandit.live_policies import accepted_rewards, check_size, law_after_change, live_policy
from dynabandit.bandit.reward_learning import RewardLearning
from dynabandit.bandit.traffic_limits import TrafficLimits
from dynabandit.core.records import to_row
from dynabandit.core.streams import LARGEST_LIVE_STEP, LARGEST_SEED, LARGEST_STEP, SHARE, shifted, stream, uniform
from dynabandit.environments import RewardLaw, reward_law
from dynabandit.estimators.base import Belief
from dynabandit.policies import AUTO, Policy, PolicyState, policy as make_policy, resolved
from dynabandit.policies.base import new_state
from dynabandit.policies.choose_arm import Workspace, new_workspace
from dynabandit.simulation import compiled
from dynabandit.simulation.stepper import least_played_arm
from dynabandit.validation import BOUNDED, RewardDomain, integer

MANY_REWARDS = 4096  # learned at a time
NUMBERS_AT_ONCE = 4_000_000  # of a state times draws, in one part of the draws
TABLE_HORIZON = 1024  # the length of a policy's table; beyond it the policy computes the same numbers one by one


class Bandit(RewardLearning):
    """A policy that makes live decisions: ask it for an arm, and report the reward.

    It uses the functions and random streams of a simulation: with the same rewards and delays, it makes the same
    choices. Each `choose` is a step, whether or not its reward arrives; a reward counts when it arrives, and until then
    the decision is pending (docs/delayed-rewards.md). Idle times are counted in steps, the window of SW-UCB and the
    decay of D-UCB in rewards. Not safe for concurrent threads.

    Parameters
    ----------
    policy
        A policy or its name; by default the recommended policy.
    arms
        The names of the arms, at least two different strings.
    seed
        The seed of all randomness; by default an unpredictable one.
    rewards
        The reward law whose rewards are accepted; by default what the policy is made for, mostly numbers in [0, 1].
    parameters
        The parameters of the policy, if it is given by name.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit(arms=["red", "green", "blue"], seed=7)
    >>> for _ in range(100):
    ...     arm = bandit.choose()
    ...     bandit.reward(arm, 1 if arm == "blue" else 0)
    >>> max(bandit.arms, key=lambda name: bandit.arms[name].plays)
    'blue'

    A restored bandit continues with the same choices:

    >>> again = db.Bandit.from_json(bandit.to_json())
    >>> [again.choose() for _ in range(5)] == [bandit.choose() for _ in range(5)]
    True
    """

    def __init__(
        self,
        policy: Policy | str = AUTO,
        arms: Sequence[str] = (),
        seed: int | None = None,
        rewards: RewardLaw | str | None = None,
        **parameters: Any,
    ) -> None:
        domain = BOUNDED if rewards is None else reward_law(rewards).domain
        self._policy = live_policy(make_policy(resolved(policy, domain), **parameters))
        self._law = None if rewards is None else accepted_rewards(self._policy, rewards).name
        self._seed = integer("seed", secrets.randbits(64) if seed is None else seed, 0, LARGEST_SEED)
        self._step = 0
        self._arms = ArmColumns(arms)
        self._limits: TrafficLimits | None = None  # None if no arm has a limit
        self._reset()

    def _reset(self) -> None:
        """Start the policy's state again, without any reward."""
        columns = len(self._arms)
        check_size(self._policy, columns)
        self._memory, self._shared, *_ = new_state(self._policy, columns, self._policy.params(self._open_arms()))
        self._prepare()

    def _prepare(self) -> None:
        """Compute what follows from the policy, the seed and the arms."""
        functions = self._policy.functions
        self._columns = self._arms.available()
        self._all_open = len(self._columns) == len(self._arms)
        self._params, self._space = self._sized(self._open_arms())
        self._signed_seed = compiled.signed_seed(self._seed)
        self._in_burn_in = True
        self._rewards = accepted_rewards(self._policy, self._law)
        self._choose, self._learn = compiled.choose(functions), compiled.learn(functions)

    def _sized(self, arms: int) -> tuple[np.ndarray, Workspace]:
        return to_row(self._policy.params(arms)), new_workspace(self._policy.functions, arms, TABLE_HORIZON)

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._policy

    @property
    def rewards(self) -> RewardDomain:
        """Which rewards are accepted."""
        return self._rewards

    @property
    def seed(self) -> int:
        """The seed of all randomness."""
        return self._seed

    @property
    def step(self) -> int:
        """How many decisions were made."""
        return self._step

    @property
    def arms(self) -> Arms:
        """What is known about each arm, by name."""
        return Arms((name, self._describe(column)) for name, column in self._arms.index.items())

    def belief(self, column: int) -> Belief:
        """Return the policy's belief about a column, even if its arm was removed."""
        return self._policy.belief(self._memory[:, column], self._shared)

    def plays(self, column: int) -> int:
        """Return how many decisions have taken a column."""
        return int(self._arms.plays[column])

    def pending(self, column: int) -> int:
        """Return how many decisions for a column have neither a reward nor were closed."""
        return int(self._arms.pending[column])

    def _describe(self, column: int) -> Arm:
        arms = self._arms
        return Arm(
            *self.belief(column),
            idle=self._step - int(arms.last_played[column]),
            plays=self.plays(column),
            paused=bool(arms.paused[column]),
            pending=self.pending(column),
        )

    @property
    def names(self) -> Sequence[str]:
        """The name of every column, removed arms included; the column of an arm never changes."""
        return self._arms.names

    @property
    def active(self) -> Collection[str]:
        """The names of the arms that were not removed."""
        return self._arms.index.keys()

    def choose(self) -> str:
        """Return the arm to play now."""
        return self._arms.names[self.choose_column()]

    def choose_column(self) -> int:
        """Return the column of the arm to play now, its place in `names`."""
        step = self._next_step()
        if len(self._columns) == 0:
            raise ValueError("no arm can be chosen: every arm is paused; resume one, or add another")
        column = self._pick(step) if self._limits is None else self._pick_within(self._limits, step)
        self._record_play(column, step)
        return column

    def play_column(self, column: int) -> None:
        """Record a decision for a column that was made elsewhere, as if `choose_column` had returned it.

        Examples
        --------
        >>> bandit = Bandit("ucb", arms=["a", "b"], seed=1)
        >>> bandit.play_column(1)
        >>> bandit.step, bandit.arms["b"].plays
        (1, 1)
        """
        self._record_play(integer("column", column, 0, len(self._arms) - 1), self._next_step())

    def _next_step(self) -> int:
        step = self._step + 1
        return step if step <= LARGEST_LIVE_STEP else integer("step", step, 1, LARGEST_LIVE_STEP)

    def _record_play(self, column: int, step: int) -> None:
        self._step = step
        self._arms.play(column, step)
        if self._limits is not None:
            self._limits.plays[column] += 1

    def _pick(self, step: int) -> int:
        column = self._burn_in_column(self._columns) if self._in_burn_in else -1
        if column >= 0:
            return column
        self._in_burn_in = False
        if not self._all_open:
            return self._choose_among(self._columns, step)
        memory, shared, played, space = self._memory, self._shared, self._arms.played, self._space
        return int(
            self._choose(memory, shared, played, space.scratch, step, self._params, space.table, self._signed_seed)
        )

    def _pick_within(self, limits: TrafficLimits, step: int) -> int:
        columns = limits.allowed(self._columns)
        place = limits.reserved(columns, uniform(stream(self._seed), SHARE, step, 0))
        column = int(columns[place]) if place >= 0 else self._burn_in_column(columns)
        if column < 0:
            column = self._choose_among(columns, step)
        return column

    def _choose_among(self, columns: np.ndarray, step: int) -> int:
        params, space = self._sized(len(columns))
        memory, played = self._part_of(columns)
        place = self._choose(memory, self._shared, played, space.scratch, step, params, space.table, self._signed_seed)
        return int(columns[place])

    def _part_of(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return copies of the memory, the latest plays and the pending plays of some of the columns."""
        return np.ascontiguousarray(self._memory[:, columns]), np.ascontiguousarray(self._arms.played[:, columns])

    def _burn_in_column(self, columns: np.ndarray) -> int:
        """Return the column that the burn-in plays, or -1 after the burn-in."""
        place = least_played_arm(self._arms.plays[columns], self._policy.burn_in)
        return int(columns[place]) if place >= 0 else -1

    def propensities(
        self, draws: int = 200, count_pending: bool = True, between: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """Return the probability that the next `choose` takes each arm, estimated from `draws` independent draws.

        If the policy decides without randomness the result is exact; so is the part of a minimum share. Without
        `count_pending` the policy decides as if no reward were in flight, as release 0.1.0 did. `between` is called
        between parts of the draws, and may end the work by an error.
        """
        draws = integer("draws", draws, 1, LARGEST_STEP)
        if len(self._columns) == 0:
            return {}
        columns = self._columns if self._limits is None else self._limits.allowed(self._columns)
        counts = np.zeros(len(columns), dtype=np.int64)
        burning = self._burn_in_column(columns)
        if burning >= 0:
            counts[np.searchsorted(columns, burning)] = draws
        else:
            params, space = self._policy.params(len(columns)), self._sized(len(columns))[1]
            count = compiled.count_choices(self._policy.functions)
            memory, played = self._part_of(columns)
            played[1] *= count_pending
            state = PolicyState(memory, self._shared, *played)
            part = max(1, NUMBERS_AT_ONCE // (memory.size + self._shared.size))
            for first in range(0, draws, part):
                between()
                random = shifted(stream(self._seed), first)
                count(state, self._step + 1, params, space, random, counts, min(part, draws - first))
        probabilities = counts / draws
        if self._limits is not None:
            probabilities = self._limits.mixed(columns, probabilities)
        return {self._arms.names[column]: float(p) for column, p in zip(columns, probabilities, strict=True)}

    def swapped(self, policy: Policy | str, rewards: Iterable[tuple[int, float, int]], **parameters: Any) -> "Bandit":
        """Return a bandit that continues with a policy that has learned (column, reward, decided_at) triples."""
        other = self.copy()
        other._policy = live_policy(make_policy(resolved(policy, self._rewards), **parameters))
        other._law = self._law or law_after_change(self._rewards, other._policy)
        other._reset()
        triples = iter(rewards)
        while some := list(itertools.islice(triples, MANY_REWARDS)):
            other.reward_columns(some)
        other._arms = self._arms.copy()  # the decisions of these rewards are not pending
        return other

    def adopting(self, other: "Bandit") -> "Bandit | None":
        """Return a bandit that continues from this step with the policy of another bandit and what it has learned.

        Returns None if the other bandit learned about other arms; `swapped` is then the only way.
        """
        params = to_row(other._policy.params(self._open_arms()))
        if len(self._arms) != len(other._arms) or not np.array_equal(params, other._params):
            return None
        taken = self.copy()
        taken._policy, taken._memory, taken._shared = other._policy, other._memory.copy(), other._shared.copy()
        taken._law = other._law
        taken._prepare()
        return taken

    def compile(self) -> None:
        """Compile the functions for decisions and rewards now instead of at their first use."""
        if len(self._columns) > 0:
            self._choose_among(self._columns, self._step + 1)
        state = (self._memory.copy(), self._shared.copy(), self._arms.played.copy())
        self._learn(*state, 0, 0.0, 0, 0, self._params)

    def add_arm(self, name: str) -> None:
        """Add an arm without rewards; the name of a removed arm can be used again."""
        self._arms.add(name, self._step)
        if self._limits is not None:
            self._limits.grow()
        self._memory = np.hstack([self._memory, np.zeros((len(self._memory), 1))])
        self._prepare()
        state = PolicyState(self._memory, self._shared, *self._arms.played)
        self._policy.functions.start(state, len(self._arms) - 1, self._policy.params(self._open_arms()))

    def remove_arm(self, name: str) -> None:
        """Remove an arm: it is not chosen again, and accepts no more rewards."""
        self._arms.remove(name)
        self._prepare()

    def pause_arm(self, name: str) -> None:
        """Exclude an arm from every choice until `resume_arm`; its rewards still count."""
        self._arms.paused[self._arms.of(name)] = True
        self._prepare()

    def resume_arm(self, name: str) -> None:
        """Let a paused arm be chosen again."""
        self._arms.paused[self._arms.of(name)] = False
        self._prepare()

    def paused(self, name: str) -> bool:
        """Return whether an arm is paused."""
        return bool(self._arms.paused[self._arms.of(name)])

    def limit_arm(self, name: str, min_share: float = 0.0, max_share: float = 1.0) -> None:
        """Limit the share of the decisions that an arm gets from now on; see `TrafficLimits`."""
        limits = self._limits or TrafficLimits(len(self._arms))
        limits.limit(self._arms.of(name), min_share, max_share, self._arms.active)
        self._limits = None if limits.unlimited else limits

    def shares(self, name: str) -> tuple[float, float]:
        """Return the minimum and the maximum share of an arm."""
        column = self._arms.of(name)
        return (0.0, 1.0) if self._limits is None else self._limits.of(column)

    def copy(self) -> "Bandit":
        """Return an independent copy."""
        other = copy.copy(self)
        other._arms = self._arms.copy()
        other._memory, other._shared = self._memory.copy(), self._shared.copy()
        other._limits = copy.deepcopy(self._limits)
        other._prepare()
        return other

    def to_json(self) -> str:
        """Return the complete state as JSON; `from_json` continues with the same choices."""
        state = {
            "policy": self._policy.name,
            "parameters": serialization.plain(self._policy.parameters),
            "seed": self._seed,
            "step": self._step,
            "arms": self._arms.to_json(),
            "shares": None if self._limits is None else self._limits.to_json(),
            "memory": serialization.array_to_json(self._memory),
            "shared": serialization.array_to_json(self._shared),
        }
        return serialization.write(state if self._law is None else {**state, "rewards": self._law})

    def state_hash(self) -> str:
        """Return a hash of the complete state: two bandits with equal hashes make the same decisions from now on."""
        limits = None if self._limits is None else self._limits.to_json()
        parameters, names = serialization.plain(self._policy.parameters), self._arms.names
        rest = [self._policy.name, parameters, self._seed, self._step, names, limits]
        *arrays, pending = self._arms.arrays
        arrays += [self._memory, self._shared, *([pending] if pending.any() else [])]
        return serialization.digest(rest, arrays)

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> "Bandit":
        """Return the bandit that `to_json` wrote; `policy` is needed if it is not in the registry."""
        serialization.check_given(policy)
        content = serialization.read(text)
        try:
            chosen = serialization.policy_of(content, policy)
            step = integer("step", content["step"], 0, LARGEST_LIVE_STEP)
            arms = ArmColumns.from_json(content["arms"], step)
            names, law = [str(column) for column in range(len(arms))], content.get("rewards")
            bandit = cls(chosen, names, seed=content["seed"], rewards=law)
            limits = content.get("shares")
            bandit._limits = None if limits is None else TrafficLimits.from_json(limits)
            saved = serialization.array_from_json(content["memory"])
            memory = serialization.check_shape(chosen.restored(saved, arms.last_played), bandit._memory.shape)
            shared = serialization.check_shape(serialization.array_from_json(content["shared"]), bandit._shared.shape)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"text must be what Bandit.to_json wrote, but cannot be read: {error}") from None
        bandit._step, bandit._arms, bandit._memory, bandit._shared = step, arms, memory, shared
        bandit._prepare()
        return bandit

    def __repr__(self) -> str:
        names = list(self._arms.index)
        shown = names if len(names) <= 5 else [*names[:4], "..."]
        return f"Bandit({self._policy.label}, arms [{', '.join(shown)}], step {self._step})"
