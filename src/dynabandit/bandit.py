"""Bandit: named arms, one decision at a time."""

import functools
import hashlib
import json
import math
import secrets
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynabandit.errors import integer, nearest, number, reward as checked_reward
from dynabandit.kernels.compilation import compiled
from dynabandit.kernels.streams import LARGEST_STEP, stream
from dynabandit.policies import Policy, policy as make_policy
from dynabandit.policies.base import Kernels
from dynabandit.policies.decision import SCRATCH_ROWS, make_choose

__all__ = ["Arm", "Arms", "Bandit"]

FORMAT = "dynabandit.bandit"
VERSION = 1
LARGEST_SHARED = 10**8  # 0.8 GB; a state that large is of no use as JSON
TABLE_HORIZON = 1024  # how far the tables of a policy reach; past it the same numbers are computed one by one


class Arm(NamedTuple):
    """What a bandit knows about one arm.

    Before the first reward the mean is NaN, or that of the prior where the policy's memory starts from one, as
    in DTS.
    """

    mean: float
    variance: float
    forgetting: float
    effective_size: float
    idle: int
    plays: int


class Arms(dict[str, Arm]):
    """The arms of a bandit by name, shown as a table."""

    def __repr__(self) -> str:
        width = max(3, *(len(name) for name in self))
        lines = [f"{'arm':<{width}}    mean  variance  forgetting  effective size    idle   plays"]
        for name, arm in self.items():
            lines.append(
                f"{name:<{width}}  {arm.mean:6.3f}  {arm.variance:8.4f}  {arm.forgetting:10.4f}"
                f"  {arm.effective_size:14.1f}  {arm.idle:6d}  {arm.plays:6d}"
            )
        return "\n".join(lines)


@functools.cache
def _compiled(kernels: Kernels) -> tuple[Callable[..., int], Callable[..., None]]:
    return compiled(make_choose(kernels)), compiled(kernels.learn)


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
        self._memory = np.zeros((len(self._policy.slots), count))
        self._shared = np.zeros(_shared_size(self._policy))
        self._last = np.zeros(count, dtype=np.int64)
        self._plays = np.zeros(count, dtype=np.int64)
        self._prepare()
        for arm in range(count):
            self._policy.kernels.start(self._memory, self._shared, arm, self._numbers)

    def _prepare(self) -> None:
        """Compute what follows from the policy, the seed and the number of arms."""
        self._columns = np.flatnonzero(self._active)
        self._index = {self._names[column]: int(column) for column in self._columns}
        self._numbers = self._policy.numbers(len(self._columns))
        self._table = self._policy.kernels.table(len(self._columns), TABLE_HORIZON)
        self._scratch = np.empty((SCRATCH_ROWS, len(self._columns)))
        self._source = stream(self._seed)

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

    def _describe(self, column: int) -> Arm:
        belief = self._policy.belief(self._memory[:, column], self._shared)
        return Arm(*belief, idle=self._step - int(self._last[column]), plays=int(self._plays[column]))

    def choose(self) -> str:
        """Return the arm to play now."""
        step = integer("step", self._step + 1, 1, LARGEST_STEP)
        columns = self._columns
        plays = self._plays[columns]
        if plays.min() < self._policy.burn_in:
            chosen = int(plays.argmin())
        else:
            whole = len(columns) == len(self._names)
            chosen = _compiled(self._policy.kernels)[0](
                self._memory if whole else np.ascontiguousarray(self._memory[:, columns]),
                self._shared,
                self._last if whole else self._last[columns],
                self._scratch,
                step,
                self._numbers,
                self._table,
                self._source,
            )
        column = int(columns[chosen])
        self._step = step
        self._last[column] = step
        self._plays[column] += 1
        return self._names[column]

    def reward(self, arm: str, value: float) -> None:
        """Take in a reward in [0, 1] of an arm that was chosen."""
        column = self._column(arm)
        value = checked_reward(value)
        _compiled(self._policy.kernels)[1](self._memory, self._shared, column, value, self._numbers)

    def add_arm(self, name: str) -> None:
        """Add an arm that nothing is known about yet; a removed arm's name can be used again."""
        _check_name(name, self._index)
        self._names.append(name)
        self._active = np.append(self._active, True)
        self._memory = np.hstack([self._memory, np.zeros((len(self._memory), 1))])
        self._last = np.append(self._last, self._step)
        self._plays = np.append(self._plays, 0)
        self._prepare()
        self._policy.kernels.start(self._memory, self._shared, len(self._names) - 1, self._numbers)

    def remove_arm(self, name: str) -> None:
        """Remove an arm: it is not chosen again, and takes no more rewards."""
        column = self._column(name)
        if len(self._columns) <= 2:
            raise ValueError(f"cannot remove arm {name!r}: a bandit needs at least 2 arms")
        self._active[column] = False
        self._prepare()

    def _column(self, name: str) -> int:
        if isinstance(name, str) and name in self._index:
            return self._index[name]
        known = ", ".join(map(repr, self._index))
        if isinstance(name, str) and name in self._names:
            raise ValueError(f"arm {name!r} was removed. Arms: {known}")
        raise ValueError(f"unknown arm {name!r}.{nearest(name, self._index)} Arms: {known}")

    def to_json(self) -> str:
        """Return all there is to know as JSON; `from_json` goes on from it bit for bit."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "policy": self._policy.name,
            "parameters": _plain(self._policy.parameters),
            "seed": self._seed,
            "step": self._step,
            "arms": [
                {"name": name, "active": bool(active), "last": int(last), "plays": int(plays)}
                for name, active, last, plays in zip(self._names, self._active, self._last, self._plays, strict=True)
            ],
            "memory": [[_to_json(value) for value in row] for row in self._memory.tolist()],
            "shared": [_to_json(value) for value in self._shared.tolist()],
        }
        return json.dumps({**content, "checksum": _checksum(content)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> "Bandit":
        """Return the bandit that `to_json` wrote; `policy` is needed where it is not in the registry."""
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy object, and only where it is not in the registry, got {policy!r}")
        content = _read(text)
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
            bandit._last = _counts("last", content["arms"], step)
            bandit._plays = _counts("plays", content["arms"], step)
            memory = np.array([[_from_json(value) for value in row] for row in content["memory"]])
            shared = np.array([_from_json(value) for value in content["shared"]])
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
    return policy


def _check_name(name: Any, taken: Container[str]) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"an arm's name must be a string that is not empty, got {name!r}")
    if name in taken:
        raise ValueError(f"arms must have different names, got {name!r} twice")


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


def _to_json(value: float) -> float | str:
    """Infinity has no place in JSON; a string has."""
    return value if math.isfinite(value) else str(value)


def _from_json(value: Any) -> float:
    """Read what `_to_json` wrote; NaN is never part of a state."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    return number("each number of the state", value, -math.inf, math.inf)


def _checksum(content: dict[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _read(text: str) -> dict[str, Any]:
    """Parse and verify what `to_json` wrote."""
    try:
        content = json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"text must be what Bandit.to_json wrote, but is no JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"text must be what Bandit.to_json wrote, with format {FORMAT!r}")
    if content.get("version") != VERSION:
        raise ValueError(
            f"text has format version {content.get('version')!r}, but this release reads version {VERSION}"
        )
    checksum = content.pop("checksum", None)
    if checksum != _checksum(content):
        raise ValueError("text is damaged: its checksum does not fit its content")
    return content
