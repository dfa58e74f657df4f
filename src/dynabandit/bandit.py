"""Bandit: named arms, one decision at a time."""

import copy
import functools
import hashlib
import itertools
import json
import secrets
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import Any

import numpy as np

from dynabandit import saving
from dynabandit.arms import Arm, Arms
from dynabandit.errors import integer, listed, nearest, reward as checked_reward
from dynabandit.estimators.base import Belief
from dynabandit.kernels.compilation import compiled, kernel
from dynabandit.kernels.streams import LARGEST_STEP, SHARE, stream, uniform
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.policies.base import Kernels
from dynabandit.policies.decision import SCRATCH_ROWS, make_choose, make_count_choices
from dynabandit.shares import Shares

__all__ = ["Arm", "Arms", "Bandit"]

LARGEST_SHARED = 10**8  # 0.8 GB; a state that large is of no use as JSON
MANY_REWARDS = 4096  # taken in at a time
TABLE_HORIZON = 1024  # how far the tables of a policy reach; past it the same numbers are computed one by one


@functools.cache
def _compiled(kernels: Kernels) -> tuple[Callable[..., int], Callable[..., None]]:
    return compiled(make_choose(kernels)), compiled(kernels.learn)


@functools.cache
def _compiled_learn_many(kernels: Kernels) -> Callable[..., None]:
    learn = kernels.learn

    @kernel
    def learn_many(
        memory: np.ndarray, shared: np.ndarray, columns: np.ndarray, values: np.ndarray, numbers: np.ndarray
    ) -> None:
        for i in range(columns.size):
            learn(memory, shared, columns[i], values[i], numbers)

    return compiled(learn_many)


