"""Bandit: named arms, one decision at a time."""

import copy
import hashlib
import itertools
import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from dynabandit.bandit import serialization
from dynabandit.bandit.arms import Arm, Arms, Roster
from dynabandit.bandit.traffic_limits import Shares
from dynabandit.core.streams import LARGEST_SEED, LARGEST_STEP, SHARE, stream, uniform
from dynabandit.errors import integer, reward as checked_reward
from dynabandit.estimators.base import Belief
from dynabandit.policies import Policy, compiled, policy as make_policy
from dynabandit.policies.choose_arm import SCRATCH_ROWS

__all__ = ["TABLE_HORIZON", "Bandit"]

LARGEST_SHARED = 10**8  # 0.8 GB; a state that large is of no use as JSON
MANY_REWARDS = 4096  # taken in at a time
TABLE_HORIZON = 1024  # how far the tables of a policy reach; past it the same numbers are computed one by one


class Bandit:
    """A policy behind a product of your own: ask it for an arm, tell it the reward.

    The same functions decide as in a simulation, from the same random streams: fed the same rewards, a bandit
    makes the same choices. A `choose` is a step, whether or not its reward ever comes; a reward counts when it
    arrives. Idle times count steps; the window of SW-UCB and the decay of D-UCB move with rewards.
    Not safe for several threads at once.

    Parameters
    ----------
    policy
        A policy or its name.
    arms
        The names of the arms, at least two different strings.
    seed
        Of all randomness; by default an unpredictable one.
    parameters
        Of the policy, where it is given by name.

    Examples
    --------
    >>> import dynabandit as db
    >>> bandit = db.Bandit("aff-ots", arms=["red", "green", "blue"], seed=7)
    >>> for _ in range(100):
    ...     arm = bandit.choose()
    ...     bandit.reward(arm, 1 if arm == "blue" else 0)
    >>> max(bandit.arms, key=lambda name: bandit.arms[name].plays)
    'blue'

    It goes on where it stopped, bit for bit:

    >>> again = db.Bandit.from_json(bandit.to_json())
    >>> [again.choose() for _ in range(5)] == [bandit.choose() for _ in range(5)]
    True
    """

    def __init__(self, policy: Policy | str, arms: Sequence[str], seed: int | None = None, **parameters: Any) -> None:
        self._policy = _usable(make_policy(policy, **parameters))
        self._seed = integer("seed", secrets.randbits(64) if seed is None else seed, 0, LARGEST_SEED)
        self._step = 0
        self._roster = Roster(arms)
        self._shares: Shares | None = None  # None while no arm has a limit
        self._forget()

    def _forget(self) -> None:
        """Start the policy's state anew: nothing is known about any arm."""
        columns = len(self._roster)
        self._memory = np.zeros((_memory_size(self._policy, columns), columns))
        self._shared = np.zeros(_shared_size(self._policy))
        self._prepare()
        self._policy.kernels.start(self._memory, self._shared, 0, self._numbers)
        self._memory[:] = self._memory[:, :1]  # all arms start alike

    def _prepare(self) -> None:
        """Compute what follows from the policy, the seed and the number of arms."""
        self._columns = self._roster.open_columns()
        self._whole = len(self._columns) == len(self._roster)
        self._numbers, self._table, self._scratch = self._sized(len(self._columns))
        self._source = stream(self._seed)
        self._burning = True

    def _sized(self, arms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        arms = max(arms, 1)
        return (
            self._policy.numbers(arms),
            self._policy.kernels.table(arms, TABLE_HORIZON),
            np.empty((SCRATCH_ROWS, arms)),
        )

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._policy

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
        return Arms((name, self._describe(column)) for name, column in self._roster.index.items())

    def belief(self, column: int) -> Belief:
        """Return what the policy holds of a column, also of an arm that was removed."""
        return self._policy.belief(self._memory[:, column], self._shared)

    def _describe(self, column: int) -> Arm:
        roster = self._roster
        return Arm(
            *self.belief(column),
            idle=self._step - int(roster.last[column]),
            plays=int(roster.plays[column]),
            paused=bool(roster.paused[column]),
        )

    @property
    def names(self) -> Sequence[str]:
        """The name of every column, removed arms included; the place of an arm never changes."""
        return self._roster.names

    @property
    def active(self) -> Collection[str]:
        """The names of the arms that were not removed."""
        return self._roster.index.keys()

    def choose(self) -> str:
        """Return the arm to play now."""
        return self._roster.names[self.choose_column()]

    def choose_column(self) -> int:
        """Return the column of the arm to play now, its place in `names`."""
        step = integer("step", self._step + 1, 1, LARGEST_STEP)
        if len(self._columns) == 0:
            raise ValueError("no arm can be chosen: every arm is paused; resume one, or add another")
        column = self._pick(step) if self._shares is None else self._pick_with_shares(self._shares, step)
        self._step = step
        self._roster.play(column, step)
        return column

    def _pick(self, step: int) -> int:
        burning = self._burn_in(self._columns) if self._burning else -1
        if burning >= 0:
            return burning
        self._burning = False
        if not self._whole:
            return self._choose_among(self._columns, step)
        everything = (self._memory, self._shared, self._roster.last, self._scratch)  # nothing to copy
        choose = compiled.choose(self._policy.kernels)
        return int(choose(*everything, step, self._numbers, self._table, self._source))

    def _pick_with_shares(self, shares: Shares, step: int) -> int:
        columns = shares.open(self._columns)
        place = shares.reserved(columns, uniform(self._source, SHARE, step, 0))
        column = int(columns[place]) if place >= 0 else self._burn_in(columns)
        if column < 0:
            column = self._choose_among(columns, step)
        shares.plays[column] += 1
        return column

    def _choose_among(self, columns: np.ndarray, step: int) -> int:
        return int(columns[compiled.choose(self._policy.kernels)(*self._seen(columns, step))])

    def _seen(self, columns: np.ndarray, step: int) -> tuple[Any, ...]:
        """Return what a decision among some of the columns looks at."""
        numbers, table, scratch = self._sized(len(columns))
        memory = np.ascontiguousarray(self._memory[:, columns])
        return memory, self._shared, self._roster.last[columns], scratch, step, numbers, table, self._source

    def _burn_in(self, columns: np.ndarray) -> int:
        """Return the column whose turn it is in the burn-in, or -1 after it."""
        return self._roster.rarest(columns, self._policy.burn_in)

    def propensities(self, draws: int = 200) -> dict[str, float]:
        """Return the probability that the next `choose` takes each arm, estimated from that many other draws.

        Where the policy decides without chance the result is exact, and so is the part of a least share.
        """
        draws = integer("draws", draws, 1, LARGEST_STEP)
        if len(self._columns) == 0:
            return {}
        columns = self._columns if self._shares is None else self._shares.open(self._columns)
        counts = np.zeros(len(columns), dtype=np.int64)
        burning = self._burn_in(columns)
        if burning >= 0:
            counts[np.searchsorted(columns, burning)] = draws
        else:
            compiled.count_choices(self._policy.kernels)(*self._seen(columns, self._step + 1), counts, draws)
        probabilities = counts / draws
        if self._shares is not None:
            probabilities = self._shares.mixed(columns, probabilities)
        return {self._roster.names[column]: float(p) for column, p in zip(columns, probabilities, strict=True)}

    def reward(self, arm: str, value: float) -> None:
        """Take in a reward in [0, 1] of an arm that was chosen."""
        self.reward_column(self._roster.column(arm), checked_reward(value))

    def reward_column(self, column: int, value: float) -> None:
        """Take in a reward of a column, also of an arm that was removed after it had been chosen.

        The idle time of the arm goes on counting from its latest choice, however late the reward is.
        """
        compiled.learn(self._policy.kernels)(self._memory, self._shared, column, value, self._numbers)

    def reward_columns(self, rewards: Sequence[tuple[int, float]]) -> None:
        """Take in many (column, reward) pairs in their order, as `reward_column` would, but much faster."""
        columns = np.array([column for column, _ in rewards], dtype=np.int64)
        values = np.array([value for _, value in rewards], dtype=np.float64)
        compiled.learn_many(self._policy.kernels)(self._memory, self._shared, columns, values, self._numbers)

    def swapped(self, policy: Policy | str, rewards: Iterable[tuple[int, float]], **parameters: Any) -> "Bandit":
        """Return a bandit that goes on from this step with another policy, warmed by (column, reward) pairs."""
        other = self.copy()
        other._policy = _usable(make_policy(policy, **parameters))
        other._forget()
        pairs = iter(rewards)
        while some := list(itertools.islice(pairs, MANY_REWARDS)):
            other.reward_columns(some)
        return other

    def adopting(self, other: "Bandit") -> "Bandit | None":
        """Return a bandit that goes on from this step with the policy of another and all that it has learnt.

        None where the other learnt about other arms: then only `swapped` gives what would have been learnt.
        """
        numbers = other._policy.numbers(max(len(self._columns), 1))
        if len(self._roster) != len(other._roster) or not np.array_equal(numbers, other._numbers):
            return None
        taken = self.copy()
        taken._policy, taken._memory, taken._shared = other._policy, other._memory.copy(), other._shared.copy()
        taken._prepare()
        return taken

    def compile(self) -> None:
        """Compile now what decisions and rewards need, and not at the first of each."""
        if len(self._columns) > 0:
            self._choose_among(self._columns, self._step + 1)
        compiled.learn(self._policy.kernels)(self._memory.copy(), self._shared.copy(), 0, 0.0, self._numbers)

    def add_arm(self, name: str) -> None:
        """Add an arm that nothing is known about yet; a removed arm's name can be used again."""
        self._roster.add(name, self._step)
        if self._shares is not None:
            self._shares.grow()
        self._memory = np.hstack([self._memory, np.zeros((len(self._memory), 1))])
        self._prepare()
        self._policy.kernels.start(self._memory, self._shared, len(self._roster) - 1, self._numbers)

    def remove_arm(self, name: str) -> None:
        """Remove an arm: it is not chosen again, and takes no more rewards."""
        self._roster.remove(name)
        self._prepare()

    def pause_arm(self, name: str) -> None:
        """Leave an arm out of every choice until `resume_arm`; its rewards still count."""
        self._roster.paused[self._roster.column(name)] = True
        self._prepare()

    def resume_arm(self, name: str) -> None:
        """Let a paused arm be chosen again."""
        self._roster.paused[self._roster.column(name)] = False
        self._prepare()

    def paused(self, name: str) -> bool:
        """Return whether an arm is paused."""
        return bool(self._roster.paused[self._roster.column(name)])

    def limit_arm(self, name: str, min_share: float = 0.0, max_share: float = 1.0) -> None:
        """Keep the share that an arm gets of the decisions from now on between two bounds; see `Shares`."""
        shares = self._shares or Shares(len(self._roster))
        shares.limit(self._roster.column(name), min_share, max_share, self._roster.active)
        self._shares = None if shares.unlimited else shares

    def shares(self, name: str) -> tuple[float, float]:
        """Return the least and the most share of an arm."""
        column = self._roster.column(name)
        return (0.0, 1.0) if self._shares is None else self._shares.of(column)

    def copy(self) -> "Bandit":
        """Return a bandit that goes on from here by itself."""
        other = copy.copy(self)
        other._roster = self._roster.copy()
        other._memory, other._shared = self._memory.copy(), self._shared.copy()
        other._shares = copy.deepcopy(self._shares)
        other._prepare()
        return other

    def to_json(self) -> str:
        """Return all there is to know as JSON; `from_json` goes on from it bit for bit."""
        return serialization.write(
            {
                "policy": self._policy.name,
                "parameters": serialization.plain(self._policy.parameters),
                "seed": self._seed,
                "step": self._step,
                "arms": self._roster.to_json(),
                "shares": None if self._shares is None else self._shares.to_json(),
                "memory": [[serialization.number_to_json(value) for value in row] for row in self._memory.tolist()],
                "shared": [serialization.number_to_json(value) for value in self._shared.tolist()],
            }
        )

    def state_hash(self) -> str:
        """Return a hash of all there is to know: equal where two bandits will decide alike for ever.

        Examples
        --------
        >>> one, other = (Bandit("ucb", arms=["a", "b"], seed=1) for _ in range(2))
        >>> one.state_hash() == other.state_hash()
        True
        >>> one.choose(), one.state_hash() == other.state_hash()
        ('a', False)
        """
        shares = None if self._shares is None else self._shares.to_json()
        parameters, names = serialization.plain(self._policy.parameters), self._roster.names
        rest = [self._policy.name, parameters, self._seed, self._step, names, shares]
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())
        for array in (*self._roster.arrays, self._memory, self._shared):
            digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> "Bandit":
        """Return the bandit that `to_json` wrote; `policy` is needed where it is not in the registry."""
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy object, and only where it is not in the registry, got {policy!r}")
        content = serialization.read(text)
        try:
            chosen = serialization.policy_of(content, policy)
            step = integer("step", content["step"], 0, LARGEST_STEP)
            roster = Roster.from_json(content["arms"], step)
            bandit = cls(chosen, [str(column) for column in range(len(roster))], seed=content["seed"])
            shares = content.get("shares")
            bandit._shares = None if shares is None else Shares.from_json(shares)
            memory = np.array([[serialization.number_from_json(value) for value in row] for row in content["memory"]])
            shared = np.array([serialization.number_from_json(value) for value in content["shared"]])
            if memory.shape != bandit._memory.shape or shared.shape != bandit._shared.shape:
                raise ValueError(f"its state has shape {memory.shape}, not {bandit._memory.shape}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"text must be what Bandit.to_json wrote, but cannot be read: {error}") from None
        bandit._step, bandit._roster, bandit._memory, bandit._shared = step, roster, memory, shared
        bandit._prepare()
        return bandit

    def __repr__(self) -> str:
        names = list(self._roster.index)
        shown = names if len(names) <= 5 else [*names[:4], "..."]
        return f"Bandit({self._policy.label}, arms [{', '.join(shown)}], step {self._step})"


def _usable(policy: Policy) -> Policy:
    """Return a policy that can decide without knowing the world, or raise an error."""
    if policy.informed:
        raise ValueError(f"policy {policy.name!r} needs to be told the true means, which only a simulation knows")
    if policy.left_open:
        raise ValueError(f"policy {policy.name!r} needs {_needed(policy)}: only a simulation knows what will come")
    return policy


def _needed(policy: Policy) -> str:
    """Return the parameters that must be given: what to expect, or the one number that follows from it."""
    expected = " and ".join(f"{name}=..." for name in policy.left_open)
    follows = [name for name in ("discount", "window") if policy.parameters.get(name, 0) is None]
    return ", or ".join([expected, *(f"{name}=..." for name in follows)])


def _memory_size(policy: Policy, arms: int) -> int:
    """Return how many numbers the policy keeps of each arm, or raise an error where they are too many."""
    size = policy.memory_size()
    if size * arms > LARGEST_SHARED:
        raise ValueError(
            f"{policy.label} would keep {size} numbers of each of {arms} arms, "
            f"but a bandit keeps at most {LARGEST_SHARED} in all"
        )
    return size


def _shared_size(policy: Policy) -> int:
    """Return how many numbers the policy keeps beside its arms, or raise an error where they are too many."""
    size = policy.shared_size()
    if size > LARGEST_SHARED:
        raise ValueError(f"{policy.label} would keep {size} numbers, but a bandit keeps at most {LARGEST_SHARED}")
    return size
