"""Policies in plain Python: a class with the methods `choose` and `update`, which is not compiled."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from dynabandit.core.streams import Stream
from dynabandit.core.tie_breaking import make_argmax
from dynabandit.policies.base import Policy, PolicyFunctions, PolicyState, Reward, Step
from dynabandit.policies.belief import Belief
from dynabandit.validation import integer, set_fields, suggestion, unknown

COUNT, TOTAL = "count", "total"  # the numbers that are kept for every policy
LAST_PLAYED = "last_played"
KEPT = (COUNT, TOTAL, LAST_PLAYED)


class ArmNumbers:
    """What a policy in plain Python remembers: an attribute for each of its slots, an array with a number per arm.

    An attribute can be changed in part, ``arms.mean[arm] = 0.5``, or as a whole, ``arms.mean *= 0.9``. Every policy
    has `count`, the number of rewards of each arm, `total`, their sum, and `last_played`, the step at which each arm
    was last chosen, 0 if never. These three cannot be changed.

    Examples
    --------
    >>> arms = ArmNumbers({"mean": np.zeros(3)})
    >>> arms.mean[0] = 0.5
    >>> arms.mean += 0.25
    >>> len(arms), arms.mean.tolist()
    (3, [0.75, 0.25, 0.25])
    """

    __slots__ = ("_arrays",)
    _arrays: dict[str, np.ndarray]

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        object.__setattr__(self, "_arrays", arrays)

    def __reduce__(self) -> Any:  # to copy an object, Python would set its attributes
        return ArmNumbers, (self._arrays,)

    def __len__(self) -> int:
        return int(next(iter(self._arrays.values())).shape[-1])

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self._arrays[name]
        except KeyError:
            known = ", ".join(self._arrays)
            hint = suggestion(name, self._arrays)
            raise AttributeError(f"arms have no numbers {name!r}.{hint} Slots: {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.__getattr__(name)[...] = value


class PythonStep:
    """What a policy in plain Python knows at a decision.

    Examples
    --------
    >>> from dynabandit.core.streams import stream
    >>> step = PythonStep(7, stream(1))
    >>> step.number, step.argmax([0.2, 0.9, 0.4]), step.random.random() == PythonStep(7, stream(1)).random.random()
    (7, 1, True)
    """

    def __init__(self, number: int, stream: Stream) -> None:
        self.number = int(number)  # 1, 2, ...
        self._stream = stream

    @functools.cached_property
    def random(self) -> np.random.Generator:
        """A generator for this step alone: equal seeds, replications and steps give equal numbers."""
        low, high, replication = map(int, self._stream)
        bits = np.random.Philox(key=[low + (high << 32), replication], counter=[0, 0, self.number, 0])
        return np.random.Generator(bits)

    def argmax(self, scores: Any) -> int:
        """Return the arm with the largest score; ties are broken at random, as for all policies."""
        return int(make_argmax()(np.asarray(scores, dtype=float), self.number, self._stream))


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class PythonPolicy(Policy):
    """Base class of policies in plain Python, with the methods `choose` and `update`.

    They run in `simulate`, `compare`, the leaderboard and `Bandit`, interpreted: a step takes about 50 microseconds,
    and there is no GPU. What a policy remembers is in arrays, so that it can be copied, saved and restored. A subclass
    becomes a dataclass, whose annotated attributes are the parameters of the policy.

    Examples
    --------
    >>> import dynabandit as db
    >>> class Greedy(db.PythonPolicy):
    ...     name = "greedy"
    ...     slots = ("mean",)
    ...     rate: float = 0.1
    ...
    ...     def choose(self, arms, step):
    ...         return step.argmax(arms.mean)
    ...
    ...     def update(self, arms, arm, reward):
    ...         arms.mean[arm] += self.rate * (reward - arms.mean[arm])
    >>> db.simulate(Greedy(burn_in=1), db.environment("fixed", means=[0.2, 0.8]), horizon=100, seed=1)
    Simulation(greedy(burn_in=1) on fixed, 2 arms, 100 steps, 1 replication: mean total regret 1.2)
    """

    slots: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        taken = [name for name in cls.slots if name in KEPT]
        if taken:
            raise ValueError(f"slots of {cls.__name__} must have other names than {', '.join(KEPT)}, got {taken[0]!r}")
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        lists = {name: value for name, value in vars(self).items() if isinstance(value, list)}
        set_fields(self, **{name: tuple(value) for name, value in lists.items()})
        for name, value in vars(self).items():  # a policy can be a key of a cache
            if type(value).__hash__ is None:
                kind = type(value).__name__
                raise TypeError(f"{name} must be a number, a text, a tuple or another hashable value, got a {kind}")

    def start(self, arms: Any) -> None:
        """Write the numbers of arms without rewards, if they are not 0; the same for all arms."""

    def choose(self, arms: Any, step: PythonStep) -> int:
        """Return the arm to play, 0, 1, ...; `arms` is an `ArmNumbers`."""
        raise NotImplementedError(f"{type(self).__name__} must define choose(self, arms, step)")

    def update(self, arms: Any, arm: int, reward: float) -> None:
        """Learn a reward of an arm; `arms.count` and `arms.total` include it already."""

    def sizes(self) -> dict[str, int]:
        """Return how many numbers per arm each slot has that has more than one, such as ``{"recent": self.window}``.

        `arms.recent` is then an array (numbers, arms).
        """
        return {}

    def memory_size(self) -> int:
        sizes = self.sizes()
        for name in sizes:
            if name not in self.slots:
                raise unknown("slot in sizes()", name, self.slots)
        return 2 + sum(sizes.get(name, 1) for name in self.slots)

    def belief(self, column: np.ndarray, shared: np.ndarray) -> Belief:
        count, total = column[:2].tolist()
        if count == 0.0:
            return Belief(np.nan, 0.0, 1.0, 0.0)
        mean = total / count
        return Belief(mean, max(mean * (1.0 - mean), 0.0), 1.0, count)

    @property
    def functions(self) -> PolicyFunctions:  # type: ignore[override]
        """The functions of the contract, which call `start`, `choose` and `update`."""
        return _functions_of(self)


@functools.cache
def _functions_of(policy: PythonPolicy) -> PolicyFunctions:
    arms_of, members = _arms_reader(policy), tuple(_members(type(policy)))
    what = f"the arm that choose of {policy.label} returns"

    def start(state: PolicyState, arm: int, params: Any) -> None:
        state.memory[:, arm] = 0.0
        column = state._replace(memory=state.memory[:, arm : arm + 1], last_played=state.last_played[arm : arm + 1])
        policy.start(arms_of(column))

    # The default is part of the fingerprint of the function: results are computed again after an edit of the class
    def choose(state: PolicyState, step: Step, params: Any, code: Any = members) -> int:
        return integer(what, policy.choose(arms_of(state), PythonStep(step.number, step.random)), 0, step.arms - 1)

    def learn(state: PolicyState, arm: int, reward: Reward, params: Any) -> None:
        state.memory[0, arm] += 1.0
        state.memory[1, arm] += reward.value
        policy.update(arms_of(state), int(arm), float(reward.value))

    return PolicyFunctions(start=start, learn=learn, choose=choose)


def _arms_reader(policy: PythonPolicy) -> Callable[[PolicyState], ArmNumbers]:
    """Return a function that returns the state of a policy as an `ArmNumbers`."""
    sizes, places, first = policy.sizes(), {}, 2
    for name in policy.slots:
        size = sizes.get(name, 1)
        places[name] = slice(first, first + size) if name in sizes else first
        first += size

    def arms_of(state: PolicyState) -> ArmNumbers:
        memory = state.memory
        own = {name: memory[place] for name, place in places.items()}
        kept = zip(KEPT, map(_read_only, (memory[0], memory[1], state.last_played)), strict=True)
        return ArmNumbers({**dict(kept), **own})

    return arms_of


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _members(kind: type[PythonPolicy]) -> Iterator[Any]:
    """Yield what a class and its bases define, up to `PythonPolicy`: their functions and, with names, their values."""
    for base in kind.__mro__[: kind.__mro__.index(PythonPolicy)]:
        for name, value in vars(base).items():
            if isinstance(value, (staticmethod, classmethod)):
                yield value.__func__
            elif isinstance(value, (property, functools.cached_property)):
                yield value.fget if isinstance(value, property) else value.func
            elif isinstance(value, FunctionType):
                yield value
            elif not name.startswith("__"):
                yield name, value