@functools.cache
def _compiled_count(kernels: Kernels) -> Callable[..., None]:
    return compiled(make_count_choices(make_choose(kernels)))


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
        self._seed = integer("seed", secrets.randbits(64) if seed is None else seed, 0, 2**64 - 1)
        self._step = 0
        if isinstance(arms, str) or not hasattr(arms, "__len__") or len(arms) < 2:
            raise ValueError(f"arms must be a list with at least 2 different names, got {arms!r}")
        taken: set[str] = set()
        for name in arms:
            _check_name(name, taken)
            taken.add(name)
        self._names = list(arms)
        count = len(self._names)
        self._active = np.ones(count, dtype=bool)
        self._paused = np.zeros(count, dtype=bool)
        self._last = np.zeros(count, dtype=np.int64)
        self._plays = np.zeros(count, dtype=np.int64)
        self._shares: Shares | None = None  # None while no arm has a limit
        self._forget()

    def _forget(self) -> None:
        """Start the policy's state anew: nothing is known about any arm."""
        self._memory = np.zeros((_memory_size(self._policy, len(self._names)), len(self._names)))
        self._shared = np.zeros(_shared_size(self._policy))
        self._prepare()
        self._policy.kernels.start(self._memory, self._shared, 0, self._numbers)
        self._memory[:] = self._memory[:, :1]  # all arms start alike

    def _prepare(self) -> None:
        """Compute what follows from the policy, the seed and the number of arms."""
        self._columns = np.flatnonzero(self._active & ~self._paused)
        self._index = {self._names[column]: int(column) for column in np.flatnonzero(self._active)}
        self._whole = len(self._columns) == len(self._names)
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
        return Arms((name, self._describe(column)) for name, column in self._index.items())

    def belief(self, column: int) -> Belief:
        """Return what the policy holds of a column, also of an arm that was removed."""
        return self._policy.belief(self._memory[:, column], self._shared)

    def _describe(self, column: int) -> Arm:
        idle = self._step - int(self._last[column])
        return Arm(*self.belief(column), idle=idle, plays=int(self._plays[column]), paused=bool(self._paused[column]))

    @property
    def names(self) -> Sequence[str]:
        """The name of every column, removed arms included; the place of an arm never changes."""
        return self._names

    @property
    def active(self) -> Collection[str]:
        """The names of the arms that were not removed."""
        return self._index.keys()

    def choose(self) -> str:
        """Return the arm to play now."""
        return self._names[self.choose_column()]

    def choose_column(self) -> int:
        """Return the column of the arm to play now, its place in `names`."""
        step = integer("step", self._step + 1, 1, LARGEST_STEP)
        if len(self._columns) == 0:
            raise ValueError("no arm can be chosen: every arm is paused; resume one, or add another")
        column = self._pick(step) if self._shares is None else self._pick_with_shares(self._shares, step)
        self._step = step
        self._last[column] = step
        self._plays[column] += 1
        return column

    def _pick(self, step: int) -> int:
        burning = self._burn_in(self._columns) if self._burning else -1
        if burning >= 0:
            return burning
        self._burning = False
        choose = _compiled(self._policy.kernels)[0]
        if not self._whole:
            return int(self._columns[choose(*self._seen(self._columns, step))])
        everything = (self._memory, self._shared, self._last, self._scratch)  # nothing to copy
        return int(choose(*everything, step, self._numbers, self._table, self._source))

    def _pick_with_shares(self, shares: Shares, step: int) -> int:
        columns = shares.open(self._columns)
        place = shares.reserved(columns, uniform(self._source, SHARE, step, 0))
        column = int(columns[place]) if place >= 0 else self._burn_in(columns)
        if column < 0:
            column = int(columns[_compiled(self._policy.kernels)[0](*self._seen(columns, step))])
        shares.plays[column] += 1
        return column

    def _seen(self, columns: np.ndarray, step: int) -> tuple[Any, ...]:
        """Return what a decision among some of the columns looks at."""
        numbers, table, scratch = self._sized(len(columns))
        memory = np.ascontiguousarray(self._memory[:, columns])
        return memory, self._shared, self._last[columns], scratch, step, numbers, table, self._source

    def _burn_in(self, columns: np.ndarray) -> int:
        """Return the column whose turn it is in the burn-in, or -1 after it."""
        plays = self._plays[columns]
        place = int(plays.argmin())
        return int(columns[place]) if plays[place] < self._policy.burn_in else -1

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
            _compiled_count(self._policy.kernels)(*self._seen(columns, self._step + 1), counts, draws)
        probabilities = counts / draws
        if self._shares is not None:
            probabilities = self._shares.mixed(columns, probabilities)
        return {self._names[column]: float(p) for column, p in zip(columns, probabilities, strict=True)}

    def reward(self, arm: str, value: float) -> None:
        """Take in a reward in [0, 1] of an arm that was chosen."""
        self.reward_column(self._column(arm), checked_reward(value))

    def reward_column(self, column: int, value: float) -> None:
        """Take in a reward of a column, also of an arm that was removed after it had been chosen.

        The idle time of the arm goes on counting from its latest choice, however late the reward is.
        """
        _compiled(self._policy.kernels)[1](self._memory, self._shared, column, value, self._numbers)

    def reward_columns(self, rewards: Sequence[tuple[int, float]]) -> None:
        """Take in many (column, reward) pairs in their order, as `reward_column` would, but much faster."""
        columns = np.array([column for column, _ in rewards], dtype=np.int64)
        values = np.array([value for _, value in rewards], dtype=np.float64)
        _compiled_learn_many(self._policy.kernels)(self._memory, self._shared, columns, values, self._numbers)

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
        if len(self._names) != len(other._names) or not np.array_equal(numbers, other._numbers):
            return None
        taken = self.copy()
        taken._policy, taken._memory, taken._shared = other._policy, other._memory.copy(), other._shared.copy()
        taken._prepare()
        return taken

    def compile(self) -> None:
        """Compile now what decisions and rewards need, and not at the first of each."""
        choose, learn = _compiled(self._policy.kernels)
        if len(self._columns) > 0:
            choose(*self._seen(self._columns, self._step + 1))
        learn(self._memory.copy(), self._shared.copy(), 0, 0.0, self._numbers)

    def add_arm(self, name: str) -> None:
        """Add an arm that nothing is known about yet; a removed arm's name can be used again."""
        _check_name(name, self._index)
        self._names.append(name)
        self._active = np.append(self._active, True)
        self._paused = np.append(self._paused, False)
        if self._shares is not None:
            self._shares.grow()
        self._memory = np.hstack([self._memory, np.zeros((len(self._memory), 1))])
        self._last = np.append(self._last, self._step)
        self._plays = np.append(self._plays, 0)
        self._prepare()
        self._policy.kernels.start(self._memory, self._shared, len(self._names) - 1, self._numbers)

    def remove_arm(self, name: str) -> None:
        """Remove an arm: it is not chosen again, and takes no more rewards."""
        column = self._column(name)
        if len(self._index) <= 2:
            raise ValueError(f"cannot remove arm {name!r}: a bandit needs at least 2 arms")
        self._active[column] = False
        self._prepare()

    def pause_arm(self, name: str) -> None:
        """Leave an arm out of every choice until `resume_arm`; its rewards still count."""
        self._paused[self._column(name)] = True
        self._prepare()

    def resume_arm(self, name: str) -> None:
        """Let a paused arm be chosen again."""
        self._paused[self._column(name)] = False
        self._prepare()

    def limit_arm(self, name: str, min_share: float = 0.0, max_share: float = 1.0) -> None:
        """Keep the share that an arm gets of the decisions from now on between two bounds; see `Shares`."""
        shares = self._shares or Shares(len(self._names))
        shares.limit(self._column(name), min_share, max_share, self._active)
        self._shares = None if shares.idle else shares

    def shares(self, name: str) -> tuple[float, float]:
        """Return the least and the most share of an arm."""
        column = self._column(name)
        return (0.0, 1.0) if self._shares is None else self._shares.of(column)

    def _column(self, name: str) -> int:
        if isinstance(name, str) and name in self._index:
            return self._index[name]
        known = listed(self._index)
        if isinstance(name, str) and name in self._names:
            raise ValueError(f"arm {name!r} was removed. Arms: {known}")
        raise ValueError(f"unknown arm {name!r}.{nearest(name, self._index)} Arms: {known}")

    def copy(self) -> "Bandit":
        """Return a bandit that goes on from here by itself."""
        other = copy.copy(self)
        for name in ("_active", "_paused", "_last", "_plays", "_memory", "_shared"):
            setattr(other, name, getattr(self, name).copy())
        other._names = list(self._names)
        other._shares = copy.deepcopy(self._shares)
        other._prepare()
        return other

    def to_json(self) -> str:
        """Return all there is to know as JSON; `from_json` goes on from it bit for bit."""
        content = {
            "format": saving.FORMAT,
            "version": saving.VERSION,
            "policy": self._policy.name,
            "parameters": _plain(self._policy.parameters),
            "seed": self._seed,
            "step": self._step,
            "arms": [
                {"name": name, "active": active, "paused": paused, "last": last, "plays": plays}
                for name, active, paused, last, plays in zip(
                    self._names,
                    self._active.tolist(),
                    self._paused.tolist(),
                    self._last.tolist(),
                    self._plays.tolist(),
                    strict=True,
                )
            ],
            "shares": None if self._shares is None else self._shares.to_json(),
            "memory": [[saving.plain(value) for value in row] for row in self._memory.tolist()],
            "shared": [saving.plain(value) for value in self._shared.tolist()],
        }
        return json.dumps({**content, "checksum": saving.checksum(content)}, allow_nan=False)

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
        rest = [self._policy.name, _plain(self._policy.parameters), self._seed, self._step, self._names, shares]
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())
        for array in (self._active, self._paused, self._last, self._plays, self._memory, self._shared):
            digest.update(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> "Bandit":
        """Return the bandit that `to_json` wrote; `policy` is needed where it is not in the registry."""
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy object, and only where it is not in the registry, got {policy!r}")
        content = saving.read(text)
        try:
            if policy is None:
                policy = make_policy(content["policy"], **content["parameters"])
            elif policy.name != content["policy"]:
                raise ValueError(f"it holds policy {content['policy']!r}, not {policy.name!r}")
            elif _plain(policy.parameters) != content["parameters"]:
                raise ValueError(f"it holds parameters {content['parameters']}, not {policy.parameters}")
            names = _checked_names(content["arms"])
            bandit = cls(policy, [str(i) for i in range(len(names))], seed=content["seed"])
            bandit._names = names
            bandit._step = step = integer("step", content["step"], 0, LARGEST_STEP)
            bandit._active = np.array([arm["active"] for arm in content["arms"]], dtype=bool)
            bandit._paused = np.array([arm.get("paused", False) for arm in content["arms"]], dtype=bool)
            shares = content.get("shares")
            bandit._shares = None if shares is None else Shares.from_json(shares)
            bandit._last = _counts("last", content["arms"], step)
            bandit._plays = _counts("plays", content["arms"], step)
            memory = np.array([[saving.number_of(value) for value in row] for row in content["memory"]])
            shared = np.array([saving.number_of(value) for value in content["shared"]])
            if memory.shape != bandit._memory.shape or shared.shape != bandit._shared.shape:
                raise ValueError(f"its state has shape {memory.shape}, not {bandit._memory.shape}")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"text must be what Bandit.to_json wrote, but cannot be read: {error}") from None
        bandit._memory = memory
        bandit._shared = shared
        bandit._prepare()
        return bandit

    def __repr__(self) -> str:
        names = list(self._index)
        shown = names if len(names) <= 5 else [*names[:4], "..."]
        return f"Bandit({self._policy.label}, arms [{', '.join(shown)}], step {self._step})"


def _usable(policy: Policy) -> Policy:
    """Return a policy that can decide without knowing the world, or raise an error."""
    if policy.informed:
        raise ValueError(f"policy {policy.name!r} needs to be told the true means, which only a simulation knows")
    if policy.needs_tuning:
        missing = next(name for name, value in policy.parameters.items() if value is None)
        raise ValueError(
            f"policy {policy.name!r} needs {missing}=...: only a simulation can tune it from the path it knows"
        )
    if policy.needs_horizon:
        raise ValueError(f"policy {policy.name!r} needs horizon=...: only a simulation knows how long it will run")
    return policy


def _check_name(name: Any, taken: Container[str]) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"an arm's name must be a string that is not empty, got {name!r}")
    if name in taken:
        raise ValueError(f"arms must have different names, got {name!r} twice")


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


def _checked_names(arms: list[dict[str, Any]]) -> list[str]:
    """Return the names of the arms that `to_json` wrote; a removed arm may share its name with another."""
    taken: set[str] = set()
    for arm in arms:
        if not isinstance(arm["active"], bool):
            raise TypeError(f"active must be true or false, got {arm['active']!r}")
        _check_name(arm["name"], taken if arm["active"] else ())
        if arm["active"]:
            taken.add(arm["name"])
    if len(taken) < 2:
        raise ValueError(f"at least 2 arms must be active, got {len(taken)}")
    return [arm["name"] for arm in arms]


def _counts(key: str, arms: list[dict[str, Any]], step: int) -> np.ndarray:
    return np.array([integer(key, arm[key], 0, step) for arm in arms], dtype=np.int64)


def _plain(value: Any) -> Any:
    """Return parameters as JSON would give them back: no numbers of NumPy, and lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
